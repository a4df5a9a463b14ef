"""What may be best, what the others cost, and whether that is true as often as it is said to be."""

import numpy as np
import numpy.typing as npt
import pytest

from phalanx.cage2.workflow import DISTANCES, NUM_ORDERS, POSITIONS
from phalanx.search.decision import Estimate, Floats, decide, quantile
from phalanx.search.luck import estimate_returns, fit_luck
from tests.search.test_gp_ucb import draw

SOME = np.arange(0, NUM_ORDERS, 3)
ALL = np.arange(NUM_ORDERS)
NEAR = DISTANCES[np.ix_(SOME, SOME)]
NONE = np.zeros(NUM_ORDERS)


def learners(
    truth: Floats, scale: float, share: float, length: float, many: int, rng: np.random.Generator
) -> Floats:
    """What several learners make of orders: how good each is at all, and its luck with each."""
    distances = NEAR if len(truth) == len(SOME) else DISTANCES
    luck = scale**2 * (share * np.exp(-distances / length) + (1 - share) * np.eye(len(truth)))
    return with_luck(truth, luck, many, rng)


def with_luck(truth: Floats, luck: Floats, many: int, rng: np.random.Generator) -> Floats:
    drawn = rng.multivariate_normal(np.zeros(len(truth)), luck, many).T
    return truth[:, None] + 3 * rng.normal(size=many) + drawn


@pytest.mark.parametrize(("share", "length"), [(0.0, 0.4), (0.8, 0.4), (0.9, 1.6)])
def test_the_luck_that_was_planted_is_found_again(share: float, length: float) -> None:
    rng, found = np.random.default_rng(1), []
    planted = 0.3**2 * (share * np.exp(-DISTANCES / length) + (1 - share) * np.eye(NUM_ORDERS))
    for _ in range(8):
        luck = fit_luck(ALL, learners(NONE, 0.3, share, length, 5, rng))
        found.append(Estimate(NONE, (luck.scales**2).mean() * luck.shape).errors())
    errors = Estimate(NONE, planted).errors()
    for near, far in ((0.05, 0.25), (0.45, 0.55), (0.85, 1.05)):
        pairs = (near < DISTANCES) & (far > DISTANCES)
        assert np.mean([one[pairs].mean() for one in found]) == pytest.approx(
            errors[pairs].mean(), rel=0.12
        )


def test_how_good_a_learner_is_at_all_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    table = learners(draw(1, 0.5, rng), 0.3, 0.5, 0.4, 4, rng)
    shifted = table + np.array([5.0, -20.0, 0.0, 100.0])
    one, other = fit_luck(ALL, table), fit_luck(ALL, shifted)
    np.testing.assert_allclose(one.scales, other.scales, rtol=1e-6)
    np.testing.assert_allclose(one.shape, other.shape)
    assert one.freedom == pytest.approx(other.freedom)


@pytest.mark.parametrize(("share", "length"), [(0.0, 0.4), (0.95, 1.6)])
def test_the_size_of_luck_is_known_by_so_many_learners(share: float, length: float) -> None:
    """However many orders they played: the next learner's luck may be of another kind."""
    rng = np.random.default_rng(3)
    for many in (3, 5, 9):
        luck = fit_luck(ALL, learners(NONE, 0.3, share, length, many, rng))
        assert (many - 1) / 2 < luck.freedom <= many - 1


@pytest.mark.parametrize(("spread", "share", "many"), [(0.6, 0.7, 5), (0.0, 0.0, 5), (1.0, 0.9, 3)])
def test_sets_and_costs_are_true_as_often_as_they_say(
    spread: float, share: float, many: int
) -> None:
    """Of 40 searches at least 36: the best order is in the set, and all costs in their bounds."""
    rng = np.random.default_rng(4)
    true = np.zeros(40, np.bool_)
    for k in range(len(true)):
        truth = draw(spread, 0.5, rng)[SOME] if spread else np.zeros(len(SOME))
        table = learners(truth, 0.3, share, 0.4, many, rng)
        true[k] = is_true(SOME, truth, table)
    assert true.sum() >= 36


