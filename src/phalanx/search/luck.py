"""How much of a difference between two orders is luck: of training, and of the dice.

Each network that was trained on all orders has its own luck. Network k plays order o with a return

    yₒₖ = μₒ + bₖ + gₒₖ      g·ₖ ~ N(0, Σ)      Σ = sₖ² ((1 - ρ) 1 + ρ A)

μ is what we want to know. b, how good a network is at all, is the same for all orders and cancels
in differences. g is what a network does well or badly with some orders, and the dice on which it
was judged (common to its orders, other ones for each network). Luck may be shared by orders that
are alike: then it cancels between these and adds up between others. A says who is alike, and is the
most probable of these: orders that differ little, Aᵢⱼ = exp(-d/ℓ) at a Kendall distance d; or those
that have one type before another, Aᵢⱼ = 1 if i and j agree on that and else 0, since what a network
must learn may hang on just that. Some networks are more at the mercy of luck than others, and count
less. And some fail at a few orders that all others play alike, by many deviations. That says
nothing of their luck with other orders, so it is cut back: what an order returns is what those make
of it who do not fail. It may be behind that on average, by twice what it was here.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.workflow import DISTANCES, NUM_TYPES, POSITIONS
from phalanx.search.decision import Estimate

Floats = npt.NDArray[np.float64]
SHARES = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
LENGTHS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # ℓ that are tried
FAILURE = 3.0  # standard deviations of bad luck, beyond which it is a failure at one order
NORMAL = 1.4826  # standard deviations in a median of absolute deviations
DOUBT = 8.0  # dimensions that speak for networks being alike before anything is measured


class Luck(NamedTuple):
    """What the luck of K networks with some orders is like."""

    scales: Floats
    """[K] s: the standard deviation of a network's luck with one order"""
    share: float
    """ρ: how much of it orders have in common that are alike"""
    shape: Floats
    """[M, M] (1 - ρ) 1 + ρ A"""

    @property
    def weights(self) -> Floats:
        """[K] how much each network counts: less, the more it does well or badly by luck.

        None counts for more than two of the usual ones: scales are only estimated.
        """
        squares = self.scales**2
        weights = 1 / (squares + np.median(squares))
        return np.asarray(weights / weights.sum())

    @property
    def freedom(self) -> float:
        """Degrees of freedom by which the size of errors is known (Satterthwaite, 1946).

        As many as there are networks, less one, however many orders they played: what a network
        does badly is a few orders of its own, which say nothing of those of the next one. Fewer if
        few networks make up most of the error.
        """
        parts = self.weights**2 * self.scales**2
        networks = parts.sum() ** 2 / (parts**2).sum()
        return float((1 - 1 / len(parts)) * networks)


def estimate_returns(numbers: npt.NDArray[np.int64], returns: Floats) -> Estimate:
    """What is known of orders that several networks have played.

    numbers: [M] of orders, M ≥ 2. returns: [M, K], K ≥ 2: mean return of each by each network.
    """
    lost = failures(returns)
    played = returns + lost
    luck = fit_luck(numbers, played)
    apart = (played - played.mean(axis=0)) @ luck.weights
    square = float((luck.weights**2 * luck.scales**2).sum())
    behind = 2 * lost.mean(axis=1)
    return Estimate(played.mean() + apart, square * luck.shape, luck.freedom, behind)


def failures(returns: Floats) -> Floats:
    """[M, K] what networks lose with orders beyond the bad luck that they have with most of them.

    By medians, which do not mind what a few networks do with a few orders. Of two nobody knows
    which one has failed.
    """
    networks = returns.shape[1]
    if networks < 3:
        return np.zeros(returns.shape)
    level = np.median(returns - np.median(returns, axis=1, keepdims=True), axis=0)
    luck = returns - level - np.median(returns - level, axis=1, keepdims=True)
    luck -= np.median(luck, axis=0)
    sizes = NORMAL * np.median(np.abs(luck), axis=0) * np.sqrt(networks / (networks - 1))
    most = FAILURE * np.sqrt((sizes**2 + np.median(sizes) ** 2) / 2)
    return np.maximum(-luck - most, 0.0)


