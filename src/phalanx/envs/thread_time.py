"""What a thread did with its time: it computed, it waited for something, or others had its core."""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from phalanx.system import LINUX, switches

TASKS = Path("/proc/self/task")
GROUPS, QUIET = 64, 1  # of steps, and how many of them may have been lucky
FAR = 3.0


class Spent(NamedTuple):
    """How some seconds were spent; those in which others had the core are no part of it."""

    computed_s: float
    helped_s: float
    """in which it waited for threads of its own process that computed"""
    waited_s: float


class Account(NamedTuple):
    """The kernel's account of this thread, since it began.

    before = Account.now(); work(); Account.now().since(before).waited_s
    """

    wall_s: float
    cpu_s: float
    queued_s: float | None
    """in which it could have run, had there been a core; None where the kernel does not tell"""
    others_s: float
    """in which other threads of this process computed, or stood in the queue"""
    sleeps: int
    """how often it gave up its core to wait"""
    preemptions: int
    """how often its core was taken from it"""

    @classmethod
    def now(cls) -> "Account":
        cpu_s, switched = time.thread_time(), switches()
        queued_s, others_queued_s = _queued_s()
        others_s = time.process_time() - cpu_s + others_queued_s
        return cls(time.perf_counter(), cpu_s, queued_s, others_s, *switched)

    def since(self, before: "Account") -> Spent:
        """What was done between two accounts.

        A thread that neither computes nor queues waits, if it chose to: seconds that a busy machine
        took from it are not waiting. Nor is it waiting while threads of its own work for it.
        """
        cpu_s = self.cpu_s - before.cpu_s
        away_s = max(self.wall_s - before.wall_s - cpu_s, 0.0)
        sleeps, taken = self.sleeps - before.sleeps, self.preemptions - before.preemptions
        if not sleeps:
            idle_s = 0.0
        elif self.queued_s is not None and before.queued_s is not None:
            idle_s = max(away_s - (self.queued_s - before.queued_s), 0.0)
        else:
            idle_s = away_s * sleeps / (sleeps + taken)
        helped_s = min(max(self.others_s - before.others_s, 0.0), idle_s)
        return Spent(cpu_s, helped_s, idle_s - helped_s)


def quiet_mean(costs: Sequence[float]) -> float:
    """Mean of what steps cost in CPU time, as it would be on a quiet machine.

    Whoever has a core after others, or shares one, finds cold caches: steps cost up to twice as
    much there, but not those of the quietest groups. Where some steps cost far more than others,
    that is no neighbour's doing, and all count.
    """
    groups = np.array_split(np.asarray(costs), min(len(costs), GROUPS))
    means = sorted(float(group.mean()) for group in groups)
    quiet, mean = means[len(means) * QUIET // GROUPS], float(np.mean(costs))
    return mean if mean > FAR * quiet else quiet


def _queued_s() -> tuple[float | None, float]:
    """Seconds in the queue for a core: of this thread, and of the others of this process."""
    if not LINUX:
        return None, 0.0
    try:
        mine = _queue_of(Path("/proc/thread-self/schedstat"))
    except (OSError, ValueError, IndexError):
        return None, 0.0
    everyone = 0.0
    for task in TASKS.iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):  # it may just have ended
            everyone += _queue_of(task / "schedstat")
    return mine, max(everyone - mine, 0.0)


def _queue_of(schedstat: Path) -> float:
    """Its second number: nanoseconds ready to run, and not running."""
    return int(schedstat.read_text().split()[1]) / 1e9
