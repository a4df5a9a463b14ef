"""A3C (Mnih et al., 2016): workers that each play, and add their gradients to shared weights.

Each rollout gives one step: policy gradient, critic and entropy. While a worker played, others may
have changed the weights: its step is computed at the newest ones, and each action's advantage is
weighted by the ratio of the newest policy and the one that acted, bounded as in PPO.

Weights, optimiser and counters lie in one block of memory that all write at once. Nobody locks it
(Hogwild, Niu et al., 2011): numbers of 32 bits are written whole, and of two steps at the same
moment one may lose a little. The block is a file without a name, which is gone with the last
process that maps it.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Arrays
from phalanx.compiled.rule import kernel
from phalanx.compiled.team import CACHE_LINE, add
from phalanx.files import Facts
from phalanx.learn.ppo import STATS, PPOSettings, Stepper, advantage_rows
from phalanx.learn.rollout import Floats, Rollout
from phalanx.system import MemoryFile

Ints = npt.NDArray[np.int64]

# What different processes write does not share a cache line.
UPDATES, STOP, STEPS_BEFORE, EPISODES_BEFORE = (CACHE_LINE * k for k in range(4))
BEGIN, ELAPSED_MS = STOP + 1, STOP + 2
BEATS, STEPS, EPISODES = 0, 1, 2  # of each worker


@kernel
def count_up(counters: npt.NDArray[np.int64], place: int, more: int) -> int:
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
    def done(self) -> tuple[int, int, int, float]:
        """Updates, episodes and steps of the whole run, and its seconds when it last said so."""
        episodes = self.counters[EPISODES_BEFORE] + self.lines[:, EPISODES].sum()
        steps = self.counters[STEPS_BEFORE] + self.lines[:, STEPS].sum()
        return self.updates, int(episodes), int(steps), float(self.counters[ELAPSED_MS]) / 1000


class SharedStepper(Stepper, Protocol):
    """A stepper whose weights may lie in shared memory."""

    steps: int

    @property
    def size(self) -> int:
        """How many weights there are."""
        ...

    def share(self, shared: Shared, bring: bool) -> None: ...


class A3C:
    """One of many that improve the same weights: as `PPO`, `update(rollout, rate, …)`.

    bring: lay the stepper's weights into the shared block, instead of taking those that are there.
    """

    def __init__(
        self, stepper: SharedStepper, settings: PPOSettings, shared: Shared, bring: bool
    ) -> None:
        self.stepper, self.settings, self.shared = stepper, settings, shared
        stepper.share(shared, bring)

    def update(self, rollout: Rollout, rate: float, entropy_weight: float) -> dict[str, float]:
        """One step on the whole rollout, written to the shared weights as it is computed."""
        rows, explained = advantage_rows(rollout, self.settings.gae_lambda, normalised=False)
        loss = self.settings.loss._replace(rate=rate, entropy_weight=entropy_weight)
        self.stepper.load_rows(rows)
        self.stepper.steps = int(count_up(self.shared.counters, UPDATES, 1))  # begun before it
        stats, norm = self.stepper.step(np.arange(rollout.rewards.size), loss)
        metrics = dict(zip(STATS, (stats / rollout.rewards.size).tolist(), strict=True))
        return metrics | {"explained_variance": explained, "grad_norm": norm, "epochs": 1.0}

    def save(self) -> tuple[Arrays, Facts]:
        self.stepper.steps = self.shared.updates
        return self.stepper.save()

    def load(self, arrays: Arrays, facts: Facts) -> None:
        self.stepper.load(arrays, facts)
        self.stepper.share(self.shared, True)
        self.shared.counters[UPDATES] = facts["adam_steps"]
