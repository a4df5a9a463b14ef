"""Continuous actions, compiled: points drawn around the actor's outputs, and steps on them.

The twin of `EnvNetwork` with `heads.Gaussian` in torch; a test holds both together. Actions are in
units of the space's half width around its middle, as there.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.compiled.rule import kernel
from phalanx.compiled.team import join, leave, next_piece
from phalanx.learn.compiled.actor import CompiledActor
from phalanx.learn.compiled.mlp import Floats, Sizes, backward, fast, forward
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import SLICE, CompiledStepper, adam_step
from phalanx.learn.rollout import Rollout
from phalanx.learn.stepper import Loss, flat

HALF_LOG_2PI = np.float32(math.log(2 * math.pi) / 2)


class GaussianPolicy(Policy):
    """Networks as those of `Policy`; at the end of `theta` the logs of the deviations."""

    def __init__(
        self, obs_size: int, action_size: int, *, hidden: tuple[int, ...], seed: int,
        deviation: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(obs_size, action_size, hidden=hidden, truth_size=0, seed=seed)
        self._deviation = deviation
        logs = np.full(action_size, math.log(deviation), np.float32)
        self.move_to(np.concatenate([self.theta, logs]))

    def move_to(self, theta: Floats) -> None:
        split, end = len(self.actor), len(theta) - int(self.actor_sizes[-1])
        self.theta, self.actor, self.critic = theta, theta[:split], theta[split:end]
        self.log_std = theta[end:]

    def copy(self) -> "GaussianPolicy":
        other = GaussianPolicy(
            self.obs_size, int(self.actor_sizes[-1]), hidden=self.hidden, seed=0,
            deviation=self._deviation,
        )  # fmt: skip
        other.theta[:] = self.theta
        return other


class GaussianActor(CompiledActor):
    """A policy for vectors and continuous actions."""

    policy: GaussianPolicy

    def noise(self, random: np.random.Generator, rows: int) -> npt.NDArray[Any]:
        return random.standard_normal((rows, len(self.policy.log_std)), np.float32)

    def draw(
        self, outputs: Any, masks: npt.NDArray[np.bool_], noise: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], Floats]:
        logs = self.policy.log_std
        log_probs = -(noise**2 / 2 + logs + HALF_LOG_2PI).sum(axis=1)
        return outputs + np.exp(logs) * noise, log_probs

    def best(self, outputs: Any, masks: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        return np.asarray(outputs)


@fast
def log_prob_of_point(means: Any, log_std: Any, action: Any, scaled: Any) -> Any:
    """How likely a point was; what it is away from the means, in deviations, goes to `scaled`."""
    log_prob = np.float32(0)
    for a in range(len(means)):
        scaled[a] = (action[a] - means[a]) / np.exp(log_std[a])
        log_prob -= scaled[a] * scaled[a] / np.float32(2) + log_std[a] + HALF_LOG_2PI
    return log_prob


@fast
def ppo_slice_of_points(
    actor: Floats, actor_sizes: Sizes, critic: Floats, critic_sizes: Sizes, log_std: Floats,
    x: Floats, actions: Floats, old_log_probs: Floats, advantages: Floats, targets: Floats,
    rows_in_batch: int, clip: np.float32, entropy_weight: np.float32, value_weight: np.float32,
    actor_work: Floats, critic_work: Floats, grad: Floats, stats: Any,
) -> None:  # fmt: skip
    """As `ppo_slice`: gradients of a slice, as its share of the minibatch's mean loss."""
    rows, width = x.shape[0], actor_sizes[-1]
    means = forward(actor, actor_sizes, x, actor_work)
    values = forward(critic, critic_sizes, x, critic_work)
    share = np.float32(1) / np.float32(rows_in_batch)
    d_means, d_values = np.empty((rows, width), np.float32), np.empty((rows, 1), np.float32)
    end = len(actor) + len(critic)
    d_logs, scaled = grad[end:], np.empty(width, np.float32)
    d_logs[:] = -entropy_weight * share * np.float32(rows)
    entropy = np.float32(0)
    for a in range(width):
        entropy += log_std[a] + np.float32(0.5) + HALF_LOG_2PI
    policy_loss = value_loss = kls = clipped = np.float32(0)
    low, high = np.float32(1) - clip, np.float32(1) + clip
    for r in range(rows):
        log_prob = log_prob_of_point(means[r], log_std, actions[r], scaled)
        difference = log_prob - old_log_probs[r]
        ratio = np.exp(difference)
        advantage = advantages[r]
        plain, bounded = ratio * advantage, min(max(ratio, low), high) * advantage
        # The clipped branch has no gradient.
        push = -ratio * advantage * share if plain <= bounded else np.float32(0)
        for a in range(width):
            d_means[r, a] = push * scaled[a] / np.exp(log_std[a])
            d_logs[a] += push * (scaled[a] * scaled[a] - np.float32(1))
        error = values[r, 0] - targets[r]
        d_values[r, 0] = value_weight * share * error
        policy_loss -= min(plain, bounded)
        value_loss += error * error / 2
        kls += ratio - 1 - difference
        if ratio < low or ratio > high:
            clipped += 1
    backward(actor, actor_sizes, x, actor_work, d_means, grad[: len(actor)])
    backward(critic, critic_sizes, x, critic_work, d_values, grad[len(actor) : end])
    stats[0] = policy_loss
    stats[1] = value_loss
    stats[2] = entropy * rows
    stats[3] = kls
    stats[4] = clipped


