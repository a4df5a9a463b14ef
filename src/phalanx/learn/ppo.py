"""PPO. On the CPU: minibatches in fixed slices over threads, gradients added in a fixed order."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.crew import Crew, join, leave, next_piece
from phalanx.cage2.rule import kernel
from phalanx.learn.mlp import work_size
from phalanx.learn.policy import Policy
from phalanx.learn.ppo_kernel import STATS, ppo_slice
from phalanx.learn.returns import gae
from phalanx.learn.rollout import Arrays, Rollout

SLICE = 512  # rows of a minibatch that one thread works on at a time
ADAM_DECAYS = (0.9, 0.999)
ADAM_EPSILON = 1e-5


@dataclass(frozen=True, kw_only=True)
class PPOSettings:
    """What decides an update."""

    epochs: int
    minibatch_size: int
    gae_lambda: float
    clip: float
    value_weight: float
    max_grad_norm: float
    target_kl: float | None


class Rows(NamedTuple):
    """A rollout as rows [T * N], with what is to be learnt from it."""

    obs: npt.NDArray[Any]
    truth: npt.NDArray[np.float32]
    masks: npt.NDArray[np.bool_]
    actions: npt.NDArray[Any]
    log_probs: npt.NDArray[np.float32]
    advantages: npt.NDArray[np.float32]  # mean 0, standard deviation 1
    targets: npt.NDArray[np.float32]  # of the critic


class PPO:
    """Improves a policy by rollouts: `metrics = learner.update(rollout, rate, entropy_weight)`.

    Proximal policy optimisation (Schulman et al., 2017). How a minibatch becomes a step is left to
    the children: `CompiledPPO` below, and `PlainPPO`, by torch, in plain.py.
    """

    def __init__(self, settings: PPOSettings, seed: int) -> None:
        self.settings = settings
        self.shuffle = np.random.default_rng([seed, 1])

    def begin(self, rows: Rows) -> None:
        """Hear what the coming steps are to learn from."""
        raise NotImplementedError

    def step(
        self, chosen: npt.NDArray[np.int64], rate: float, entropy_weight: float
    ) -> tuple[npt.NDArray[np.float64], float]:
        """One gradient step on the chosen rows: the sums of STATS over them, the gradient's norm"""
        raise NotImplementedError

    def update(self, rollout: Rollout, rate: float, entropy_weight: float) -> dict[str, float]:
        """Several epochs over one rollout."""
        s = self.settings
        rows, explained = _to_rows(rollout, s.gae_lambda)
        self.begin(rows)
        total = len(rows.advantages)
        sums, seen, norms, epochs = np.zeros(len(STATS)), 0, [], 0
        for _ in range(s.epochs):
            order = self.shuffle.permutation(total)
            epoch_sums = np.zeros(len(STATS))
            for first in range(0, total, s.minibatch_size):
                stats, norm = self.step(
                    order[first : first + s.minibatch_size], rate, entropy_weight
                )
                epoch_sums += stats
                norms.append(norm)
            sums, seen, epochs = sums + epoch_sums, seen + total, epochs + 1
            if s.target_kl is not None and epoch_sums[STATS.index("kl")] / total > s.target_kl:
                break
        metrics = dict(zip(STATS, (sums / seen).tolist(), strict=True))
        return metrics | {
            "explained_variance": explained,
            "grad_norm": float(np.mean(norms)),
            "epochs": float(epochs),
        }


def _to_rows(rollout: Rollout, gae_lambda: float) -> tuple[Rows, float]:
    """The rows of a rollout, and how much of the targets' variance the critic explained."""
    advantages = np.empty_like(rollout.rewards)
    gae(
        rollout.rewards, rollout.values, rollout.next_values, rollout.ended, rollout.discounts,
        gae_lambda, advantages,
    )  # fmt: skip
    advantages, values = advantages.reshape(-1), rollout.values.reshape(-1)
    targets = advantages + values
    explained = 1 - np.var(targets - values) / (np.var(targets) + 1e-8)
    advantages = (advantages - advantages.mean()) / (advantages.std() + np.float32(1e-8))
    flat = (rollout.obs, rollout.truth, rollout.masks, rollout.actions, rollout.log_probs)
    rows: list[Any] = [array.reshape(len(advantages), *array.shape[2:]) for array in flat]
    return Rows(rows[0], rows[1], rows[2], rows[3], rows[4], advantages, targets), float(explained)


# --- on the CPU, compiled -------------------------------------------------------------------------


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


class CompiledPPO(PPO):
    """Steps of compiled slices, shared by the threads of a crew."""

    def __init__(self, policy: Policy, settings: PPOSettings, crew: Crew, seed: int) -> None:
        super().__init__(settings, seed)
        self.policy, self.crew = policy, crew
        self.mean = np.zeros_like(policy.theta)
        self.square = np.zeros_like(policy.theta)
        self.steps = 0
        slices = -(-settings.minibatch_size // SLICE)
        self._grads = np.empty((slices, len(policy.theta)), np.float32)
        self._stats = np.empty((slices, len(STATS)), np.float64)
        room = (
            work_size(policy.actor_sizes, SLICE)
            + work_size(policy.critic_sizes, SLICE)
            + SLICE * int(2 * policy.critic_sizes[0] + policy.actor_sizes[-1])
        )
        self._spaces = np.zeros((crew.num_threads, room), np.float32)

    def begin(self, rows: Rows) -> None:
        self._rows = rows

    def step(
        self, chosen: npt.NDArray[np.int64], rate: float, entropy_weight: float
    ) -> tuple[npt.NDArray[np.float64], float]:
        s, policy = self.settings, self.policy
        slices = -(-len(chosen) // SLICE)
        self.crew.run(
            slice_gradients,
            (
                policy.actor, policy.actor_sizes, policy.critic, policy.critic_sizes, *self._rows,
                chosen, np.float32(s.clip), np.float32(entropy_weight), np.float32(s.value_weight),
                self._grads, self._stats, self._spaces,
            ),
        )  # fmt: skip
        self.steps += 1
        norm = adam_step(
            policy.theta, self._grads[:slices], self.mean, self.square, self.steps,
            rate, s.max_grad_norm,
        )  # fmt: skip
        return self._stats[:slices].sum(axis=0), norm

    def save(self) -> tuple[Arrays, dict[str, Any]]:
        """Weights and optimiser, exactly."""
        arrays = {"theta": self.policy.theta, "adam_mean": self.mean, "adam_square": self.square}
        return arrays, {"adam_steps": self.steps, "shuffle": self.shuffle.bit_generator.state}

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        self.policy.theta[:] = arrays["theta"]
        self.mean[:], self.square[:] = arrays["adam_mean"], arrays["adam_square"]
        self.steps = facts["adam_steps"]
        self.shuffle.bit_generator.state = facts["shuffle"]
