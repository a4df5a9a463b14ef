"""Proximal policy optimisation (Schulman et al., 2017), from a rollout to a step.

A rollout gives advantages and the critic's targets; several epochs of minibatches follow, each with
a loss, its gradient and a step of Adam. A `Stepper` computes the gradient: by autograd through
`ppo_loss` below, or by its compiled twin in `compiled/ppo_loss.py`. A test holds both equal.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array, Arrays
from phalanx.files import Facts
from phalanx.learn.returns import gae
from phalanx.learn.rollout import Floats, Rollout, Weights, flat

if TYPE_CHECKING:
    from torch import Tensor

STATS = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")  # reported of an update
ADAM_DECAYS = (0.9, 0.999)
ADAM_EPSILON = 1e-5


# --- what is to be learnt from a rollout ----------------------------------------------------------


class Rows(NamedTuple):
    """A rollout as rows [T * N], with what is to be learnt from it."""

    obs: Array
    truth: npt.NDArray[np.float32]
    masks: npt.NDArray[np.bool_]
    actions: Array
    log_probs: npt.NDArray[np.float32]  # of the actions, under the policy to be compared with
    advantages: npt.NDArray[np.float32]
    targets: npt.NDArray[np.float32]  # of the critic


def to_rows(rollout: Rollout, log_probs: Floats, advantages: Floats, targets: Floats) -> Rows:
    """The rows of a rollout with what a learner computed for them, all [T, N, ...]."""
    parts = (rollout.obs, rollout.truth, rollout.masks, rollout.actions)
    return Rows(*map(flat, (*parts, log_probs, advantages, targets)))


def advantage_rows(
    rollout: Rollout, gae_lambda: float, *, normalised: bool = True
) -> tuple[Rows, float]:
    """The rows of a rollout, and how much of the targets' variance the critic explained."""
    r, advantages = rollout, np.empty_like(rollout.rewards)
    gae(r.rewards, r.values, r.next_values, r.ended, r.discounts, gae_lambda, advantages)
    targets = advantages + r.values
    explained = explained_variance(targets, r.values)
    if normalised:
        advantages = normalise(advantages)
    return to_rows(r, r.log_probs, advantages, targets), explained


def normalise(advantages: Floats) -> Floats:
    with np.errstate(all="ignore"):  # NaN shows in the loss
        return (advantages - advantages.mean()) / (advantages.std() + np.float32(1e-8))


def explained_variance(targets: Array, values: Array) -> float:
    """How much of the targets' variance the critic explained; 1 is all."""
    with np.errstate(all="ignore"):  # the caller reports NaN
        return float(1 - np.var(targets - values) / (np.var(targets) + 1e-8))


# --- the loss -------------------------------------------------------------------------------------


class LossSettings(NamedTuple):
    """Weights of the loss and bounds of a step; those of a run's settings have the same names."""

    clip: float
    value_weight: float
    max_grad_norm: float
    entropy_weight: float = 0.0  # this and the next follow schedules: each update is told them
    rate: float = 0.0


def ppo_loss(
    log_probs: "Tensor",
    entropies: "Tensor",
    values: "Tensor",
    old_log_probs: "Tensor",
    advantages: "Tensor",
    targets: "Tensor",
    loss: LossSettings,
) -> "tuple[Tensor, tuple[Tensor, ...]]":
    """The loss of each row, and of each row what STATS are the means of.

    L = -min(r A, clip(r) A) - entropy_weight H + value_weight (v - target)² / 2      r = π / π_old

    clip(r) keeps r within 1 ± clip. KL divergence is estimated by r - 1 - log r.
    """
    log_ratios = log_probs - old_log_probs
    ratios = log_ratios.exp()
    clipped = ratios.clamp(1 - loss.clip, 1 + loss.clip)
    gains = (ratios * advantages).minimum(clipped * advantages)
    errors = (values - targets) ** 2 / 2
    losses = -gains - loss.entropy_weight * entropies + loss.value_weight * errors
    is_outside = ((ratios - 1).abs() > loss.clip).float()
    return losses, (-gains, errors, entropies, ratios - 1 - log_ratios, is_outside)