def is_true(numbers: npt.NDArray[np.int64], truth: Floats, table: Floats) -> bool:
    """Whether a decision by these learners holds: the best order is in, all costs in bounds."""
    found = decide(estimate_returns(numbers, table))
    cost = truth.max() - truth
    inside = (found.low - 1e-9 <= cost) & (cost <= found.high + 1e-9)
    return bool(inside.all() and found.may_be_best[truth.argmax()])


@pytest.mark.parametrize("cost", [0.0, 1.5])
def test_costs_are_true_where_luck_hangs_on_which_of_two_types_comes_first(cost: float) -> None:
    """As against B-line: a learner is good or bad at all orders with users before enterprise."""
    rng = np.random.default_rng(6)
    is_first = POSITIONS[SOME, 4] < POSITIONS[SOME, 1]
    block = (is_first[:, None] == is_first).astype(float)
    luck = 0.1**2 * (0.9 * block + 0.1 * np.eye(len(SOME)))
    truth = -cost * is_first
    held = [is_true(SOME, truth, with_luck(truth, luck, 5, rng)) for _ in range(40)]
    assert sum(held) >= 36
    table = with_luck(truth, luck, 5, rng)
    errors = estimate_returns(SOME, table).errors()
    apart = errors[is_first][:, ~is_first].mean()
    assert errors[is_first][:, is_first].mean() < 0.7 * apart  # what they share cancels


def test_costs_are_true_where_learners_have_luck_of_several_kinds() -> None:
    """As in the real game: with users first, and some more than others with orders of their own."""
    rng, held = np.random.default_rng(9), 0
    is_first = POSITIONS[SOME, 4] < POSITIONS[SOME, 1]
    alike = np.exp(-NEAR / 1.6)

    def luck() -> Floats:
        size = 0.04 * np.exp(rng.normal(0, 0.7))
        own = rng.multivariate_normal(np.zeros(len(SOME)), alike)
        return np.asarray(size * own + is_first * rng.normal(0, 0.07))

    for _ in range(40):
        table = -1.5 * is_first[:, None] + 3 * rng.normal(size=5)
        table = table + np.array([luck() for _ in range(5)]).T
        held += is_true(SOME, -1.5 * is_first, table)
    assert held >= 36


def test_costs_are_true_where_learners_fail_at_single_orders() -> None:
    """As in the real game: an order in thirty is played badly by one learner, and by no other."""
    rng, held, reach, usual = np.random.default_rng(10), 0, 0.0, 0.0
    for _ in range(40):
        truth = draw(0.1, 0.5, rng)[SOME]
        steady = learners(truth, 0.05, 0.5, 0.4, 5, rng)
        fails = rng.random(steady.shape) < 1 / 30
        table = steady - fails * rng.uniform(0.4, 1.2, steady.shape)
        held += is_true(SOME, truth, table)
        reach += estimate_returns(SOME, table).errors().mean()
        usual += estimate_returns(SOME, steady).errors().mean()
    assert held >= 36
    assert reach < 1.2 * usual  # what one fails at says nothing of other orders


@pytest.mark.parametrize("share", [0.0, 0.9])
def test_a_learner_at_the_mercy_of_luck_counts_less(share: float) -> None:
    """Costs are as true as before, and bounds are those of the steady ones."""
    rng, held, reach, usual = np.random.default_rng(8), 0, 0.0, 0.0
    luck = share * np.exp(-NEAR / 0.4) + (1 - share) * np.eye(len(SOME))
    for _ in range(40):
        truth = draw(0.1, 0.5, rng)[SOME]
        table = with_luck(truth, 0.05**2 * luck, 5, rng)
        steady = table.copy()
        table[:, 2] += with_luck(0 * truth, 0.4**2 * luck, 1, rng)[:, 0]
        held += is_true(SOME, truth, table)
        reach += estimate_returns(SOME, table).errors().mean()
        usual += estimate_returns(SOME, steady).errors().mean()
        assert fit_luck(SOME, table).weights.argmin() == 2
    assert held >= 36
    assert reach < 2 * usual  # all counted alike it would be four times as much


