"""Steps on the CPU: minibatches in fixed slices over threads, gradients added in a fixed order."""

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Arrays
from phalanx.compiled.rule import kernel
from phalanx.compiled.team import ThreadTeam
from phalanx.files import Facts
from phalanx.learn.a3c import Shared
from phalanx.learn.compiled.mlp import Floats
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.slices import (
    SLICE,
    evaluate_slices,
    list_slices,
    make_room,
    minibatch_gradients,
)
from phalanx.learn.compiled.sparse import Lists, room_for_lists
from phalanx.learn.ppo import ADAM_DECAYS, ADAM_EPSILON, LossSettings, Rows, to_rows
from phalanx.learn.rollout import Rollout, flat


@kernel
def adam_step(
    theta: Floats, grads: Floats, mean: Floats, square: Floats, step: int, loss: LossSettings
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


class CompiledStepper:
    """The compiled networks of a policy, and Adam; the threads of a team share the work.

    sparse: most of what is seen is zero, and is not to be multiplied.
    """

    def __init__(
        self, policy: Policy, team: ThreadTeam, minibatch_size: int, sparse: bool = False
    ) -> None:
        self.policy, self.team, self.sparse = policy, team, sparse
        self.mean = np.zeros_like(policy.theta)
        self.square = np.zeros_like(policy.theta)
        self.steps = 0
        self._room = make_room(policy, team.num_threads, minibatch_size, sparse)
        self._lists: Lists | None = None

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
        if self.sparse:
            self._list(rows)

    def _list(self, rows: Rows) -> None:
        """What is seen in these rows as lists, in room that is kept for the next ones."""
        obs, truth = map(np.ascontiguousarray, (rows.obs, rows.truth))
        if self._lists is None or len(self._lists.starts) < len(obs):
            self._lists = room_for_lists(len(obs), int(self.policy.critic_sizes[0]))
        self.team.run(list_slices, (obs, truth, self._lists))

    def step(
        self, chosen: npt.NDArray[np.int64], loss: LossSettings
    ) -> tuple[npt.NDArray[np.float64], float]:
        policy, room, slices = self.policy, self._room, -(-len(chosen) // SLICE)
        loss = LossSettings(*map(float, loss))  # whole numbers would be compiled for again
        arguments = (policy.networks, self._rows, self._lists, chosen, loss, room)
        self.team.run(minibatch_gradients, arguments)
        self.steps += 1
        grads = room.grads[:slices]
        norm = adam_step(policy.theta, grads, self.mean, self.square, self.steps, loss)
        return room.stats[:slices].sum(axis=0), norm

    def evaluate(self, rollout: Rollout) -> tuple[Floats, Floats]:
        log_probs, values = np.empty((2, *rollout.rewards.shape), np.float32)
        rows = to_rows(rollout, rollout.log_probs, rollout.values, rollout.values)
        if self.sparse:
            self._list(rows)
        results = flat(log_probs), flat(values)
        arguments = (self.policy.networks, rows, self._lists, self._room, *results)
        self.team.run(evaluate_slices, arguments)
        return log_probs, values

    def weights(self) -> Floats:
        return self.policy.theta.copy()

    def save(self) -> tuple[Arrays, Facts]:
        theta = self.policy.widened(self.policy.theta)
        return {"theta": theta, **self.optimiser()}, {"adam_steps": self.steps}

    def optimiser(self) -> Arrays:
        mean, square = map(self.policy.widened, (self.mean, self.square))
        return {"adam_mean": mean, "adam_square": square}

    def load_weights(self, arrays: Arrays) -> None:
        self.policy.theta[:] = self.policy.narrowed(arrays["theta"])

    def load(self, arrays: Arrays, facts: Facts) -> None:
        self.load_weights(arrays)
        self.mean[:] = self.policy.narrowed(arrays["adam_mean"])
        self.square[:] = self.policy.narrowed(arrays["adam_square"])
        self.steps = facts["adam_steps"]
