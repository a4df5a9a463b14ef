"""A Gaussian process over orders of repair, and which one to try next.

Two orders that differ little should do about equally well: f ~ GP(m, σ² exp(-d/ℓ)) with Kendall
distance d. This is the Mallows kernel, positive definite on permutations (Jiao & Vert, 2015).
The next order is the one with the highest upper bound: GP-UCB (Srinivas et al., 2010).

    returns = fit(distances, visited, measured, errors**2, pending=running)
    obedience = fit(distances, visited, compliance, its_errors**2, spread=0.2)
    bounds = upper_bounds(returns, 2.0, chance_of_passing(obedience, 0.9))
    workflow = choose(bounds, visited, running, allowed)
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag
from scipy.linalg.lapack import dtrtrs
from scipy.optimize import minimize
from scipy.special import ndtr

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

USUAL_LENGTH = 0.5  # the mean distance of two orders
SCALES, LENGTHS = (0.01, 10.0), (0.03, 10.0)  # where σ / unit and ℓ are sought
NOISES = (1e-6, 1e12)  # of a value, in squared units: with less, matrices are nearly singular


@dataclass(frozen=True)
class Posterior:
    """What is believed of each of M workflows; `std` is of its true value, not of a measurement."""

    mean: Floats
    std: Floats
    covariance: Floats
    """[M, M] of the true values; that of a difference is smaller where two have much in common"""
    scale: float
    """σ: how far values lie from the level"""
    length: float
    """ℓ: the distance over which workflows forget each other"""
    level: float
    """m: the value of a workflow far from all others"""


def fit(
    distances: Floats,
    visited: Ints,
    values: Floats,
    noise: Floats,
    *,
    pending: Iterable[int] = (),
    spread: float | None = None,
) -> Posterior:
    """What the measurements say of every workflow, visited or not.

    σ and ℓ are the most probable ones (see `misfit`), then m, mean and std follow (see
    `condition`). Units do not matter, nor does the order of the measurements. Without any
    measurement m is 0, ℓ is 0.5 and σ is `spread`, or 1.

    distances: [M, M], 0..1. visited: [n], a workflow may repeat. values: [n].
    noise: [n], the squared standard errors of the values, or [n, n], the covariance of their errors
        if these are not independent; then each workflow is there once.
    pending: workflows that are being tried now. They count as measured, with the usual noise, at
        what they are believed to be (the Kriging believer): mean stays, std shrinks near them.
    spread: by how much values differ as far as is known beforehand; else the standard deviation
        of `values`. Give it where values are compared with a threshold: the first one or two
        measurements say nothing of how different the others may be.
    """
    assert np.isfinite(values).all()
    assert not np.isnan(noise).any()
    own = noise if noise.ndim == 1 else np.diag(noise)
    order = np.lexsort((own, values, visited))
    visited, values, own = visited[order], values[order], own[order]
    unit = spread or spread_of(values, own)
    centre = float(values.mean()) if len(values) else 0.0
    own = np.clip(own / unit**2, *NOISES)

    if noise.ndim == 1:
        at, y, errors = merge(visited, (values - centre) / unit, own)
    else:
        assert len(set(visited.tolist())) == len(visited)
        at, y, errors = visited, (values - centre) / unit, noise[np.ix_(order, order)] / unit**2
        errors = errors + np.diag(own - np.diag(errors))  # where the smallest were raised
    scale, length = most_probable(distances[np.ix_(at, at)], y, errors)
    kernel = scale**2 * np.exp(-distances / length)
    measured = len(at) > 0
    mean, covariance, level = condition(kernel, at, y, errors, measured)

    trying = np.array(sorted(pending), np.int64)
    if len(trying):
        usual = np.full(len(trying), np.median(own) if measured else NOISES[0])
        at, y = np.concatenate([at, trying]), np.concatenate([y, mean[trying]])
        if noise.ndim == 1:
            at, y, errors = merge(at, y, np.concatenate([errors, usual]))
        else:
            errors = block_diag(errors, np.diag(usual))
        _same_mean, covariance, _same_level = condition(kernel, at, y, errors, measured)
    return Posterior(
        mean=centre + unit * mean,
        std=unit * np.sqrt(np.maximum(np.diag(covariance), 1e-12)),
        covariance=unit**2 * covariance,
        scale=unit * scale,
        length=length,
        level=centre + unit * level,
    )


def chance_of_passing(posterior: Posterior, threshold: float) -> Floats:
    """How likely each workflow's true value is above the threshold: Φ((mean - threshold) / std)."""
    return np.asarray(ndtr((posterior.mean - threshold) / posterior.std))


def upper_bounds(returns: Posterior, beta: float, passing: Floats | None = None) -> Floats:
    """How good each workflow may be: u = mean + β std, or behind a gate p u + (1 - p) w.

    passing: p, the chance to pass the gate; None: there is no gate.
    w is the lowest mean - β std of all: a workflow that fails is worth as much as the worst.
    """
    upper = returns.mean + beta * returns.std
    if passing is None:
        return upper
    worst = (returns.mean - beta * returns.std).min()
    return passing * upper + (1 - passing) * worst