@kernel
def point_gradients(
    actor: Any, actor_sizes: Any, critic: Any, critic_sizes: Any, log_std: Any, obs: Any,
    actions: Any, log_probs: Any, advantages: Any, targets: Any, rows: Any,
    clip: Any, entropy_weight: Any, value_weight: Any, grads: Any, stats: Any, spaces: Any,
    board: Any, task: int, thread: int,
) -> bool:  # fmt: skip
    """Gradients of the slices of a minibatch: rows [M] of the flat rollout, grads [slices, P]."""
    if not join(board, task, thread):
        return True
    total, split = len(rows), 2 * SLICE * actor_sizes[1:].sum()
    actor_work, critic_work = spaces[thread][:split], spaces[thread][split:]
    slices = (total + SLICE - 1) // SLICE
    s, helped = next_piece(board, slices, thread, 0)
    while s >= 0:
        chosen = rows[s * SLICE : min((s + 1) * SLICE, total)]
        ppo_slice_of_points(
            actor, actor_sizes, critic, critic_sizes, log_std, obs[chosen], actions[chosen],
            log_probs[chosen], advantages[chosen], targets[chosen], total, clip, entropy_weight,
            value_weight, actor_work, critic_work, grads[s], stats[s],
        )  # fmt: skip
        s, helped = next_piece(board, slices, thread, helped)
    return leave(board, task, thread)


@kernel
def look_at_points(
    actor: Any, actor_sizes: Any, critic: Any, critic_sizes: Any, log_std: Any, obs: Any,
    actions: Any, log_probs: Any, values: Any, board: Any, task: int, thread: int,
) -> bool:  # fmt: skip
    """Log-probabilities and values of all rows, a slice at a time."""
    if not join(board, task, thread):
        return True
    total, scaled = len(actions), np.empty(len(log_std), np.float32)
    work = np.empty(2 * SLICE * max(actor_sizes[1:].sum(), critic_sizes[1:].sum()), np.float32)
    slices = (total + SLICE - 1) // SLICE
    s, helped = next_piece(board, slices, thread, 0)
    while s >= 0:
        start, stop = s * SLICE, min((s + 1) * SLICE, total)
        means = forward(actor, actor_sizes, obs[start:stop], work)
        for r in range(start, stop):
            log_probs[r] = log_prob_of_point(means[r - start], log_std, actions[r], scaled)
        outputs = forward(critic, critic_sizes, obs[start:stop], work)
        for r in range(start, stop):
            values[r] = outputs[r - start, 0]
        s, helped = next_piece(board, slices, thread, helped)
    return leave(board, task, thread)


class GaussianStepper(CompiledStepper):
    """The compiled networks of a `GaussianPolicy`, and Adam."""

    policy: GaussianPolicy

    def _networks(self) -> tuple[Any, ...]:
        policy = self.policy
        return (
            policy.actor, policy.actor_sizes, policy.critic, policy.critic_sizes, policy.log_std,
        )  # fmt: skip

    def step(
        self, chosen: npt.NDArray[np.int64], loss: Loss
    ) -> tuple[npt.NDArray[np.float64], float]:
        rows, slices = self._rows, -(-len(chosen) // SLICE)
        weights = map(np.float32, (loss.clip, loss.entropy_weight, loss.value_weight))
        self.team.run(
            point_gradients,
            (
                *self._networks(), rows.obs, rows.actions, rows.log_probs, rows.advantages,
                rows.targets, chosen, *weights, self._grads, self._stats, self._spaces,
            ),
        )  # fmt: skip
        self.steps += 1
        norm = adam_step(
            self.policy.theta, self._grads[:slices], self.mean, self.square, self.steps,
            loss.rate, loss.max_grad_norm,
        )  # fmt: skip
        return self._stats[:slices].sum(axis=0), norm

    def evaluate(self, rollout: Rollout) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        log_probs, values = np.empty((2, rollout.rewards.size), np.float32)
        parts = (*map(flat, (rollout.obs, rollout.actions)), log_probs, values)
        self.team.run(look_at_points, (*self._networks(), *parts))
        return log_probs.reshape(rollout.rewards.shape), values.reshape(rollout.rewards.shape)
