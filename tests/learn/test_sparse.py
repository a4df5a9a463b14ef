"""The first layer over lists of what is not zero, held against the plain product."""

from typing import Any

import numpy as np
import pytest

from phalanx.compiled.rule import kernel
from phalanx.compiled.team import ThreadTeam
from phalanx.learn.compiled.mlp import Floats, backward, forward, work_size
from phalanx.learn.compiled.policy import Networks, Policy
from phalanx.learn.compiled.sparse import (
    Lists,
    backward_lists,
    choose_lists,
    copy_first,
    forward_lists,
    list_row,
    room_for_lists,
)
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.ppo import Rows
from tests.learn.tasks import LOSS

ROWS, SEEN, TRUTH, ACTIONS = 700, 150, 70, 5


@kernel
def list_all(obs: Any, truth: Any, lists: Lists) -> None:
    at = 0
    for r in range(len(obs)):
        at = list_row(obs[r], truth[r], lists, r, at)


@kernel
def pass_both_ways(
    networks: Networks, lists: Lists, chosen: Any, work: Any, d_out: Any, grad: Any
) -> Any:
    """The actor's outputs for the chosen rows, and its gradient."""
    some = choose_lists(lists, chosen)
    first = copy_first(networks.actor)
    outputs = forward_lists(networks.actor, first, some, some.middles, work).copy()
    backward_lists(networks.actor, first, some, some.middles, work, d_out, grad)
    return outputs


def seen(share: float = 0.2, rows: int = ROWS) -> tuple[Floats, Floats]:
    """Observations and truth of which so many are not zero."""
    random = np.random.default_rng(3)
    shape = (rows, SEEN + TRUTH)
    numbers = (random.random(shape) < share) * random.normal(size=shape)
    numbers[:7] = 0
    numbers[7, SEEN - 1], numbers[8, SEEN], numbers[9, :] = 1, -2, 0.5  # at borders, everywhere
    obs, truth = numbers[:, :SEEN], numbers[:, SEEN:]
    return np.ascontiguousarray(obs, np.float32), np.ascontiguousarray(truth, np.float32)


def listed(obs: Floats, truth: Floats) -> Lists:
    lists = room_for_lists(len(obs), obs.shape[1] + truth.shape[1])
    list_all(obs, truth, lists)
    return lists


@pytest.mark.parametrize("width", [SEEN, 64, 40])
def test_lists_hold_what_is_not_zero_in_its_order(width: int) -> None:
    obs, truth = seen()
    obs = np.ascontiguousarray(obs[:, :width])
    lists, both = listed(obs, truth), np.hstack([obs, truth])
    for r in range(ROWS):
        columns = lists.columns[lists.starts[r] : lists.ends[r]]
        assert columns.tolist() == np.flatnonzero(both[r]).tolist()
        assert np.array_equal(lists.values[lists.starts[r] : lists.ends[r]], both[r, columns])
        assert lists.middles[r] - lists.starts[r] == np.count_nonzero(obs[r])


@pytest.mark.parametrize("hidden", [(64, 16), (128,), (83,)])
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_passes_equal_those_of_matrix_products(hidden: tuple[int, ...], share: float) -> None:
    obs, truth = seen(share)
    policy = Policy(SEEN, ACTIONS, hidden=hidden, truth_size=TRUTH, seed=1)
    chosen = np.random.default_rng(4).permutation(ROWS)[:300]
    work = np.empty(work_size(policy.actor_sizes, len(chosen)), np.float32)
    d_out = np.random.default_rng(5).normal(size=(len(chosen), ACTIONS)).astype(np.float32)
    grad, wanted = np.full((2, len(policy.actor)), np.nan, np.float32)
    outputs = pass_both_ways(policy.networks, listed(obs, truth), chosen, work, d_out, grad)
    plain = forward(policy.networks.actor, obs[chosen], work)
    np.testing.assert_allclose(outputs, plain, atol=1e-6)
    backward(policy.networks.actor, obs[chosen], work, d_out, wanted)
    np.testing.assert_allclose(grad, wanted, atol=1e-4)
    first = grad[: SEEN * hidden[0]].reshape(SEEN, hidden[0])
    assert not first[(obs[chosen] == 0).all(axis=0)].any()


def test_a_row_gives_the_same_beside_any_others() -> None:
    obs, truth = seen()
    policy = Policy(SEEN, ACTIONS, hidden=(64, 16), truth_size=TRUTH, seed=1)
    work = np.empty(work_size(policy.actor_sizes, ROWS), np.float32)

    def products(rows: Any) -> Floats:
        """Of the first layer."""
        d_out, grad = np.zeros((len(rows), ACTIONS), np.float32), np.empty_like(policy.actor)
        pass_both_ways(policy.networks, listed(obs, truth), rows, work, d_out, grad)
        return work[: 64 * len(rows)].reshape(len(rows), 64).copy()

    whole = products(np.arange(ROWS))
    some = np.array([650, 3, 9, 120])
    assert np.array_equal(products(some), whole[some])


def rows_of(obs: Floats, truth: Floats) -> Rows:
    random, n = np.random.default_rng(6), len(obs)
    numbers = random.normal(size=(3, n)).astype(np.float32)
    actions = random.integers(ACTIONS, size=n).astype(np.uint8)
    return Rows(obs, truth, np.ones((n, ACTIONS), np.bool_), actions, *numbers)


def after_steps(threads: int, sparse: bool) -> tuple[Floats, Floats]:
    """The weights, and Adam's mean of the gradients."""
    rows = rows_of(*seen())
    policy = Policy(SEEN, ACTIONS, hidden=(64, 16), truth_size=TRUTH, seed=1)
    stepper = CompiledStepper(policy, ThreadTeam(threads), ROWS, sparse)
    for k in range(3):
        stepper.load_rows(rows._replace(obs=rows.obs[k:], truth=rows.truth[k:]))
        stepper.step(np.random.default_rng(7).permutation(ROWS - k), LOSS._replace(rate=1e-3))
    stepper.team.close()
    return policy.theta, stepper.mean


def test_steps_do_not_depend_on_threads_and_equal_those_without_lists() -> None:
    (one, mean), (three, _), (_, plain) = (
        after_steps(threads, sparse) for threads, sparse in ((1, True), (3, True), (1, False))
    )
    assert np.array_equal(one, three)
    assert np.abs(mean).max() > 1e-3
    np.testing.assert_allclose(mean, plain, atol=1e-5)
