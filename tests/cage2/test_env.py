"""The game as Gymnasium knows games."""

import threading
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import phalanx
from phalanx.cage2 import DEFAULT_RULES, RULE_SETS, Batch, Cage2Env, Cage2VectorEnv
from phalanx.cage2.rules.observation import OBS_SIZES
from phalanx.cage2.rules.scenario import NUM_ACTIONS
from phalanx.errors import ActionError, ConfigError
from phalanx.training.config import TrainConfig

assert phalanx.__version__  # importing phalanx registers the game


def random_actions(turns: int, num_envs: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(NUM_ACTIONS, size=(turns, num_envs))


# --- one network ----------------------------------------------------------------------------------


@pytest.mark.parametrize("observation", ["bits", "history", "memory", "belief"])
@pytest.mark.parametrize("red_agent", ["b_line", "meander", "sleep"])
def test_gymnasium_checks_the_env(observation: str, red_agent: str) -> None:
    env = gymnasium.make("phalanx/Cage2-v0", observation=observation, red_agent=red_agent)
    check_env(env.unwrapped, skip_render_check=True)


def test_an_episode_ends_by_truncation_at_the_horizon() -> None:
    env = gymnasium.make("phalanx/Cage2-v0", horizon=30)
    env.reset(seed=1)
    ends = [env.step(0)[2:4] for _ in range(30)]
    assert ends == [(False, False)] * 29 + [(False, True)]


def test_stepping_needs_an_episode() -> None:
    env = Cage2Env(horizon=1)
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset()
    env.step(0)
    with pytest.raises(ResetNeeded):
        env.step(0)


def test_equal_seeds_give_equal_games_and_none_gives_others() -> None:
    def game(seed: int | None) -> list[float]:
        env = Cage2Env(red_agent="meander")
        env.reset(seed=seed)
        return [env.step(int(a))[1] for a in random_actions(100, 1)[:, 0]]

    assert game(5) == game(5)
    assert len({tuple(game(None)) for _ in range(4)}) > 1


def test_later_episodes_follow_from_the_seed() -> None:
    def second_game() -> list[float]:
        env = Cage2Env(red_agent="meander", seed=3)
        env.reset()
        env.reset()
        return [env.step(0)[1] for _ in range(100)]

    assert second_game() == second_game()


@pytest.mark.parametrize("action", [-1, 145, 3.0, "Restore", None, [1, 2], np.array([0.5])])
def test_a_bad_action_is_refused(action: Any) -> None:
    env = Cage2Env()
    env.reset(seed=0)
    with pytest.raises(ActionError, match="from 0 to 144"):
        env.step(action)
    assert env.batch.nets["turn"][0] == 0


def test_actions_of_any_whole_kind_are_taken() -> None:
    env = Cage2Env()
    env.reset(seed=0)
    for action in (3, np.int64(3), np.uint8(3), np.array(3), np.array([3])):
        env.step(action)


def test_the_picture_names_hosts_and_attacker() -> None:
    env = gymnasium.make("phalanx/Cage2-v0", render_mode="ansi", red_agent="meander")
    env.reset(seed=1)
    for _ in range(60):
        env.step(0)
    text = str(env.render())
    assert "Op_Server0" in text
    assert "red agent meander" in text
    assert "root" in text


def test_one_env_saves_and_restores() -> None:
    env = Cage2Env(red_agent="meander", horizon=20)
    env.reset(seed=1)
    for _ in range(10):
        obs = env.step(0)[0]
    saved = env.save()
    rewards = [env.step(0)[1] for _ in range(10)]
    assert np.array_equal(env.restore(saved), obs)
    assert [env.step(0)[1] for _ in range(10)] == rewards
    with pytest.raises(ConfigError, match="seed must be"):
        Cage2Env(seed=-1)


def test_info_carries_the_action_mask() -> None:
    env = gymnasium.make("phalanx/Cage2-v0", red_agent="sleep")
    _, info = env.reset(seed=1)
    assert info["action_mask"].dtype == np.int8  # as Discrete.sample(mask) wants it
    assert env.action_space.sample(info["action_mask"]) in range(NUM_ACTIONS)


# --- a batch --------------------------------------------------------------------------------------


def test_the_number_of_networks_has_two_names() -> None:
    assert Cage2VectorEnv(n_envs=3).num_envs == Cage2VectorEnv(num_envs=3).num_envs == 3
    assert Cage2VectorEnv().num_envs == 1
    with pytest.raises(ConfigError, match="two names for one number"):
        Cage2VectorEnv(3, n_envs=3)


def test_make_vec_gives_the_compiled_batch() -> None:
    envs = gymnasium.make_vec("phalanx/Cage2-v0", num_envs=7, red_agent="meander", horizon=5)
    assert isinstance(envs.unwrapped, Cage2VectorEnv)
    obs, infos = envs.reset(seed=1)
    assert obs.shape == (7, 52)
    assert infos == {}
    assert envs.observation_space.contains(obs)
    assert envs.single_action_space.n == 145  # type: ignore[attr-defined]
    obs, rewards, terminations, truncations, _ = envs.step(envs.action_space.sample())
    assert rewards.shape == terminations.shape == truncations.shape == (7,)


@pytest.mark.parametrize("observation", ["bits", "history", "memory", "belief"])
def test_same_step_autoreset_gives_final_observations_as_arrays(observation: str) -> None:
    envs = Cage2VectorEnv(6, red_agent="meander", horizon=25, observation=observation, seed=4)
    twin = Cage2VectorEnv(
        6,
        red_agent="meander",
        horizon=25,
        observation=observation,
        seed=4,
        autoreset_mode="NextStep",
    )
    envs.reset()
    twin.reset()
    for actions in random_actions(25, 6):
        obs, rewards, terminations, truncations, infos = envs.step(actions)
        last = twin.step(actions)[0]
    assert truncations.all()
    assert not terminations.any()
    assert infos["_final_obs"].all()
    assert np.array_equal(infos["final_obs"], last)
    assert infos["final_obs"].dtype == np.float32
    assert np.array_equal(obs, Cage2VectorEnv(6, observation=observation, horizon=25).reset()[0])
    assert rewards.any()


def test_next_step_autoreset_ignores_the_action_after_an_end() -> None:
    envs = Cage2VectorEnv(3, horizon=2, autoreset_mode=AutoresetMode.NEXT_STEP, red_agent="meander")
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    envs.reset()
    envs.step(np.zeros(3, int))
    assert envs.step(np.zeros(3, int))[3].all()
    obs, rewards, _, truncations, _ = envs.step(np.full(3, 144))
    assert not obs.any()
    assert not rewards.any()  # a Restore would have cost
    assert not truncations.any()


def test_without_autoreset_the_user_resets_what_is_over() -> None:
    envs = Cage2VectorEnv(3, horizon=2, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset()
    envs.step(np.zeros(3, int))
    envs.reset(options={"reset_mask": np.array([True, False, False])})
    assert envs.step(np.zeros(3, int))[3].tolist() == [False, True, True]
    with pytest.raises(ResetNeeded, match="environment 1"):
        envs.step(np.zeros(3, int))
    envs.reset(options={"reset_mask": np.array([False, True, True])})
    envs.step(np.zeros(3, int))


def test_a_list_of_seeds_gives_the_games_that_make_gives() -> None:
    envs = Cage2VectorEnv(3, red_agent="meander")
    envs.reset(seed=[7, 8, 9])
    env = Cage2Env(red_agent="meander")
    env.reset(seed=8)
    for actions in random_actions(60, 3):
        obs, rewards, *_ = envs.step(actions)
        alone, reward, *_ = env.step(actions[1])
        assert np.array_equal(obs[1], alone)
        assert rewards[1] == reward


def test_returned_arrays_are_the_callers_to_keep() -> None:
    envs = Cage2VectorEnv(5, red_agent="meander", seed=1)
    kept = [envs.reset()[0]]
    copies = [kept[0].copy()]
    for actions in random_actions(120, 5):
        obs, rewards, _, truncations, _ = envs.step(actions)
        kept += [obs, rewards, truncations]
        copies += [obs.copy(), rewards.copy(), truncations.copy()]
    assert all(np.array_equal(a, b) for a, b in zip(kept, copies, strict=True))


def test_infos_and_first_observations_are_the_callers_to_keep() -> None:
    envs = Cage2VectorEnv(3, red_agent="meander", horizon=20, seed=1)
    first, kept = envs.reset()[0], []
    for actions in random_actions(40, 3):
        infos = envs.step(actions)[4]
        if infos:
            kept.append((infos, {name: value.copy() for name, value in infos.items()}))
    assert len(kept) == 2
    assert all(np.array_equal(a[name], b[name]) for a, b in kept for name in a)
    for _ in range(15):
        envs.step(np.zeros(3, int))
    envs.reset(options={"reset_mask": np.array([True, False, False])})
    assert not first.any()


def test_the_last_observation_is_that_of_the_last_turn() -> None:
    env, twin = (Cage2Env(red_agent="meander", horizon=horizon, seed=1) for horizon in (30, 99))
    env.reset()
    twin.reset()
    for _ in range(30):
        one, other = env.step(0), twin.step(0)
    assert np.array_equal(one[0], other[0])
    assert env.access.tolist() == twin.access.tolist()


def test_flags_of_one_step_do_not_reach_the_next() -> None:
    envs = Cage2VectorEnv(2, horizon=3)
    envs.reset()
    _, _, terminations, truncations, _ = envs.step(np.zeros(2, int))
    terminations |= True
    truncations |= True
    assert not any(flags.any() for flags in envs.step(np.zeros(2, int))[2:4])


def test_final_observations_are_zero_where_nothing_ended() -> None:
    envs = Cage2VectorEnv(3, horizon=2, autoreset_mode="SameStep")
    envs.reset()
    envs.batch.nets["turn"][0] = 1
    infos = envs.step(np.zeros(3, int))[4]
    assert infos["_final_obs"].tolist() == [True, False, False]
    assert not infos["final_obs"][1:].any()


def test_without_copies_the_same_arrays_come_back() -> None:
    envs = Cage2VectorEnv(5, copy=False)
    first = envs.reset()[0]
    assert envs.step(np.zeros(5, int))[0] is first


def test_gymnasiums_statistics_agree_with_ours() -> None:
    envs = RecordEpisodeStatistics(Cage2VectorEnv(4, red_agent="b_line", horizon=30, seed=2))
    envs.reset()
    for actions in random_actions(30, 4):
        infos = envs.step(actions)[4]
    assert np.allclose(infos["episode"]["r"], infos["episode_return"])
    assert infos["episode"]["l"].tolist() == infos["episode_length"].tolist() == [30] * 4


def test_the_first_reset_begins_episode_0_and_the_next_ones_go_on() -> None:
    envs = Cage2VectorEnv(2)
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros(2, int))
    envs.reset()
    assert envs.batch.nets["episode"].tolist() == [0, 0]
    envs.reset()
    assert envs.batch.nets["episode"].tolist() == [1, 1]
    envs.reset(seed=0)
    assert envs.batch.nets["episode"].tolist() == [0, 0]


def test_save_and_restore() -> None:
    envs = Cage2VectorEnv(4, red_agent="meander", seed=5)
    envs.reset()
    for actions in random_actions(20, 4):
        obs = envs.step(actions)[0]
    saved = envs.save()
    went_on = [envs.step(actions)[1] for actions in random_actions(100, 4, seed=1)]
    other = Cage2VectorEnv(4, red_agent="meander")
    assert np.array_equal(other.restore(saved), obs)
    again = [other.step(actions)[1] for actions in random_actions(100, 4, seed=1)]
    assert np.array_equal(went_on, again)


@pytest.mark.parametrize(
    ("reset", "message"),
    [
        ({"options": {"reset_mask": np.array([1, 0])}}, "must have `dtype=np.bool_`, got int64"),
        ({"options": {"reset_mask": [True, False]}}, "must be a numpy array of bool, got list"),
        ({"options": {"reset_mask": np.array([True])}}, r"shape `\(2,\)`"),
        ({"options": {"reset_mask": np.zeros(2, bool)}}, "at least one True"),
        ({"seed": 2**64 - 1}, "seed must be"),  # network 1 would have the next one
        ({"seed": [1, 2, 3]}, "got 3 seeds for 2"),
        ({"seed": -4}, "seed must be"),
    ],
)
def test_bad_resets_are_refused(reset: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Cage2VectorEnv(2).reset(**reset)


def test_an_unknown_autoreset_mode_is_refused() -> None:
    with pytest.raises(ConfigError, match="SameStep"):
        Cage2VectorEnv(2, autoreset_mode="samestep")


def test_actions_may_be_a_list() -> None:
    envs = Cage2VectorEnv(2)
    envs.reset()
    envs.step([0, 144])  # type: ignore[arg-type]
    with pytest.raises(ActionError, match="action 200 of environment 1"):
        envs.step([0, 200])  # type: ignore[arg-type]


def test_observation_spaces_hold_what_is_shown() -> None:
    for observation, size in OBS_SIZES.items():
        envs = Cage2VectorEnv(9, red_agent="meander", observation=observation, seed=6)
        assert envs.single_observation_space.shape == (size,)
        envs.reset()
        for actions in random_actions(110, 9):
            assert envs.observation_space.contains(envs.step(actions)[0])


def test_threads_end_with_the_env() -> None:
    before = set(threading.enumerate())
    envs = Cage2VectorEnv(64, num_threads=3)
    hands = set(threading.enumerate()) - before
    assert len(hands) == 2
    envs.reset()
    envs.step(np.zeros(64, int))
    envs.close()
    for hand in hands:
        hand.join(timeout=120)
        assert not hand.is_alive()


def test_every_face_plays_the_same_rules_unless_told() -> None:
    number = RULE_SETS.index(DEFAULT_RULES)
    vec = gymnasium.make_vec("phalanx/Cage2-v0", num_envs=2)
    single = gymnasium.make("phalanx/Cage2-v0")
    batches = [
        Batch(1), Cage2VectorEnv(2).batch, Cage2Env().batch,
        vec.unwrapped.batch, single.unwrapped.batch,  # type: ignore[attr-defined]
    ]  # fmt: skip
    assert [set(batch.nets["rules"].tolist()) for batch in batches] == [{number}] * 5
    assert (TrainConfig().rules, DEFAULT_RULES) == ("2.1-leaderboard", "2.1-leaderboard")
