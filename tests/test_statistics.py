"""Intervals hold what they promise, also of few numbers."""

import math

import numpy as np
import pytest

from phalanx.statistics import half_width, interval


@pytest.mark.parametrize(
    ("count", "reach"), [(2, 12.7062), (3, 4.3027), (5, 2.7764), (10, 2.2622), (10**7, 1.95996)]
)
def test_the_reach_is_that_of_the_tables(count: int, reach: float) -> None:
    """Student's t at 97.5 %, as printed in tables."""
    assert half_width(1.0, count) == pytest.approx(reach, rel=1e-4)


@pytest.mark.parametrize("count", [2, 5, 10])
def test_nineteen_of_twenty_intervals_hold_the_true_mean(count: int) -> None:
    """By the normal distribution it was 70, 88 and 92 of a hundred."""
    samples = np.random.default_rng(count).normal(-12.0, 3.0, (4000, count))
    held = [(found := interval(row))["low"] <= -12.0 <= found["high"] for row in samples]
    assert 0.94 <= np.mean(held) <= 0.96


def test_an_interval_is_mean_and_spread() -> None:
    found = interval([1.0, 2.0, 3.0])
    assert found["mean"] == 2.0
    assert found["stderr"] == pytest.approx(1 / math.sqrt(3))
    assert found["high"] - 2.0 == 2.0 - found["low"] == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    assert found["episodes"] == 3


def test_one_number_has_no_interval() -> None:
    assert interval([4.0]) == {
        "mean": 4.0,
        "stderr": None,
        "low": None,
        "high": None,
        "episodes": 1,
    }
