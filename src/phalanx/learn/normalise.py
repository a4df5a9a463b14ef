"""Observations and rewards on a scale that networks learn from, by what was seen so far.

The learner updates the statistics, from whole rollouts in the order of their environments: they do
not depend on who played. They are sent out with the weights and saved beside them; whoever only
plays uses them as they were saved.
"""

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array, Arrays
from phalanx.errors import CheckpointError
from phalanx.files import Facts
from phalanx.learn.ppo import Rows, Stepper
from phalanx.learn.rollout import Actor, Floats, Outputs, Rollout, Weights, flat

BOUND = 10.0  # normalised numbers are at most so large
EPSILON = 1e-8
SEEN, RETURNS = "obs", "return"  # how the names of saved statistics begin


_MOST = float(np.finfo(np.float32).max)  # that can be seen
LARGEST = {"count": 2.0**63, "mean": _MOST, "var": _MOST**2}


class Running:
    """Mean and variance of all rows that were added, as numpy would find them in one array.

    Two parts are put together as by Chan, Golub and LeVeque (1979).
    """

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.count = np.zeros(())
        self.mean, self.var = np.zeros(shape), np.ones(shape)

    def add(self, rows: Array) -> None:
        """rows: [n, *shape]."""
        count, total = len(rows), self.count + len(rows)
        mean, var = rows.mean(axis=0, dtype=np.float64), rows.var(axis=0, dtype=np.float64)
        apart = mean - self.mean
        own = self.var * self.count
        self.var = (own + var * count + apart**2 * self.count * count / total) / total
        self.mean = self.mean + apart * count / total
        self.count = total

    @property
    def factor(self) -> npt.NDArray[np.float32]:
        """1 / deviation; 1 as long as nothing was seen."""
        return np.asarray(1 / np.sqrt(self.var + EPSILON), np.float32)

    def save(self, prefix: str) -> Arrays:
        return {f"{prefix}_{name}": np.array(value) for name, value in vars(self).items()}

    def load(self, prefix: str, arrays: Arrays) -> None:
        """What `save` gave; a file may hold anything."""
        saved = {name: arrays[f"{prefix}_{name}"] for name in vars(self)}
        for name, value in saved.items():
            low = -LARGEST["mean"] if name == "mean" else 0.0
            right = ((low <= value) & (value <= LARGEST[name])).all()  # nor NaN
            if not right or value.shape != getattr(self, name).shape:
                raise CheckpointError(f"the {prefix}_{name} of a checkpoint is no such statistic")
        for name, value in saved.items():
            setattr(self, name, np.array(value, np.float64))


def normalised(obs: Array, mean: Floats, factor: Floats) -> Floats:
    """Observations as networks see them."""
    return np.clip((obs - mean) * factor, -BOUND, BOUND, dtype=np.float32, casting="same_kind")


class NormalisedActor:
    """An actor that is shown normalised observations; rollouts keep the original ones."""

    def __init__(self, inner: Actor, shape: tuple[int, ...]) -> None:
        self.inner = inner
        self.prepare, self.noise = inner.prepare, inner.noise
        self.draw, self.best = inner.draw, inner.best
        self._scale: tuple[Floats, Floats] = np.zeros(shape, np.float32), np.ones(shape, np.float32)

    def set_weights(self, weights: tuple[Weights, Floats, Floats]) -> None:
        learnt, *scale = weights
        self.inner.set_weights(learnt)
        self._scale = scale[0], scale[1]

    def forward(self, obs: Array) -> tuple[Outputs, Floats]:
        return self.inner.forward(normalised(obs, *self._scale))


class NormalisedStepper:
    """A stepper that learns from normalised observations.

    seen: their statistics, which are part of the weights that it gives and of what it saves.
    """

    def __init__(self, inner: Stepper, shape: tuple[int, ...]) -> None:
        self.inner, self.seen = inner, Running(shape)
        self.step, self.optimiser = inner.step, inner.optimiser

    def _normalised(self, obs: Array) -> Floats:
        return normalised(obs, self.seen.mean.astype(np.float32), self.seen.factor)

    def load_rows(self, rows: Rows) -> None:
        self.inner.load_rows(rows._replace(obs=self._normalised(rows.obs)))

    def evaluate(self, rollout: Rollout) -> tuple[Floats, Floats]:
        return self.inner.evaluate(rollout._replace(obs=self._normalised(rollout.obs)))

    def weights(self) -> tuple[Weights, Floats, Floats]:
        return self.inner.weights(), self.seen.mean.astype(np.float32), self.seen.factor

    def save(self) -> tuple[Arrays, Facts]:
        arrays, facts = self.inner.save()
        return arrays | self.seen.save(SEEN), facts

    def load_weights(self, arrays: Arrays) -> None:
        self.seen.load(SEEN, arrays)
        self.inner.load_weights(arrays)

    def load(self, arrays: Arrays, facts: Facts) -> None:
        self.seen.load(SEEN, arrays)
        self.inner.load(arrays, facts)


class Intake:
    """What a run takes in of each rollout before it learns: `rollout = intake(rollout)`.

    seen: statistics of observations to be kept up. returns: those of discounted returns, by whose
    deviation rewards are divided. in_order: column i is always the same environment, whose return
    goes on in the next rollout.
    """

    def __init__(
        self, seen: Running | None, returns: Running | None, gamma: float, in_order: bool
    ) -> None:
        self.seen, self.returns = seen, returns
        self._gamma, self._in_order = gamma, in_order
        self._so_far = np.zeros(0)  # discounted returns of the episodes under way

    def save(self) -> Arrays:
        return {} if self.returns is None else self.returns.save(RETURNS)

    def load(self, arrays: Arrays) -> None:
        if self.returns is not None:
            self.returns.load(RETURNS, arrays)

    def __call__(self, rollout: Rollout) -> Rollout:
        if self.seen is not None:
            self.seen.add(flat(rollout.obs))
        if self.returns is None:
            return rollout
        self.returns.add(self._discounted(rollout).reshape(-1))
        rewards = np.clip(rollout.rewards * self.returns.factor, -BOUND, BOUND)
        return rollout._replace(rewards=rewards)

    def _discounted(self, rollout: Rollout) -> npt.NDArray[np.float64]:
        """What each episode had brought by each turn: Rₜ = gamma Rₜ₋₁ + rₜ."""
        turns, size = rollout.rewards.shape
        goes_on = self._in_order and len(self._so_far) == size
        running = self._so_far if goes_on else np.zeros(size)
        returns = np.empty((turns, size))
        for t in range(turns):
            returns[t] = running = self._gamma * running + rollout.rewards[t]
            running = np.where(rollout.ended[t], 0.0, running)
        self._so_far = running
        return returns
