"""Is a difference more than luck? Few numbers on either side, and a level that is kept with few.

Verdicts come from Welch's t test over seeds, or Student's over pairs of games on the same dice;
what is drawn besides are the interquartile mean and the probability of improvement of Agarwal et
al. (2021, arXiv 2108.13264), with intervals by stratified bootstrap. A percentile bootstrap of
three seeds is far too narrow, and a permutation of three against three can never reach 5 %; Welch's
test keeps its level there (tests/show/compare/test_significance.py plays that out).
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, ndtr, stdtr, stdtrit

LEVEL = 0.05  # how often equal things may be called different
POWER = 0.8  # how often the difference that we name as detectable is found
RESAMPLED, AT_ONCE = 2000, 100  # draws of a bootstrap
Floats = npt.NDArray[np.float64]


class Difference(NamedTuple):
    """How much higher the first is than the second, and how sure that is."""

    mean: float
    low: float
    high: float
    """the 95 % interval, of this difference alone"""
    p: float
    """chance of a difference as large as this if there is none, of this difference alone"""
    spreads: tuple[float, ...]
    """deviation of the pairs' differences, or of each of the two samples"""
    counts: tuple[int, ...]
    """and how many there are"""

    @property
    def is_paired(self) -> bool:
        return len(self.counts) == 1

    def detectable(self, comparisons: int = 1) -> float | None:
        """What would be found in four of five cases, with these spreads and so many numbers."""
        return detectable(self.spreads, self.counts, LEVEL / comparisons)

    def verdict(self, p_adjusted: float | None = None) -> str:
        """`better`, `worse` or `no difference`; p_adjusted: for as many comparisons as were made"""
        p = self.p if p_adjusted is None else p_adjusted
        if p >= LEVEL:
            return "no difference"
        return "better" if self.mean > 0 else "worse"


def paired(first: npt.ArrayLike, second: npt.ArrayLike) -> Difference:
    """Student's test of the differences, episode by episode; both [n], n of 2 or more.

    t = mean(d) / (s(d) / √n), with n - 1 degrees of freedom.
    """
    gains = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    n = len(gains)
    spread = float(gains.std(ddof=1))
    found = _difference(float(gains.mean()), spread / n**0.5, n - 1.0)
    return Difference(*found, (spread,), (n,))


def unpaired(first: npt.ArrayLike, second: npt.ArrayLike) -> Difference:
    """Welch's test (1947) of two samples [n], [m], each of 2 or more, such as scores by seed.

    t = (x̄ - ȳ) / √(s²ₓ/n + s²ᵧ/m); degrees of freedom by Satterthwaite.
    """
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    spreads = float(x.std(ddof=1)), float(y.std(ddof=1))
    counts = len(x), len(y)
    error, freedom = _welch(np.square(spreads), counts)
    found = _difference(float(x.mean() - y.mean()), float(error), float(freedom))
    return Difference(*found, spreads, counts)


def holm(chances: Sequence[float]) -> list[float]:
    """Chances corrected for their number (Holm, 1979): calls one of all wrongly in 5 % at most.

    p₍ᵢ₎ becomes the largest of (k - j + 1) p₍ⱼ₎ over j ≤ i, at most 1.
    """
    k, adjusted, largest = len(chances), [1.0] * len(chances), 0.0
    for place, at in enumerate(sorted(range(k), key=lambda one: chances[one])):
        largest = max(largest, min(1.0, (k - place) * chances[at]))
        adjusted[at] = largest
    return adjusted


# --- of many runs ---------------------------------------------------------------------------------


def interquartile_mean(scores: npt.ArrayLike) -> Floats:
    """Mean of the middle half: a quarter is left out at either end, in whole numbers of scores.

    scores: [n], or [draws, n] for one of each.
    """
    ordered = np.sort(np.asarray(scores, np.float64), axis=-1)
    cut = int(0.25 * ordered.shape[-1])
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)


def probability_of_improvement(
    first: Sequence[npt.ArrayLike], second: Sequence[npt.ArrayLike]
) -> Floats:
    """Chance that a run of the first beats one of the second, mean over tasks; ties count half.

    first, second: for each task the scores of the runs, [n], or [draws, n] for one of each. It is
    the statistic of Mann and Whitney: U / (n m).
    """
    chances = []
    for x, y in zip(first, second, strict=True):
        gaps = np.asarray(x, np.float64)[..., :, None] - np.asarray(y, np.float64)[..., None, :]
        chances.append((np.sign(gaps).mean(axis=(-1, -2)) + 1) / 2)
    return np.mean(chances, axis=0)


