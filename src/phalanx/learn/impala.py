"""IMPALA (Espeholt et al., 2018): learn from rollouts that were played by slightly older weights.

V-trace corrects for the difference: values by truncated importance weights ρ and c, the policy's
gradient by its own ρ and by v of the next state. Its steps are bounded as in PPO, which keeps the
policy near those that act: unbounded, a few steps carry it further than such weights can mend.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from phalanx.learn.ppo import PPO, PPOSettings, explained_variance, normalise
from phalanx.learn.returns import vtrace
from phalanx.learn.rollout import Rollout
from phalanx.learn.stepper import Rows, to_rows


@dataclass(frozen=True, kw_only=True)
class ImpalaSettings(PPOSettings):
    """What decides an update."""

    rho_bar: float
    c_bar: float
    pg_rho_bar: float


class Impala(PPO):
    """Improves a policy by rollouts of older weights, as `PPO` does by its own."""

    settings: ImpalaSettings

    def estimate(self, rollout: Rollout) -> tuple[Rows, dict[str, float]]:
        """V-trace by the newest weights."""
        log_probs, values = self.stepper.evaluate(rollout)
        targets, advantages, log_ratios = self.correct(rollout, log_probs, values)
        # What the policy is compared with: the ratio begins as ρ = min(its bar, π/μ).
        compared = np.maximum(
            rollout.log_probs, log_probs - np.log(np.float32(self.settings.pg_rho_bar))
        )
        rows = to_rows(rollout, compared, normalise(advantages), targets)
        return rows, {
            "explained_variance": explained_variance(targets, values),
            "kl": float(np.mean(np.exp(log_ratios) - 1 - log_ratios)),  # acting policy and this one
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
            s.gae_lambda, s.rho_bar, s.c_bar, targets, advantages,
        )  # fmt: skip
        return targets, advantages, log_ratios
