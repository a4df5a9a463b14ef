"""Tests keep their level with few seeds, find what they promise, and agree with known cases."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from phalanx.show.compare.significance import (
    LEVEL,
    bootstrap,
    detectable,
    holm,
    interquartile_mean,
    paired,
    power,
    probability_of_improvement,
    unpaired,
)

# Scores of seeds as they come: normal, with a tail of bad runs, with a fifth that fail.
Draws = npt.NDArray[np.float64]
PAIRS = 4000
SHAPES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Draws]] = {
    "normal": lambda random, size: random.normal(size=size),
    "skewed": lambda random, size: -random.exponential(size=size),
    "some fail": lambda random, size: (
        np.where(random.random(size) < 0.2, -5.0, 0.0) + random.normal(0, 0.5, size)
    ),
}


def test_unpaired_is_welchs_test_of_scipy() -> None:
    random = np.random.default_rng(0)
    for n, m in ((2, 2), (3, 5), (10, 4)):
        x, y = random.normal(0, 3, n), random.normal(1, 1, m)
        ours, theirs = unpaired(x, y), stats.ttest_ind(x, y, equal_var=False)
        interval = theirs.confidence_interval(0.95)
        assert (ours.p, ours.low, ours.high) == pytest.approx((theirs.pvalue, *interval))
        assert ours.counts == (n, m)


def test_paired_is_students_test_of_scipy() -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=(2, 7))
    theirs = stats.ttest_rel(x, y)
    ours = paired(x, y)
    assert ours.p == pytest.approx(theirs.pvalue)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval(0.95)))


def test_common_dice_find_what_apart_is_lost_in_noise() -> None:
    dice = np.random.default_rng(2).normal(0, 10, 200)
    gains = np.random.default_rng(3).normal(0.5, 1, 200)
    assert paired(dice + gains, dice).verdict() == "better"
    assert paired(dice, dice + gains).verdict() == "worse"
    assert unpaired(dice + gains, dice).verdict() == "no difference"


def share_called_equal(first: Draws, second: Draws) -> float:
    """[pairs, seeds] each: how often the verdict is `no difference`."""
    verdicts = [unpaired(x, y).verdict() for x, y in zip(first, second, strict=True)]
    return verdicts.count("no difference") / len(verdicts)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_equal_settings_are_called_equal_in_95_of_100_pairs(seeds: int, shape: str) -> None:
    random = np.random.default_rng(seeds)
    first, second = (SHAPES[shape](random, (PAIRS, seeds)) for _unused_side in range(2))
    assert share_called_equal(first, second) >= 0.95


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_a_planted_difference_is_found_as_often_as_promised(seeds: int) -> None:
    random = np.random.default_rng(seeds)
    planted = detectable((2.0, 1.0), (seeds, seeds))
    assert planted is not None
    assert power(planted, (2.0, 1.0), (seeds, seeds)) == pytest.approx(0.8, abs=0.001)
    first = random.normal(planted, 2.0, (PAIRS, seeds))
    second = random.normal(0.0, 1.0, (PAIRS, seeds))
    within = 4 * (0.8 * 0.2 / PAIRS) ** 0.5
    assert 1 - share_called_equal(first, second) == pytest.approx(0.8, abs=within)


def test_more_seeds_find_smaller_differences_and_more_comparisons_larger_ones() -> None:
    few, many = (detectable((1.0, 1.0), (n, n)) or 0.0 for n in (3, 10))
    assert many < few / 2
    assert (detectable((1.0, 1.0), (10, 10), 0.05 / 6) or 0.0) > many
    assert detectable((0.0, 0.0), (3, 3)) is None


def test_of_six_equal_settings_no_pair_is_called_different_in_95_of_100_comparisons() -> None:
    random = np.random.default_rng(5)
    wrong = 0
    for _unused_comparison in range(400):
        scores = random.normal(size=(6, 5))
        chances = [unpaired(scores[i], scores[k]).p for i in range(6) for k in range(i)]
        wrong += min(holm(chances)) < LEVEL
    assert wrong <= 0.05 * 400


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_all_alike_is_no_difference_and_all_alike_but_apart_is_one() -> None:
    assert paired([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]).verdict() == "no difference"
    assert unpaired([1.0, 1.0], [2.0, 2.0]).verdict() == "worse"


def test_a_chance_that_is_corrected_decides() -> None:
    found = unpaired([1.0, 1.1, 0.9], [0.0, 0.1, -0.1])
    assert found.verdict() == "better"
    assert found.verdict(0.2) == "no difference"


def test_the_interquartile_mean_is_the_trimmed_mean_of_scipy() -> None:
    random = np.random.default_rng(7)
    for count in (1, 3, 4, 7, 40):
        scores = random.exponential(size=count)
        assert interquartile_mean(scores) == pytest.approx(stats.trim_mean(scores, 0.25))
    assert interquartile_mean([0, 100, 4, 6]) == 5.0  # outliers are left out


def test_the_probability_of_improvement_is_that_of_mann_and_whitney() -> None:
    random = np.random.default_rng(8)
    x, y = random.normal(1, 1, 6), random.normal(0, 1, 9)
    u = stats.mannwhitneyu(x, y).statistic
    assert probability_of_improvement([x], [y]) == pytest.approx(u / 54)
    assert probability_of_improvement([[1, 2]], [[1, 2]]) == 0.5
    # Of two tasks the mean: always better on one, never on the other.
    assert probability_of_improvement([[5, 6], [1, 2]], [[1, 2], [5, 6]]) == 0.5


def test_a_bootstrap_redraws_within_each_task() -> None:
    """Tasks far apart: redrawn together, their mean would vary by much more."""
    strata = [np.full(5, 0.0), np.full(5, 100.0)]
    assert bootstrap(lambda drawn: np.mean(drawn, axis=(0, 2)), strata) == (50.0, 50.0)


def test_a_bootstrap_interval_holds_the_mean_of_many_runs_in_95_of_100_cases() -> None:
    random = np.random.default_rng(9)
    held = 0
    for _unused_case in range(100):
        low, high = bootstrap(lambda drawn: drawn[0].mean(axis=-1), [random.normal(size=40)])
        held += low < 0 < high
    assert 88 <= held <= 99
