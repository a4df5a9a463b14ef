"""By how much the price of a fix moves in an update."""

import numpy as np
import pytest

from phalanx.cage2.rules.scoring import CONDUCT
from phalanx.learn.cage2.gate import FEW, FULL, STEP, Gate
from tests.learn.cage2.test_gate import episodes


def moved(share: float) -> float:
    """The factor of order 5's price after an update with 1,000 fixes."""
    gate = Gate(0.9, 2.0, 0.5)
    gate.move(episodes(order_5=share), 0.5)  # from the very turn on at which fixes cost
    return float(gate.prices[5] / 2.0)


def test_a_price_moves_by_what_is_missed_and_never_by_more_than_a_step() -> None:
    assert moved(0.90) == pytest.approx(np.exp(STEP * 20 / (1000 + FEW) / FULL))
    assert moved(0.94) == pytest.approx(np.exp(-STEP * 20 / (1000 + FEW) / FULL))
    assert moved(0.92) == 1
    assert moved(0.0) == pytest.approx(np.exp(STEP))
    low = Gate(0.1, 2.0, 0.0)
    low.move(episodes(order_5=1.0), 0.0)
    assert low.prices[5] == pytest.approx(2.0 * np.exp(-STEP))


def test_episodes_of_an_order_count_together() -> None:
    gate, conducts = Gate(0.9, 2.0, 0.0), np.zeros(3, CONDUCT)
    conducts["order"], conducts["fixes"] = [5, 5, 6], [400, 600, 0]
    conducts["compliant"] = [300, 600, 0]
    gate.move(conducts, 0.0)
    assert gate.prices[5] / 2.0 == pytest.approx(moved(0.9))
    assert gate.prices[6] == 2.0
