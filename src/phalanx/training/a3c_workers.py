"""A3C seen from the run: start the workers, hear of their updates, replace those that die."""

import contextlib
import dataclasses
import os
import select
import signal
import socket
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import cloudpickle

from phalanx.envs.channel import Channel
from phalanx.envs.factories import factory_of
from phalanx.envs.faults import FaultLog, dead_worker
from phalanx.envs.shared_memory import block_of
from phalanx.envs.starter import Started, environment
from phalanx.envs.trial import try_first
from phalanx.errors import ConfigError, WorkerError
from phalanx.importing import command_for
from phalanx.learn import a3c
from phalanx.learn.ppo import PPOSettings
from phalanx.learn.rollout import Rollout
from phalanx.machine import count_cores
from phalanx.stopwatch import Stopwatch
from phalanx.system import LINUX, kill, unnamed_file
from phalanx.training.a3c_worker import Setup
from phalanx.training.config import TrainConfig
from phalanx.training.on_pool import env_of, open_networks
from phalanx.training.recipe import Network, Recipe, settings_of
from phalanx.training.update_record import UpdateRecord

TICK_S = 0.1  # how long `hear` waits, so that limits and signals are seen in time
ENVS_PER_WORKER = 16
START_S = 120.0  # in which a worker must have built its environments
STOP_S = 0.5  # in which it is to finish its rollout when the run ends


