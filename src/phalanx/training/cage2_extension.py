"""What CAGE-2 adds to training: turn weights, Restore's price, workflows and their compliance."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import HORIZONS
from phalanx.cage2.rules.scoring import FIXES
from phalanx.cage2.workflow import order_name, parse_order
from phalanx.learn.cage2.collect import Shaping
from phalanx.learn.cage2.gate import Gate
from phalanx.learn.rollout import Arrays, Rollout
from phalanx.statistics import interval
from phalanx.training.compliance import COMPLIANCE, compliance_in_words, compliance_of, passes_gate
from phalanx.training.config import TrainConfig
from phalanx.training.extension import Extension
from phalanx.training.update_record import Episode

FIRST_PRICE = 0.1  # `--alignment gate` begins with so much of lambda / 20


class Cage2Extension(Extension):
    """Rewards by turn, a price of Restore that rises, and how well workflows are followed."""

    schedule_columns = ("restore_price",)

    def __init__(self, config: TrainConfig) -> None:
        self._config, self._weights = config, turn_weights(config)
        self.gate = open_gate(config)
        self.is_following = config.workflow is not None
        if self.is_following:
            self.columns = ("workflow", "alignment", "total_return", *COMPLIANCE)
            self.episode_columns = ("workflow", "fixes", "compliant", "alignment")

    @property
    def workflow(self) -> str | None:
        """The order that is followed, in full; or `all`."""
        name = self._config.workflow
        return name if name in (None, "all") else order_name(parse_order(str(name)))

    def shaping(self, progress: float) -> Shaping:
        config = self._config
        # Under the leaderboard's weights nothing counts after the last horizon: there it is over.
        over = config.turn_weights == "leaderboard" and config.horizon >= max(HORIZONS)
        return Shaping(
            self._weights,
            1 - restore_price(config, progress),
            config.reward_scale,
            config.gamma,
            0.0 if over else config.gamma,
        )

    def before_update(self, samplers: Sequence[Any], progress: float) -> None:
        if self.gate is not None:
            self.gate.put_into([sampler.orders for sampler in samplers], progress)

    def after_update(self, rollout: Rollout, progress: float) -> None:
        if self.gate is not None:
            self.gate.move(rollout.conducts[rollout.counted], progress)

    def update_row(self, episodes: Sequence[Episode], progress: float) -> dict[str, Any]:
        row: dict[str, Any] = {"restore_price": restore_price(self._config, progress)}
        if self.is_following:
            alignments = [episode.alignment for episode in episodes]
            alignment = float(np.mean(alignments)) if episodes else math.nan
            total = float(np.mean([e.total for e in episodes])) if episodes else math.nan
            row |= {"workflow": self.workflow, "alignment": alignment}
            row |= {"total_return": total + alignment, **compliance_of(episodes)}
        return row

    def episode_row(self, episode: Episode) -> tuple[Any, ...]:
        if not self.is_following:
            return ()
        return episode.order, episode.fixes, episode.compliant, round(episode.alignment, 4)

    def summary(self, episodes: Sequence[Episode]) -> dict[str, Any]:
        if not self.is_following:
            return {}
        figures = compliance_of(episodes)
        return {
            "workflow": self.workflow,
            "alignment": interval([e.alignment for e in episodes]) if episodes else None,
            **{name: value if math.isfinite(value) else None for name, value in figures.items()},
            "follows_workflow": passes_gate(figures, self._config),
        }

    def in_words(self, episodes: Sequence[Episode]) -> str:
        return compliance_in_words(compliance_of(episodes)) if self.is_following else ""

    def save(self) -> Arrays:
        return {} if self.gate is None else {"prices": self.gate.prices}

    def load(self, arrays: Arrays) -> None:
        if self.gate is not None and "prices" in arrays:
            self.gate.prices[:] = arrays["prices"]


def turn_weights(config: TrainConfig) -> npt.NDArray[np.float32]:
    """What a reward counts in each turn: for the leaderboard, once per horizon that includes it."""
    turns = np.arange(config.horizon)
    if config.turn_weights == "leaderboard":
        return np.sum([turns < horizon for horizon in HORIZONS], axis=0).astype(np.float32)
    return np.ones(config.horizon, np.float32)


def restore_price(config: TrainConfig, progress: float) -> float:
    """Restore is cheap at first, so that the learner tries it; its true price comes in time."""
    if progress >= config.restore_curriculum:
        return 1.0
    return 0.2 + 0.8 * progress / config.restore_curriculum


def open_gate(config: TrainConfig) -> Gate | None:
    if config.workflow is None or config.alignment != "gate":
        return None
    first_price = FIRST_PRICE * config.alignment_lambda / FIXES
    return Gate(config.compliance_threshold, first_price, config.gate_start)
