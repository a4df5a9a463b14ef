"""Steps on the CPU: minibatches in fixed slices over threads, gradients added in a fixed order."""

from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.compiled.rule import kernel
from phalanx.compiled.team import ThreadTeam, join, leave, next_piece
from phalanx.learn.cage2.collect import NEVER, join_columns
from phalanx.learn.compiled.mlp import add_up, exp, fast, forward, work_size
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.ppo_loss import STATS, ppo_slice
from phalanx.learn.rollout import Arrays, Rollout
from phalanx.learn.shared import Shared
from phalanx.learn.stepper import ADAM_DECAYS, ADAM_EPSILON, Loss, Rows, flat

SLICE = 512  # rows of a minibatch that one thread works on at a time


@kernel
def slice_gradients(
    actor: Any, actor_sizes: Any, critic: Any, critic_sizes: Any, obs: Any, truth: Any, masks: Any,
    actions: Any, log_probs: Any, advantages: Any, targets: Any, rows: Any,
    clip: Any, entropy_weight: Any, value_weight: Any, grads: Any, stats: Any, spaces: Any,
    board: Any, task: int, thread: int,
) -> bool:  # fmt: skip
    """Gradients of the slices of a minibatch: rows [M] of the flat rollout, grads [slices, P]."""
    if not join(board, task, thread):
        return True
    total, width, extra = len(rows), obs.shape[1], truth.shape[1]
    work = spaces[thread]
    used = 0
    actor_room = 2 * SLICE * actor_sizes[1:].sum()
    critic_room = 2 * SLICE * critic_sizes[1:].sum()
    actor_work = work[used : used + actor_room]
    used += actor_room
    critic_work = work[used : used + critic_room]
    used += critic_room
    x_room = work[used : used + SLICE * width]
    used += SLICE * width
    y_room = work[used : used + SLICE * (width + extra)]
    used += SLICE * (width + extra)
    logit_room = work[used : used + SLICE * actor_sizes[-1]]
    small = np.empty((3, SLICE), np.float32)
    some_masks = np.empty((SLICE, masks.shape[1]), np.bool_)
    some_actions = np.empty(SLICE, np.int64)
    value_room = np.empty(SLICE, np.float32)
    slices = (total + SLICE - 1) // SLICE
    s, helped = next_piece(board, slices, thread, 0)
    while s >= 0:
        start, stop = s * SLICE, min((s + 1) * SLICE, total)
        n = stop - start
        x = x_room[: n * width].reshape(n, width)
        y = y_room[: n * (width + extra)].reshape(n, width + extra)
        for k in range(n):
            row = rows[start + k]
            for c in range(width):
                x[k, c] = obs[row, c]
                y[k, c] = obs[row, c]
            for c in range(extra):
                y[k, width + c] = truth[row, c]
            for a in range(masks.shape[1]):
                some_masks[k, a] = masks[row, a]
            some_actions[k] = actions[row]
            small[0, k] = log_probs[row]
            small[1, k] = advantages[row]
            small[2, k] = targets[row]
        d_logits = logit_room[: n * actor_sizes[-1]].reshape(n, actor_sizes[-1])
        d_values = value_room[:n].reshape(n, 1)
        ppo_slice(
            actor, actor_sizes, critic, critic_sizes, x, y, some_masks[:n], some_actions[:n],
            small[0, :n], small[1, :n], small[2, :n], total, clip, entropy_weight, value_weight,
            actor_work, critic_work, d_logits, d_values,
            grads[s, : len(actor)], grads[s, len(actor) :], stats[s],
        )  # fmt: skip
        s, helped = next_piece(board, slices, thread, helped)
    return leave(board, task, thread)


@kernel
def adam_step(
    theta: Any, grads: Any, mean: Any, square: Any, step: int, rate: float, max_norm: float
) -> float:
    """Add the slices' gradients in order, bound their norm, move the weights; returns the norm."""
    total = grads[0]
    for s in range(1, grads.shape[0]):
        for k in range(len(theta)):
            total[k] += grads[s, k]
    norm = 0.0
    for k in range(len(theta)):
        norm += total[k] * total[k]
    norm = np.sqrt(norm)
    scale = np.float32(min(1.0, max_norm / (norm + 1e-6)))
    b1, b2 = np.float32(ADAM_DECAYS[0]), np.float32(ADAM_DECAYS[1])
    fix1 = np.float32(1.0 / (1.0 - ADAM_DECAYS[0] ** step))
    fix2 = np.float32(1.0 / (1.0 - ADAM_DECAYS[1] ** step))
    lr, epsilon, one = np.float32(rate), np.float32(ADAM_EPSILON), np.float32(1)
    for k in range(len(theta)):
        g = total[k] * scale
        mean[k] = b1 * mean[k] + (one - b1) * g
        square[k] = b2 * square[k] + (one - b2) * g * g
        theta[k] -= lr * mean[k] * fix1 / (np.sqrt(square[k] * fix2) + epsilon)
    return norm


