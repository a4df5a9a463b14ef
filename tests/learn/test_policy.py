"""The networks as they begin: orthogonal, small where it matters, copied whole."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from phalanx.learn.compiled.policy import Policy


def matrices(theta: Any, sizes: Any) -> list[tuple[Any, Any]]:
    """Weights [in, out] and biases [out] of each layer, as the passes read them."""
    layers, at = [], 0
    for n_in, n_out in pairwise(sizes.tolist()):
        matrix = theta[at : at + n_in * n_out].reshape(n_in, n_out)
        layers.append((matrix, theta[at + n_in * n_out : at + (n_in + 1) * n_out]))
        at += (n_in + 1) * n_out
    assert at == len(theta)
    return layers


def test_networks_begin_orthogonal_with_a_small_last_layer_of_the_actor() -> None:
    policy = Policy(7, 5, hidden=(6, 9), truth_size=3, seed=0)
    for theta, sizes, last in (
        (policy.actor, policy.actor_sizes, 0.01),
        (policy.critic, policy.critic_sizes, 1.0),
    ):
        layers = matrices(theta, sizes)
        for (matrix, bias), gain in zip(layers, (2**0.5, 2**0.5, last), strict=True):
            short = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
            assert np.allclose(short @ short.T, gain**2 * np.eye(len(short)), atol=1e-5)
            assert (bias == 0).all()


def test_actor_and_critic_do_not_begin_with_the_same_numbers_nor_do_other_seeds() -> None:
    one, other = (Policy(4, 4, hidden=(4,), truth_size=0, seed=seed) for seed in (0, 1))
    assert not np.allclose(one.actor[:16], one.critic[:16])
    assert not np.allclose(one.theta, other.theta)
    assert one.critic_sizes.tolist() == [4, 4, 1]


def test_only_the_critic_sees_the_truth() -> None:
    policy = Policy(7, 5, hidden=(6,), truth_size=3, seed=0)
    assert policy.actor_sizes.tolist() == [7, 6, 5]
    assert policy.critic_sizes.tolist() == [10, 6, 1]


def test_a_copy_has_weights_of_its_own_and_moved_ones_are_shared() -> None:
    policy = Policy(3, 2, hidden=(4,), truth_size=1, seed=0)
    other = policy.copy()
    assert np.array_equal(other.theta, policy.theta)
    other.theta[:] = 0
    assert policy.theta.any()
    memory = np.arange(len(policy.theta), dtype=np.float32)
    policy.move_to(memory)
    assert np.array_equal(np.concatenate([policy.actor, policy.critic]), memory)
    memory[:] = 7
    assert (policy.actor == 7).all()
    assert (policy.critic == 7).all()


def test_the_most_likely_action_is_one_that_is_allowed() -> None:
    policy = Policy(3, 4, hidden=(4,), truth_size=0, seed=0)
    obs = np.random.default_rng(0).normal(size=(50, 3))
    best = policy.logits(obs).argmax(axis=1)
    masks = np.ones((50, 4), np.bool_)
    assert np.array_equal(policy.act(obs, masks), best)
    masks[np.arange(50), best] = False
    second = policy.logits(obs).argsort(axis=1)[:, -2]
    assert np.array_equal(policy.act(obs, masks), second)


@pytest.mark.parametrize("hidden", [(1,), (5,), (3, 2, 4)])
def test_any_number_of_layers_has_its_logits(hidden: tuple[int, ...]) -> None:
    policy = Policy(6, 3, hidden=hidden, truth_size=0, seed=0)
    x = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    wanted = x
    layers = matrices(policy.actor, policy.actor_sizes)
    for matrix, bias in layers[:-1]:
        wanted = np.tanh(wanted @ matrix + bias)
    assert np.allclose(policy.logits(x), wanted @ layers[-1][0] + layers[-1][1], atol=1e-6)


def test_outputs_are_those_of_actions_that_can_be_chosen() -> None:
    """With the weights that all outputs begin with, and the same logits when the rest is added."""
    choices = np.array([0, 2, 5])
    whole = Policy(4, 6, hidden=(3, 8), truth_size=2, seed=1)
    policy = Policy(4, 6, hidden=(3, 8), truth_size=2, seed=1, choices=choices)
    obs = np.random.default_rng(2).normal(size=(9, 4)).astype(np.float32)
    assert policy.actor_sizes.tolist() == [4, 3, 8, 3]
    np.testing.assert_allclose(policy.logits(obs), whole.logits(obs)[:, choices], atol=1e-6)
    np.testing.assert_allclose(policy.wide().logits(obs)[:, choices], policy.logits(obs), atol=1e-6)
    assert np.array_equal(policy.critic, whole.critic)


def test_weights_are_widened_for_files_and_narrowed_again() -> None:
    choices = np.array([1, 3])
    policy = Policy(4, 5, hidden=(6,), truth_size=0, seed=1, choices=choices)
    whole = Policy(4, 5, hidden=(6,), truth_size=0, seed=1)
    policy.theta[:] = np.arange(1, len(policy.theta) + 1)
    wide = policy.widened(policy.theta)
    assert len(wide) == len(whole.theta)
    assert np.count_nonzero(wide) == len(policy.theta)
    assert np.array_equal(policy.narrowed(wide), policy.theta)
    matrix, biases = matrices(wide[: len(whole.actor)], whole.actor_sizes)[-1]
    assert np.array_equal(np.flatnonzero(matrix.any(axis=0)), choices)
    assert np.array_equal(np.flatnonzero(biases), choices)
    assert whole.wide() is whole