def bootstrap(
    statistic: Callable[[list[Floats]], Floats], strata: Sequence[npt.ArrayLike], seed: int = 0
) -> tuple[float, float]:
    """The 95 % interval of a statistic by stratified bootstrap: percentiles, runs redrawn by task.

    strata: scores of the runs [n], one array for each task (or for each task of either side).
    statistic: of one array [draws, n] for each, [draws]. With fewer than ten runs the interval is
    too narrow: a picture of the spread, not a test.
    """
    random = np.random.default_rng(seed)
    samples = [np.asarray(one, np.float64) for one in strata]
    found = [
        statistic([one[random.integers(0, len(one), (AT_ONCE, len(one)))] for one in samples])
        for _unused_round in range(RESAMPLED // AT_ONCE)
    ]
    low, high = np.quantile(np.concatenate(found), (0.025, 0.975))
    return float(low), float(high)


# --- what could have been found -------------------------------------------------------------------


def power(
    effect: float, spreads: Sequence[float], counts: Sequence[int], level: float = LEVEL
) -> float:
    """How often our test finds a true difference of normal numbers.

    spreads, counts: deviation and number of the pairs' differences, or of each of two samples. The
    spread that a test sees is itself drawn: its mean is taken over a grid of quantiles of χ².
    """
    variances = np.square(np.asarray(spreads, np.float64))
    true_error = float(np.sqrt((variances / np.asarray(counts)).sum()))
    if true_error == 0:
        return 1.0 if effect else 0.0
    drawn = _drawn_variances(tuple(counts)) * variances[:, None]
    errors, freedoms = _welch(drawn, counts)
    reach = stdtrit(freedoms, 1 - level / 2) * errors
    missed = ndtr((reach - effect) / true_error) - ndtr((-reach - effect) / true_error)
    return float(1 - missed.mean())


def detectable(
    spreads: Sequence[float], counts: Sequence[int], level: float = LEVEL
) -> float | None:
    """The difference that is found with a chance of `POWER`; None if there is no spread at all."""
    error = float(np.sqrt(sum(s**2 / n for s, n in zip(spreads, counts, strict=True))))
    if error == 0 or not np.isfinite(error):
        return None
    low, high = 0.0, 4 * error
    while power(high, spreads, counts, level) < POWER:
        high *= 2
    for _unused_half in range(20):
        middle = (low + high) / 2
        if power(middle, spreads, counts, level) < POWER:
            low = middle
        else:
            high = middle
    return high


@cache
def _drawn_variances(counts: tuple[int, ...]) -> Floats:
    """[samples, draws] sample variances of unit normals: every combination of some quantiles."""
    steps = 48 if len(counts) > 1 else 512
    chances = (np.arange(steps) + 0.5) / steps
    each = [chdtri(n - 1, chances) / (n - 1) for n in counts]
    return np.stack([grid.ravel() for grid in np.meshgrid(*each)])


def _welch(variances: npt.ArrayLike, counts: Sequence[int]) -> tuple[Floats, Floats]:
    """Standard error and degrees of freedom; variances: [samples] or [samples, draws]."""
    shape = (-1,) + (1,) * (np.ndim(variances) - 1)
    n = np.asarray(counts, np.float64).reshape(shape)
    parts = np.asarray(variances, np.float64) / n
    total = parts.sum(axis=0)
    squares = (parts**2 / (n - 1)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(squares > 0, total**2 / squares, np.inf)
    return np.sqrt(total), freedom


def _difference(mean: float, error: float, freedom: float) -> tuple[float, float, float, float]:
    """Mean, its interval, and the chance of it."""
    if error == 0:  # all alike: then any difference is one, and none is none
        return mean, mean, mean, 0.0 if mean else 1.0
    reach = float(stdtrit(freedom, 1 - LEVEL / 2)) * error
    return mean, mean - reach, mean + reach, float(2 * stdtr(freedom, -abs(mean) / error))
