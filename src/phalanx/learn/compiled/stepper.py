"""Steps on the CPU: minibatches in fixed slices over threads, gradients added in a fixed order."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.compiled.rule import kernel
from phalanx.compiled.team import ThreadTeam, join, leave, next_piece
from phalanx.learn.a3c import Shared
from phalanx.learn.compiled.distributions import evaluate_action, outputs_gradient
from phalanx.learn.compiled.mlp import Floats, backward, fast, forward, join_columns, work_size
from phalanx.learn.compiled.policy import Networks, Policy
from phalanx.learn.compiled.ppo_loss import NO_SUMS, entropy_gradient, ppo_gradient
from phalanx.learn.ppo import ADAM_DECAYS, ADAM_EPSILON, STATS, LossSettings, Rows, to_rows
from phalanx.learn.rollout import Arrays, Rollout, flat

SLICE = 512  # rows of a minibatch that one thread works on at a time


class Room(NamedTuple):
    """Where slices are computed, each thread in its own part: a step allocates little."""

    grads: Floats  # [slices, P]
    stats: npt.NDArray[np.float64]  # [slices, 5] sums of STATS
    actor_work: Floats  # [threads, ...] as `forward` and `backward` take it
    critic_work: Floats
    x: Floats  # [threads, SLICE, D] what the actor sees
    y: Floats  # [threads, SLICE * (D + K)] what the critic sees
    shares: Floats  # [threads, SLICE, A]


def make_room(policy: Policy, threads: int, minibatch_size: int) -> Room:
    def zeros(*shape: int) -> Floats:
        return np.zeros((threads, *shape), np.float32)

    slices = -(-minibatch_size // SLICE)
    actor, critic = policy.actor_sizes, policy.critic_sizes
    return Room(
        grads=np.empty((slices, len(policy.theta)), np.float32),
        stats=np.empty((slices, len(STATS)), np.float64),
        actor_work=zeros(work_size(actor, SLICE)),
        critic_work=zeros(work_size(critic, SLICE)),
        x=zeros(SLICE, policy.obs_size),
        y=zeros(SLICE * int(critic[0])),
        shares=zeros(SLICE, int(actor[-1])),
    )


@fast
def gather(rows: Rows, chosen: Any, obs: Floats) -> Rows:
    """The chosen rows beside each other, observations in `obs`: later none is waited for."""
    n = len(chosen)
    truth, masks = np.empty_like(rows.truth[:n]), np.empty_like(rows.masks[:n])
    actions, log_probs = np.empty_like(rows.actions[:n]), np.empty(n, np.float32)
    advantages, targets = np.empty(n, np.float32), np.empty(n, np.float32)
    for k in range(n):
        row = chosen[k]
        for c in range(obs.shape[1]):
            obs[k, c] = rows.obs[row, c]
        for c in range(truth.shape[1]):
            truth[k, c] = rows.truth[row, c]
        for a in range(masks.shape[1]):
            masks[k, a] = rows.masks[row, a]
        actions[k] = rows.actions[row]
        log_probs[k] = rows.log_probs[row]
        advantages[k] = rows.advantages[row]
        targets[k] = rows.targets[row]
    return Rows(obs, truth, masks, actions, log_probs, advantages, targets)


@fast
def slice_gradient(
    networks: Networks, rows: Rows, chosen: Any, loss: LossSettings, room: Room, s: int, thread: int
) -> None:
    """Gradient of slice s of the rows `chosen`, as its share of their mean loss."""
    total, log_std, grad = len(chosen), networks.log_std, room.grads[s]
    n = min(SLICE, total - s * SLICE)
    some = gather(rows, chosen[s * SLICE : s * SLICE + n], room.x[thread][:n])
    critic_obs = join_columns(some.obs, some.truth, room.y[thread])
    actor_work, critic_work = room.actor_work[thread], room.critic_work[thread]
    outputs = forward(networks.actor, some.obs, actor_work)
    values = forward(networks.critic, critic_obs, critic_work)
    split, end = len(networks.actor.theta), len(grad) - len(log_std)
    shares, scratch = room.shares[thread][:n], np.empty(outputs.shape[1], np.float32)
    d_values, d_log_std = np.empty_like(values), grad[end:]
    d_entropy, sums = entropy_gradient(total, loss), NO_SUMS
    d_log_std[:] = d_entropy * np.float32(n)
    for k in range(n):
        log_prob, entropy = evaluate_action(
            outputs[k], log_std, some.masks, some.actions, k, shares[k], scratch
        )
        d_log_prob, d_values[k, 0], sums = ppo_gradient(
            log_prob, entropy, values[k, 0], some, k, total, loss, sums
        )
        outputs_gradient(
            outputs[k], log_std, some.actions, k, shares[k], entropy, d_log_prob, d_entropy,
            d_log_std,
        )  # fmt: skip
    stats = room.stats[s]
    stats[0], stats[1], stats[2], stats[3], stats[4] = sums
    backward(networks.actor, some.obs, actor_work, shares, grad[:split])
    backward(networks.critic, critic_obs, critic_work, d_values, grad[split:end])


@kernel
def minibatch_gradients(
    networks: Networks, rows: Rows, chosen: Any, loss: LossSettings, room: Room,
    board: Any, task: int, thread: int,
) -> bool:  # fmt: skip
    """Gradients of the slices of a minibatch: the rows `chosen` of a rollout."""
    if not join(board, task, thread):
        return True
    slices = (len(chosen) + SLICE - 1) // SLICE
    s, helped = next_piece(board, slices, thread, 0)
    while s >= 0:
        slice_gradient(networks, rows, chosen, loss, room, s, thread)
        s, helped = next_piece(board, slices, thread, helped)
    return leave(board, task, thread)


@kernel
def adam_step(
    theta: Any, grads: Any, mean: Any, square: Any, step: int, loss: LossSettings
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
    scale = np.float32(min(1.0, loss.max_grad_norm / (norm + 1e-6)))
    b1, b2 = np.float32(ADAM_DECAYS[0]), np.float32(ADAM_DECAYS[1])
    fix1 = np.float32(1.0 / (1.0 - ADAM_DECAYS[0] ** step))
    fix2 = np.float32(1.0 / (1.0 - ADAM_DECAYS[1] ** step))
    lr, epsilon, one = np.float32(loss.rate), np.float32(ADAM_EPSILON), np.float32(1)
    for k in range(len(theta)):
        g = total[k] * scale
        mean[k] = b1 * mean[k] + (one - b1) * g
        square[k] = b2 * square[k] + (one - b2) * g * g
        theta[k] -= lr * mean[k] * fix1 / (np.sqrt(square[k] * fix2) + epsilon)
    return norm


@kernel
def evaluate_slices(
    networks: Networks, rows: Rows, room: Room, log_probs: Any, values: Any,
    board: Any, task: int, thread: int,
) -> bool:  # fmt: skip
    """Log-probabilities and values of all rows, a slice at a time."""
    if not join(board, task, thread):
        return True
    shares, scratch = room.shares[thread][0], room.shares[thread][1]
    slices = (len(values) + SLICE - 1) // SLICE
    s, helped = next_piece(board, slices, thread, 0)
    while s >= 0:
        start, stop = s * SLICE, min((s + 1) * SLICE, len(values))
        x = rows.obs[start:stop]
        y = join_columns(x, rows.truth[start:stop], room.y[thread])
        outputs = forward(networks.actor, x, room.actor_work[thread])
        new_values = forward(networks.critic, y, room.critic_work[thread])
        for r in range(start, stop):
            log_probs[r], _entropy = evaluate_action(
                outputs[r - start], networks.log_std, rows.masks, rows.actions, r, shares, scratch
            )
            values[r] = new_values[r - start, 0]
        s, helped = next_piece(board, slices, thread, helped)
    return leave(board, task, thread)


class CompiledStepper:
    """The compiled networks of a policy, and Adam; the threads of a team share the work."""

    def __init__(self, policy: Policy, team: ThreadTeam, minibatch_size: int) -> None:
        self.policy, self.team = policy, team
        self.mean = np.zeros_like(policy.theta)
        self.square = np.zeros_like(policy.theta)
        self.steps = 0
        self._room = make_room(policy, team.num_threads, minibatch_size)

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
        self, chosen: npt.NDArray[np.int64], loss: LossSettings
    ) -> tuple[npt.NDArray[np.float64], float]:
        policy, room, slices = self.policy, self._room, -(-len(chosen) // SLICE)
        loss = LossSettings(*map(float, loss))  # whole numbers would be compiled for again
        self.team.run(minibatch_gradients, (policy.networks, self._rows, chosen, loss, room))
        self.steps += 1
        grads = room.grads[:slices]
        norm = adam_step(policy.theta, grads, self.mean, self.square, self.steps, loss)
        return room.stats[:slices].sum(axis=0), norm

    def evaluate(self, rollout: Rollout) -> tuple[Floats, Floats]:
        log_probs, values = np.empty((2, *rollout.rewards.shape), np.float32)
        rows = to_rows(rollout, rollout.log_probs, rollout.values, rollout.values)
        arguments = (self.policy.networks, rows, self._room, flat(log_probs), flat(values))
        self.team.run(evaluate_slices, arguments)
        return log_probs, values

    def weights(self) -> Floats:
        return self.policy.theta.copy()

    def save(self) -> tuple[Arrays, dict[str, Any]]:
        theta = self.policy.widened(self.policy.theta)
        return {"theta": theta, **self.optimiser()}, {"adam_steps": self.steps}

    def optimiser(self) -> Arrays:
        mean, square = map(self.policy.widened, (self.mean, self.square))
        return {"adam_mean": mean, "adam_square": square}

    def load_weights(self, arrays: Arrays) -> None:
        self.policy.theta[:] = self.policy.narrowed(arrays["theta"])

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        self.load_weights(arrays)
        self.mean[:] = self.policy.narrowed(arrays["adam_mean"])
        self.square[:] = self.policy.narrowed(arrays["adam_square"])
        self.steps = facts["adam_steps"]
