"""What the processes of a pool share: how it was set up, and one block of memory.

All that crosses between processes at a step is in the block, as named arrays. It is a file without
a name: it is gone when the last process that maps it is gone, however that happens, and nothing can
be left in /dev/shm.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from phalanx.arrays import Array
from phalanx.envs.layout import Layout, Leaf, Objects, Rows
from phalanx.system import Bytes

Options = dict[str, Any]  # that an environment is reset with: as it wants them
Ints = npt.NDArray[np.int64]

BOOL = np.dtype(np.bool_)
CACHE_LINE = 64  # arrays begin on one of their own, so that writers do not disturb each other
IDLE = -(2**62)  # in place of the environment that a worker is at

SPENT, BEGAN, ENDED = 0, 1, 2  # of `busy`

# Bits of `flags`.
TERMINATED, TRUNCATED, LOST, INFO = 1, 2, 4, 8

# Orders: what to do with an environment that is not to be stepped.
SEED, BEGIN, RECOVER, CALL = 1, 2, 3, 4
WITH_OPTIONS = 16  # added to SEED or BEGIN: a message says with which


@dataclass(frozen=True)
class EnvTraits:
    """What the first environment showed."""

    observations: Layout | Objects
    actions: Layout | Objects
    metadata: dict[str, object]
    render_mode: str | None
    num_masked: int = 0
    """actions that the mask speaks of; 0 without masks"""
    mask_dtype: np.dtype[np.generic] = BOOL
    """of the masks that the environment gives"""
    step_s: float = 0.0
    """of a step, on a machine that has nothing else to do; 0 if it was not measured"""
    cpu_share: float = 1.0
    """the part of it that the environment computed; the rest it waited"""


@dataclass(frozen=True)
class PoolSetup:
    """All that decides how the environments of a pool are run; workers are told so."""

    traits: EnvTraits
    n_envs: int
    num_workers: int
    seed: int
    infos: bool
    options: Options | None
    """of resets that are given none"""
    autoreset: AutoresetMode
    alike: bool
    """observation spaces may have different bounds, if shape and dtype are the same"""
    wait_for: int
    step_timeout_s: float
    start_timeout_s: float

    @property
    def each_row(self) -> bool:
        """Workers say so after every row, not only after a whole request."""
        return self.wait_for < self.n_envs


class Board:
    """The arrays of a pool: rows for environments, counters for workers.

    An environment is asked for by its number in the ring of its worker's requests, or by ~number
    when its order is to be followed instead of stepping it. Counters only grow: `sent` is the
    caller's, `done` the worker's. An environment is asked for once at a time, so a ring as long as
    the block is long enough. Rows are finished in the order of the requests, but for a worker that
    replaced another: where somebody waits for single rows, they have a ring of their own.
    """

    def __init__(self, setup: PoolSetup, allocate: Callable[[int], Bytes] = bytearray) -> None:
        """Lay the arrays out in memory of which allocate(size) gives so many bytes."""
        self.observations, self.action_layout = setup.traits.observations, setup.traits.actions
        self.num_masked = setup.traits.num_masked
        n, w = setup.n_envs, max(setup.num_workers, 1)
        self._n_envs = n
        self._end = 0
        self._memory: Bytes | None = None
        for lay_out in (False, True):  # first to know the size
            if lay_out:
                self._memory = allocate(self._end)
                self._end = 0
            self.obs: Rows = self.observations.rows(self._rows)
            self.final_obs: Rows = self.observations.rows(self._rows)
            self.actions: Rows = self.action_layout.rows(self._rows)
            self.rewards = self._array(np.float64, n)
            self.flags = self._array(np.uint8, n)
            self.episode_returns = self._array(np.float64, n)
            self.episode_lengths = self._array(np.int64, n)
            self.masks = self._array(np.bool_, n, self.num_masked)
            self.orders = self._array(np.int8, n)
            self.seeds = self._array(np.int64, n)
            self.losses = self._array(np.int64, n)  # how often environment i has been built again
            self.requests: Ints = self._array(np.int64, n)  # each worker has the part of its block
            self.finished: Ints = self._array(np.int64, n)
            self.sent: Ints = self._array(np.int64, w)
            self.done: Ints = self._array(np.int64, w)
            # What each worker is at, IDLE if nothing: written at every step, so a line for each.
            self.now: Ints = self._array(np.int64, w * CACHE_LINE // 8)[:: CACHE_LINE // 8]
            # Seconds that each worker has stepped, and when it last began and ended, in lines too.
            self.busy: Array = self._array(np.float64, w, CACHE_LINE // 8)
            self.asleep: Ints = self._array(np.int64, w + 1)  # the last one is the caller
            self.goal: Ints = self._array(np.int64, 1)  # finished rows that the caller waits for

        self.everybody: Ints = np.arange(n)
        self.everybody.flags.writeable = False  # callers get it, and give it back
        self.no_returns = np.full(n, np.nan)  # for rows that end no episode
        self.no_lengths: Ints = np.full(n, -1)

    def bytes_per_step(self) -> int | None:
        """That cross between processes for a step of one environment; None: messages do, too."""
        sizes: list[int] = []

        def one(leaf: Leaf) -> Array:
            value = np.empty(leaf.shape, leaf.dtype)
            sizes.append(value.nbytes)
            return value

        for layout in (self.observations, self.action_layout):
            if isinstance(layout, Objects):
                return None
            layout.rows(one)
        others = (self.requests, self.rewards, self.flags)
        return sum(sizes) + sum(array.itemsize for array in others) + self.num_masked

    def _rows(self, leaf: Leaf) -> Array:
        return self._array(leaf.dtype, self._n_envs, *leaf.shape)

    def _array(self, dtype: npt.DTypeLike, *shape: int) -> Array:
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64))
        start = self._end
        self._end = start + -(-max(size * dtype.itemsize, 1) // CACHE_LINE) * CACHE_LINE
        if self._memory is None:
            return np.empty(0, dtype)
        return np.frombuffer(self._memory, dtype, size, start).reshape(shape)  # type: ignore[arg-type]


def seed_of(seed: int, i: int) -> int:
    """The seed of environment i: it depends on nothing but these two numbers."""
    return int(np.random.SeedSequence([seed, i]).generate_state(1)[0])


def numbers(array: Array) -> Any:
    """The numbers of an array for single reads and writes, in a third of the array's own time.

    A memoryview of ints or of floats, which types cannot tell apart.
    """
    return memoryview(array)  # type: ignore[arg-type]


def block_of(worker: int, n_envs: int, num_workers: int) -> range:
    """The environments of a worker: contiguous, and as many as others have, give or take one."""
    first = worker * n_envs // num_workers
    return range(first, (worker + 1) * n_envs // num_workers)
