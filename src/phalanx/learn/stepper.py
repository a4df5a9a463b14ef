"""What every learner is made of: rows to learn from, and whoever can take a step on them."""

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from phalanx.learn.rollout import Arrays, Rollout

ADAM_DECAYS = (0.9, 0.999)
ADAM_EPSILON = 1e-5


class Rows(NamedTuple):
    """A rollout as rows [T * N], with what is to be learnt from it."""

    obs: npt.NDArray[Any]
    truth: npt.NDArray[np.float32]
    masks: npt.NDArray[np.bool_]
    actions: npt.NDArray[Any]
    log_probs: npt.NDArray[np.float32]  # of the actions, under the policy to be compared with
    advantages: npt.NDArray[np.float32]
    targets: npt.NDArray[np.float32]  # of the critic


def to_rows(rollout: Rollout, log_probs: Any, advantages: Any, targets: Any) -> Rows:
    """The rows of a rollout with what a learner computed for them, all [T, N, ...]."""
    parts = (rollout.obs, rollout.truth, rollout.masks, rollout.actions)
    rows: list[Any] = [flat(part) for part in (*parts, log_probs, advantages, targets)]
    return Rows(*rows)


def flat(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """[T, N, ...] as [T * N, ...]."""
    return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])


class Loss(NamedTuple):
    """Weights and bounds of a step."""

    rate: float
    clip: float
    entropy_weight: float
    value_weight: float
    max_grad_norm: float


class Stepper(Protocol):
    """Weights, their optimiser, and a way to compute gradients."""

    def load_rows(self, rows: Rows) -> None:
        """Hear what the coming steps are to learn from."""

    def step(
        self, chosen: npt.NDArray[np.int64], loss: Loss
    ) -> tuple[npt.NDArray[np.float64], float]:
        """One gradient step on the chosen rows: the sums of STATS over them, the gradient's norm"""
        ...

    def evaluate(self, rollout: Rollout) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Log-probabilities of the actions taken, and values, both [T, N], by the newest weights"""
        ...

    def weights(self) -> Any:
        """A copy of the weights, for samplers."""

    def save(self) -> tuple[Arrays, dict[str, Any]]:
        """Weights and optimiser, exactly."""
        ...

    def optimiser(self) -> Arrays:
        """Arrays of the shapes that the optimiser's have once it has made a step."""
        ...

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None: ...
