"""The compiled networks as actors in a pool; that of torch modules is in `torch/heads.py`."""

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from phalanx.arrays import Array
from phalanx.compiled.rule import kernel
from phalanx.learn.compiled.distributions import HALF_LOG_2PI, Actions, Bools, sample
from phalanx.learn.compiled.mlp import Floats, forward, work_size
from phalanx.learn.compiled.policy import Networks, Policy, most_likely_rows

Ints = npt.NDArray[np.int64]
SMALLEST_IMAGE = 16  # pixels on a side; less is seen at one glance, as a vector


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether observations of this shape are to be looked at with convolutions."""
    return len(shape) == 3 and max(shape) >= SMALLEST_IMAGE


def count_outputs(space: spaces.Space[object]) -> int:
    """Numbers that an actor gives for an observation."""
    return int(space.n if isinstance(space, spaces.Discrete) else np.prod(space.shape or ()))


@kernel
def draw_rows(logits: Floats, masks: Bools, dice: Ints, actions: Ints, log_probs: Floats) -> None:
    """An action for each row; the logits are used up."""
    shares = np.empty(logits.shape[1], np.float32)
    for r in range(len(logits)):
        action, log_prob = sample(logits[r], masks[r], dice[r], shares)
        actions[r] = action
        log_probs[r] = log_prob


@kernel
def forward_rows(networks: Networks, x: Floats, work: Floats) -> tuple[Floats, Floats]:
    """The actor's outputs and values of rows."""
    values = forward(networks.critic, x, work)[:, 0].copy()
    return forward(networks.actor, x, work).copy(), values


class CompiledActor:
    """A policy for vectors; its actions are continuous if it has a deviation."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._work = np.empty(0, np.float32)

    def set_weights(self, weights: Floats) -> None:
        self.policy.theta[:] = weights

    def prepare(self, obs: Array) -> Floats:
        return np.ascontiguousarray(obs.reshape(len(obs), -1), np.float32)

    def forward(self, obs: Array) -> tuple[Floats, Floats]:
        both = self.policy.actor_sizes, self.policy.critic_sizes
        room = max(work_size(sizes, len(obs)) for sizes in both)
        if len(self._work) < room:
            self._work = np.empty(room, np.float32)
        return forward_rows(self.policy.networks, obs, self._work)

    def noise(self, random: np.random.Generator, rows: int) -> Array:
        if self.policy.deviation is None:
            return random.integers(2**32, size=rows)
        return random.standard_normal((rows, len(self.policy.log_std)), np.float32)

    def draw(self, outputs: Floats, masks: Bools, noise: Array) -> tuple[Actions, Floats]:
        if self.policy.deviation is not None:
            logs = self.policy.log_std
            log_probs = -(noise**2 / 2 + logs + HALF_LOG_2PI).sum(axis=1)
            return outputs + np.exp(logs) * noise, log_probs
        rows = len(outputs)
        actions, log_probs = np.empty(rows, np.int64), np.empty(rows, np.float32)
        draw_rows(outputs, masks, noise, actions, log_probs)
        return actions, log_probs

    def best(self, outputs: Floats, masks: Bools) -> Actions:
        return outputs if self.policy.deviation is not None else most_likely_rows(outputs, masks)
