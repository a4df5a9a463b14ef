"""The prices of fixes follow compliance, each order by itself."""

import numpy as np
import pytest

from phalanx.cage2.rules.scoring import CONDUCT, make_orders
from phalanx.cage2.workflow import NUM_ORDERS
from phalanx.learn.cage2.gate import RANGE, Gate


def episodes(**shares: float) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """An episode of 1,000 fixes for each order: share of compliant ones by `order_N`."""
    conducts = np.zeros(len(shares), CONDUCT)
    conducts["order"] = [int(name.removeprefix("order_")) for name in shares]
    conducts["fixes"] = 1000
    conducts["compliant"] = [1000 * share for share in shares.values()]
    return conducts


def test_a_fix_is_free_at_first_and_then_worth_nothing_at_the_aim() -> None:
    gate, orders = Gate(0.9, 2.0, 0.5, 7.0), make_orders([5], "host", "gate", 10.0)
    gate.put_into([orders], 0.4)
    assert orders.gains[5] == orders.costs[5] == 0
    gate.put_into([orders], 0.5)
    assert gate.aim == pytest.approx(0.92)
    assert 0.92 * orders.gains[5] - 0.08 * orders.costs[5] == pytest.approx(0)
    assert orders.gains[5] + orders.costs[5] == pytest.approx(2.0)


def test_the_price_of_defiance_rises_while_fixes_are_free_and_then_stays() -> None:
    gate, orders = Gate(0.9, 2.0, 0.5, 7.0), make_orders([5], "host", "gate", 10.0)
    for progress, price in ((0.0, 0.0), (0.25, 3.5), (0.5, 7.0), (0.9, 7.0)):
        gate.put_into([orders], progress)
        assert orders.defied[5] == pytest.approx(price)
    gate = Gate(0.9, 2.0, 0.0, 7.0)
    gate.put_into([orders], 0.0)
    assert orders.defied[5] == 7.0


def test_prices_rise_below_the_threshold_and_fall_above() -> None:
    gate = Gate(0.9, 0.5, 0.5)
    gate.move(episodes(order_5=0.5, order_6=1.0), 0.4)
    assert (gate.prices == 0.5).all()  # not while fixes are free
    gate.move(episodes(order_5=0.5, order_6=1.0), 0.6)
    assert gate.prices[6] < 0.5 < gate.prices[5]
    assert gate.prices[0] == 0.5  # nobody followed it: nothing is known
    for _ in range(1000):
        gate.move(episodes(order_5=0.5, order_6=1.0), 0.6)
    assert gate.prices[5] == pytest.approx(0.5 * RANGE)  # never beyond all measure
    assert gate.prices[6] == pytest.approx(0.5 / RANGE)  # and never free
    assert np.count_nonzero(gate.prices != 0.5) == 2 < NUM_ORDERS
