"""A policy and the order that it was told, over some episodes on known dice."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.workflow import order_name
from phalanx.play.episodes import play_episodes
from phalanx.play.evaluate_config import Games
from phalanx.play.players import trained_player
from phalanx.play.trained import TrainedDefender
from phalanx.search.config import SearchConfig
from phalanx.statistics import interval
from phalanx.training.cage2_extension import passes_gate


@dataclass(frozen=True)
class Measured:
    """A policy that was told an order, over some episodes."""

    workflow: int | None
    """None: the learner without workflows, judged by the winner's order"""
    name: str
    returns: npt.NDArray[np.float64]
    fixes: npt.NDArray[np.int64]
    compliant: npt.NDArray[np.int64]

    @property
    def compliance(self) -> float | None:
        return float(self.compliant.sum() / self.fixes.sum()) if self.fixes.any() else None

    def passes(self, config: SearchConfig) -> bool:
        return passes_gate(self.figures(), config)

    def figures(self) -> dict[str, Any]:
        """As summary.json has them."""
        return {
            "workflow": self.workflow,
            "order": None if self.workflow is None else order_name(self.workflow),
            "name": self.name,
            **interval(self.returns),
            "compliance": self.compliance,
            "fixes_per_episode": float(self.fixes.mean()),
            "share_without_fix": float((self.fixes == 0).mean()),
        }


def measure(
    config: SearchConfig,
    defender: TrainedDefender,
    number: int,
    episodes: int,
    dice: int,
    name: str,
) -> Measured:
    """Play a policy that is told an order; equal `dice` are equal games for all policies."""
    seed = (config.seed + dice) % 2**63
    games = Games(episodes, config.rules, seed, config.threads, config.compliance_rule)
    orders = np.full(episodes, number)
    player = trained_player(name, defender)
    played = play_episodes(games, player, config.red_agent, (config.horizon,), orders)
    return Measured(number, name, played.returns[:, 0], played.fixes[:, 0], played.compliant[:, 0])
