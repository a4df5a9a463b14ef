"""The pool as Gymnasium's VectorEnv plays as Gymnasium's own."""

import multiprocessing
import os
import signal
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.error import (
    AlreadyPendingCallError,
    ClosedEnvironmentError,
    NoAsyncCallError,
    ResetNeeded,
)
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_differing_spaces
from gymnasium.wrappers import vector

from phalanx.envs import make_pool
from phalanx.envs.making import checked_modes
from phalanx.envs.vector import PoolVectorEnv
from phalanx.errors import ConfigError
from tests import odd_envs as odd


def short_cart_pole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1", max_episode_steps=7)


MODES = pytest.mark.parametrize("mode", list(AutoresetMode))


@MODES
@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("env", [short_cart_pole, odd.Talks, odd.TalksOfGraphs])
def test_it_plays_as_gymnasiums_own(env: Any, num_workers: int, mode: AutoresetMode) -> None:
    theirs: Any = SyncVectorEnv([env] * 3, autoreset_mode=mode)
    ours = PoolVectorEnv([env] * 3, num_workers=num_workers, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] == mode
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert data_equivalence(ours.reset(seed=5), theirs.reset(seed=5))
    assert ours.np_random_seed == theirs.np_random_seed == (5, 6, 7)
    theirs.action_space.seed(1)
    for _ in range(16):
        actions = theirs.action_space.sample()
        mine, its = ours.step(actions), theirs.step(actions)
        assert data_equivalence(mine, its)
        if mode is AutoresetMode.DISABLED and (ended := its[2] | its[3]).any():
            with pytest.raises(ResetNeeded):
                ours.step(actions)
            mask = {"reset_mask": ended}
            assert data_equivalence(ours.reset(options=mask.copy()), theirs.reset(options=mask))
    ours.close()
    theirs.close()


def test_statistics_of_ended_episodes_are_told_apart_from_the_infos() -> None:
    envs = PoolVectorEnv(make_pool(odd.Counting, n_envs=2, num_workers=0))
    envs.reset()
    for _ in range(5):
        infos = envs.step(np.zeros(2, int))[4]
    assert envs.received.episode_returns.tolist() == [15, 15]
    assert envs.received.episode_lengths.tolist() == [5, 5]
    assert "episode" not in infos  # where RecordEpisodeStatistics wants to put them
    envs.close()


def test_a_lost_episode_has_no_statistics() -> None:
    envs = PoolVectorEnv(make_pool(odd.Raises, n_envs=2, num_workers=0))
    envs.reset()
    _obs, _rewards, _terminated, truncated, infos = envs.step(np.array([odd.ACT_UP, odd.FINE]))
    assert truncated.tolist() == infos["lost"].tolist() == [True, False]
    assert np.isnan(envs.received.episode_returns).all()
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
    envs.close()


def test_without_a_seed_no_two_begin_alike_and_none_stays_none() -> None:
    first = [PoolVectorEnv([odd.Counting] * 2, num_workers=0).reset()[0] for _ in range(2)]
    assert len({row[0] for rows in first for row in rows.tolist()}) == 4
    envs = PoolVectorEnv([odd.Counting] * 2, num_workers=0)
    twice = [envs.reset(seed=[7, None])[0][:, 0] for _ in range(2)]
    assert twice[0][0] == twice[1][0]
    assert twice[0][1] != twice[1][1]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_some_are_reset_with_seeds_and_options_of_their_own(num_workers: int) -> None:
    envs = PoolVectorEnv(
        [odd.Optional] * 3, num_workers=num_workers, autoreset_mode="Disabled", options={"level": 1}
    )
    before, infos = envs.reset(seed=1)
    assert infos["level"].tolist() == [1, 1, 1]  # those of the pool
    envs.step([0, 0, 0])
    mask = np.array([True, False, True])
    obs, infos = envs.reset(seed=[1, 8, 9], options={"reset_mask": mask, "level": 3})
    assert infos["level"].tolist() == [3, 0, 3]
    assert infos["_level"].tolist() == mask.tolist()
    assert obs[:, 1].tolist() == [0, 1, 0]
    assert (obs[:, 0] == before[:, 0]).tolist() == [True, True, False]
    envs.close()


@pytest.mark.parametrize(
    ("mask", "kind", "message"),
    [
        ([True, False], TypeError, "must be a numpy array"),
        (np.array([True]), ValueError, r"must have shape `\(2,\)`, got \(1,\)"),
        (np.array([1, 0]), TypeError, "must have `dtype=np.bool_`, got int64"),
        (np.array([False, False]), ValueError, "at least one True value"),
    ],
)
def test_a_mask_that_cannot_be_meant_is_refused(mask: Any, kind: type, message: str) -> None:
    envs = PoolVectorEnv([odd.Counting] * 2, num_workers=0)
    with pytest.raises(kind, match=message):
        envs.reset(options={"reset_mask": mask})


def wrapped(envs: Any) -> list[Any]:
    """By each of Gymnasium's wrappers for vector environments that takes no image."""
    box = envs.single_observation_space
    return [
        vector.RecordEpisodeStatistics(envs),
        vector.DictInfoToList(envs),
        vector.NormalizeReward(envs),
        vector.ClipReward(envs, -1, 1),
        vector.TransformReward(envs, lambda reward: reward / 2),
        vector.VectorizeTransformReward(envs, wrappers.ClipReward, min_reward=0),
        vector.TransformAction(envs, lambda action: action),
        vector.TransformObservation(envs, lambda obs: obs, envs.observation_space),
        vector.VectorizeTransformObservation(
            envs, wrappers.TransformObservation, func=lambda obs: obs, observation_space=box
        ),
        vector.FlattenObservation(envs),
        vector.DtypeObservation(envs, np.float32),
        vector.ReshapeObservation(envs, (3, 1)),
        vector.NormalizeObservation(envs),
    ]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_every_wrapper_of_gymnasium_works_on_it(num_workers: int) -> None:
    envs = PoolVectorEnv([odd.Counting] * 2, num_workers=num_workers, autoreset_mode="NextStep")
    for each in wrapped(envs):
        each.reset(seed=0)
        for _ in range(7):
            result = each.step(each.action_space.sample())
            if isinstance(each, vector.RecordEpisodeStatistics) and "episode" in result[4]:
                assert result[4]["episode"]["r"].tolist() == [15, 15]
                assert result[4]["episode"]["l"].tolist() == [5, 5]
    envs.close()


