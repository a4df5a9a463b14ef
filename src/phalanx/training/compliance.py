"""How well episodes followed their order of repair: figures, and whether that is enough."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from phalanx.training.config import TrainConfig
from phalanx.training.update_record import Episode

COMPLIANCE = ("compliance", "fixes_per_episode", "share_without_fix")


def compliance_of(episodes: Sequence[Episode]) -> dict[str, float]:
    """Compliance pooled over all fixes (no number without one), fixes per episode, share without"""
    if not episodes:
        return dict.fromkeys(COMPLIANCE, math.nan)
    fixes = np.array([episode.fixes for episode in episodes])
    compliant = sum(episode.compliant for episode in episodes)
    figures = (
        compliant / fixes.sum() if fixes.any() else math.nan,
        fixes.mean(),
        (fixes == 0).mean(),
    )
    return dict(zip(COMPLIANCE, map(float, figures), strict=True))


def passes_gate(figures: Mapping[str, Any], config: TrainConfig) -> bool:
    """Whether a policy follows its order, and by more than a lucky fix."""
    compliance = figures["compliance"]
    if compliance is None or figures["fixes_per_episode"] < config.min_fixes:
        return False
    return bool(compliance >= config.compliance_threshold)  # never if it is no number


def compliance_in_words(figures: dict[str, float]) -> str:
    """`compliance 93.1%, 4.2 fixes, 3% without`."""
    compliance, fixes, without = (figures[name] for name in COMPLIANCE)
    share = "-" if math.isnan(compliance) else f"{compliance:.1%}"
    return f"compliance {share}, {fixes:.1f} fixes, {without:.0%} without"
