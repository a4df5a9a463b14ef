"""What a sampler of a pool makes of rewards, actions, versions, and of being told to stop."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from phalanx.envs import make_pool
from phalanx.learn.compiled.actor import CompiledActor
from phalanx.learn.compiled.mlp import work_size
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.pool_sampler import PoolSampler, Scale
from phalanx.learn.rollout import Stopped
from tests import odd_envs


def sampler(turns: int, *, n_envs: int = 3, **options: Any) -> PoolSampler:
    pool = make_pool(odd_envs.Counting, n_envs=n_envs, num_workers=0, **options)
    policy = Policy(3, 4, hidden=(8,), truth_size=0, seed=1)
    return PoolSampler(pool, CompiledActor(policy), turns, gamma=0.9, reward_scale=0.5, seed=0)


def test_rewards_are_scaled_for_the_learner_and_for_nobody_else() -> None:
    player = sampler(12)
    r = player.collect()
    assert np.array_equal(r.rewards[:5, 0], np.arange(1, 6) / 2)
    assert (r.returns[r.counted] == 15).all()
    assert player.running.tolist() == [1 + 2] * 3  # twelve turns: two episodes of five, and two
    player.close()


def test_rollouts_follow_each_other_with_dice_of_their_own() -> None:
    player = sampler(40)
    first, second = player.collect().actions.copy(), player.collect().actions.copy()
    assert not np.array_equal(first, second)
    again = sampler(40)
    assert np.array_equal(again.collect().actions, first)
    for one in (player, again):
        one.close()


def test_a_sampler_that_is_told_to_stop_stops() -> None:
    player = sampler(12)
    player.stop = lambda: True
    with pytest.raises(Stopped):
        player.collect()
    player.close()


def test_out_of_step_a_column_has_the_version_it_was_begun_with() -> None:
    player = sampler(4, n_envs=5, wait_for=3)
    seen = []
    for version in range(1, 7):
        player.set_weights(player.actor.policy.theta.copy(), version)  # type: ignore[attr-defined]
        seen.append(player.collect().versions)
    assert all(1 <= was.min() <= was.max() <= now for now, was in enumerate(seen, 1))
    assert sum(int((was < now).sum()) for now, was in enumerate(seen, 1)) > 0  # some went on
    assert all(now in was for now, was in enumerate(seen, 1))  # and some were begun anew
    player.close()


def test_numbers_of_a_network_become_actions_of_the_space() -> None:
    assert Scale(spaces.Discrete(4, start=3))(np.array([0, 3])).tolist() == [3, 6]
    box = spaces.Box(np.array([-2, 0, -np.inf], "f4"), np.array([2, 10, np.inf], "f4"))
    scaled = Scale(box)(np.array([[-1.0, -1.0, -50.0], [0.0, 0.0, 0.0], [3.0, 1.0, 50.0]]))
    assert scaled.tolist() == [[-2, 0, -50], [0, 5, 0], [2, 10, 50]]
    assert scaled.dtype == box.dtype
    half = spaces.Box(np.array([0], "f4"), np.array([np.inf], "f4"))
    assert Scale(half)(np.array([[-4.0], [4.0]])).tolist() == [[0], [4]]


@pytest.mark.parametrize("num_actions", [2, 300])
def test_the_compiled_networks_have_room_for_all_their_layers(num_actions: int) -> None:
    policy = Policy(3, num_actions, hidden=(8,), truth_size=0, seed=1)
    actor = CompiledActor(policy)
    actor.forward(np.zeros((5, 3), np.float32))
    for sizes in (policy.actor_sizes, policy.critic_sizes):
        assert len(actor._work) >= work_size(sizes, 5)


def test_few_actions_are_noted_in_a_byte_and_many_in_more() -> None:
    assert Scale(spaces.Discrete(256)).example is None
    many = Scale(spaces.Discrete(257)).example
    assert many is not None
    assert many.dtype == np.int64
    point = Scale(spaces.Box(-1, 1, (2, 3))).example
    assert point is not None
    assert point.shape == (6,)
