"""IMPALA (Espeholt et al., 2018): learn from rollouts that were played by slightly older weights.

V-trace corrects for the difference: values by truncated importance weights ρ and c, the policy by
its own ρ and by v of the next state. One pass over each rollout.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.learn.ppo import explained_variance
from phalanx.learn.ppo_kernel import STATS
from phalanx.learn.returns import vtrace
from phalanx.learn.rollout import Arrays, Rollout, columns_of
from phalanx.learn.stepper import Loss, Stepper, to_rows

NO_CLIP = 1e9


@dataclass(frozen=True, kw_only=True)
class ImpalaSettings:
    """What decides an update."""

    minibatch_size: int
    rho_bar: float
    c_bar: float
    pg_rho_bar: float
    value_weight: float
    max_grad_norm: float


class Impala:
    """Improves a policy by rollouts of older weights: as `PPO`, `update(rollout, rate, …)`."""

    def __init__(self, stepper: Stepper, settings: ImpalaSettings) -> None:
        self.stepper, self.settings = stepper, settings

    def update(self, rollout: Rollout, rate: float, entropy_weight: float) -> dict[str, float]:
        """One step for each minibatch of whole columns, each judged by the weights of its time."""
        s = self.settings
        loss = Loss(rate, NO_CLIP, entropy_weight, s.value_weight, s.max_grad_norm)
        turns, size = rollout.rewards.shape
        width = max(1, s.minibatch_size // turns)
        sums, norms, explained, ratios = np.zeros(len(STATS)), [], [], []
        for first in range(0, size, width):
            part = columns_of(rollout, slice(first, first + width))
            log_probs, values = self.stepper.look(part)
            targets, advantages, log_ratios = self.correct(part, log_probs, values)
            # The ratio of the step's loss is 1: it is the plain policy gradient, times advantages.
            advantages = (advantages - advantages.mean()) / (advantages.std() + np.float32(1e-8))
            self.stepper.begin(to_rows(part, log_probs, advantages, targets))
            stats, norm = self.stepper.step(np.arange(part.rewards.size), loss)
            sums += stats
            norms.append(norm)
            explained.append(explained_variance(targets, values))
            ratios.append(log_ratios)
        metrics = dict(zip(STATS, (sums / rollout.rewards.size).tolist(), strict=True))
        gone = np.concatenate([part.reshape(-1) for part in ratios])
        return metrics | {
            "kl": float(np.mean(np.exp(gone) - 1 - gone)),  # of the acting policy and this one
            "clip_fraction": float(np.mean(np.exp(gone) > s.rho_bar)),
            "explained_variance": float(np.mean(explained)),
            "grad_norm": float(np.mean(norms)),
            "epochs": 1.0,
        }

    def correct(self, rollout: Rollout, log_probs: Any, values: Any) -> tuple[Any, Any, Any]:
        """V-trace targets, advantages, and the log-ratios of the policies."""
        s = self.settings
        # Where an episode or the rollout ends, the acting critic's value stands for the next state.
        next_values = rollout.next_values.copy()
        np.copyto(next_values[:-1], values[1:], where=~rollout.ended[:-1])
        log_ratios = log_probs - rollout.log_probs
        targets, advantages = np.empty_like(values), np.empty_like(values)
        vtrace(
            log_ratios, rollout.rewards, values, next_values, rollout.ended, rollout.discounts,
            s.rho_bar, s.c_bar, s.pg_rho_bar, targets, advantages,
        )  # fmt: skip
        return targets, advantages, log_ratios

    def save(self) -> tuple[Arrays, dict[str, Any]]:
        return self.stepper.save()

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        self.stepper.load(arrays, facts)