def fit_luck(numbers: npt.NDArray[np.int64], returns: Floats) -> Luck:
    """How large the luck of each network is, and the most probable shape of it."""
    luck = _fit_shape(numbers, returns, np.ones(returns.shape[1]))
    sizes = _sizes(returns, _dimensions(luck.shape))
    return _fit_shape(numbers, returns, sizes)


def _fit_shape(numbers: npt.NDArray[np.int64], returns: Floats, sizes: Floats) -> Luck:
    """The same, where it is known how large luck is beside that of the other networks.

    Restricted likelihood: μ and b are projected out, which leaves K - 1 independent vectors of
    M - 1 dimensions. With S the sum of their squares, Q = V⁻¹ - V⁻¹11ᵀV⁻¹ / 1ᵀV⁻¹1 and V the shape,
    s² = tr(QS) / ((K-1)(M-1)), and what is left to minimise over ρ and A is

    (M - 1) ln s² + ln|V| + ln 1ᵀV⁻¹1
    """
    orders, networks = returns.shape
    assert orders > 1
    assert networks > 1
    centred = returns - returns.mean(axis=0)
    weights = Luck(sizes, 0.0, np.eye(orders)).weights
    rest = (centred - (centred @ weights)[:, None]) / sizes
    dimensions = (networks - 1) * (orders - 1)
    least, best = np.inf, (0.0, 0.0, np.eye(orders))
    for share in SHARES:
        for alike in _who_is_alike(numbers) if share else [np.eye(orders)]:
            shape = share * alike + (1 - share) * np.eye(orders)
            root = np.linalg.cholesky(shape)
            white = np.linalg.solve(root, np.column_stack([np.ones(orders), rest]))
            one, values = white[:, 0], white[:, 1:]
            precision = one @ one
            square = ((values**2).sum() - ((one @ values) ** 2).sum() / precision) / dimensions
            square = max(float(square), 1e-12)
            misfit = (orders - 1) * np.log(square)
            misfit += 2 * np.log(np.diag(root)).sum() + np.log(precision)
            if misfit < least:
                least, best = misfit, (square, float(share), shape)
    square, share, shape = best
    return Luck(sizes * np.sqrt(square), share, shape)


def _sizes(returns: Floats, dimensions: float) -> Floats:
    """[K] how unsteady networks are, beside each other; 1 on average.

    Two networks differ from each other by the luck of both, dₖₗ² = sₖ² + sₗ², which three or more
    tell apart (Grubbs, 1948). That is known by as many `dimensions` as luck varies in; the fewer
    these are, the more all networks are taken to be alike.
    """
    networks = returns.shape[1]
    if networks < 3:
        return np.ones(networks)
    centred = returns - returns.mean(axis=0)
    apart = centred[:, :, None] - centred[:, None]
    squares = np.asarray((apart**2).sum(axis=0))  # [K, K] dₖₗ²
    usual = squares.sum() / (2 * networks * (networks - 1))
    own = (squares.sum(axis=1) - networks * usual) / (networks - 2)
    own = dimensions * np.maximum(own, 0.0) + DOUBT * max(usual, 1e-12)
    return np.asarray(np.sqrt(own / own.mean()))


def _who_is_alike(numbers: npt.NDArray[np.int64]) -> list[Floats]:
    """All A that are tried, [M, M] each."""
    distances, places = DISTANCES[np.ix_(numbers, numbers)], POSITIONS[numbers]
    found = [np.exp(-distances / length) for length in LENGTHS]
    for one, other in combinations(range(NUM_TYPES), 2):
        is_first = places[:, one] < places[:, other]
        found.append((is_first[:, None] == is_first).astype(np.float64))
    return found


def _dimensions(covariance: Floats) -> float:
    """In how many directions luck varies, as far as it does not cancel: tr(C)² / tr(C²).

    Luck that is shared by many orders says less of its own size (Satterthwaite, 1946).
    """
    centred = covariance - covariance.mean(axis=0)
    centred = centred - centred.mean(axis=1, keepdims=True)
    return float(np.trace(centred) ** 2 / (centred**2).sum())
