"""Rewards of one's own: a compiled function of the turn, beside the scenario's own score."""

from typing import Any

import numpy as np
import pytest

from phalanx.cage2 import Cage2VectorEnv
from phalanx.cage2.batch import Batch
from phalanx.cage2.rewards import Turn, count, has, reward, reward_of
from phalanx.cage2.rules.red_actions import RED_ACTIONS
from phalanx.cage2.rules.scenario import HOSTS, RESTORE, VERBS, action_index
from phalanx.errors import ConfigError

USER1 = HOSTS.index("User1")


@reward
def few_sessions(turn: Any) -> float:
    return turn.reward - 0.5 * count(turn.held)


@reward
def no_restores(turn: Any) -> float:
    return -3.0 if turn.verb == RESTORE and turn.host == USER1 else 0.0


@reward
def lost_users(turn: Any) -> float:
    return 1.0 * has(turn.root, USER1) + 100 * turn.red_action + 0.001 * turn.turn


@reward
def of_text(turn: Any) -> float:
    return turn.reward + "much"


def played(given: object, turns: int = 25) -> tuple[Batch, np.ndarray]:
    batch = Batch(64, red_agent="b_line", horizon=50, seed=5, num_threads=1, reward=given)
    rng = np.random.default_rng(1)
    rows = [batch.play(rng.integers(145, size=64)).rewards.copy() for _ in range(turns)]
    return batch, np.array(rows)


def test_it_takes_the_place_of_the_scenario_s_and_the_score_stays() -> None:
    plain, scored = played(None)
    own, rewards = played(few_sessions)
    assert np.array_equal(plain.nets, own.nets)  # the game is the same, and its score
    assert (rewards[0] <= scored[0] - 0.5).all()  # red always holds User0
    held = np.bitwise_count(own.nets["sessions"])
    last = played(None)[1][-1]
    assert rewards[-1] == pytest.approx(last - 0.5 * held)


def test_it_knows_blue_s_action() -> None:
    batch = Batch(2, red_agent="sleep", seed=1, num_threads=1, reward=no_restores)
    for name, paid in (("Restore User1", -3), ("Restore User2", 0), ("Remove User1", 0)):
        actions = np.full(2, action_index(*name.split()))
        assert (batch.play(actions).rewards == paid).all(), name


def test_it_knows_what_red_did_and_holds() -> None:
    batch, rewards = played(lost_users, 20)
    own = batch.nets["root"] >> USER1 & 1
    assert np.floor(rewards[-1] % 100) == pytest.approx(own)
    assert (rewards[0] // 100 == RED_ACTIONS.index("DiscoverRemoteSystems")).all()
    assert rewards[-1] % 1 == pytest.approx(0.020)


def test_envs_report_the_challenge_s_score() -> None:
    envs = Cage2VectorEnv(2, red_agent="b_line", horizon=12, seed=3, reward=few_sessions)
    plain = Cage2VectorEnv(2, red_agent="b_line", horizon=12, seed=3)
    for one in (envs, plain):
        one.reset()
    total: Any = 0.0
    for _turn in range(12):
        _obs, paid, _, _, infos = envs.step(np.zeros(2, np.int64))
        usual = plain.step(np.zeros(2, np.int64))
        total = total + paid
    assert np.array_equal(infos["episode_return"], usual[4]["episode_return"])
    assert (total < infos["episode_return"]).all()


def test_a_turn_can_be_made_by_hand() -> None:
    numbers = [1] * (len(Turn._fields) - 1)
    assert few_sessions(Turn(-1.0, *numbers)) == pytest.approx(-1.5)
    assert VERBS[RESTORE] == "Restore"


def test_what_does_not_compile_is_said_in_one_line() -> None:
    with pytest.raises(ConfigError, match="reward of_text cannot be compiled") as refused:
        Batch(1, reward=of_text)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("given", ["nowhere:at_all", "os:sep", 7, lambda: 0])
def test_what_is_no_reward_is_refused(given: object) -> None:
    with pytest.raises(ConfigError):
        reward_of(given)
