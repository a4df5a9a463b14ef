"""Where a run's time goes: in its own thread, its samplers, its other threads, its workers."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from phalanx.errors import PhalanxError
from phalanx.stopwatch import IDLE, LEARNING, LOGGING, PARTS, SIMULATOR

if TYPE_CHECKING:
    from phalanx.training.run import Run

COLLECTING = "collecting"  # simulator, policy, copying and waiting together, as they were once told
_ONCE = {"collect": COLLECTING, "learn": LEARNING, "other": LOGGING}  # what parts were called
Split = dict[str, float]


def is_split(value: object) -> bool:
    """Whether these are seconds by part, by the names of today or of earlier versions."""
    if not isinstance(value, Mapping):
        return False
    return set(value) == set(_ONCE) or set(PARTS) <= set(value) <= {*PARTS, COLLECTING}


def old_split_as_new(seconds: Mapping[str, float]) -> Split:
    """The seconds by part of any checkpoint or summary, by the names of today."""
    return {_ONCE.get(part, part): spent for part, spent in seconds.items()}


def barriers_s(stepper: object) -> float:
    """Seconds that a learner's leading thread has waited for its others so far."""
    team = getattr(getattr(stepper, "inner", stepper), "team", None)
    return 0.0 if team is None else float(team.waited_s())


def seconds_elsewhere(run: "Run") -> dict[str, Split]:
    """Seconds by part of all but the run's own thread, since it began to play.

    A thread or process that works only when it is asked to is idle for the rest of the time.
    """
    since_s = time.perf_counter() - run.opened
    known = dict(_workers_of(run)) if run.workers is not None else dict(_threads_of(run))
    elsewhere = {}
    for name, spent in known.items():
        rest = max(0.0, since_s - sum(spent.values()))
        elsewhere[name] = dict.fromkeys(PARTS, 0.0) | spent | {IDLE: spent.get(IDLE, 0.0) + rest}
    return elsewhere


def _workers_of(run: "Run") -> Iterator[tuple[str, Split]]:
    """The processes of a3c, as they tell."""
    assert run.workers is not None
    for number, spent in sorted(run.workers.spent.items()):
        yield f"worker {number}", dict(spent)


def _threads_of(run: "Run") -> Iterator[tuple[str, Split]]:
    samplers, stepper = run.source.samplers, run.learner.stepper
    own = [sampler for sampler in samplers if sampler.watch is not run.watch]
    for k, sampler in enumerate(own):
        yield f"sampler {k}", sampler.watch.peek()
    team = getattr(getattr(stepper, "inner", stepper), "team", None)
    for k, sampler in enumerate(samplers):
        yield from _helpers_of_sampler(sampler, team, f"sampler {k}'s " if own else "")
        with contextlib.suppress(PhalanxError):  # a pool that cannot go on
            pool = getattr(sampler, "pool", None)
            for number, busy_s in enumerate([] if pool is None else pool.worker_times[:, 0]):
                yield f"worker {number}", {SIMULATOR: float(busy_s)}
    teams = [sampler.batch.team for sampler in samplers if hasattr(sampler, "batch")]
    if team is not None and team not in teams:
        for k, busy_s in enumerate(team.busy_s().tolist()[1:], 1):
            yield f"thread {k}", {LEARNING: busy_s}


def _helpers_of_sampler(
    sampler: object, learners: object, whose: str
) -> Iterator[tuple[str, Split]]:
    """The threads that play along in the compiled game; if they learn too, what is left is that."""
    if not hasattr(sampler, "spent_s") or not hasattr(sampler, "batch"):
        return
    team, spent = sampler.batch.team, sampler.spent_s
    for k, busy_s in enumerate(team.busy_s().tolist()[1:], 1):
        split = {part: float(seconds[k]) for part, seconds in spent.items()}
        if team is learners:
            split[LEARNING] = max(0.0, busy_s - sum(split.values()))
        yield f"{whose}thread {k}", split
