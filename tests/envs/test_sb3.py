"""The pool as Stable-Baselines3's VecEnv."""

import numpy as np
import pytest

from phalanx.envs import make_pool
from tests import odd_envs as odd

pytest.importorskip("stable_baselines3")

from phalanx.envs.sb3 import PoolVecEnv


def test_sb3_learns_from_it() -> None:
    from stable_baselines3 import PPO

    envs = PoolVecEnv(make_pool("CartPole-v1", n_envs=4, num_workers=2))
    agent = PPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=1, device="cpu", seed=0)
    agent.learn(256)
    assert len(agent.ep_info_buffer) > 0
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
