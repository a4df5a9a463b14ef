"""An actor and a critic whose weights lie in one vector, as the compiled passes take them."""

import copy
import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array
from phalanx.learn.compiled.mlp import Floats, Network, Sizes, forward, weight_count, work_size


class Networks(NamedTuple):
    """Both, as kernels take them."""

    actor: Network
    critic: Network
    log_std: Floats  # [A] logs of the deviations of continuous actions; discrete ones have none


class Policy:
    """Separate tanh networks for actor and critic; the weights of both lie in `theta`.

    policy = Policy(172, 145, hidden=(64, 64), truth_size=39, seed=0)
    logits = policy.logits(obs)          # float32 [N, 145]
    actions = policy.act(obs, masks)     # the most likely ones

    choices: numbers of the actions that can be chosen, ascending, if not all: no other has an
        output. Files hold the weights of all outputs: `widened`, where those of no use are 0.
    deviation: what continuous actions deviate by at first; its logs are at the end of `theta`.
    """

    def __init__(
        self,
        obs_size: int,
        num_actions: int,
        *,
        hidden: tuple[int, ...],
        truth_size: int,
        seed: int,
        choices: npt.NDArray[np.int64] | None = None,
        deviation: float | None = None,
    ) -> None:
        self.obs_size, self.hidden, self.truth_size = obs_size, tuple(hidden), truth_size
        self.num_actions, self.deviation = num_actions, deviation
        self.actor_sizes: Sizes = np.array([obs_size, *hidden, num_actions], np.int64)
        self.critic_sizes: Sizes = np.array([obs_size + truth_size, *hidden, 1], np.int64)
        logs = np.zeros(0) if deviation is None else np.full(num_actions, math.log(deviation))
        weights = weight_count(self.actor_sizes) + weight_count(self.critic_sizes)
        self.move_to(np.concatenate([np.zeros(weights), logs]).astype(np.float32))
        random = np.random.default_rng([seed, 0])
        _initialise(self.actor, self.actor_sizes, 0.01, random)
        _initialise(self.critic, self.critic_sizes, 1.0, random)
        self.actions = np.arange(num_actions) if choices is None else choices  # [A] of each output
        self._wide_size = len(self.theta)
        self._kept = _places(self.actor_sizes, self.actions, self._wide_size)
        if choices is not None:
            self.actor_sizes = np.array([obs_size, *hidden, len(choices)], np.int64)
            self.move_to(self.narrowed(self.theta))

    def move_to(self, theta: Floats) -> None:
        """Let the weights be those that lie there, and change with them."""
        split = weight_count(self.actor_sizes)
        end = split + weight_count(self.critic_sizes)
        self.theta, self.actor, self.critic = theta, theta[:split], theta[split:end]
        self.log_std = theta[end:]

    @property
    def networks(self) -> Networks:
        actor = Network(self.actor, self.actor_sizes)
        return Networks(actor, Network(self.critic, self.critic_sizes), self.log_std)

    def copy(self) -> "Policy":
        """The same networks with weights of their own."""
        other = copy.copy(self)
        other.move_to(self.theta.copy())
        return other

    def narrowed(self, wide: Floats) -> Floats:
        """Of numbers for each weight of networks with all outputs, those for ours."""
        return wide[self._kept]

    def widened(self, ours: Floats) -> Floats:
        """The inverse, with 0 for outputs that we do not have."""
        wide = np.zeros(self._wide_size, np.float32)
        wide[self._kept] = ours
        return wide

    def wide(self) -> "Policy":
        """The same networks with an output for each action; the same one if it has them all."""
        if len(self.actions) == self.num_actions:
            return self
        other = Policy(
            self.obs_size, self.num_actions, hidden=self.hidden, truth_size=self.truth_size, seed=0
        )
        other.move_to(self.widened(self.theta))
        return other

    def logits(self, obs: Array) -> Floats:
        x = np.ascontiguousarray(obs, np.float32)
        work = np.empty(work_size(self.actor_sizes, len(x)), np.float32)
        return forward(self.networks.actor, x, work).copy()

    def act(self, obs: Array, masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return most_likely_rows(self.logits(obs), masks)


def _places(sizes: Sizes, actions: npt.NDArray[np.int64], total: int) -> npt.NDArray[np.int64]:
    """Where in a vector of weights all lie but those of other actions' outputs."""
    n_in, n_out = sizes[-2:]
    end = weight_count(sizes)
    before = end - (n_in + 1) * n_out  # the last layer's matrix, and its biases as one row more
    last = np.arange(before, end).reshape(n_in + 1, n_out)[:, actions]
    return np.concatenate([np.arange(before), last.reshape(-1), np.arange(end, total)])


def most_likely_rows(logits: Floats, masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The allowed action of the largest logit in each row."""
    return np.where(masks, logits, -np.inf).argmax(axis=1)


def _initialise(theta: Floats, sizes: Sizes, last_gain: float, random: np.random.Generator) -> None:
    """Orthogonal matrices (gain √2, the last layer its own), biases 0."""
    at = 0
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        gain = last_gain if layer == len(sizes) - 2 else 2**0.5
        square = random.normal(size=(max(n_in, n_out), min(n_in, n_out)))
        q, r = np.linalg.qr(square)
        q *= np.sign(np.diag(r))
        matrix = q if n_in >= n_out else q.T
        theta[at : at + n_in * n_out] = (gain * matrix).reshape(-1)
        at += (n_in + 1) * n_out
