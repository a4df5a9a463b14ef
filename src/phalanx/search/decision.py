"""Which orders may be the best one, and what each of the others costs: with how much confidence.

    decision = decide(Estimate(means, covariance, freedom))
    decision.may_be_best                  # [M] the orders that cannot be told from the best
    decision.low, decision.high           # [M] what each costs against the best, at least, at most

All of it holds at once with the confidence asked for, however many orders there are: all pairs are
compared (Tukey), with the whole covariance.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.statistics import CONFIDENCE

Floats = npt.NDArray[np.float64]
DRAWS = 4000
SEED = 120


class Estimate(NamedTuple):
    """What is known of M orders together."""

    mean: Floats
    """[M] estimates of their returns"""
    covariance: Floats
    """[M, M] of the errors of these; only that of differences matters"""
    freedom: float = np.inf
    """degrees of freedom by which the covariance is known"""

    def of(self, chosen: npt.NDArray[np.int64]) -> "Estimate":
        """Some of the orders."""
        return Estimate(self.mean[chosen], self.covariance[np.ix_(chosen, chosen)], self.freedom)

    def errors(self) -> Floats:
        """[M, M] standard errors of the differences of two orders."""
        own = np.diag(self.covariance)
        return np.sqrt(np.maximum(own[:, None] + own - 2 * self.covariance, 1e-18))


class Decision(NamedTuple):
    """What follows from an estimate, for M orders; all arrays are [M]."""

    best: int
    """the order with the highest estimate"""
    may_be_best: npt.NDArray[np.bool_]
    """those that cannot be told from the best one, which is among them: they may cost nothing"""
    cost: Floats
    """how much lower each order's return is than that of the best one: estimated"""
    low: Floats
    """... at least"""
    high: Floats
    """... at most"""
    confidence: float


def decide(estimate: Estimate, confidence: float = CONFIDENCE) -> Decision:
    """With the confidence, at once: each cost is within its bounds.

    Let q be so large that with the confidence

        |(mᵢ - mⱼ) - (μᵢ - μⱼ)| ≤ q · seᵢⱼ for all pairs,

    which is simulated. An order j costs at least what it is behind any other one for certain. Those
    that are behind none may be the best; j costs at most what it may be behind one of these.
    """
    mean, errors = estimate.mean, estimate.errors()
    reach = _critical(estimate, errors, confidence) * errors
    ahead = mean[:, None] - mean  # [i, j]: by how much i seems better than j
    low = np.maximum((ahead - reach).max(axis=0), 0.0)
    may_be_best = low == 0
    high = np.maximum((ahead + reach)[may_be_best].max(axis=0), 0.0)
    high[may_be_best & (may_be_best.sum() == 1)] = 0.0  # alone it is the best, and costs nothing
    return Decision(int(np.argmax(mean)), may_be_best, mean.max() - mean, low, high, confidence)


def quantile(estimate: Estimate, weights: Floats, confidence: float = CONFIDENCE) -> Floats:
    """How far the intervals of some weighted sums of orders reach, all at once.

    weights: [C, M], each row adds up to nothing. Returns [C] half widths.
    """
    error = np.sqrt(np.maximum(((weights @ estimate.covariance) * weights).sum(axis=1), 1e-18))
    drawn = np.abs(_draws(estimate) @ weights.T) / error
    return float(np.quantile(drawn.max(axis=1), confidence)) * error


def _critical(estimate: Estimate, errors: Floats, confidence: float) -> float:
    """q: so many standard errors hold the differences of all pairs at once."""
    drawn, furthest = _draws(estimate), np.zeros(DRAWS)
    for i in range(1, len(errors)):
        apart = np.abs(drawn[:, :i] - drawn[:, [i]]) / errors[i, :i]
        np.maximum(furthest, apart.max(axis=1), out=furthest)
    return float(np.quantile(furthest, confidence))


def _draws(estimate: Estimate) -> Floats:
    """[draws, M] errors as they might be, larger where their size is known badly: Student's t."""
    dice = np.random.default_rng(SEED)
    values, vectors = np.linalg.eigh(estimate.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = dice.standard_normal((DRAWS, len(values))) @ root.T
    if np.isfinite(estimate.freedom):
        drawn /= np.sqrt(dice.chisquare(estimate.freedom, (DRAWS, 1)) / estimate.freedom)
    return drawn
