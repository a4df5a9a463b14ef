"""The pool as Stable-Baselines3's VecEnv."""

from typing import Any

import numpy as np
import pytest

from phalanx.envs import make_pool
from phalanx.errors import ConfigError
from tests import odd_envs as odd

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, VecNormalize

from phalanx.envs.sb3 import PoolVecEnv


def test_sb3_learns_from_it() -> None:
    from stable_baselines3 import PPO

    envs = PoolVecEnv(make_pool("CartPole-v1", n_envs=4, num_workers=2))
    agent = PPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=1, device="cpu", seed=0)
    agent.learn(256)
    assert len(agent.ep_info_buffer) > 0
    envs.close()


class EndsAndIsCut(odd.Truncates):
    """Its last step is the end and the limit at once."""

    def step(self, action: Any) -> Any:
        obs, reward, _terminated, truncated, info = super().step(action)
        return obs, reward, truncated, truncated, info


def test_an_episode_that_ends_as_it_is_cut_has_ended() -> None:
    envs = PoolVecEnv(make_pool(EndsAndIsCut, n_envs=2, num_workers=0))
    envs.reset()
    for _ in range(5):
        envs.step_async(np.zeros(2, int))
        _obs, _rewards, dones, infos = envs.step_wait()
    assert dones.all()
    assert not infos[0]["TimeLimit.truncated"]
    envs.close()


def test_the_end_of_an_episode_is_told_as_sb3_expects() -> None:
    envs = PoolVecEnv(make_pool(odd.Truncates, n_envs=2, num_workers=0))
    envs.reset()
    for _ in range(5):
        envs.step_async(np.zeros(2, int))
        obs, rewards, dones, infos = envs.step_wait()
    assert dones.all()
    assert rewards.dtype == np.float32
    assert infos[0]["TimeLimit.truncated"]
    assert infos[0]["episode"] == {"r": 15.0, "l": 5}
    assert infos[0]["terminal_observation"][1] == 5
    assert obs[0, 1] == 0
    envs.close()


def test_seeds_masks_and_attributes_reach_the_environments() -> None:
    envs = PoolVecEnv(make_pool(odd.Talks, n_envs=2, num_workers=2))
    envs.seed(4)
    obs = envs.reset()
    alone = odd.Talks()
    assert obs[0].tolist() == alone.reset(seed=4)[0].tolist()
    assert envs.reset_infos[0] == {"began": True}
    assert envs.action_masks().tolist() == [[True, False, False, False]] * 2
    assert envs.get_attr("count") == [0, 0]
    envs.set_attr("count", 2, indices=1)
    assert envs.env_method("mask", indices=[1])[0].sum() == 3
    envs.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_indices_of_all_kinds_name_environments(num_workers: int) -> None:
    envs = PoolVecEnv([odd.Counting] * 3, num_workers=num_workers)
    envs.reset()
    for indices, wanted in (
        (None, [0, 1, 2]),
        (1, [1]),
        (-1, [2]),
        ([0, -1], [0, 2]),
        (range(2), [0, 1]),
    ):
        envs.set_attr("count", 0)
        envs.set_attr("count", 7, indices=indices)
        assert [i for i, count in enumerate(envs.get_attr("count")) if count == 7] == wanted
        assert envs.get_attr("count", indices) == [7] * len(wanted)
    for wrong in (3, [0, -4]):
        with pytest.raises(IndexError):
            envs.get_attr("count", wrong)
    with pytest.raises(AttributeError, match="no_such"):
        envs.get_attr("no_such")
    envs.close()


def test_ids_that_do_not_exist_are_refused_at_once() -> None:
    for num_workers in (0, 2):
        with make_pool(odd.Counting, n_envs=2, num_workers=num_workers) as pool:
            for ids in ([-1], [0, 2]):
                with pytest.raises(ConfigError, match="not all from 0 to 1"):
                    pool.call("count", env_ids=ids)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_options_and_seeds_are_used_once(num_workers: int) -> None:
    envs = PoolVecEnv([odd.TellsOptions] * 2, num_workers=num_workers)
    envs.set_options([{"level": 1}, {"level": 2}])
    envs.seed(3)
    first = envs.reset()
    assert envs.reset_infos == [{"options": {"level": 1}}, {"options": {"level": 2}}]
    assert first[0, 0] == odd.Counting().reset(seed=3)[0][0]
    assert envs.reset()[0, 0] != first[0, 0]
    assert envs.reset_infos == [{"options": None}] * 2
    envs.close()


def test_wrappers_are_found_where_they_are() -> None:
    envs = PoolVecEnv([odd.Counting, lambda: Monitor(odd.Counting())], num_workers=2)
    assert envs.env_is_wrapped(Monitor) == [False, True]
    assert envs.env_is_wrapped(Monitor, indices=1) == [True]
    envs.close()


@pytest.mark.parametrize("env", [odd.Commands, odd.Pairs])
def test_actions_may_come_one_by_one(env: Any) -> None:
    envs = PoolVecEnv([env] * 2, num_workers=2)
    envs.reset()
    actions = [env.action_space.sample() for _ in range(2)]
    _obs, rewards, _dones, _infos = envs.step(actions)
    assert rewards.tolist() == [env.value_of(action) for action in actions]
    envs.close()


def test_sb3s_own_wrappers_and_makers_take_it() -> None:
    envs = make_vec_env(
        "CartPole-v1", n_envs=2, seed=0, vec_env_cls=PoolVecEnv, vec_env_kwargs={"num_workers": 2}
    )
    theirs = make_vec_env("CartPole-v1", n_envs=2, seed=0)
    assert envs.env_is_wrapped(Monitor) == [True, True]
    both = [VecFrameStack(VecNormalize(each), 2) for each in (envs, theirs)]
    np.testing.assert_array_equal(both[0].reset(), both[1].reset())
    for k in range(30):
        actions = np.array([k % 2, 1])
        mine, its = both[0].step(actions), both[1].step(actions)
        for ours, other in zip(mine[:3], its[:3], strict=True):
            np.testing.assert_array_equal(ours, other)
        for told, expected in zip(mine[3], its[3], strict=True):
            assert told.keys() == expected.keys()
            assert told["TimeLimit.truncated"] == expected["TimeLimit.truncated"]
    both[0].close()
    monitored = VecMonitor(PoolVecEnv([odd.Counting] * 2, num_workers=0))
    monitored.reset()
    for _ in range(5):
        infos = monitored.step(np.zeros(2, int))[3]
    assert infos[1]["episode"]["r"] == 15


def test_pictures_of_all_are_put_together() -> None:
    envs = PoolVecEnv([odd.Painter] * 4, num_workers=2)
    envs.reset()
    assert envs.render().shape == (4, 4, 3)
    envs.close()


def test_pictures_are_refused_where_there_are_none() -> None:
    envs = PoolVecEnv([odd.Counting] * 2, num_workers=0)
    with pytest.warns(UserWarning, match="render mode is None"):
        assert list(envs.get_images()) == [None, None]
    with pytest.raises(ConfigError, match="SameStep"):
        PoolVecEnv([odd.Counting], num_workers=0, autoreset_mode="NextStep")
