"""Which orders may be the best one, and what each of the others costs: with how much confidence.

    decision = decide(Estimate(means, covariance, freedom))
    decision.may_be_best                  # [M] the orders that cannot be told from the best; with a
                                          # margin also those that may be so little behind
    decision.low, decision.high           # [M] what each costs against the best, at least, at most

All of it holds at once with the confidence asked for, however many orders there are. These are
multiple comparisons with the best (Hsu, 1984; Edwards & Hsu, 1983), with the whole covariance.
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
    behind: Floats | float = 0.0
    """[M] by how much orders may return less, apart from these errors"""

    def of(self, chosen: npt.NDArray[np.int64]) -> "Estimate":
        """Some of the orders."""
        covariance = self.covariance[np.ix_(chosen, chosen)]
        behind = np.broadcast_to(self.behind, self.mean.shape)[chosen]
        return Estimate(self.mean[chosen], covariance, self.freedom, behind)

    def errors(self) -> Floats:
        """[M, M] standard errors of the differences of two orders."""
        own = np.diag(self.covariance)
        return np.sqrt(np.maximum(own[:, None] + own - 2 * self.covariance, 1e-18))


class Decision(NamedTuple):
    """What follows from an estimate, for M orders; all arrays are [M]."""

    best: int
    """the order with the highest estimate"""
    may_be_best: npt.NDArray[np.bool_]
    """the best order is among these, and those that may be behind it by no more than the margin"""
    cost: Floats
    """how much lower each order's return is than that of the best one: estimated"""
    low: Floats
    """... at least"""
    high: Floats
    """... at most"""
    confidence: float


def decide(estimate: Estimate, confidence: float = CONFIDENCE, margin: float = 0.0) -> Decision:
    """With the confidence, at once: the best order may be best, and each cost is within its bounds.

    Let b be the order that is truly best, and qᵢ so large that with the confidence

        |(mᵢ - mⱼ) - (μᵢ - μⱼ)| ≤ qᵢ · seᵢⱼ for all j,

    which is simulated for each i. For i = b this bounds what each j costs, μ_b - μⱼ. As b is
    unknown, all i stay in the set that may be b by that, those with mⱼ - mᵢ ≤ qᵢ · seᵢⱼ for all j,
    and the bounds of j are the widest that one of these gives. What orders may be behind their
    estimates adds to what they cost at most.

    margin: points that nobody minds. An order is left out only if another is ahead by more than
    that in the same way; the bounds do not change.
    """
    mean, errors = estimate.mean, estimate.errors()
    reach = _critical(estimate, errors, confidence)[:, None] * errors
    ahead = mean[:, None] - mean  # [i, j]: by how much i seems better than j
    may_be_b = (-ahead <= reach).all(axis=1)
    may_be_best = np.asarray((-ahead <= reach + margin).all(axis=1))
    # Against itself the best order costs nothing; that is between the bounds anyway.
    low = np.maximum((ahead - reach)[may_be_b].min(axis=0), 0.0)
    high = np.maximum((ahead + reach)[may_be_b].max(axis=0), 0.0) + estimate.behind
    cost = mean.max() - mean
    return Decision(int(np.argmax(mean)), may_be_best, cost, low, high, confidence)


def quantile(estimate: Estimate, weights: Floats, confidence: float = CONFIDENCE) -> Floats:
    """How far the intervals of some weighted sums of orders reach, all at once.

    weights: [C, M], each row adds up to nothing. Returns [C] half widths.
    """
    error = np.sqrt(np.maximum(((weights @ estimate.covariance) * weights).sum(axis=1), 1e-18))
    drawn = np.abs(_draws(estimate) @ weights.T) / error
    return float(np.quantile(drawn.max(axis=1), confidence)) * error


def _critical(estimate: Estimate, errors: Floats, confidence: float) -> Floats:
    """[M] qᵢ: so many standard errors hold all differences from i at once."""
    drawn = np.ascontiguousarray(_draws(estimate).T)
    apart = (np.abs(drawn - drawn[i]) / errors[i][:, None] for i in range(len(errors)))
    return np.array([np.quantile(one.max(axis=0), confidence) for one in apart])


def _draws(estimate: Estimate) -> Floats:
    """[draws, M] errors as they might be, larger where their size is known badly: Student's t."""
    dice = np.random.default_rng(SEED)
    values, vectors = np.linalg.eigh(estimate.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = dice.standard_normal((DRAWS, len(values))) @ root.T
    if np.isfinite(estimate.freedom):
        drawn /= np.sqrt(dice.chisquare(estimate.freedom, (DRAWS, 1)) / estimate.freedom)
    return drawn
