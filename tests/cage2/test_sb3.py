"""The game as Stable-Baselines3's VecEnv, with its own PPO."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import PPO

from phalanx.cage2 import Cage2VectorEnv
from phalanx.cage2.sb3 import Cage2VecEnv
from phalanx.errors import ConfigError


def test_steps_are_those_of_the_vector_env() -> None:
    vec = Cage2VecEnv(3, red_agent="meander", horizon=10, seed=4)
    envs = Cage2VectorEnv(3, red_agent="meander", horizon=10, seed=4)
    assert np.array_equal(vec.reset(), envs.reset()[0])
    for actions in np.random.default_rng(0).integers(145, size=(10, 3)):
        obs, rewards, dones, infos = vec.step(actions)
        expected = envs.step(actions)
        assert np.array_equal(obs, expected[0])
        assert np.allclose(rewards, expected[1])
        assert np.array_equal(dones, expected[3])
    assert dones.all()
    for i, info in enumerate(infos):
        assert info["TimeLimit.truncated"]
        assert np.array_equal(info["terminal_observation"], expected[4]["final_obs"][i])
        assert info["episode"]["l"] == 10
        assert info["episode"]["r"] == expected[4]["episode_return"][i]


def test_the_number_of_networks_has_two_names() -> None:
    assert Cage2VecEnv(n_envs=3).num_envs == Cage2VecEnv(num_envs=3).num_envs == 3
    with pytest.raises(ConfigError, match="num_envs must be a whole number"):
        Cage2VecEnv()


def test_seeds_reach_the_networks() -> None:
    first, second = Cage2VecEnv(2, red_agent="meander"), Cage2VecEnv(2, red_agent="meander")
    for vec in (first, second):
        vec.seed(11)
        vec.reset()
    for actions in np.random.default_rng(0).integers(145, size=(50, 2)):
        assert np.array_equal(first.step(actions)[0], second.step(actions)[0])
    assert first.envs.batch.nets["stream"].tolist() == second.envs.batch.nets["stream"].tolist()


def test_methods_and_attributes_are_reached() -> None:
    vec = Cage2VecEnv(3)
    vec.reset()
    assert [mask.shape for mask in vec.env_method("action_masks")] == [(145,)] * 3
    assert vec.get_attr("num_envs", indices=[0, 2]) == [3, 3]
    assert [row.shape for row in vec.get_attr("access")] == [(13,)] * 3
    assert vec.env_is_wrapped(object) == [False] * 3
    with pytest.raises(ConfigError, match="same-step"):
        Cage2VecEnv(2, autoreset_mode="NextStep")
    vec.close()


def test_ppo_learns_on_it() -> None:
    """Two thousand steps against B-line must change the policy and count the episodes."""
    vec = Cage2VecEnv(16, red_agent="b_line", horizon=30)
    model = PPO("MlpPolicy", vec, n_steps=64, batch_size=256, n_epochs=2, seed=1, device="cpu")
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(2048)
    assert any((a != b).any() for a, b in zip(before, model.policy.parameters(), strict=True))
    assert model.ep_info_buffer is not None
    assert len(model.ep_info_buffer) >= 16
    assert all(-400 < episode["r"] <= 0 for episode in model.ep_info_buffer)