def test_orders_that_are_far_behind_are_out_and_those_beside_the_best_are_in() -> None:
    mean = np.array([0.0, -0.05, -0.2, -3.0])
    found = decide(Estimate(mean, np.eye(4) * 0.1**2))
    assert found.best == 0
    assert found.may_be_best.tolist() == [True, True, True, False]
    assert found.cost == pytest.approx([0, 0.05, 0.2, 3.0])
    assert found.low[3] > 2
    assert (found.low[:3] == 0).all()
    assert found.high[3] < 4


def test_luck_that_two_orders_share_does_not_hide_their_difference() -> None:
    mean, own = np.array([0.0, -0.5]), np.array([[1.0, 0.99], [0.99, 1.0]])
    assert decide(Estimate(mean, own)).may_be_best.tolist() == [True, False]
    assert decide(Estimate(mean, np.eye(2))).may_be_best.tolist() == [True, True]


def test_an_order_is_left_out_only_if_it_costs_more_than_the_margin_for_certain() -> None:
    estimate = Estimate(np.array([0.0, -0.15, -0.5, -3.0]), np.eye(4) * 1e-4)
    strict, eased = decide(estimate), decide(estimate, margin=0.2)
    assert strict.may_be_best.tolist() == [True, False, False, False]
    assert eased.may_be_best.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(eased.low, strict.low)
    np.testing.assert_array_equal(eased.high, strict.high)


def test_what_an_order_may_be_behind_widens_only_what_it_costs_at_most() -> None:
    estimate = Estimate(np.array([0.0, -1.0, -1.2]), 0.01 * np.eye(3))
    usual, found = decide(estimate), decide(estimate._replace(behind=np.array([0.0, 0.5, 0.0])))
    np.testing.assert_array_equal(found.high - usual.high, [0.0, 0.5, 0.0])
    np.testing.assert_array_equal(found.low, usual.low)
    np.testing.assert_array_equal(found.may_be_best, usual.may_be_best)
    chosen = np.array([1, 2])
    np.testing.assert_array_equal(estimate._replace(behind=found.cost).of(chosen).behind, [1, 1.2])


def test_a_size_that_is_known_badly_widens_what_may_be() -> None:
    mean = np.linspace(0, -1, 20)
    sure, unsure = (decide(Estimate(mean, np.eye(20) * 0.04, f)) for f in (np.inf, 4.0))
    assert unsure.may_be_best.sum() > sure.may_be_best.sum()
    assert (unsure.high > sure.high).all()


def test_a_single_order_is_the_best() -> None:
    found = decide(Estimate(np.array([-3.0]), np.array([[0.1]])))
    assert found.may_be_best.tolist() == [True]
    assert found.high.tolist() == [0.0]


def test_two_orders_are_told_apart_at_the_usual_distance() -> None:
    """With one comparison it is the plain test: 1.96 standard errors."""
    for behind, is_in in ((1.85, True), (2.08, False)):
        mean = np.array([0.0, -behind * np.sqrt(2)])
        assert decide(Estimate(mean, np.eye(2))).may_be_best[1] == is_in


def test_sums_of_orders_have_intervals_that_hold_at_once() -> None:
    weights = np.eye(6) - 1 / 6
    reach = quantile(Estimate(np.zeros(6), np.eye(6)), weights)
    drawn = np.random.default_rng(5).normal(size=(4000, 6)) @ weights.T
    assert np.mean((np.abs(drawn) <= reach).all(axis=1)) == pytest.approx(0.95, abs=0.015)
