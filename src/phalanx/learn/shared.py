"""Weights, optimiser and counters in one block of memory that several processes write at once.

Nobody locks it (Hogwild, Niu et al., 2011): numbers of 32 bits are written whole, and of two steps
at the same moment one may lose a little. The block is a file without a name, which is gone with the
last process that maps it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.compiled.rule import kernel
from phalanx.compiled.team import CACHE_LINE, add
from phalanx.learn.compiled.mlp import Floats
from phalanx.system import MemoryFile

Ints = npt.NDArray[np.int64]

# What different processes write does not share a cache line.
UPDATES, STOP, STEPS_BEFORE, EPISODES_BEFORE = (CACHE_LINE * k for k in range(4))
ELAPSED_MS = STOP + 1
BEATS, STEPS, EPISODES = 0, 1, 2  # of each worker


@kernel
def count_up(counters: Any, place: int, more: int) -> int:
    """Add to a counter and return what it was; no other process comes in between."""
    return add(counters, place, more)


class Shared:
    """The block, laid out for networks of `size` weights and so many workers.

    weights, mean, square: float32 [size], the last two as Adam keeps them.
    running: float64 [N], the returns of the episodes under way.
    lines: int64 [W, 8], each worker's own counts: BEATS (signs of life), STEPS and EPISODES.
    """

    def __init__(self, fd: int, size: int, num_workers: int, n_envs: int = 0) -> None:
        numbers = 4 * CACHE_LINE + num_workers * CACHE_LINE
        whole = 8 * (numbers + n_envs) + 3 * 4 * size
        memory = MemoryFile(fd).map(whole)
        counts: Ints = np.frombuffer(memory, np.int64, numbers)
        self.counters = counts[: 4 * CACHE_LINE]
        self.lines = counts[4 * CACHE_LINE :].reshape(-1, CACHE_LINE)
        self.running = np.frombuffer(memory, np.float64, n_envs, 8 * numbers)
        floats: Floats = np.frombuffer(memory, np.float32, 3 * size, 8 * (numbers + n_envs))
        self.weights, self.mean, self.square = floats.reshape(3, size)

    @property
    def updates(self) -> int:
        return int(self.counters[UPDATES])

    @property
    def stopped(self) -> bool:
        return bool(self.counters[STOP])

    @property
    def elapsed_s(self) -> float:
        """Seconds of training, as the run last told."""
        return float(self.counters[ELAPSED_MS]) / 1000

    @property
    def steps(self) -> int:
        """Of the whole run, those before this process began included."""
        return int(self.counters[STEPS_BEFORE] + self.lines[:, STEPS].sum())

    @property
    def episodes(self) -> int:
        return int(self.counters[EPISODES_BEFORE] + self.lines[:, EPISODES].sum())

    def begin_update(self) -> int:
        """Count an update; returns how many were begun before it."""
        return int(count_up(self.counters, UPDATES, 1))
