"""What CAGE-2 adds to training: the learner's rewards, and the price of fixes."""

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import HORIZONS
from phalanx.cage2.rules.scoring import FIXES
from phalanx.learn.compiled.collect import Shaping
from phalanx.learn.gate import Gate
from phalanx.training.config import TrainConfig

FIRST_PRICE = 0.1  # `--alignment gate` begins with so much of lambda / 20


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


def shaping(config: TrainConfig, weights: npt.NDArray[np.float32], progress: float) -> Shaping:
    """The learner's rewards at this point of the run."""
    # Under the leaderboard's weights nothing counts after the last horizon: there it is over.
    over = config.turn_weights == "leaderboard" and config.horizon >= max(HORIZONS)
    return Shaping(
        weights,
        1 - restore_price(config, progress),
        config.reward_scale,
        config.gamma,
        0.0 if over else config.gamma,
    )


def open_gate(config: TrainConfig) -> Gate | None:
    if config.workflow is None or config.alignment != "gate":
        return None
    first_price = FIRST_PRICE * config.alignment_lambda / FIXES
    return Gate(config.compliance_threshold, first_price, config.gate_start)
