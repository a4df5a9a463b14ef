"""What was done in a while, and the CPU time that it cost."""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from phalanx.machine import busy_s, cpu_of, process_tree


class Spent(NamedTuple):
    """One measurement."""

    steps: float
    seconds: float
    cpu_s: float
    """of this process and all below it"""
    own_cpu_s: float
    """of this process alone"""
    others_cores: float
    """that processes of other people kept busy meanwhile: with many, the figures mean little"""

    def speed(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds


def spend(seconds: float, step: Callable[[], float]) -> Spent:
    """Repeat `step`, which returns how many steps it took, until the time is over."""
    tree = process_tree() - {os.getpid()}
    below, own, busy = cpu_of(tree), time.process_time(), busy_s()
    steps, began = 0.0, time.perf_counter()
    while (spent := time.perf_counter() - began) < seconds:
        steps += step()
    own = time.process_time() - own
    cpu = own + max(cpu_of(tree) - below, 0.0)
    others = max(busy_s() - busy - cpu, 0.0) / max(spent, 1e-9)
    return Spent(steps, spent, cpu, own, others)