def on_shared_weights(
    config: TrainConfig, network: Network | None, _first_index: int = 0
) -> Recipe:
    """Workers with a share of the environments each; this process only keeps the books."""
    if not LINUX:
        raise ConfigError(
            "--algo a3c needs processes that share memory as only Linux lets them: "
            "use --algo ppo or impala"
        )
    cores = count_cores()
    num_workers = cores if config.num_workers == "auto" else int(config.num_workers)
    # A turn costs a worker as much as a dozen small environments, whatever others do.
    n_envs = num_workers * ENVS_PER_WORKER if config.num_envs == "auto" else int(config.num_envs)
    num_workers = min(num_workers, n_envs)
    threads = max(1, cores // num_workers)
    if config.num_threads != "auto":
        threads = min(threads, int(config.num_threads))
    factory, name = factory_of(env_of(config))
    trial, starter, _why_not, _env = try_first(
        factory,
        name,
        seed=config.seed,
        n_envs=n_envs,
        num_workers=num_workers,
        step_timeout=config.step_timeout,
        start_timeout=START_S,
    )
    if starter is not None:
        starter.close()
    # A thread that learns from fewer rows than this waits longer than it works.
    worth_having = -(-n_envs // num_workers) * config.update_steps // 512
    theirs = dataclasses.replace(
        config, device="cpu", num_threads=max(1, min(threads, worth_having))
    )
    _actor, opened, device = open_networks(
        theirs, trial.observations.space, trial.actions.space, network
    )
    stepper = cast(a3c.SharedStepper, opened)  # nothing is normalised here
    memory_fd = unnamed_file()
    shared = a3c.Shared(memory_fd, stepper.size, num_workers, n_envs)
    learner = a3c.A3C(stepper, settings_of(PPOSettings, config), shared, bring=True)
    setup = Setup(0, num_workers, n_envs, theirs, network, memory_fd, stepper.size, 0)
    workers = SharedWorkers(setup, shared, threads)
    note = f"{n_envs} environments; {num_workers} workers on {cores} cores, {threads} threads each"
    config = dataclasses.replace(config, num_envs=n_envs)
    parts = workers, learner, device, threads, note
    return Recipe(config, *parts, num_workers=num_workers, workers=workers)


@dataclass
class Running:
    """A worker's process, and what we have heard of it."""

    process: subprocess.Popen[bytes]
    started: Started
    since: float
    """when it began, or when its environments were last seen to move"""
    beats: int = 0
    ready: bool = False
    done: bool = False
    failure: tuple[str, str, bool] | None = None
    """what it said before it ended, its traceback, and whether another would end like it"""
    verdict: tuple[str, str] | None = None
    """why we had to end it, and its stack"""


class SharedWorkers:
    """The processes. `hear` tells what they did; a dead one is told of and replaced."""

    def __init__(self, setup: Setup, shared: a3c.Shared, threads: int) -> None:
        self._setup, self.shared, self._threads = setup, shared, threads
        self.num_workers = setup.num_workers
        self.samplers = [self]  # the run asks us for what it asks of samplers in its own process
        self.running = shared.running  # returns of the episodes under way
        self.stop: Callable[[], bool]
        self._log = FaultLog(setup.config.max_restarts, None)
        self.listen = self._log.listen
        self._life, self._life_end = os.pipe()  # workers die when nobody holds `_life_end`
        self._running: dict[int, Running] = {}
        self._told = [(0, 0)] * self.num_workers  # steps and episodes that were reported
        self.spent: dict[int, Counter[str]] = defaultdict(Counter)
        """seconds of each worker, by part, as far as they were reported"""
        self._closed = False
        try:
            for worker in range(self.num_workers):
                self._start(worker)
            while not all(one.ready for one in self._running.values()):
                self._attend(TICK_S)
        except BaseException:
            self.close()
            raise

    def _start(self, worker: int) -> None:
        setup = dataclasses.replace(self._setup, number=worker, begun=self.shared.updates)
        with contextlib.ExitStack() as on_failure, contextlib.ExitStack() as theirs:
            ours, their_end = socket.socketpair()
            theirs.callback(their_end.close)
            on_failure.callback(ours.close)
            words_fd = unnamed_file()
            on_failure.callback(os.close, words_fd)
            setup_fd = unnamed_file(cloudpickle.dumps(setup))
            theirs.callback(os.close, setup_fd)
            fds = [their_end.fileno(), setup_fd, self._life, words_fd]
            process = subprocess.Popen(
                command_for("phalanx.training.a3c_worker", *fds),
                pass_fds=(*fds, setup.memory_fd),
                stdin=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C is for us
                env=environment(self._threads),
            )
            on_failure.pop_all()
        started = Started(worker, process.pid, Channel(ours), words_fd)
        self._running[worker] = Running(process, started, time.monotonic())

    def time_by(self, watch: Stopwatch) -> None:
        """Each tells its own time, with its updates."""

    def next(self, weights: object, version: int, shaping: object) -> Rollout:
        raise AssertionError("workers learn from their rollouts themselves; `hear` of it")

    @property
    def pids(self) -> list[int]:
        return [one.process.pid for one in self._running.values()]

    def go_on_from(self, episodes: int, steps: int) -> None:
        """Count on from what earlier workers of this run did."""
        self.shared.counters[a3c.EPISODES_BEFORE] = episodes
        self.shared.counters[a3c.STEPS_BEFORE] = steps

    def tell_time(self, elapsed_s: float) -> None:
        """How long the run has taken: with `--duration`, schedules follow it."""
        self.shared.counters[a3c.ELAPSED_MS] = int(1000 * elapsed_s)

    def hear(self) -> list[UpdateRecord]:
        """What was done since; waits for something, but not for long."""
        self.shared.counters[a3c.BEGIN] = 1
        return self._attend(TICK_S)

    def finish(self) -> list[UpdateRecord]:
        """Give all a moment to finish their rollouts, then halt them."""
        self.shared.counters[a3c.STOP] = 1
        records, deadline = [], time.monotonic() + STOP_S
        while any(one.ready and not one.done for one in self._running.values()):
            records += self._attend(0.02)
            if time.monotonic() > deadline:
                break
        for one in self._running.values():
            if not one.done:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(one.process.pid, signal.SIGSTOP)
        return records

    def close(self) -> None:
        """End all processes."""
        if self._closed:
            return
        self._closed = True
        for one in self._running.values():
            one.started.close()
        deadline = time.monotonic() + STOP_S
        for one in self._running.values():
            if one.done:  # it only waits for us to hang up
                with contextlib.suppress(subprocess.TimeoutExpired):
                    one.process.wait(max(0.0, deadline - time.monotonic()))
            kill(one.process.pid)
            one.process.wait()
        self._running.clear()
        for fd in (self._life, self._life_end, self._setup.memory_fd):
            os.close(fd)

    # --- what may happen --------------------------------------------------------------------------

    def _attend(self, timeout_s: float) -> list[UpdateRecord]:
        for worker, one in list(self._running.items()):
            if one.started.channel.closed:  # what it told last, and others with it, counts by now
                self._replace(worker)
        channels = {one.started.channel.fileno(): worker for worker, one in self._running.items()}
        records: list[UpdateRecord] = []
        for fd in select.select(list(channels), [], [], timeout_s)[0]:
            worker = channels[fd]
            one = self._running[worker]
            for kind, *content in one.started.channel.receive():
                if kind == "update":
                    record: UpdateRecord = content[0]
                    steps, episodes = self._told[worker]
                    self._told[worker] = steps + record.steps, episodes + len(record.episodes)
                    self.spent[worker].update(record.split)
                    records.append(record)
                elif kind == "ready":
                    one.ready, one.since = True, time.monotonic()
                elif kind == "fault":
                    self._log(content[0])
                elif kind == "done":
                    one.done = True
                else:
                    assert kind == "failed"
                    one.failure = (content[0], content[1], content[2])
        self._watch()
        return records

    def _watch(self) -> None:
        """End workers that take too long to begin, or whose environment hangs in a step."""
        now = time.monotonic()
        for worker, one in self._running.items():
            beats = int(self.shared.lines[worker, a3c.BEATS])
            limit_s = self._setup.config.step_timeout
            if one.verdict is not None:
                continue
            if not one.ready:
                if now - one.since > START_S:
                    self._end(one, f"took longer than {START_S:g} s to build its environments")
            elif beats != one.beats or (beats % 2 == 0 and not is_stopped(one.process.pid)):
                one.beats, one.since = beats, now
            elif now - one.since > limit_s:
                self._end(one, f"hung for longer than the step_timeout of {limit_s:g} s")

    def _end(self, one: Running, verdict: str) -> None:
        one.verdict = verdict, one.started.stack()
        kill(one.process.pid)

    def _replace(self, worker: int) -> None:
        one = self._running[worker]
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.process.wait(1.0)
        kill(one.process.pid)
        code, words, said = one.process.wait(), one.started.words(), one.verdict
        if said is None and one.failure is not None:
            said = f"failed: {one.failure[0]}", one.failure[1]
        one.started.close()
        del self._running[worker]
        if one.failure is not None and not self.shared.counters[a3c.BEGIN]:
            raise ConfigError(one.failure[0])
        if one.failure is not None and one.failure[2]:
            raise WorkerError(one.failure[0])
        # Steps that it did not report are played again by others.
        own = self.shared.lines[worker]
        own[a3c.STEPS], own[a3c.EPISODES] = self._told[worker]
        own[a3c.BEATS] = 0
        block = block_of(worker, self._setup.n_envs, self.num_workers)
        self._log(dead_worker(worker, code, said, words, lost=tuple(block)))
        if not self.shared.stopped:
            self._start(worker)


def is_stopped(pid: int) -> bool:
    """Whether somebody has halted a process (SIGSTOP): it will not go on by itself."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in ("T", "t")
    except OSError:
        return False
