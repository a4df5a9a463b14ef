"""IMPALA (Espeholt et al., 2018): learn from rollouts that were played by slightly older weights.

V-trace corrects for the difference: values by truncated importance weights ρ and c, the policy's
gradient by its own ρ and by v of the next state. Loss and steps are those of `ppo.py`, which keep
the policy near those that act: without such a bound, a few steps carry it too far to be corrected.
"""

from dataclasses import dataclass

import numpy as np

from phalanx.learn.ppo import PPO, PPOSettings, Rows, explained_variance, normalise, to_rows
from phalanx.learn.returns import vtrace
from phalanx.learn.rollout import Rollout


@dataclass(frozen=True, kw_only=True)
class ImpalaSettings(PPOSettings):
    """What decides an update; fields of a run's settings have the same names."""

    rho_bar: float
    c_bar: float
    pg_rho_bar: float


class Impala(PPO):
    """Improves a policy by rollouts of older weights, as `PPO` does by its own."""

    settings: ImpalaSettings

    def estimate(self, rollout: Rollout) -> tuple[Rows, dict[str, float]]:
        """V-trace targets and advantages by the newest weights."""
        s, r = self.settings, rollout
        log_probs, values = self.stepper.evaluate(r)
        log_ratios = log_probs - r.log_probs  # log π/μ: the policy that learns over those that act
        # Where an episode or the rollout ends, the acting critic's value stands for the next state.
        next_values = r.next_values.copy()
        np.copyto(next_values[:-1], values[1:], where=~r.ended[:-1])
        targets, advantages = np.empty_like(values), np.empty_like(values)
        vtrace(
            log_ratios,
            r.rewards,
            values,
            next_values,
            r.ended,
            r.discounts,
            s.gae_lambda,
            s.rho_bar,
            s.c_bar,
            targets,
            advantages,
        )
        # What the policy is compared with: the ratio begins as ρ = min(its bar, π/μ).
        compared = np.maximum(r.log_probs, log_probs - np.log(np.float32(s.pg_rho_bar)))
        return to_rows(r, compared, normalise(advantages), targets), {
            "explained_variance": explained_variance(targets, values),
            "kl": float(np.mean(np.exp(log_ratios) - 1 - log_ratios)),  # acting policy and this one
        }
