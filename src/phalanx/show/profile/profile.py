"""Watch a training for a while: where the time of each thread and process goes."""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from phalanx.compiled.team import Play, ThreadTeam
from phalanx.machine import busy_s, count_cores, cpu_of, process_tree
from phalanx.show.profile.config import ProfileConfig
from phalanx.show.profile.python_functions import Counter, Function, functions_of, new_counter
from phalanx.show.profile.trace_file import THIS, WORKERS, Trace, TracedStopwatch
from phalanx.stopwatch import difference
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.run import Run
from phalanx.training.time_split import Split, seconds_elsewhere

MAIN = "main"
UNDISTURBED = 2 / 3  # of the time; in the rest, calls of Python are counted
WARM_UP_S = 0.5


class Moment(NamedTuple):
    """What has been spent and done up to a moment."""

    at: float
    spent: dict[str, Split]
    """seconds of each thread and process, by part"""
    updates: int
    steps: int
    episodes: int
    received: int
    """how often rows of all environments were waited for"""
    tasks: int
    """that the learner's threads shared"""
    machine_s: float
    """that all cores have computed, for anybody"""
    own_cpu_s: float


@dataclass
class Profile:
    """What was seen."""

    config: TrainConfig
    seconds: float
    shares: dict[str, Split]
    """parts of the time of each thread and process; they sum to 1, but for what nobody told"""
    updates: int
    steps: int
    episodes: int
    tasks: int
    barriers_per_episode: float | None
    bytes_per_step: int | None
    others_cores: float
    """that other programs kept busy meanwhile"""
    num_workers: int
    threads: int
    is_fused: bool
    """simulator and policy are one compiled call"""
    cores: int = field(default_factory=count_cores)
    functions: list[Function] = field(default_factory=list)
    counted_s: float = 0.0
    """seconds in which calls were counted"""
    unseen: list[str] = field(default_factory=list)


def profile(
    config: ProfileConfig, trace: Trace | None = None, on_phase: Callable[[str], None] = print
) -> Profile:
    """Train for a while and look on.

    trace: is filled with what each thread did when. on_phase: is told what comes next.
    """
    with tempfile.TemporaryDirectory(prefix="phalanx-profile-") as folder:
        watcher = _Watcher(config.seconds, trace, on_phase)
        settings = config.training(Path(folder))
        on_phase("starting")
        run = train(settings, on_update=watcher.hear, progress=False)
        return watcher.profile(run)


class _Watcher:
    """Told of each update, goes from phase to phase; ends the run after the last."""

    def __init__(
        self, seconds: float, trace: Trace | None, on_phase: Callable[[str], None]
    ) -> None:
        self._seconds, self._trace, self._on_phase = seconds, trace, on_phase
        self._phases = iter((self._warm_up, self._measure, self._count, self._end))
        self._until = 0.0
        self._counters: dict[str, Counter] = {}
        self._begun: Moment | None = None
        self._seen: Profile | None = None
        self._counted = 0.0

    def hear(self, run: Run) -> None:
        if time.perf_counter() >= self._until:
            next(self._phases)(run)

    def _warm_up(self, run: Run) -> None:
        """Wait until all that happens once is over, and samplers play ahead."""
        if self._trace is not None:
            trace_run(run, self._trace)
        self._until = time.perf_counter() + min(WARM_UP_S, 0.1 * self._seconds)

    def _measure(self, run: Run) -> None:
        self._on_phase("measuring")
        self._begun = moment_of(run)
        self._until = self._begun.at + UNDISTURBED * self._seconds

    def _count(self, run: Run) -> None:
        assert self._begun is not None
        self._seen = seen_between(run, self._begun, moment_of(run))
        if self._trace is not None:
            self._trace.stop()
            for team in _teams(run):
                team.on_work = None
        self._on_phase("counting calls of Python")
        self._counters = count_calls(run)
        self._counted = time.perf_counter()
        self._until = self._counted + (1 - UNDISTURBED) * self._seconds

    def _end(self, run: Run) -> None:
        if MAIN in self._counters:
            self._counters[MAIN].disable()
        self._counted = time.perf_counter() - self._counted
        run.enough = True
        self._until = float("inf")

    def profile(self, run: Run) -> Profile:
        assert self._seen is not None
        seen = self._seen
        seen.counted_s = self._counted
        for thread, counter in self._counters.items():
            seen.functions += functions_of(thread, counter)
        return seen


# --- what is looked at ----------------------------------------------------------------------------


def moment_of(run: Run) -> Moment:
    at, spent = time.perf_counter(), seconds_elsewhere(run)
    if run.workers is None:  # else this thread only keeps the books of the others
        spent = {MAIN: dict(run.seconds)} | spent
    own = {os.getpid(), *process_tree()}
    counted = run.updates, run.steps, run.episodes, _received(run), _tasks(run)
    return Moment(at, spent, *counted, busy_s(), cpu_of(own))


