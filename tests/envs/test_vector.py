"""The pool as Gymnasium's VectorEnv plays as Gymnasium's own."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from phalanx.envs import make_pool
from phalanx.envs.vector import PoolVectorEnv
from phalanx.errors import ConfigError
from tests import odd_envs as odd


def compare(one: Any, other: Any) -> None:
    if isinstance(other, dict):
        assert set(one) >= set(other)
        for key in other:
            compare(one[key], other[key])
    elif isinstance(other, np.ndarray) and other.dtype == object:
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("env", [lambda: gymnasium.make("CartPole-v1"), odd.Talks])
def test_it_plays_as_gymnasiums_own(env: Any) -> None:
    theirs: Any = SyncVectorEnv([env] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    ours = PoolVectorEnv(make_pool(env, n_envs=3, num_workers=2))
    assert ours.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    for mine, its in zip(ours.reset(seed=5), theirs.reset(seed=5), strict=True):
        compare(mine, its)
    theirs.action_space.seed(1)
    for _ in range(40):
        actions = theirs.action_space.sample()
        *rows, infos = theirs.step(actions)
        # What could have been done at the end of an episode is of no use to anybody.
        infos.get("final_info", {}).pop("action_mask", None)
        infos.get("final_info", {}).pop("_action_mask", None)
        for mine, its in zip(ours.step(actions), (*rows, infos), strict=True):
            compare(mine, its)
    ours.close()
    theirs.close()


def test_statistics_of_ended_episodes_are_in_the_infos() -> None:
    envs = PoolVectorEnv(make_pool(odd.Counting, n_envs=2, num_workers=0))
    envs.reset()
    for _ in range(5):
        infos = envs.step(np.zeros(2, int))[4]
    assert infos["episode"]["r"].tolist() == [15, 15]
    assert infos["episode"]["l"].tolist() == [5, 5]
    envs.close()


def test_a_lost_episode_has_no_statistics() -> None:
    envs = PoolVectorEnv(make_pool(odd.Raises, n_envs=2, num_workers=0))
    envs.reset()
    _obs, _rewards, _terminated, truncated, infos = envs.step(np.array([odd.ACT_UP, odd.FINE]))
    assert truncated.tolist() == infos["lost"].tolist() == [True, False]
    assert not infos["_episode"].any()
    envs.close()


def test_attributes_can_be_read_and_set() -> None:
    envs = PoolVectorEnv(make_pool(odd.Counting, n_envs=2, num_workers=1))
    envs.reset()
    envs.set_attr("count", [3, 4])
    assert envs.get_attr("count") == (3, 4)
    assert envs.call("see")[1][1] == 4
    envs.close()


def test_what_a_vector_env_cannot_do_is_refused() -> None:
    with (
        make_pool(odd.Counting, n_envs=2, num_workers=0, wait_for=1) as pool,
        pytest.raises(ConfigError, match="wait_for='all'"),
    ):
        PoolVectorEnv(pool)
    envs = PoolVectorEnv(make_pool(odd.Counting, n_envs=2, num_workers=0))
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros(2, int))
    with pytest.raises(ConfigError, match="options"):
        envs.reset(options={"level": 3})
    envs.close()