def test_statistics_can_be_recorded_in_the_same_step_too() -> None:
    envs = vector.RecordEpisodeStatistics(PoolVectorEnv([odd.Counting] * 2, num_workers=0))
    envs.reset()
    for _ in range(5):
        infos = envs.step(np.zeros(2, int))[4]
    assert infos["episode"]["r"].tolist() == [15, 15]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_environments_may_differ_in_the_bounds_of_what_they_show(num_workers: int) -> None:
    factories = [partial(odd.Bounded, most) for most in (1, 2)]
    with pytest.raises(RuntimeError, match="observation_mode='different'"):
        PoolVectorEnv(factories, num_workers=num_workers)
    envs = PoolVectorEnv(factories, num_workers=num_workers, observation_mode="different")
    each = [factory().observation_space for factory in factories]
    assert envs.observation_space == batch_differing_spaces(each)
    assert envs.reset()[0].tolist() == [1, 2]
    envs.close()
    with pytest.raises(RuntimeError, match="another shape or dtype"):
        PoolVectorEnv([odd.Counting, odd.Image], num_workers=0, observation_mode="different")


def test_calls_out_of_order_are_refused_and_late_rows_can_still_be_had() -> None:
    envs = PoolVectorEnv([odd.Counting] * 2, num_workers=1)
    with pytest.raises(NoAsyncCallError):
        envs.step_wait()
    envs.reset()
    os.kill(envs.pool.worker_pids[0], signal.SIGSTOP)
    envs.step_async(np.zeros(2, int))
    with pytest.raises(AlreadyPendingCallError):
        envs.reset_async()
    with pytest.raises(multiprocessing.TimeoutError):
        envs.step_wait(timeout=0.01)
    os.kill(envs.pool.worker_pids[0], signal.SIGCONT)
    assert envs.step_wait()[1].tolist() == [1, 1]
    envs.step_async(np.zeros(2, int))
    with pytest.warns(UserWarning, match="pending call to `step`"):
        envs.close()
    with pytest.raises(ClosedEnvironmentError):
        envs.reset()


@pytest.mark.parametrize("num_workers", [0, 1])
def test_pictures_and_attributes_come_from_the_environments(num_workers: int) -> None:
    envs = PoolVectorEnv([odd.Painter] * 2, num_workers=num_workers)
    assert envs.render_mode == "rgb_array"
    envs.reset()
    assert [picture.shape for picture in envs.render()] == [(2, 2, 3)] * 2
    if num_workers:
        with pytest.raises(AttributeError, match="in worker processes"):
            _ = envs.envs
    else:
        assert [type(env) for env in envs.envs] == [odd.Painter] * 2
    envs.close()


def test_environments_may_be_prepared_before_their_first_reset() -> None:
    with pytest.raises(ConfigError, match="scenario"):
        make_pool(odd.NeedsScenario, n_envs=2, num_workers=0)
    envs = PoolVectorEnv([odd.NeedsScenario] * 2, num_workers=2, trial=False)
    envs.set_attr("scenario", ["one", "two"])
    assert envs.reset()[1]["scenario"].tolist() == ["one", "two"]
    envs.close()


def test_the_environment_that_a_factory_always_gives_is_used_as_it_is() -> None:
    only = odd.Counting()
    only.reset(seed=11)
    only.action_space = spaces.Discrete(4, seed=3)
    expected = spaces.Discrete(4, seed=3).sample()
    envs = PoolVectorEnv([lambda: only], num_workers=0)
    assert envs.envs == [only]
    assert only.np_random_seed == 11
    assert only.action_space.sample() == expected
    with pytest.raises(ValueError, match="the same environment as before"):
        PoolVectorEnv([lambda: only] * 2, num_workers=0)


def test_what_a_factory_of_a_list_raises_comes_as_it_is() -> None:
    with pytest.raises(FileNotFoundError, match="no map"):
        PoolVectorEnv([odd.CannotBeBuilt], num_workers=0)


@pytest.mark.parametrize("num_workers", [0, 1])
def test_an_attribute_is_set_where_gymnasium_sets_it(num_workers: int) -> None:
    def wrapped_twice() -> Any:
        return wrappers.TimeLimit(odd.Counting(), 9)

    envs = PoolVectorEnv([wrapped_twice], num_workers=num_workers)
    envs.reset()
    envs.set_attr("count", 4)  # which the environment has
    envs.set_attr("remark", "new")  # which nobody has
    where = envs.pool.apply(lambda env: (env.unwrapped.count, "remark" in vars(env)))
    assert where == [(4, True)]
    envs.close()


def test_both_spaces_of_an_observation_mode_are_spaces() -> None:
    both = odd.OBS, spaces.Box(-10, 10, (2, 3), np.float32)
    assert checked_modes("NextStep", both)[1]
    for mode in ((both[0], "box"), ("box", both[1])):
        with pytest.raises(TypeError, match="Expected both elements of observation_mode to be Sp"):
            checked_modes("NextStep", mode)