def seen_between(run: Run, before: Moment, after: Moment) -> Profile:
    wall_s, pool = after.at - before.at, getattr(run.sampler, "pool", None)
    shares = {}
    for name, total in after.spent.items():
        spent = difference(total, before.spent.get(name, {}))
        shares[name] = {part: seconds / wall_s for part, seconds in spent.items()}
    others_s = (after.machine_s - before.machine_s) - (after.own_cpu_s - before.own_cpu_s)
    return Profile(
        run.config,
        wall_s,
        shares,
        after.updates - before.updates,
        after.steps - before.steps,
        after.episodes - before.episodes,
        after.tasks - before.tasks,
        _barriers(run, before, after),
        None if pool is None else pool.bytes_per_step,
        max(0.0, others_s) / wall_s,
        run.recipe.num_workers or 0,
        run.recipe.threads,
        hasattr(run.sampler, "spent_s"),
        unseen=unseen_of(run),
    )


def _received(run: Run) -> int:
    return sum(getattr(sampler, "received", 0) for sampler in run.source.samplers)


def _tasks(run: Run) -> int:
    stepper = run.learner.stepper
    team = getattr(getattr(stepper, "inner", stepper), "team", None)
    return 0 if team is None else int(team.tasks)


def _barriers(run: Run, before: Moment, after: Moment) -> float | None:
    """How often, in an episode, an environment waits until all others have come as far."""
    episodes, pool = after.episodes - before.episodes, getattr(run.sampler, "pool", None)
    if pool is not None and pool.num_workers and pool.wait_for < pool.n_envs:
        return 0.0
    if not episodes or (pool is not None and not pool.num_workers):
        return None
    if pool is not None:
        return (after.received - before.received) * pool.n_envs / episodes
    if run.config.env != "cage2":
        return None
    rollouts = (after.steps - before.steps) / run.config.update_steps  # of one environment each
    return rollouts / episodes


def unseen_of(run: Run) -> list[str]:
    """What cannot be looked at from here."""
    unseen = []
    if run.workers is not None:
        unseen.append(
            "the workers of a3c tell their own time; what Python calls in them is not seen"
        )
    elif getattr(run.sampler, "pool", None) is not None and run.recipe.num_workers:
        unseen.append("what Python calls inside the worker processes is not seen")
    if run.config.runner == "ray":
        unseen.append("samplers on Ray: only that they are waited for")
    if run.recipe.device == "cuda":
        unseen.append("the GPU: what runs there ends up where its result is waited for")
    return unseen


# --- looking closer -------------------------------------------------------------------------------


def trace_run(run: Run, trace: Trace) -> None:
    """Have every thread keep what it does."""
    own = [sampler for sampler in run.source.samplers if sampler.watch is not run.watch]
    pool = getattr(run.sampler, "pool", None)
    arrived: Callable[[], None] = lambda: None  # noqa: E731
    if pool is not None and pool.num_workers:
        arrived = _WorkerSpans(trace, pool)
    run.watch = TracedStopwatch(trace, 0, MAIN, arrived)
    run.source.time_by(run.watch)
    for k, sampler in enumerate(own):
        sampler.watch = TracedStopwatch(trace, 100 + k, f"sampler {k}", arrived)
    for first, team in enumerate(_teams(run)):
        team.on_work = _HelperSpans(trace, 1 + 1000 * first)


def _teams(run: Run) -> list[ThreadTeam]:
    stepper = run.learner.stepper
    found = [getattr(getattr(stepper, "inner", stepper), "team", None)]
    found += [sampler.batch.team for sampler in run.source.samplers if hasattr(sampler, "batch")]
    return list({id(team): team for team in found if team is not None}.values())


class _HelperSpans:
    """The work of threads that help; the leader's is in its own stopwatch."""

    def __init__(self, trace: Trace, first_tid: int) -> None:
        self._trace, self._first = trace, first_tid

    def __call__(self, play: Play, thread: int, began: float, ended: float) -> None:
        if thread:
            tid = self._first + thread
            self._trace.name(THIS, tid, f"thread {thread}")
            self._trace.add(THIS, tid, play.__name__, began, ended)


class _Pool(Protocol):
    """What is asked of an environment's workers."""

    @property
    def num_workers(self) -> int: ...

    @property
    def worker_times(self) -> npt.NDArray[np.float64]: ...


class _WorkerSpans:
    """What workers did last, looked at whenever their rows have come."""

    def __init__(self, trace: Trace, pool: _Pool) -> None:
        self._trace, self._pool = trace, pool
        self._last = [0.0] * pool.num_workers

    def __call__(self) -> None:
        for worker, (_spent, began, ended) in enumerate(self._pool.worker_times.tolist()):
            if began > self._last[worker] and ended > began:
                self._last[worker] = began
                self._trace.name(WORKERS, worker, f"worker {worker}")
                self._trace.add(WORKERS, worker, "simulator", began, ended)


def count_calls(run: Run) -> dict[str, Counter]:
    """Count the calls of this thread, and of samplers that have their own, from now on."""
    counters = {}
    for k, sampler in enumerate(run.source.samplers if run.workers is None else ()):
        if sampler.watch is not run.watch:
            counter = counters[f"sampler {k}"] = new_counter()
            sampler.collect = _counted(sampler.collect, counter)
    counters[MAIN] = new_counter()
    counters[MAIN].enable()
    return counters


def _counted(collect: Callable[..., object], counter: Counter) -> Callable[..., object]:
    def collect_counted(shaping: object = None) -> object:
        counter.enable()
        try:
            return collect(shaping)
        finally:
            counter.disable()

    return collect_counted
