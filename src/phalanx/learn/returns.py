"""Advantages and value targets: pure functions of arrays [T, N]."""

import numpy as np
import numpy.typing as npt

from phalanx.compiled.rule import kernel
from phalanx.learn.rollout import Floats


@kernel
def gae(
    rewards: Floats,
    values: Floats,
    next_values: Floats,
    ended: npt.NDArray[np.bool_],
    discounts: Floats,
    decay: float,
    out: Floats,
) -> None:
    """Generalised advantage estimation (Schulman et al., 2016), into out [T, N].

    δₜ = rₜ + γₜ v'ₜ - vₜ        Aₜ = δₜ + γₜ λ Aₜ₊₁  (the sum stops where an episode ended)

    next_values: v' of the state that followed turn t; in an episode's last turn that of its last
        state, so that an episode that was cut is continued by its value.
    discounts: gamma, or 0 where nothing follows (the episode was over, not merely cut).
    decay: λ.
    """
    turns, size = rewards.shape
    running = np.zeros(size, np.float32)
    for t in range(turns - 1, -1, -1):
        for i in range(size):
            if ended[t, i]:
                running[i] = 0
            delta = rewards[t, i] + discounts[t, i] * next_values[t, i] - values[t, i]
            running[i] = delta + discounts[t, i] * np.float32(decay) * running[i]
            out[t, i] = running[i]


@kernel
def vtrace(
    log_ratios: Floats,
    rewards: Floats,
    values: Floats,
    next_values: Floats,
    ended: npt.NDArray[np.bool_],
    discounts: Floats,
    decay: float,
    rho_bar: float,
    c_bar: float,
    targets: Floats,
    advantages: Floats,
) -> None:
    """V-trace targets and advantages (Espeholt et al., 2018), into [T, N].

    δₜ = ρₜ (rₜ + γₜ V'ₜ - Vₜ)      vₜ = Vₜ + δₜ + γₜ λ cₜ (vₜ₊₁ - Vₜ₊₁)
    Aₜ = rₜ + γₜ vₜ₊₁ - Vₜ          ρ, c = min(their bar, π/μ)

    log_ratios: log π/μ of the actions taken: the policy that learns over the one that acted.
    next_values: V' of the state that followed turn t; where an episode ended, or after the last
        turn, also the v of that state.
    decay: λ.
    """
    turns, size = rewards.shape
    for i in range(size):
        later = np.float32(0)  # vₜ₊₁ - Vₜ₊₁
        for t in range(turns - 1, -1, -1):
            if ended[t, i]:
                later = np.float32(0)
            ratio = np.exp(log_ratios[t, i])
            discount = discounts[t, i]
            delta = min(np.float32(rho_bar), ratio) * (
                rewards[t, i] + discount * next_values[t, i] - values[t, i]
            )
            advantages[t, i] = rewards[t, i] + discount * (next_values[t, i] + later) - values[t, i]
            later = delta + discount * np.float32(decay) * min(np.float32(c_bar), ratio) * later
            targets[t, i] = values[t, i] + later
