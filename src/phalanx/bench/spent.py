"""What was done in a while, and the CPU time that it cost."""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from phalanx.machine import process_tree


class Spent(NamedTuple):
    """One measurement."""

    steps: int
    seconds: float
    cpu_s: float
    """of this process and all below it"""
    own_cpu_s: float
    """of this process alone"""


def spend(seconds: float, step: Callable[[], int]) -> Spent:
    """Repeat `step`, which returns how many steps it took, until the time is over."""
    tree = process_tree() - {os.getpid()}
    below, own = cpu_of(tree), time.process_time()
    steps, began = 0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds:
        steps += step()
    own = time.process_time() - own
    return Spent(steps, spent, own + max(cpu_of(tree) - below, 0.0), own)


def cpu_of(pids: set[int]) -> float:
    """Seconds that these processes have computed, with all their threads."""
    return sum(map(_cpu_s, pids))


def _cpu_s(pid: int) -> float:
    try:
        return time.clock_gettime((~pid << 3) | 2)  # the process's own clock, see clock_gettime(2)
    except OSError:  # it has ended
        return 0.0
