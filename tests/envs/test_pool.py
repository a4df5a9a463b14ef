"""Two calls, and what arrives through them, wherever the environments run."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.envs import Pool, Received, make_pool
from phalanx.envs.worker import between
from phalanx.envs.workers import Workers
from phalanx.errors import ActionError, ConfigError, PhalanxError
from tests import odd_envs as odd

EVERY_WAY = pytest.mark.parametrize("num_workers", [0, 2])


def begun(env: Any, n_envs: int, num_workers: int, **settings: Any) -> tuple[Pool, Received]:
    pool = make_pool(env, n_envs=n_envs, num_workers=num_workers, **settings)
    pool.reset()
    return pool, pool.recv()


def played(env: Any, num_workers: int, *, n_envs: int = 5, steps: int = 30) -> list[Received]:
    dice = np.random.default_rng(0)
    pool, first = begun(env, n_envs, num_workers, seed=3)
    with pool:
        rows = [first]
        for _ in range(steps):
            pool.send(dice.integers(0, pool.single_action_space.n, n_envs))  # type: ignore[attr-defined]
            rows.append(pool.recv())
    return rows


def same(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            same(one[key], other[key])
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    else:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


@pytest.mark.parametrize("env", ["CartPole-v1", odd.Talks, odd.Image])
def test_transitions_do_not_depend_on_the_workers(env: Any) -> None:
    serial = played(env, 0)
    for num_workers in (1, 2, 5):
        for here, there in zip(serial, played(env, num_workers), strict=True):
            same(here, there)


def test_an_environment_depends_on_the_seed_and_its_number_only() -> None:
    few, many = played(odd.Counting, 0, n_envs=2, steps=0), played(odd.Counting, 2, steps=0)
    same(few[0].obs, many[0].obs[:2])
    assert len(set(many[0].obs[:, 0].tolist())) == 5


@EVERY_WAY
def test_an_ended_episode_gives_its_statistics_its_last_sight_and_the_next_first(
    num_workers: int,
) -> None:
    pool, first = begun(odd.Counting, 3, num_workers)
    with pool:
        assert not first.terminated.any()
        for step in range(1, 5):
            pool.send(np.zeros(3, int))
            received = pool.recv()
            assert received.rewards.tolist() == [step] * 3
            assert not received.terminated.any()
            assert np.isnan(received.episode_returns).all()
            assert (received.episode_lengths == -1).all()
            same(received.final_obs, received.obs)
        pool.send(np.zeros(3, int))
        received = pool.recv()
    assert received.terminated.all()
    assert not received.truncated.any()
    assert received.episode_returns.tolist() == [1 + 2 + 3 + 4 + 5] * 3
    assert received.episode_lengths.tolist() == [5] * 3
    assert received.final_obs[:, 1].tolist() == [5] * 3
    same(received.final_obs[:, 0], first.obs[:, 0])
    assert received.obs[:, 1].tolist() == [0] * 3
    assert (received.obs[:, 0] != first.obs[:, 0]).all()


@EVERY_WAY
def test_truncation_is_not_termination(num_workers: int) -> None:
    pool, _first = begun(odd.Truncates, 2, num_workers)
    with pool:
        for _ in range(5):
            pool.send(np.zeros(2, int))
            received = pool.recv()
    assert received.truncated.all()
    assert not received.terminated.any()


@EVERY_WAY
def test_an_episode_may_end_at_once(num_workers: int) -> None:
    for received in played_with(odd.EndsAtOnce, num_workers):
        assert received.terminated.all()
        assert received.episode_lengths.tolist() == [1, 1]


def played_with(env: Any, num_workers: int) -> list[Received]:
    pool, _first = begun(env, 2, num_workers)
    with pool:
        rows = []
        for _ in range(4):
            pool.send(np.zeros(2, int))
            rows.append(pool.recv())
    return rows


@EVERY_WAY
def test_infos_come_when_there_are_any_and_masks_always(num_workers: int) -> None:
    pool, first = begun(odd.Talks, 2, num_workers)
    with pool:
        assert first.infos == [{"began": True}] * 2
        assert first.action_masks is not None
        assert first.action_masks.tolist() == [[True, False, False, False]] * 2
        seen = []
        for _ in range(5):
            pool.send(np.zeros(2, int))
            received = pool.recv()
            seen.append(received.infos and received.infos[1])
    assert received.infos is not None
    assert received.infos[1]["final_info"].pop("action_mask").all()
    assert seen == [
        None,
        {"count": 2},
        None,
        {"count": 4},
        {"began": True, "final_info": {"count": 5}},
    ]
    assert received.action_masks is not None
    assert received.action_masks.sum() == 2


@EVERY_WAY
def test_infos_can_be_switched_off(num_workers: int) -> None:
    pool, first = begun(odd.Talks, 2, num_workers, infos=False)
    pool.close()
    assert first.infos is None
    assert first.action_masks is not None


def test_infos_may_be_larger_than_a_pipe() -> None:
    pool, _first = begun(odd.TalksMuch, 4, 2)
    with pool:
        for _ in range(3):
            pool.send(np.zeros(4, int))
            received = pool.recv()
    assert received.infos is not None
    assert [len(info["log"]) for info in received.infos] == [3_000_000] * 4
    assert [info["count"] for info in received.infos] == [3] * 4


# --- the first k ----------------------------------------------------------------------------------


def test_the_first_rows_do_not_wait_for_the_slow_one() -> None:
    with make_pool(odd.Counting, n_envs=4, num_workers=4, wait_for=3) as pool:
        pool.reset()
        pool.recv(), pool.recv()
        slow = pool.worker_pids[1]
        os.kill(slow, signal.SIGSTOP)
        pool.send([odd.FINE] * 4, [0, 1, 2, 3])
        for _ in range(10):
            received = pool.recv()
            assert sorted(received.env_ids.tolist()) == [0, 2, 3]
            pool.send([odd.FINE] * 3)
        os.kill(slow, signal.SIGCONT)
        while 1 not in received.env_ids:
            received = pool.recv()
            pool.send([odd.FINE] * 3)


@EVERY_WAY
def test_no_environment_is_left_behind(num_workers: int) -> None:
    """A ready row waits for at most n_envs / wait_for batches."""
    with make_pool(odd.NeverEnds, n_envs=8, num_workers=num_workers, wait_for=2) as pool:
        pool.reset()
        last_seen = dict.fromkeys(range(8), 0)
        for batch in range(1, 400):
            received = pool.recv()
            assert len(received.env_ids) == 2
            for i in received.env_ids.tolist():
                last_seen[i] = batch
            pool.send([odd.FINE] * 2)
        if num_workers == 0:  # elsewhere the system may put a worker aside for a while
            assert min(last_seen.values()) >= 399 - 4
    assert min(last_seen.values()) > 200


def test_in_this_process_environments_take_their_turns_by_number() -> None:
    turns = []

    class Notes(odd.Counting):
        def step(self, action: Any) -> Any:
            turns.append(int(action))
            return super().step(action)

    pool, _first = begun(Notes, 4, 0)
    turns.clear()
    with pool:
        pool.send([2, 0, 3, 1], [2, 0, 3, 1])
        pool.recv()
    assert turns == [0, 1, 2, 3]


@EVERY_WAY
def test_rows_say_with_which_version_their_action_was_sent(num_workers: int) -> None:
    with make_pool(odd.Counting, n_envs=4, num_workers=num_workers, wait_for=2) as pool:
        pool.reset()
        first, second = pool.recv(), pool.recv()
        pool.send([0, 0], first.env_ids, version=7)
        assert pool.recv().versions.tolist() == [7, 7]
        pool.send([0, 0], second.env_ids, version=8)
        assert pool.recv().versions.tolist() == [8, 8]


@EVERY_WAY
def test_some_may_be_stepped_and_others_not(num_workers: int) -> None:
    pool, _first = begun(odd.Counting, 5, num_workers)
    with pool:
        pool.send([0, 0], [4, 1])
        received = pool.recv()
        assert received.env_ids.tolist() == [1, 4]
        pool.send(np.zeros(5, int), range(5))
        assert pool.recv().rewards.tolist() == [1, 2, 1, 1, 2]
        pool.reset(env_ids=[2])
        assert pool.recv().obs[0, 1] == 0


def test_under_asyncio_other_tasks_run_meanwhile() -> None:
    async def meanwhile(ticks: list[float]) -> None:
        while True:
            ticks.append(time.perf_counter())
            await asyncio.sleep(0.01)

    async def main() -> tuple[Received, list[float]]:
        pool, _first = begun(odd.Sleeps, 4, 2)
        with pool:
            ticks: list[float] = []
            task = asyncio.create_task(meanwhile(ticks))
            used = time.process_time()
            pool.send([odd.ACT_UP, 0, 0, 0])
            received = await pool.recv_async()
            assert time.process_time() - used < 0.15  # it took 0.3 s, and did not look all the time
            task.cancel()
        return received, ticks

    received, ticks = asyncio.run(main())
    assert received.rewards.tolist() == [1] * 4
    assert len(ticks) > 10


# --- spaces ---------------------------------------------------------------------------------------

numbers = st.integers(0, 2**16)
shapes = st.lists(st.integers(1, 4), max_size=3).map(tuple)
leaves: st.SearchStrategy[spaces.Space[Any]] = st.one_of(
    st.builds(
        lambda shape, dtype: spaces.Box(0, 100, shape, dtype),
        shapes,
        st.sampled_from([np.float32, np.float64, np.uint8, np.int64, np.int16]),
    ),
    st.builds(
        lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 9), st.integers(-5, 5)
    ),
    st.builds(spaces.MultiDiscrete, st.lists(st.integers(1, 9), min_size=1, max_size=4)),
    st.builds(spaces.MultiBinary, st.integers(1, 9)),
)
any_space: st.SearchStrategy[spaces.Space[Any]] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(spaces.Dict),
    ),
    max_leaves=5,
)


def stacked(space: spaces.Space[Any], samples: list[Any]) -> Any:
    from gymnasium.vector.utils import concatenate, create_empty_array

    empty: Any = create_empty_array(space, len(samples))
    return concatenate(space, samples, empty)


@settings(max_examples=40, deadline=None)
@given(any_space, any_space, numbers)
def test_what_the_environment_gave_is_what_arrives(
    observations: spaces.Space[Any], actions: spaces.Space[Any], seed: int
) -> None:
    check_echo(observations, actions, seed, 0)


@settings(max_examples=6, deadline=None)
@given(any_space, any_space, numbers)
def test_what_the_environment_gave_arrives_from_workers_too(
    observations: spaces.Space[Any], actions: spaces.Space[Any], seed: int
) -> None:
    check_echo(observations, actions, seed, 2)


def check_echo(observations: Any, actions: Any, seed: int, num_workers: int) -> None:
    def env() -> odd.Echo:
        from copy import deepcopy

        return odd.Echo(deepcopy(observations), deepcopy(actions))

    alone = [env() for _ in range(3)]
    with make_pool(env, n_envs=3, num_workers=num_workers) as pool:
        seeds = [seed, seed + 1, seed + 2]
        pool.reset(seeds)
        firsts = [one.reset(seed=s)[0] for one, s in zip(alone, seeds, strict=True)]
        same(pool.recv().obs, stacked(observations, firsts))
        actions.seed(seed)
        for _ in range(4):
            chosen = [actions.sample() for _ in alone]
            pool.send(stacked(actions, chosen))
            received = pool.recv()
            answers = [one.step(a) for one, a in zip(alone, chosen, strict=True)]
            same(received.final_obs, stacked(observations, [answer[0] for answer in answers]))
            nexts = [
                one.reset()[0] if answer[3] else answer[0]
                for one, answer in zip(alone, answers, strict=True)
            ]
            same(received.obs, stacked(observations, nexts))
            assert received.infos is not None
            told = [info.get("final_info", info)["action"] for info in received.infos]
            same(told, chosen)


def test_actions_may_be_continuous() -> None:
    pool, _first = begun(odd.Continuous, 3, 2)
    with pool:
        pool.send(np.array([[0.5, 0.25], [0, 1], [-1, -1]]))
        assert pool.recv().rewards.tolist() == [0.75, 1.0, -2.0]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 4, 0], "environment 1"),
        ([0, 0, -1], "environment 2"),
        ([0, 0], "3 rows"),
        ([0.0, 1.0, 0.5], "dtype float64"),
        ([[0], [0], [0]], "3 rows"),
    ],
)
def test_an_action_that_is_not_in_the_space_is_refused(actions: Any, message: str) -> None:
    pool, _first = begun(odd.Counting, 3, 0)
    with pool, pytest.raises(ActionError, match=message):
        pool.send(actions)


def test_who_was_woken_can_sleep_again() -> None:
    pool, _first = begun(odd.Sleeps, 1, 1)
    with pool:
        pool.send(np.array([odd.ACT_UP]))  # long enough to fall asleep over it
        pool.recv()
        runner = pool.check_open()
        assert isinstance(runner, Workers)
        assert not select.select([runner._bells[-1].fd], [], [], 0)[0]


def test_an_action_is_compared_with_its_bounds_in_a_kind_that_holds_both() -> None:
    pool, _first = begun(odd.Continuous, 1, 0)
    with pool:
        pool.send(np.array([[0, 1 + 1e-12]]))  # as float32 it is the bound itself
        assert pool.recv().rewards.tolist() == [1.0]
    pool, _first = begun(odd.Counting, 1, 0)
    with pool, pytest.raises(ActionError, match="environment 0"):
        pool.send(np.array([2**64 - 1], np.uint64))  # no action -1 or 255


def test_a_continuous_action_that_is_no_number_is_refused() -> None:
    pool, _first = begun(odd.Continuous, 2, 0)
    with pool:
        for action in (np.nan, 1.5):
            with pytest.raises(ActionError, match="environment 1"):
                pool.send(np.array([[0, 0], [0, action]], np.float32))


@EVERY_WAY
def test_a_refused_action_steps_nothing(num_workers: int) -> None:
    pool, _first = begun(odd.Counting, 2, num_workers)
    with pool:
        with pytest.raises(ActionError):
            pool.send([0, 9])
        pool.send([0, 0])
        assert pool.recv().rewards.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ("NoSuchEnv-v7", "NoSuchEnv"),
        ("no_such_module:thing", "cannot import no_such_module"),
        ("tests.odd_envs:Nothing", "has no Nothing"),
        (odd.CannotBeBuilt, "building it gave FileNotFoundError: no map"),
        (odd.RaisesInReset, "KeyError: 'no such scenario'"),
        (dict, "got dict, not a gymnasium.Env"),
        (7, "give a Gymnasium id"),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_line(env: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        make_pool(env, n_envs=4, num_workers=2)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_envs": 0},
        {"wait_for": 5},
        {"wait_for": 0},
        {"wait_for": "some"},
        {"num_workers": -1},
        {"num_workers": "many"},
        {"seed": -1},
        {"step_timeout": 0},
        {"max_restarts": -1},
        {"n_envs": "x"},
        {"n_envs": 1.5},
        {"n_envs": True},
        {"n_envs": None},
        {"num_envs": 4},
        {"num_workers": None},
        {"num_workers": 1.0},
        {"wait_for": 2.5},
        {"wait_for": None},
        {"seed": "a"},
        {"seed": None},
        {"step_timeout": np.nan},
        {"step_timeout": np.inf},
        {"step_timeout": "1"},
        {"start_timeout": np.nan},
        {"start_timeout": -1},
        {"max_restarts": None},
        {"infos": 1},
        {"on_fault": 7},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        make_pool(odd.Counting, **{"n_envs": 4, **settings})
    assert next(iter(settings)) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_number_of_environments_has_two_names() -> None:
    with make_pool(odd.Counting, num_envs=3, num_workers=0) as pool:
        assert pool.n_envs == 3


def test_all_rows_may_be_waited_for_by_their_number() -> None:
    with make_pool(odd.Counting, n_envs=3, num_workers=0, wait_for=3) as pool:
        assert pool.wait_for == 3


@EVERY_WAY
def test_calls_out_of_turn_are_refused(num_workers: int) -> None:
    pool = make_pool(odd.Counting, n_envs=2, num_workers=num_workers)
    with pool:
        with pytest.raises(PhalanxError, match="nothing is under way"):
            pool.recv()
        pool.reset()
        with pytest.raises(PhalanxError, match="under way"):
            pool.send([0, 0])
        pool.recv()
        with pytest.raises(ConfigError, match="twice"):
            pool.send([0, 0], [1, 1])
        with pytest.raises(ConfigError, match="from 0 to 1"):
            pool.send([0], [2])
    pool.close()
    with pytest.raises(PhalanxError, match="closed"):
        pool.recv()


# --- how many workers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "expected", "why"),
    [
        (odd.NeverEnds, lambda workers: workers == 0, "serial"),
        (odd.Busy, lambda workers: workers >= 1, "computing"),
        (odd.Sleeps, lambda workers: workers == 8, "wait"),
    ],
)
def test_auto_tells_apart_what_computes_and_what_waits(
    env: Any, expected: Callable[[int], bool], why: str
) -> None:
    with make_pool(env, n_envs=8) as pool:
        assert expected(pool.num_workers), pool.reason
        assert why in pool.reason
        assert "\n" not in pool.reason


def test_each_worker_gets_its_share_of_the_threads() -> None:
    from phalanx.machine import count_cores

    with make_pool(odd.Environment, n_envs=3, num_workers=3) as pool:
        assert pool.call("threads") == [str(max(1, count_cores() // 3))] * 3


def test_a_block_of_environments_shares_a_process() -> None:
    with make_pool(odd.Environment, n_envs=5, num_workers=2) as pool:
        processes = pool.call("process")
        assert processes == [pool.worker_pids[0]] * 2 + [pool.worker_pids[1]] * 3
        pool.reset()
        pool.recv()
        assert pool.call("count") == [0] * 5
        pool.call("count=", 3, env_ids=[1])
        assert pool.call("count", env_ids=[0, 1]) == [0, 3]
        with pytest.raises(AttributeError):
            pool.call("no_such_thing")
        pool.send(np.zeros(5, int))
        assert pool.recv().rewards.tolist() == [1, 4, 1, 1, 1]


def test_a_script_needs_no_main_guard(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import gymnasium\n"
        "from phalanx.envs import make_pool\n"
        "class Mine(gymnasium.Wrapper):\n    pass\n"
        "pool = make_pool(lambda: Mine(gymnasium.make('CartPole-v1')), n_envs=2, num_workers=2)\n"
        "pool.reset()\n"
        "print(pool.recv().obs.shape)\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert ran.stdout == "(2, 4)\n", ran.stderr
    assert ran.stderr == ""


def test_a_factory_may_be_named_by_its_place() -> None:
    pool, first = begun("tests.odd_envs:Counting", 2, 2)
    pool.close()
    assert first.obs.shape == (2, 3)


def test_gymnasium_ids_are_built_without_its_checker() -> None:
    with make_pool("CartPole-v1", n_envs=1, num_workers=0) as pool:
        runner: Any = pool._runner
        assert "PassiveEnvChecker" not in str(runner.envs[0])
    assert gymnasium.make("CartPole-v1").spec is not None


@pytest.mark.parametrize("ids", [[-1, 0], [0, 2], [-1], [2]])
def test_every_environment_that_is_named_exists(ids: list[int]) -> None:
    pool = make_pool(odd.Counting, n_envs=2, num_workers=0)
    with pool, pytest.raises(ConfigError, match="are not all from 0 to 1"):
        pool.reset(env_ids=ids)


class FromOne(odd.Counting):
    action_space = spaces.Discrete(3, start=1)


def test_actions_that_begin_at_one_are_counted_from_there() -> None:
    with make_pool(FromOne, n_envs=2, num_workers=0) as pool:
        pool.reset()
        pool.recv()
        for wrong in (0, 4):
            with pytest.raises(ActionError, match=f"{wrong}"):
                pool.send(np.array([1, wrong]))
        pool.send(np.array([1, 3]))
        assert not pool.recv().lost.any()


def test_a_ring_is_read_in_the_order_in_which_it_was_written() -> None:
    ring = np.arange(10, 14)
    for start in range(9):
        for stop in range(start, start + 5):
            wanted = [int(ring[k % 4]) for k in range(start, stop)]
            assert between(ring, start, stop) == wanted, (start, stop)


@pytest.mark.parametrize(
    ("target", "is_there", "timeout_s"), [(3, True, 0.0), (3, False, 0.1), (0, True, 0.1)]
)
def test_whoever_waits_sleeps_unless_what_it_waits_for_is_there(
    target: int, is_there: bool, timeout_s: float
) -> None:
    workers = Mock(_target=target)
    workers._there.return_value = is_there
    Workers._sleep_until_something_happens(workers, 0.1)
    workers.attend.assert_called_once_with(timeout_s)


@pytest.mark.parametrize(("attended_at", "times"), [(99.95, 0), (99.8, 1)])
def test_workers_are_attended_to_now_and_then_also_if_rows_are_there(
    attended_at: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phalanx.envs.workers.time", Mock(monotonic=lambda: 100.0))
    workers = Mock(everybody=[0, 1], _ready=(), _attended_at=attended_at)
    assert Workers.collect(workers, 2) is workers.everybody
    assert workers.attend.call_count == times
