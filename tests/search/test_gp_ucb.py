"""The Gaussian process over the 120 orders of five, and the search that it guides."""

import itertools
from typing import Any

import numpy as np
import pytest

from phalanx.search.gp_ucb import (
    Floats,
    Posterior,
    chance_of_passing,
    choose,
    fit,
    misfit,
    upper_bounds,
)

ORDERS = np.array(list(itertools.permutations(range(5))))
RANKS = np.argsort(ORDERS, axis=1)  # [120, 5]: the place of each type
AHEAD = np.stack([RANKS[:, a] < RANKS[:, b] for a, b in itertools.combinations(range(5), 2)], 1)
KENDALL = (AHEAD[:, None] != AHEAD[None]).mean(-1)
ALL = np.ones(120, np.bool_)
NOTHING = np.zeros(0)
NONE = np.zeros((0, 0))


def draw(scale: float, length: float, rng: np.random.Generator) -> Floats:
    """A function of the 120 orders, drawn from the process itself."""
    kernel = scale**2 * np.exp(-KENDALL / length)
    return np.linalg.cholesky(kernel + 1e-9 * np.eye(120)) @ rng.normal(size=120)


def some_measurements(seed: int = 0, n: int = 25) -> tuple[Any, Any, Any]:
    """Workflows (some twice), values and noise of several sizes."""
    rng = np.random.default_rng(seed)
    visited = rng.integers(0, 120, n)
    visited[-3:] = visited[:3]
    noise = rng.uniform(0.05, 0.5, n) ** 2
    return visited, draw(1, 0.4, rng)[visited] + np.sqrt(noise) * rng.normal(size=n), noise


def test_mallows_kernel_on_all_orders_of_five_is_positive_definite() -> None:
    assert KENDALL[0, 119] == 1
    assert KENDALL[0, 1] == pytest.approx(0.1)
    for length in (0.03, 0.1, 0.3, 1.0):
        assert np.linalg.eigvalsh(np.exp(-KENDALL / length)).min() > 0


def test_the_posterior_is_the_textbook_one() -> None:
    """With the inverse of the whole matrix, a workflow that was measured twice twice in it."""
    visited, y, noise = some_measurements()
    found = fit(KENDALL, visited, y, noise)
    kernel = found.scale**2 * np.exp(-KENDALL / found.length)
    inverse = np.linalg.inv(kernel[np.ix_(visited, visited)] + np.diag(noise))
    level = (inverse @ y).sum() / inverse.sum()
    for i in range(120):
        k = kernel[i, visited]
        mean = level + k @ inverse @ (y - level)
        variance = found.scale**2 - k @ inverse @ k + (1 - (inverse @ k).sum()) ** 2 / inverse.sum()
        assert found.mean[i] == pytest.approx(mean, abs=1e-9)
        assert found.std[i] == pytest.approx(np.sqrt(variance), abs=1e-9)
    assert found.level == pytest.approx(level)


def test_no_other_scale_and_length_are_more_probable() -> None:
    visited, y, noise = some_measurements()
    found, unit = fit(KENDALL, visited, y, noise), y.std()

    def log_probability(scale: float, length: float) -> float:
        kernel = scale**2 * np.exp(-KENDALL[np.ix_(visited, visited)] / length)
        inverse = np.linalg.inv(kernel + np.diag(noise))
        rest = y - (inverse @ y).sum() / inverse.sum()
        likelihood = np.linalg.slogdet(inverse)[1] - np.log(inverse.sum()) - rest @ inverse @ rest
        prior = -(np.log(scale / unit) ** 2) - np.log(length / 0.5) ** 2
        return float(likelihood + prior) / 2

    best = log_probability(found.scale, found.length)
    for up in np.linspace(-0.3, 0.3, 13):
        for along in np.linspace(-0.3, 0.3, 13):
            there = log_probability(found.scale * np.exp(up), found.length * np.exp(along))
            assert there < best + 1e-6
    for scale, length in itertools.product(np.geomspace(0.1, 10, 12), np.geomspace(0.03, 10, 12)):
        assert log_probability(unit * scale, length) < best + 1e-6


