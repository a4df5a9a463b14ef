"""Proximal policy optimisation (Schulman et al., 2017): several epochs over each rollout."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.learn.compiled.ppo_loss import STATS
from phalanx.learn.returns import Floats, gae
from phalanx.learn.rollout import Arrays, Rollout
from phalanx.learn.stepper import Loss, Rows, Stepper, to_rows


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


class PPO:
    """Improves a policy by rollouts: `metrics = learner.update(rollout, rate, entropy_weight)`."""

    def __init__(self, stepper: Stepper, settings: PPOSettings, seed: int) -> None:
        self.stepper, self.settings = stepper, settings
        self.shuffle = np.random.default_rng([seed, 1])

    def update(self, rollout: Rollout, rate: float, entropy_weight: float) -> dict[str, float]:
        """Several epochs over one rollout."""
        s = self.settings
        rows, seen_in_it = self.estimate(rollout)
        loss = Loss(rate, s.clip, entropy_weight, s.value_weight, s.max_grad_norm)
        self.stepper.load_rows(rows)
        total = len(rows.advantages)
        sums, seen, norms, epochs = np.zeros(len(STATS)), 0, [], 0
        for _ in range(s.epochs):
            order = self.shuffle.permutation(total)
            epoch_sums = np.zeros(len(STATS))
            for first in range(0, total, s.minibatch_size):
                stats, norm = self.stepper.step(order[first : first + s.minibatch_size], loss)
                epoch_sums += stats
                norms.append(norm)
            sums, seen, epochs = sums + epoch_sums, seen + total, epochs + 1
            if s.target_kl is not None and epoch_sums[STATS.index("kl")] / total > s.target_kl:
                break
        metrics = dict(zip(STATS, (sums / seen).tolist(), strict=True))
        metrics |= {"grad_norm": float(np.mean(norms)), "epochs": float(epochs)}
        return metrics | seen_in_it

    def estimate(self, rollout: Rollout) -> tuple[Rows, dict[str, float]]:
        """What is to be learnt from a rollout, and what to report of it."""
        rows, explained = advantage_rows(rollout, self.settings.gae_lambda)
        return rows, {"explained_variance": explained}

    def save(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, facts = self.stepper.save()
        return arrays, facts | {"shuffle": self.shuffle.bit_generator.state}

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        self.stepper.load(arrays, facts)
        self.shuffle.bit_generator.state = facts["shuffle"]


def advantage_rows(
    rollout: Rollout, gae_lambda: float, *, normalised: bool = True
) -> tuple[Rows, float]:
    """The rows of a rollout, and how much of the targets' variance the critic explained."""
    advantages = np.empty_like(rollout.rewards)
    gae(
        rollout.rewards, rollout.values, rollout.next_values, rollout.ended, rollout.discounts,
        gae_lambda, advantages,
    )  # fmt: skip
    targets = advantages + rollout.values
    explained = explained_variance(targets, rollout.values)
    if normalised:
        advantages = normalise(advantages)
    return to_rows(rollout, rollout.log_probs, advantages, targets), explained


def normalise(advantages: Floats) -> Floats:
    with np.errstate(all="ignore"):  # what is no number shows in the loss
        return (advantages - advantages.mean()) / (advantages.std() + np.float32(1e-8))


def explained_variance(targets: Any, values: Any) -> float:
    """How much of the targets' variance the critic explained; 1 is all."""
    with np.errstate(all="ignore"):  # what is no number is told by whoever asked
        return float(1 - np.var(targets - values) / (np.var(targets) + 1e-8))
