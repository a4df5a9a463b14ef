"""The game as Stable-Baselines3's VecEnv, with its own PPO."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

from phalanx.cage2 import Cage2Env, Cage2VectorEnv
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
    assert vec.env_is_wrapped(object) == vec.env_is_wrapped(Monitor) == [False] * 3
    with pytest.raises(ConfigError, match="same-step"):
        Cage2VecEnv(2, autoreset_mode="NextStep")
    vec.close()


# --- as Stable-Baselines3's own vectors -----------------------------------------------------------

SETTINGS: dict[str, Any] = {"red_agent": "meander", "horizon": 7}


def dummy(num_envs: int) -> VecEnv:
    """SB3's own vector of single environments."""
    return DummyVecEnv([lambda: Cage2Env(**SETTINGS)] * num_envs)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda vec: vec,
        lambda vec: VecNormalize(vec, norm_reward=False),
        lambda vec: VecNormalize(vec, gamma=0.9),
        lambda vec: VecFrameStack(vec, 3),
        VecMonitor,
        lambda vec: VecNormalize(VecFrameStack(VecMonitor(vec), 2)),
    ],
)
def test_it_steps_as_sb3s_own_vector_does_under_its_wrappers(wrap: Callable[[Any], Any]) -> None:
    ours, theirs = wrap(Cage2VecEnv(3, **SETTINGS)), wrap(dummy(3))
    for vec in (ours, theirs):
        assert vec.seed(5) == [5, 6, 7]
    assert np.array_equal(ours.reset(), theirs.reset())
    for actions in np.random.default_rng(0).integers(145, size=(16, 3)):
        one, other = ours.step(actions), theirs.step(actions)
        for a, b in zip(one[:3], other[:3], strict=True):
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)
        for a, b in zip(one[3], other[3], strict=True):
            assert a.get("TimeLimit.truncated", False) == b["TimeLimit.truncated"]
            assert ("terminal_observation" in a) == ("terminal_observation" in b)
            assert np.array_equal(a.get("terminal_observation"), b.get("terminal_observation"))
            if "episode" in b:
                assert {name: a["episode"][name] for name in "rl"} == {
                    name: b["episode"][name] for name in "rl"
                }
    ours.close()


@pytest.mark.parametrize(
    ("indices", "chosen"),
    [
        (None, [0, 1, 2]), (1, [1]), (-1, [2]), ([0, -1], [0, 2]), ((2, 0), [2, 0]), ([], []),
        (range(2), [0, 1]), (slice(1, None), [1, 2]), (np.int64(2), [2]),
        (np.array([0, 2]), [0, 2]), (np.array([False, True, True]), [1, 2]), (np.array(1), [1]),
        (iter([1, 2]), [1, 2]),
    ],
)  # fmt: skip
def test_indices_may_be_of_any_kind(indices: Any, chosen: list[int]) -> None:
    vec = Cage2VecEnv(3)
    vec.set_attr("label", 1)
    vec.set_attr("label", 5, indices=chosen)
    assert vec.get_attr("label") == [5 if i in chosen else 1 for i in range(3)]
    for i in range(3):
        vec.set_attr("number", i, indices=i)
    assert vec.get_attr("number", indices) == chosen


def test_indices_that_are_none_are_refused() -> None:
    vec = Cage2VecEnv(3)
    indices: Any
    for indices in (3, -4, [0, 3]):
        with pytest.raises(IndexError, match="there is no network"):
            vec.get_attr("access", indices)
    for indices in ("0", 1.0, ["a"]):
        with pytest.raises(TypeError):
            vec.env_is_wrapped(Monitor, indices)


def test_attributes_are_set_of_those_that_are_named_only() -> None:
    vec = VecNormalize(Cage2VecEnv(3, **SETTINGS))
    assert not vec.has_attr("label")
    assert vec.env_method("set_wrapper_attr", "label", 12, indices=[0, -1]) == [True, True]
    assert vec.get_attr("label", indices=[0, 2]) == [12, 12]
    with pytest.raises(AttributeError, match="network 1 has no attribute 'label'"):
        vec.get_attr("label")
    assert vec.env_method("has_wrapper_attr", "label") == [True, False, True]
    assert vec.env_method("get_wrapper_attr", "render_mode", indices=1) == [None]
    with pytest.raises(ConfigError, match="horizon cannot be set network by network"):
        vec.set_attr("horizon", 5, indices=0)
    with pytest.raises(ConfigError, match="reset plays all networks at once"):
        vec.env_method("reset")
    assert vec.has_attr("action_masks")  # MaskablePPO asks for it
    assert [mask.shape for mask in vec.env_method("action_masks", indices=-1)] == [(145,)]
    masks = [ask() for ask in vec.get_attr("action_masks")]
    assert np.array_equal(masks, vec.env_method("action_masks"))


def test_options_are_refused_rather_than_ignored() -> None:
    vec = Cage2VecEnv(2)
    options: Any
    for options in ({"hello": 1}, [{}, {"hello": 1}]):
        with pytest.raises(ConfigError, match="CAGE-2 knows no options"):
            vec.set_options(options)
    for options in (None, {}, [{}, {}]):
        vec.set_options(options)
    vec.reset()


def test_the_picture_of_all_networks_is_one_text() -> None:
    vec = VecMonitor(Cage2VecEnv(2, render_mode="ansi"))
    vec.reset()
    text = vec.render()
    assert text == vec.render("ansi") == "\n\n".join(vec.env_method("render"))
    assert text.count("Op_Server0") == 2
    for other, mode in ((vec, "rgb_array"), (Cage2VecEnv(2), None)):
        with pytest.warns(UserWarning, match="render"):
            assert other.render(mode) is None


def test_a_closed_vector_says_so() -> None:
    vec = Cage2VecEnv(2)
    vec.reset()
    vec.close()
    vec.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        vec.step(np.zeros(2, int))


def test_sb3_evaluates_on_it() -> None:
    vec = VecMonitor(Cage2VecEnv(4, seed=1, **SETTINGS))
    model = PPO("MlpPolicy", vec, n_steps=8, batch_size=32, device="cpu")
    returns, lengths = evaluate_policy(model, vec, 8, return_episode_rewards=True)
    assert lengths == [7] * 8
    assert all(-200 < total <= 0 for total in returns)


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