def choose(
    bounds: Floats, visited: Iterable[int], pending: Iterable[int], allowed: npt.NDArray[np.bool_]
) -> int | None:
    """The allowed workflow with the highest bound, neither visited nor being tried; None: all are.

    Of equals the one with the lowest number.
    """
    free = allowed.copy()
    free[[*visited, *pending]] = False
    if not free.any():
        return None
    return int(np.argmax(np.where(free, bounds, -np.inf)))


def spread_of(values: Floats, noise: Floats) -> float:
    """The standard deviation of the values; where they are all equal their standard error, or 1."""
    if len(values) == 0:
        return 1.0
    spread, error = float(values.std()), float(np.sqrt(noise.mean()))
    if spread > 1e-9 * np.abs(values).max():
        return spread
    return error if 0 < error < np.inf else 1.0


def merge(places: Ints, values: Floats, noise: Floats) -> tuple[Ints, Floats, Floats]:
    """Each visited workflow once, with the precision-weighted mean of its values and its noise.

    Nothing is lost: the posterior, and the likelihood of σ, ℓ and m, are the same.
    """
    at, place = np.unique(places, return_inverse=True)
    precision = np.bincount(place, 1 / noise, len(at))
    return at, np.bincount(place, values / noise, len(at)) / precision, 1 / precision


def condition(
    kernel: Floats, at: Ints, y: Floats, noise: Floats, measured: bool
) -> tuple[Floats, Floats, float]:
    """Mean and covariance of all workflows, and the level, given the values y at some of them.

    With V = σ² exp(-d/ℓ) + noise among those and k = σ² exp(-d/ℓ) from them to all, w = 1 - 1ᵀV⁻¹k:

    m = 1ᵀV⁻¹y / 1ᵀV⁻¹1     mean = m + kᵀV⁻¹(y - m)
    covariance = σ² exp(-d/ℓ) - kᵀV⁻¹k + wᵀw / 1ᵀV⁻¹1     the last term as m is estimated (kriging)

    measured: False while y holds no measurement; then m = 0 without doubt.
    """
    if len(at) == 0:
        return np.zeros(len(kernel)), kernel, 0.0
    _root, one, value, near = whiten(kernel[np.ix_(at, at)] + as_matrix(noise), y, kernel[at])
    doubt = 1 / (one @ one) if measured else 0.0
    level = float(doubt * (one @ value))
    mean = level + (value - level * one) @ near
    left = 1 - one @ near
    return mean, kernel - near.T @ near + doubt * np.outer(left, left), level


def most_probable(distances: Floats, y: Floats, noise: Floats) -> tuple[float, float]:
    """σ and ℓ with the least misfit to values y [n]: downhill from the usual ones.

    The priors leave one valley: starts from all sides end in the same place.
    """
    if len(y) < 2:  # one workflow tells nothing of how workflows differ
        return 1.0, USUAL_LENGTH
    start, bounds = np.log([1.0, USUAL_LENGTH]), np.log([SCALES, LENGTHS])
    given = (distances, y, noise)
    found = minimize(misfit, start, given, method="L-BFGS-B", jac=True, bounds=bounds)
    scale, length = np.exp(found.x)
    return float(scale), float(length)


def misfit(logs: Floats, distances: Floats, y: Floats, noise: Floats) -> tuple[float, Floats]:
    """-ln p(y, σ, ℓ) and its slopes in logs = (ln σ, ln ℓ), the level m integrated out.

    ½ (ln|V| + ln 1ᵀV⁻¹1 + (y - m)ᵀV⁻¹(y - m)) + ½ (ln σ)² + ½ (ln ℓ/0.5)²

    The last two are weak priors, a factor of e either way, which rule while workflows are few.
    The level costs one degree of freedom (restricted likelihood: Harville, 1974).
    Slopes: ½ tr(P V') - ½ (Py)ᵀV'(Py) with P = V⁻¹ - V⁻¹11ᵀV⁻¹ / 1ᵀV⁻¹1.
    """
    (scale, length), prior = np.exp(logs), logs - np.log([1.0, USUAL_LENGTH])
    kernel = scale**2 * np.exp(-distances / length)
    root, one, value, inverse_root = whiten(kernel + as_matrix(noise), y, np.eye(len(y)))
    precision = one @ one
    rest = value - (one @ value / precision) * one
    weight, residual = one @ inverse_root, rest @ inverse_root  # V⁻¹1 and Py
    projection = inverse_root.T @ inverse_root - np.outer(weight, weight) / precision
    slack = projection - np.outer(residual, residual)
    slopes = [(slack * kernel).sum(), (slack * kernel * distances).sum() / (2 * length)]
    loss = np.log(np.diag(root)).sum() + 0.5 * (np.log(precision) + rest @ rest + prior @ prior)
    return float(loss), np.array(slopes) + prior


def as_matrix(noise: Floats) -> Floats:
    """The covariance of errors; if only their variances are known, they are independent."""
    return np.diag(noise) if noise.ndim == 1 else noise


def whiten(cov: Floats, y: Floats, columns: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """L with LLᵀ = cov, and L⁻¹ of ones, of y and of the columns: aᵀcov⁻¹b = (L⁻¹a)ᵀ(L⁻¹b)."""
    root = np.asarray(np.linalg.cholesky(cov), np.float64)
    white, _info = dtrtrs(root, np.column_stack([np.ones(len(y)), y, columns]), lower=True)
    return root, white[:, 0], white[:, 1], white[:, 2:]