@kernel
def look_at_slices(
    actor: Any, actor_sizes: Any, critic: Any, critic_sizes: Any, obs: Any, truth: Any, masks: Any,
    actions: Any, log_probs: Any, values: Any, board: Any, task: int, thread: int,
) -> bool:  # fmt: skip
    """Log-probabilities and values of all rows, a slice at a time."""
    if not join(board, task, thread):
        return True
    total = len(actions)
    work = np.empty(2 * SLICE * max(actor_sizes[1:].sum(), critic_sizes[1:].sum()), np.float32)
    columns = np.empty(SLICE * critic_sizes[0], np.float32)
    slices = (total + SLICE - 1) // SLICE
    s, helped = next_piece(board, slices, thread, 0)
    while s >= 0:
        start, stop = s * SLICE, min((s + 1) * SLICE, total)
        logits = forward(actor, actor_sizes, obs[start:stop], work)
        for r in range(start, stop):
            log_probs[r] = log_prob_of(logits[r - start], masks[r], actions[r])
        x = join_columns(obs[start:stop], truth[start:stop], columns)
        outputs = forward(critic, critic_sizes, x, work)
        for r in range(start, stop):
            values[r] = outputs[r - start, 0]
        s, helped = next_piece(board, slices, thread, helped)
    return leave(board, task, thread)


@fast
def log_prob_of(logits: Any, mask: Any, action: int) -> Any:
    top = np.float32(-3e38)
    for a in range(len(logits)):
        logits[a] += NEVER * (np.float32(1) - np.float32(mask[a]))
        top = max(top, logits[a])
    chosen = logits[action] - top
    for a in range(len(logits)):
        logits[a] = exp(logits[a] - top)
    return chosen - np.log(add_up(logits))


class CompiledStepper:
    """The compiled networks of a policy, and Adam; the threads of a team share the work."""

    def __init__(self, policy: Policy, team: ThreadTeam, minibatch_size: int) -> None:
        self.policy, self.team = policy, team
        self.mean = np.zeros_like(policy.theta)
        self.square = np.zeros_like(policy.theta)
        self.steps = 0
        slices = -(-minibatch_size // SLICE)
        self._grads = np.empty((slices, len(policy.theta)), np.float32)
        self._stats = np.empty((slices, len(STATS)), np.float64)
        room = (
            work_size(policy.actor_sizes, SLICE)
            + work_size(policy.critic_sizes, SLICE)
            + SLICE * int(2 * policy.critic_sizes[0] + policy.actor_sizes[-1])
        )
        self._spaces = np.zeros((team.num_threads, room), np.float32)

    @property
    def size(self) -> int:
        """Numbers that `share` puts into a block."""
        return len(self.policy.theta)

    def share(self, shared: Shared, bring: bool) -> None:
        """Keep weights and optimiser in a block that others write too; `bring` ours, or take its"""
        if bring:
            shared.weights[:] = self.policy.theta
            shared.mean[:], shared.square[:] = self.mean, self.square
        self.policy.move_to(shared.weights)
        self.mean, self.square = shared.mean, shared.square

    def load_rows(self, rows: Rows) -> None:
        self._rows = rows

    def step(
        self, chosen: npt.NDArray[np.int64], loss: Loss
    ) -> tuple[npt.NDArray[np.float64], float]:
        policy = self.policy
        slices = -(-len(chosen) // SLICE)
        weights = (loss.clip, loss.entropy_weight, loss.value_weight)
        self.team.run(
            slice_gradients,
            (
                policy.actor, policy.actor_sizes, policy.critic, policy.critic_sizes, *self._rows,
                chosen, *map(np.float32, weights), self._grads, self._stats, self._spaces,
            ),
        )  # fmt: skip
        self.steps += 1
        norm = adam_step(
            policy.theta, self._grads[:slices], self.mean, self.square, self.steps,
            loss.rate, loss.max_grad_norm,
        )  # fmt: skip
        return self._stats[:slices].sum(axis=0), norm

    def evaluate(self, rollout: Rollout) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        policy, shape = self.policy, rollout.rewards.shape
        log_probs, values = np.empty((2, rollout.rewards.size), np.float32)
        parts = (rollout.obs, rollout.truth, rollout.masks, rollout.actions)
        self.team.run(
            look_at_slices,
            (
                policy.actor, policy.actor_sizes, policy.critic, policy.critic_sizes,
                *map(flat, parts), log_probs, values,
            ),
        )  # fmt: skip
        return log_probs.reshape(shape), values.reshape(shape)

    def weights(self) -> Any:
        return self.policy.theta.copy()

    def save(self) -> tuple[Arrays, dict[str, Any]]:
        return {"theta": self.policy.theta, **self.optimiser()}, {"adam_steps": self.steps}

    def optimiser(self) -> Arrays:
        return {"adam_mean": self.mean, "adam_square": self.square}

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        self.policy.theta[:] = arrays["theta"]
        self.mean[:], self.square[:] = arrays["adam_mean"], arrays["adam_square"]
        self.steps = facts["adam_steps"]
