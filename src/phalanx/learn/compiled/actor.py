"""The compiled networks as an actor in a pool; that of torch modules is in `torch/actor.py`."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from phalanx.compiled.rule import kernel
from phalanx.learn.cage2.collect import sample
from phalanx.learn.compiled.mlp import Floats, forward, work_size
from phalanx.learn.compiled.policy import Policy

SMALLEST_IMAGE = 16  # pixels on a side; less is seen at one glance, as a vector


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether observations of this shape are to be looked at with convolutions."""
    return len(shape) == 3 and max(shape) >= SMALLEST_IMAGE


class Actor(Protocol):
    """Looks at observations and draws actions."""

    def set_weights(self, weights: Any) -> None:
        """Act by these weights from now on."""

    def prepare(self, obs: Any) -> npt.NDArray[Any]:
        """Observations as they are to be stored and looked at."""
        ...

    def forward(self, obs: npt.NDArray[Any]) -> tuple[Any, Floats]:
        """The network's outputs for prepared observations, and values [rows]."""
        ...

    def noise(self, random: np.random.Generator, rows: int) -> npt.NDArray[Any]:
        """The chance that `draw` turns into actions."""
        ...

    def draw(
        self, outputs: Any, masks: npt.NDArray[np.bool_], noise: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], Floats]:
        """Actions and their log-probabilities."""
        ...

    def best(self, outputs: Any, masks: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """The most likely actions."""
        ...


@kernel
def draw_rows(logits: Any, masks: Any, dice: Any, actions: Any, log_probs: Any) -> None:
    """An action for each row; the logits are used up."""
    shares = np.empty(logits.shape[1], np.float32)
    for r in range(len(logits)):
        action, log_prob = sample(logits[r], masks[r], dice[r], shares)
        actions[r] = action
        log_probs[r] = log_prob


@kernel
def see_rows(
    actor: Any, actor_sizes: Any, critic: Any, critic_sizes: Any, x: Any, work: Any
) -> Any:
    """Logits and values of rows."""
    values = forward(critic, critic_sizes, x, work)[:, 0].copy()
    return forward(actor, actor_sizes, x, work).copy(), values


class CompiledActor:
    """A policy for vectors and discrete actions."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._work = np.empty(0, np.float32)

    def set_weights(self, weights: Floats) -> None:
        self.policy.theta[:] = weights

    def prepare(self, obs: Any) -> npt.NDArray[np.float32]:
        return np.ascontiguousarray(obs.reshape(len(obs), -1), np.float32)

    def forward(self, obs: npt.NDArray[Any]) -> tuple[Any, Floats]:
        policy = self.policy
        room = max(
            work_size(sizes, len(obs)) for sizes in (policy.actor_sizes, policy.critic_sizes)
        )
        if len(self._work) < room:
            self._work = np.empty(room, np.float32)
        return see_rows(
            policy.actor, policy.actor_sizes, policy.critic, policy.critic_sizes, obs, self._work
        )

    def noise(self, random: np.random.Generator, rows: int) -> npt.NDArray[Any]:
        return random.integers(2**32, size=rows)

    def draw(
        self, outputs: Any, masks: npt.NDArray[np.bool_], noise: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], Floats]:
        rows = len(outputs)
        actions, log_probs = np.empty(rows, np.int64), np.empty(rows, np.float32)
        draw_rows(outputs, masks, noise, actions, log_probs)
        return actions, log_probs

    def best(self, outputs: Any, masks: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        return np.where(masks, outputs, -np.inf).argmax(axis=1)
