"""What CAGE-2 adds to training: turn weights, Restore's price, workflows, rewards of one's own."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Arrays
from phalanx.cage2.rules.scenario import HORIZONS
from phalanx.cage2.rules.scoring import FIXES, Orders
from phalanx.cage2.settings import kinds_of_episodes
from phalanx.cage2.workflow import order_name, parse_order
from phalanx.learn.cage2.games import Shaping
from phalanx.learn.cage2.gate import Gate
from phalanx.learn.rollout import Rollout, Sampler
from phalanx.statistics import interval
from phalanx.training.config import TrainConfig
from phalanx.training.extension import Extension
from phalanx.training.update_record import Episode, mean

COMPLIANCE = ("compliance", "fixes_per_episode", "share_without_fix")
FIRST_PRICE = 0.1  # `--alignment gate` begins with so much of lambda / 20


class Following(Protocol):
    """A sampler of CAGE-2: its networks follow orders of repair."""

    orders: Orders


class Cage2Extension(Extension):
    """Rewards by turn, a price of Restore that rises, and how well workflows are followed."""

    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config)
        self.kinds, self._weights = kinds_of_episodes(config.red_agent), turn_weights(config)
        self.workflow = config.workflow
        self.gate: Gate | None = None
        if config.workflow is not None and config.alignment == "gate":
            price = FIRST_PRICE * config.alignment_lambda / FIXES
            defiance = config.defiance if config.alignment_lambda else 0.0  # nobody minds then
            self.gate = Gate(config.compliance_threshold, price, config.gate_start, defiance)
        if self.workflow not in (None, "all"):
            self.workflow = order_name(parse_order(str(self.workflow)))  # in full
        if self.workflow is not None:
            self.episode_columns = ("workflow", "fixes", "compliant", "alignment")
        self.has_own_reward = config.reward is not None
        if self.has_own_reward:
            self.episode_columns = ("own_return", *self.episode_columns)

    def shaping(self, progress: float) -> Shaping:
        config = self.config
        # Under the leaderboard's weights nothing counts after the last horizon: there it is over.
        over = config.turn_weights == "leaderboard" and config.horizon >= max(HORIZONS)
        return Shaping(
            self._weights,
            1 - restore_price(config, progress),
            config.reward_scale,
            config.gamma,
            0.0 if over else config.gamma,
        )

    def before_update(self, samplers: Sequence[Sampler], progress: float) -> None:
        if self.gate is not None:
            self.gate.put_into([cast(Following, one).orders for one in samplers], progress)

    def after_update(self, rollout: Rollout, progress: float) -> None:
        if self.gate is not None:
            self.gate.move(rollout.notes[rollout.counted], progress)

    def figures(self, episodes: Sequence[Episode]) -> dict[str, object]:
        own: dict[str, object] = {}
        if self.has_own_reward:
            own["own_return"] = mean([e.own for e in episodes])
        if self.workflow is None:
            return own
        alignment = mean([e.alignment for e in episodes])
        total = mean([e.total for e in episodes]) + alignment
        figures = {"workflow": self.workflow, "alignment": alignment, "total_return": total}
        return own | figures | compliance_of(episodes)

    def schedules(self, progress: float) -> dict[str, float]:
        return {"restore_price": restore_price(self.config, progress)}

    def episode_row(self, episode: Episode) -> tuple[object, ...]:
        own = (f"{episode.own:.6g}",) if self.has_own_reward else ()
        if self.workflow is None:
            return own
        alignment = round(episode.alignment, 4)
        return *own, episode.order, episode.fixes, episode.compliant, alignment

    def summary(self, episodes: Sequence[Episode]) -> dict[str, object]:
        own: dict[str, object] = {}
        if self.has_own_reward and episodes:
            own["own_return"] = interval([e.own for e in episodes])
        if self.workflow is None:
            return own
        figures = compliance_of(episodes)
        return own | {
            "workflow": self.workflow,
            "alignment": interval([e.alignment for e in episodes]) if episodes else None,
            **{name: value if math.isfinite(value) else None for name, value in figures.items()},
            "follows_workflow": passes_gate(figures, self.config),
        }

    def in_words(self, episodes: Sequence[Episode]) -> dict[str, str]:
        lines = {}
        if self.has_own_reward and episodes:
            lines["reward"] = own_return_in_words(str(self.config.reward), episodes)
        if self.workflow is not None:
            lines["workflow"] = compliance_in_words(compliance_of(episodes))
        return lines

    def save(self) -> Arrays:
        return {} if self.gate is None else {"prices": self.gate.prices}

    def load(self, arrays: Arrays) -> None:
        if self.gate is not None:
            self.gate.prices[:] = arrays["prices"]


def value_worth(config: TrainConfig) -> npt.NDArray[np.float64]:
    """[turns] the points to come, as turns count, that a critic's value of 1 in each turn stands
    for, if losses are spread evenly over the turns to come: values are scaled and discounted.
    """
    shaping = Cage2Extension(config).shaping(1.0)
    weights = shaping.weights.astype(np.float64)
    # What follows a cut goes on as its last turn, as far as a discount lets it end.
    discounted = weights[-1] / (1 - shaping.gamma) if 0 < shaping.final_gamma < 1 else 0.0
    worth, counted = np.empty_like(weights), 0.0
    for turn in reversed(range(len(weights))):
        discounted = weights[turn] + shaping.gamma * discounted
        counted += weights[turn]
        worth[turn] = counted / discounted / shaping.scale
    return worth


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


def own_return_in_words(reward: str, episodes: Sequence[Episode]) -> str:
    """`few_sessions -20.1 ± 0.3`."""
    name, last = reward.rpartition(":")[2], interval([episode.own for episode in episodes])
    reach = "" if last["high"] is None else f" ± {last['high'] - last['mean']:.3g}"
    return f"{name} {last['mean']:.4g}{reach}"


# --- how well episodes followed their order of repair, and whether that is enough ----------------


def compliance_of(episodes: Sequence[Episode]) -> dict[str, float]:
    """Compliance pooled over all fixes (NaN if there are none), fixes per episode, share without"""
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
    return bool(compliance >= config.compliance_threshold)  # never if it is NaN


def compliance_in_words(figures: dict[str, float]) -> str:
    """`compliance 93.1%, 4.2 fixes, 3% without`."""
    compliance, fixes, without = (figures[name] for name in COMPLIANCE)
    share = "-" if math.isnan(compliance) else f"{compliance:.1%}"
    return f"compliance {share}, {fixes:.1f} fixes, {without:.0%} without"
