"""How much of a difference between two orders is luck: of training, and of the dice.

Each network that was trained on all orders has its own luck. Network k plays order o with a return

    yₒₖ = μₒ + bₖ + gₒₖ      g·ₖ ~ N(0, Σ)      Σ = s² ((1 - ρ) 1 + ρ exp(-d/ℓ))

μ is what we want to know. b, how good a network is at all, is the same for all orders and cancels
in differences. g is what a network does well or badly with some orders, and the dice on which it
was judged (common to its orders, other ones for each network). Luck may be shared by orders that
differ little, at a Kendall distance d: then it cancels between these and adds up between others.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
SHARES = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98])
LENGTHS = np.array([0.1, 0.2, 0.4, 0.8, 1.6, 3.2])  # ℓ that are tried


class Luck(NamedTuple):
    """What the luck of one network is like."""

    scale: float
    """s: its standard deviation for one order"""
    share: float
    """ρ: how much of it neighbours have in common"""
    length: float
    """ℓ: over which distance"""
    freedom: float
    """degrees of freedom by which s is known; infinite if it is not estimated from networks"""

    def covariance(self, distances: Floats) -> Floats:
        """Σ among orders of these distances [M, M]."""
        return self.scale**2 * _shape(distances, self.share, self.length)


def fit_luck(distances: Floats, returns: Floats) -> Luck:
    """The most probable Σ by how differently networks play the orders.

    distances: [M, M], M ≥ 2. returns: [M, K], K ≥ 2: mean return of each order by each network.

    Restricted likelihood: μ and b are projected out, which leaves K - 1 independent vectors of
    M - 1 dimensions. With S the sum of their squares, Q = V⁻¹ - V⁻¹11ᵀV⁻¹ / 1ᵀV⁻¹1 and V = Σ/s²,
    s² = tr(QS) / ((K-1)(M-1)), and what is left to minimise over ρ and ℓ is

    (M - 1) ln s² + ln|V| + ln 1ᵀV⁻¹1
    """
    orders, networks = returns.shape
    assert orders > 1
    assert networks > 1
    rest = returns - returns.mean(axis=1, keepdims=True)
    rest = rest - rest.mean(axis=0)
    dimensions = (networks - 1) * (orders - 1)
    best = (np.inf, 0.0, 0.0, LENGTHS[0])
    for share in SHARES:
        for length in LENGTHS if share else LENGTHS[:1]:
            root = np.linalg.cholesky(_shape(distances, share, length))
            white = np.linalg.solve(root, np.column_stack([np.ones(orders), rest]))
            one, values = white[:, 0], white[:, 1:]
            precision = one @ one
            square = ((values**2).sum() - ((one @ values) ** 2).sum() / precision) / dimensions
            square = max(float(square), 1e-12)
            misfit = (orders - 1) * np.log(square)
            misfit += 2 * np.log(np.diag(root)).sum() + np.log(precision)
            best = min(best, (float(misfit), square, float(share), float(length)))
    _misfit, square, share, length = best
    shape = _shape(distances, share, length)
    return Luck(float(np.sqrt(square)), share, length, (networks - 1) * _dimensions(shape))


def _shape(distances: Floats, share: float, length: float) -> Floats:
    """Σ for s = 1."""
    return np.asarray(share * np.exp(-distances / length) + (1 - share) * np.eye(len(distances)))


def _dimensions(covariance: Floats) -> float:
    """In how many directions luck varies, as far as it does not cancel: tr(C)² / tr(C²).

    Luck that is shared by many orders says less of its own size (Satterthwaite, 1946).
    """
    centred = covariance - covariance.mean(axis=0)
    centred = centred - centred.mean(axis=1, keepdims=True)
    return float(np.trace(centred) ** 2 / (centred**2).sum())
