"""Steps on the CPU: minibatches in fixed slices over threads, gradients added in a fixed order."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.compiled.rule import kernel
from phalanx.compiled.team import ThreadTeam, join, leave, next_piece
from phalanx.learn.compiled.distributions import computed, evaluate_actions, outputs_gradient
from phalanx.learn.compiled.mlp import Floats, backward, fast, forward, join_columns, work_size
from phalanx.learn.compiled.policy import Networks, Policy
from phalanx.learn.compiled.ppo_loss import ppo_gradient
from phalanx.learn.ppo import ADAM_DECAYS, ADAM_EPSILON, STATS, LossSettings, Rows, to_rows
from phalanx.learn.rollout import Arrays, Rollout, flat
from phalanx.learn.shared import Shared

SLICE = 512  # rows of a minibatch that one thread works on at a time


class Room(NamedTuple):
    """Where slices are computed, each thread in its own part: a step allocates little."""

    grads: Floats  # [slices, P]
    stats: npt.NDArray[np.float64]  # [slices, 5] sums of STATS
    actor_work: Floats  # [threads, ...] as `forward` and `backward` take it
    critic_work: Floats
    x: Floats  # [threads, SLICE, D] what the actor sees
    y: Floats  # [threads, SLICE, D + K] what the critic sees
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
        y=zeros(SLICE, int(critic[0])),
        shares=zeros(SLICE, int(actor[-1])),
    )


@fast
def slice_gradient(
    networks: Networks, rows: Rows, chosen: Any, loss: LossSettings, room: Room, s: int, thread: int
) -> None:
    """Gradient of slice s of the rows `chosen`, as its share of their mean loss."""
    some = chosen[s * SLICE : min((s + 1) * SLICE, len(chosen))]
    n, width = len(some), rows.obs.shape[1]
    x, y = room.x[thread][:n], room.y[thread][:n]
    for k in range(n):
        for c in range(width):
            x[k, c] = rows.obs[some[k], c]
            y[k, c] = rows.obs[some[k], c]
        for c in range(rows.truth.shape[1]):
            y[k, width + c] = rows.truth[some[k], c]
    actor_work, critic_work, grad = room.actor_work[thread], room.critic_work[thread], room.grads[s]
    outputs = forward(networks.actor, x, actor_work)
    part = computed(outputs, forward(networks.critic, y, critic_work), room.shares[thread])
    evaluate_actions(part, networks.log_std, rows.masks, rows.actions, some)
    d_entropy = ppo_gradient(part, rows, some, len(chosen), loss, room.stats[s])
    split = len(networks.actor.theta)
    end = split + len(networks.critic.theta)
    outputs_gradient(part, networks.log_std, rows.actions, some, d_entropy, grad[end:])
    backward(networks.actor, x, actor_work, part.shares, grad[:split])
    backward(networks.critic, y, critic_work, part.d_values, grad[split:end])


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
    slices = (len(values) + SLICE - 1) // SLICE
    s, helped = next_piece(board, slices, thread, 0)
    while s >= 0:
        start, stop = s * SLICE, min((s + 1) * SLICE, len(values))
        x = rows.obs[start:stop]
        y = join_columns(x, rows.truth[start:stop], room.y[thread].reshape(-1))
        outputs = forward(networks.actor, x, room.actor_work[thread])
        part = computed(
            outputs, forward(networks.critic, y, room.critic_work[thread]), room.shares[thread]
        )
        some = np.arange(start, stop)
        evaluate_actions(part, networks.log_std, rows.masks, rows.actions, some)
        for k in range(stop - start):
            log_probs[start + k] = part.log_probs[k]
            values[start + k] = part.values[k, 0]
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
        return {"theta": self.policy.theta, **self.optimiser()}, {"adam_steps": self.steps}

    def optimiser(self) -> Arrays:
        return {"adam_mean": self.mean, "adam_square": self.square}

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        self.policy.theta[:] = arrays["theta"]
        self.mean[:], self.square[:] = arrays["adam_mean"], arrays["adam_square"]
        self.steps = facts["adam_steps"]