def test_the_slopes_of_the_misfit_are_its_differences() -> None:
    rng = np.random.default_rng(8)
    given = KENDALL[::6, ::6], rng.normal(size=20), rng.uniform(0.1, 0.5, 20)
    for logs in rng.uniform(-1, 1, (10, 2)):
        slopes = misfit(logs, *given)[1]
        for step, slope in zip(1e-5 * np.eye(2), slopes, strict=True):
            rise = misfit(logs + step, *given)[0] - misfit(logs - step, *given)[0]
            assert slope == pytest.approx(rise / 2e-5, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("length", [0.15, 0.3, 0.6])
def test_planted_scale_and_length_are_found_again(length: float) -> None:
    """By the median of twenty draws, within a factor of 1.25."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(20):
        visited = rng.permutation(120)[:100]
        values = 7 + draw(3, length, rng)[visited] + 0.1 * rng.normal(size=100)
        posterior = fit(KENDALL, visited, values, np.full(100, 0.01))
        found.append([posterior.scale / 3, posterior.length / length])
    assert np.all(np.abs(np.log(np.median(found, axis=0))) < np.log(1.25))


def test_intervals_hold_what_they_promise() -> None:
    """Mean ± 2 std of the workflows that were not visited hold about 95 % of the true values."""
    rng = np.random.default_rng(2)
    inside = []
    for _ in range(40):
        truth = draw(2, 0.4, rng)
        visited = rng.permutation(120)[:30]
        posterior = fit(
            KENDALL, visited, truth[visited] + 0.3 * rng.normal(size=30), np.full(30, 0.09)
        )
        others = np.setdiff1d(np.arange(120), visited)
        inside.append(np.abs(truth - posterior.mean)[others] < 2 * posterior.std[others])
    assert 0.91 < np.mean(inside) < 0.98


def test_units_do_not_matter() -> None:
    visited, y, noise = some_measurements()
    one = fit(KENDALL, visited, y, noise)
    other = fit(KENDALL, visited, 1e4 * y - 3e4, 1e8 * noise)
    assert np.allclose(other.mean, 1e4 * one.mean - 3e4, rtol=1e-5)
    assert np.allclose(other.std, 1e4 * one.std, rtol=1e-5)
    assert np.allclose([other.scale, other.level], [1e4 * one.scale, 1e4 * one.level - 3e4])
    assert other.length == pytest.approx(one.length, rel=1e-5)


def test_the_order_of_measurements_does_not_matter_and_nothing_is_left_to_chance() -> None:
    visited, y, noise = some_measurements()
    one = fit(KENDALL, visited, y, noise)
    rng = np.random.default_rng(3)
    for order in (np.arange(25), *(rng.permutation(25) for _ in range(5))):
        other = fit(KENDALL, visited[order], y[order], noise[order])
        assert np.array_equal(one.mean, other.mean)
        assert np.array_equal(one.std, other.std)
        assert (one.scale, one.length, one.level) == (other.scale, other.length, other.level)


def test_without_measurements_nothing_is_known() -> None:
    posterior = fit(KENDALL, np.zeros(0, np.int64), NOTHING, NOTHING)
    assert np.all(posterior.mean == 0)
    assert np.all(posterior.std == 1)
    assert np.all(fit(KENDALL, np.zeros(0, np.int64), NOTHING, NOTHING, spread=5.0).std == 5)


def test_one_measurement_is_believed_most_where_it_was_made() -> None:
    posterior = fit(KENDALL, np.array([17]), np.array([-14.0]), np.array([0.25]))
    assert np.allclose(posterior.mean, -14)
    assert np.argmin(posterior.std) == 17
    assert posterior.std[17] == pytest.approx(0.5)
    assert np.all(np.diff(posterior.std[np.argsort(KENDALL[17], kind="stable")]) > -1e-12)


@pytest.mark.parametrize("count", [2, 5, 30, 500])
@pytest.mark.parametrize("noise", [0.0, 1e-12, 0.01, 1e30, np.inf])
@pytest.mark.parametrize("kind", ["equal", "nearly equal", "different", "far from zero"])
def test_odd_measurements_give_numbers(count: int, noise: float, kind: str) -> None:
    rng = np.random.default_rng(4)
    values = {
        "equal": np.full(count, 0.1),
        "nearly equal": 0.1 + 1e-16 * rng.normal(size=count),
        "different": rng.normal(size=count),
        "far from zero": 1e8 + rng.normal(size=count),
    }[kind]
    visited = rng.integers(0, 120, count)
    posterior = fit(KENDALL, visited, values, np.full(count, noise))
    assert np.isfinite(posterior.mean).all()
    assert np.all(posterior.std > 0)
    assert np.isfinite(posterior.std).all()
    if "equal" in kind:
        assert np.allclose(posterior.mean, 0.1)


def test_values_without_noise_are_believed() -> None:
    rng = np.random.default_rng(5)
    visited, truth = rng.permutation(120)[:40], draw(1, 0.5, rng)
    posterior = fit(KENDALL, visited, truth[visited], np.zeros(40))
    assert np.allclose(posterior.mean[visited], truth[visited], atol=1e-3)
    assert posterior.std[visited].max() < 0.01 < np.delete(posterior.std, visited).min()


def test_a_value_with_much_noise_is_hardly_believed() -> None:
    visited, y, noise = some_measurements()
    unvisited = int(np.setdiff1d(np.arange(120), visited)[0])
    without = fit(KENDALL, visited, y, noise)
    loud = fit(KENDALL, np.append(visited, unvisited), np.append(y, 2.0), np.append(noise, 1e6))
    assert np.allclose(loud.mean, without.mean, atol=0.05)


@pytest.mark.parametrize("n", [0, 1, 25])
def test_pending_workflows_shrink_the_doubt_around_them_and_move_no_mean(n: int) -> None:
    visited, y, noise = (part[:n] for part in some_measurements())
    alone = fit(KENDALL, visited, y, noise)
    pending = np.argsort(-alone.std, kind="stable")[:1]
    both = fit(KENDALL, visited, y, noise, pending=pending)
    near, far = KENDALL[pending[0]] < 0.15, KENDALL[pending[0]] > 0.75
    assert np.array_equal(alone.mean, both.mean)
    assert np.all(both.std <= alone.std + 1e-12)
    assert (both.std / alone.std)[pending] < 0.6
    assert (both.std / alone.std)[near].max() < (both.std / alone.std)[far].min()


def test_pending_workflows_are_as_if_measured_at_their_mean() -> None:
    visited, y, noise = some_measurements()
    pending = [3, 50, int(visited[0])]
    believed = fit(KENDALL, visited, y, noise, pending=pending)
    kernel = believed.scale**2 * np.exp(-KENDALL / believed.length)
    at = np.append(visited, pending)
    usual = np.full(3, np.median(noise))
    inverse = np.linalg.inv(kernel[np.ix_(at, at)] + np.diag(np.append(noise, usual)))
    k = kernel[:, at]
    doubt = (1 - k @ inverse.sum(0)) ** 2 / inverse.sum()
    variance = believed.scale**2 - np.einsum("ij,jk,ik->i", k, inverse, k) + doubt
    assert np.allclose(believed.std, np.sqrt(variance))


def test_chance_of_passing_is_that_of_a_normal_value() -> None:
    posterior = Posterior(np.array([0.8, 0.9, 1.0]), np.array([0.1, 0.1, 0.05]), NONE, 1, 1, 0)
    assert np.allclose(chance_of_passing(posterior, 0.9), [0.158655, 0.5, 0.977250], atol=1e-6)


def test_bounds_are_mean_plus_doubt_and_a_failure_is_worth_the_worst() -> None:
    posterior = Posterior(np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 0.1]), NONE, 1, 1, 0)
    assert np.allclose(upper_bounds(posterior, 2.0), [2, 4, 3.2])
    assert np.allclose(upper_bounds(posterior, 2.0, np.array([1, 0.5, 0])), [2, 2, 0])


def test_choice_is_the_best_that_is_free_the_lowest_number_among_equals() -> None:
    bounds, allowed = np.array([1.0, 5, 3, 4, 3]), np.array([True, True, True, False, True])
    assert choose(bounds, [], [], allowed) == 1
    assert choose(bounds, {1}, np.zeros(0, np.int64), allowed) == 2
    assert choose(bounds, np.array([1]), {2}, allowed) == 4
    assert choose(bounds, [1, 1], {2, 4}, allowed) == 0
    assert choose(bounds, {1, 0}, {2, 4}, allowed) is None
    assert allowed.sum() == 4


def test_a_failed_workflow_and_its_neighbours_lose_their_attraction() -> None:
    """Workflow 40 has the best return, but does not keep to its order; those far from it do."""
    visited = np.array([40, *np.flatnonzero(KENDALL[40] > 0.65)[::3]])
    measured = -20 - 10 * KENDALL[40, visited]
    returns = fit(KENDALL, visited, measured, np.full(len(visited), 0.01))
    kept = np.where(visited == 40, 0.4, 0.97)
    obedience = fit(KENDALL, visited, kept, np.full(len(visited), 1e-4), spread=0.2)
    chances = chance_of_passing(obedience, 0.9)
    near, far = KENDALL[40] < 0.15, KENDALL[40] > 0.75
    assert chances[40] < 0.001
    assert chances[near].max() < 0.1 < 0.5 < chances[far].min()

    open_gate, gate = upper_bounds(returns, 2.0), upper_bounds(returns, 2.0, chances)
    assert KENDALL[40, choose(open_gate, visited, (), ALL)] < 0.15
    assert KENDALL[40, choose(gate, visited, (), ALL)] > 0.15
    assert gate[near].max() < np.median(gate)


def test_one_failure_condemns_nobody_far_away_when_the_spread_is_known() -> None:
    obedience = fit(KENDALL, np.array([0]), np.array([0.6]), np.array([1e-4]), spread=0.2)
    chances = chance_of_passing(obedience, 0.9)
    assert chances[0] < 1e-6
    assert chances[119] > 0.1


def test_a_search_with_failures_visits_each_workflow_once_and_then_stops() -> None:
    rng = np.random.default_rng(6)
    truth, obeys = draw(5, 0.5, rng), draw(1, 0.3, rng) > 0
    allowed = rng.random(120) < 0.5
    visited: list[int] = []
    next_one = choose(np.zeros(120), visited, (), allowed)
    while next_one is not None:
        assert next_one not in visited
        visited.append(next_one)
        at, error = np.array(visited), np.full(len(visited), 0.01)
        returns = fit(KENDALL, at, truth[at], error)
        obedience = fit(KENDALL, at, np.where(obeys[at], 0.95, 0.5), error, spread=0.2)
        bounds = upper_bounds(returns, 2.0, chance_of_passing(obedience, 0.9))
        next_one = choose(bounds, visited, (), allowed)
    assert sorted(visited) == np.flatnonzero(allowed).tolist()
    tries = np.array([obeys[workflow] for workflow in visited])
    half = len(visited) // 2
    assert tries[:half].mean() > tries[half:].mean()


def objectives() -> list[Floats]:
    """Draws of the process, nearness to a hidden order, and scores of each type in each place."""
    rng = np.random.default_rng(0)
    kinds = [draw(1, length, rng) for length in (0.2, 0.5, 1.0) for _ in range(3)]
    kinds += [-KENDALL[rng.integers(120)] for _ in range(6)]
    kinds += [rng.normal(size=(5, 5))[np.arange(5), RANKS].sum(1) for _ in range(6)]
    return [(values - values.mean()) / values.std() for values in kinds]


def regret_of_gp_ucb(truth: Floats, error: float, rng: np.random.Generator) -> float:
    visited = rng.permutation(120)[:3].tolist()
    values = [truth[i] + error * rng.normal() for i in visited]
    while True:
        found = fit(KENDALL, np.array(visited), np.array(values), np.full(len(values), error**2))
        if len(visited) == 30:
            return float(truth.max() - truth[visited[np.argmax(found.mean[visited])]])
        next_one = choose(upper_bounds(found, 2.0), visited, (), ALL)
        assert next_one is not None
        visited.append(next_one)
        values.append(truth[next_one] + error * rng.normal())


def regret_of_chance(truth: Floats, error: float, rng: np.random.Generator) -> float:
    visited = rng.permutation(120)[:30]
    best = np.argmax(truth[visited] + error * rng.normal(size=30))
    return float(truth.max() - truth[visited[best]])


def test_thirty_guided_tries_beat_thirty_random_ones() -> None:
    """In at least nine of ten objectives the mean regret of 5 searches is strictly lower.

    Each objective has a standard deviation of 1 and is measured with a standard error of 0.2. The
    regret of chance is the mean of 300 searches; it is never 0, so there are no ties to decide.
    """
    rng = np.random.default_rng(1)
    guided, chance = np.array(
        [
            [
                np.mean([regret_of_gp_ucb(truth, 0.2, rng) for _ in range(5)]),
                np.mean([regret_of_chance(truth, 0.2, rng) for _ in range(300)]),
            ]
            for truth in objectives()
        ]
    ).T
    assert len(guided) == 21
    assert chance.min() > 0
    assert np.mean(guided < chance) >= 0.9
    assert guided.mean() < chance.mean() / 3


def test_errors_that_are_not_independent_are_told_as_a_matrix() -> None:
    """With the inverse of the whole matrix; and the covariance of two orders is told, too."""
    rng = np.random.default_rng(3)
    visited = rng.permutation(120)[:20]
    noise = 0.2 * np.exp(-KENDALL[np.ix_(visited, visited)] / 0.8) + 0.05 * np.eye(20)
    y = draw(1, 0.4, rng)[visited] + rng.multivariate_normal(np.zeros(20), noise)
    found = fit(KENDALL, visited, y, noise)
    kernel = found.scale**2 * np.exp(-KENDALL / found.length)
    inverse = np.linalg.inv(kernel[np.ix_(visited, visited)] + noise)
    level = (inverse @ y).sum() / inverse.sum()
    near = kernel[:, visited]
    left = 1 - near @ inverse.sum(axis=0)
    covariance = kernel - near @ inverse @ near.T + np.outer(left, left) / inverse.sum()
    np.testing.assert_allclose(found.mean, level + near @ inverse @ (y - level), atol=1e-9)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-9)
    np.testing.assert_allclose(found.std, np.sqrt(np.diag(covariance)), atol=1e-9)


def test_a_diagonal_matrix_of_errors_is_as_good_as_its_diagonal() -> None:
    rng = np.random.default_rng(4)
    visited, noise = rng.permutation(120)[:15], rng.uniform(0.1, 0.3, 15)
    y = draw(1, 0.4, rng)[visited]
    one = fit(KENDALL, visited, y, noise, pending=[7])
    other = fit(KENDALL, visited, y, np.diag(noise), pending=[7])
    np.testing.assert_allclose(other.mean, one.mean, atol=1e-9)
    np.testing.assert_allclose(other.covariance, one.covariance, atol=1e-9)