# --- the step -------------------------------------------------------------------------------------


class Stepper(Protocol):
    """Weights, their optimiser, and a way to compute gradients."""

    def load_rows(self, rows: Rows) -> None:
        """Take the rows that the coming steps are to learn from."""

    def step(
        self, chosen: npt.NDArray[np.int64], loss: LossSettings
    ) -> tuple[npt.NDArray[np.float64], float]:
        """One gradient step on the chosen rows: the sums of STATS over them, the gradient's norm"""
        ...

    def evaluate(self, rollout: Rollout) -> tuple[Floats, Floats]:
        """Log-probabilities of the actions taken, and values, both [T, N], by the newest weights"""
        ...

    def weights(self) -> Weights:
        """A copy of the weights, in the form that samplers take."""

    def save(self) -> tuple[Arrays, Facts]:
        """Weights and optimiser, exactly."""
        ...

    def optimiser(self) -> Arrays:
        """Arrays of the shapes that the optimiser's have once it has made a step."""
        ...

    def load(self, arrays: Arrays, facts: Facts) -> None: ...

    def load_weights(self, arrays: Arrays) -> None:
        """Without the optimiser."""


@dataclass(frozen=True, kw_only=True)
class PPOSettings:
    """What decides an update; fields of a run's settings have the same names."""

    k_epochs: int
    minibatch_size: int
    gae_lambda: float
    target_kl: float | None
    loss: LossSettings


class Learner(Protocol):
    """What a run asks of its algorithm."""

    @property
    def stepper(self) -> Stepper: ...

    @property
    def settings(self) -> PPOSettings: ...

    def update(self, rollout: Rollout, rate: float, entropy_weight: float) -> dict[str, float]:
        """Learn from a rollout; what is to be reported of that."""
        ...

    def save(self) -> tuple[Arrays, Facts]: ...

    def load(self, arrays: Arrays, facts: Facts) -> None: ...


class PPO:
    """Improves a policy by rollouts: `metrics = learner.update(rollout, rate, entropy_weight)`."""

    def __init__(self, stepper: Stepper, settings: PPOSettings, seed: int) -> None:
        self.stepper, self.settings = stepper, settings
        self.shuffle = np.random.default_rng([seed, 1])

    def update(self, rollout: Rollout, rate: float, entropy_weight: float) -> dict[str, float]:
        """Several epochs over one rollout."""
        s = self.settings
        rows, report = self.estimate(rollout)
        loss = s.loss._replace(rate=rate, entropy_weight=entropy_weight)
        self.stepper.load_rows(rows)
        total = len(rows.advantages)
        sums, seen, norms, epochs = np.zeros(len(STATS)), 0, [], 0
        for _ in range(s.k_epochs):
            order = self.shuffle.permutation(total)
            epoch_sums = np.zeros(len(STATS))
            for first in range(0, total, s.minibatch_size):
                stats, norm = self.stepper.step(order[first : first + s.minibatch_size], loss)
                epoch_sums += stats
                norms.append(norm)
            sums, seen, epochs = sums + epoch_sums, seen + total, epochs + 1
            if s.target_kl is not None and epoch_sums[STATS.index("kl")] / total > s.target_kl:
                break
        metrics = dict(zip(STATS, (sums / seen).tolist(), strict=True)) | report
        return metrics | {"grad_norm": float(np.mean(norms)), "epochs": float(epochs)}

    def estimate(self, rollout: Rollout) -> tuple[Rows, dict[str, float]]:
        """Advantages and targets of a rollout, and what to report of them."""
        rows, explained = advantage_rows(rollout, self.settings.gae_lambda)
        return rows, {"explained_variance": explained}

    def save(self) -> tuple[Arrays, Facts]:
        arrays, facts = self.stepper.save()
        return arrays, facts | {"shuffle": self.shuffle.bit_generator.state}

    def load(self, arrays: Arrays, facts: Facts) -> None:
        self.stepper.load(arrays, facts)
        self.shuffle.bit_generator.state = facts["shuffle"]
