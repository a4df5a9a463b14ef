"""A batch is its members played alone, whatever its size, order and number of threads."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.cage2 import Batch, Cage2Env, Cage2VectorEnv, action_index
from phalanx.cage2.rules.network import NETWORK
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, NUM_ACTIONS, NUM_HOSTS, RULE_SETS
from phalanx.cage2.saved_games import check_networks
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.cage2.settings import checked_horizon, checked_threads, red_agent_weights
from phalanx.errors import ActionError, ConfigError
from tests.cage2.game import ALL, Game, names

some_settings = st.fixed_dictionaries(
    {
        "red_agent": st.sampled_from(
            [*ALL_RED_AGENTS, "b_line=0.3,meander=0.6,sleep=0.1", "b_line=0.3,coin=0.7"]
        ),
        "rules": st.sampled_from(RULE_SETS),
        "horizon": st.integers(1, 40),
        "observation": st.sampled_from(["bits", "history", "memory", "belief"]),
        "seed": st.integers(0, 2**64 - 1),
        "same_step": st.booleans(),
    }
)


Turns = list[dict[str, Any]]


def play(batch: Batch, actions: Any) -> Turns:
    """Everything that the turns show, copied; rows that are said to be old are blanked."""
    turns = []
    for row in actions:
        keep = {name: value.copy() for name, value in batch.play(row)._asdict().items()}
        keep["returns"][~keep["truncated"]] = 0
        keep["final_obs"][~keep["truncated"] | (not batch.same_step)] = 0
        turns.append(keep)
    return turns


def rows(turns: Turns, chosen: Any) -> Turns:
    return [{name: value[chosen] for name, value in turn.items()} for turn in turns]


def same(one: Turns, other: Turns) -> bool:
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(a[name], b[name]) for a, b in pairs for name in a)


@settings(max_examples=30, deadline=None)
@given(some_settings, st.integers(1, 12), st.integers(1, 60), st.data())
def test_a_batch_is_its_members_played_alone(
    config: dict[str, Any], size: int, turns: int, data: Any
) -> None:
    member = data.draw(st.integers(0, size - 1))
    actions = np.random.default_rng(turns).integers(NUM_ACTIONS, size=(turns, size))
    whole = play(Batch(size, **config), actions)
    alone = play(Batch(1, first_index=member, **config), actions[:, member : member + 1])
    assert same(rows(whole, [member]), alone)


@settings(max_examples=15, deadline=None)
@given(some_settings, st.integers(2, 5))
def test_the_number_of_threads_changes_nothing(config: dict[str, Any], threads: int) -> None:
    actions = np.random.default_rng(0).integers(NUM_ACTIONS, size=(50, 37))
    one = play(Batch(37, num_threads=1, **config), actions)
    several = play(Batch(37, num_threads=threads, **config), actions)
    assert same(one, several)


@settings(max_examples=15, deadline=None)
@given(some_settings, st.integers(1, 20))
def test_the_horizon_never_changes_the_play(config: dict[str, Any], turns: int) -> None:
    """Only when it ends, and in history what share of it is gone."""
    actions = np.random.default_rng(turns).integers(NUM_ACTIONS, size=(turns, 5))
    shorter, longer = (
        play(
            Batch(5, num_threads=1, **{**config, "observation": "bits", "horizon": horizon}),
            actions,
        )
        for horizon in (turns + 1, 90)
    )
    assert same(shorter, longer)


@settings(max_examples=20, deadline=None)
@given(some_settings, st.integers(0, 30), st.integers(1, 30))
def test_a_saved_batch_continues_identically(
    config: dict[str, Any], before: int, after: int
) -> None:
    actions = np.random.default_rng(1).integers(NUM_ACTIONS, size=(before + after, 9))
    batch = Batch(9, **config)
    play(batch, actions[:before])
    saved = batch.save()
    first = play(batch, actions[before:])
    other = Batch(9, **{**config, "seed": 0})
    other.restore(saved)
    assert same(first, play(other, actions[before:]))


@settings(max_examples=20, deadline=None)
@given(some_settings, st.permutations(range(7)))
def test_networks_may_change_places(config: dict[str, Any], order: list[int]) -> None:
    actions = np.random.default_rng(2).integers(NUM_ACTIONS, size=(30, 7))
    batch, shuffled = Batch(7, **config), Batch(7, **config)
    shuffled.nets[:] = batch.nets[order]
    assert same(rows(play(batch, actions), order), play(shuffled, actions[:, order]))


def test_restoring_shows_the_observation_at_which_it_was_saved() -> None:
    for observation in ("bits", "history"):
        batch = Batch(16, red_agent="meander", observation=observation, seed=3)
        actions = np.random.default_rng(3).integers(NUM_ACTIONS, size=(33, 16))
        play(batch, actions)
        saved, obs = batch.save(), batch.shown.obs.copy()
        truth = batch.shown.access.copy()
        play(batch, actions)
        batch.restore(saved)
        assert np.array_equal(batch.shown.obs, obs)
        assert np.array_equal(batch.shown.access, truth)


def test_the_two_ways_of_beginning_anew_give_the_same_episodes() -> None:
    actions = np.random.default_rng(4).integers(NUM_ACTIONS, size=(20, 5))
    same_step = Batch(5, red_agent="meander", horizon=10, seed=1)
    next_step = Batch(5, red_agent="meander", horizon=10, seed=1, same_step=False)
    rewards: list[Any] = [[], []]
    for turn in range(20):
        rewards[0].append(same_step.play(actions[turn]).rewards.copy())
        if turn == 10:
            shown = next_step.play(actions[0])  # ignored: the episode begins
            assert not shown.obs.any()
            assert not shown.truncated.any()
            assert not shown.rewards.any()
        shown = next_step.play(actions[turn])
        rewards[1].append(shown.rewards.copy())
        assert shown.truncated.all() == (turn in (9, 19))
    assert np.array_equal(*rewards)


def test_the_truth_is_that_of_the_records() -> None:
    batch = Batch(64, red_agent="meander", seed=8, horizon=1000)
    random = np.random.default_rng(8)
    hosts = np.arange(13)
    held = batch.nets["sessions"].copy()
    for _ in range(120):
        actions = random.integers(NUM_ACTIONS, size=64)
        shown = batch.play(actions)
        assert np.array_equal(shown.infected_before, held)
        restored = np.where(actions >= 132, actions - 132, 8)  # User0 stays
        lost = held & ~shown.infected_after
        assert not (lost & ~(1 << restored) & (((actions - 15) < 0) | (actions > 27))).any()
        held = batch.nets["sessions"].copy()
        assert np.array_equal(shown.access > 0, held[:, None] >> hosts & 1)
        assert np.array_equal(shown.access == 2, batch.nets["root"][:, None] >> hosts & 1)
        assert np.array_equal(shown.known, batch.nets["known"][:, None] >> hosts & 1)
        assert np.array_equal(shown.scanned, batch.nets["scanned"][:, None] >> hosts & 1)


def test_both_kinds_of_numbers_show_the_same_bits() -> None:
    actions = np.random.default_rng(5).integers(NUM_ACTIONS, size=(50, 20))
    small = Batch(20, red_agent="meander", dtype="uint8")
    large = Batch(20, red_agent="meander", dtype="float32")
    for row in actions:
        assert np.array_equal(small.play(row).obs, large.play(row).obs)
    assert small.shown.obs.dtype == np.uint8


def test_returns_are_exact_sums_of_tenths() -> None:
    batch = Batch(200, red_agent="b_line", horizon=100, seed=2)
    tenths = np.zeros(200, np.int64)
    for row in np.random.default_rng(6).integers(NUM_ACTIONS, size=(100, 200)):
        tenths += np.rint(batch.play(row).rewards * 10).astype(np.int64)
        assert not np.signbit(batch.shown.rewards[batch.shown.rewards == 0]).any()
    assert np.array_equal(batch.shown.returns, tenths / 10)


def test_each_network_can_have_its_own_attacker() -> None:
    batch = Batch(3, red_agent=["sleep", "B_lineAgent", "RedMeanderAgent"])
    assert batch.nets["red"].tolist() == [2, 0, 1]
    batch.begin()
    assert batch.nets["red"].tolist() == [2, 0, 1]


def test_only_chosen_networks_begin_anew() -> None:
    batch = Batch(4, red_agent="meander", horizon=100)
    for _ in range(5):
        batch.play(np.zeros(4, np.int64))
    batch.begin(np.array([True, False, False, True]))
    assert batch.nets["turn"].tolist() == [0, 5, 5, 0]
    assert batch.nets["episode"].tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (np.array([0, 145, 0]), "action 145 of environment 1"),
        (np.array([0, 0, -1]), "action -1 of environment 2"),
        (np.array([0, 0]), r"shape \(3,\)"),
        (np.zeros((3, 1), np.int64), r"shape \(3,\)"),
        (np.zeros(3), "dtype float64"),
        (np.zeros(3, np.bool_), "dtype bool"),
    ],
)
def test_bad_actions_are_refused_and_nothing_is_played(actions: Any, message: str) -> None:
    batch = Batch(3)
    before = batch.nets.copy()
    with pytest.raises(ActionError, match=message):
        batch.play(actions)
    assert np.array_equal(batch.nets, before)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"red_agent": "b_lne"}, "choose from b_line, meander, sleep, .*; did you mean b_line"),
        ({"red_agent": "b_line=0.5,meander=0.6"}, "sum to 1"),
        ({"red_agent": "b_line=1.5,meander=-0.5"}, "0 or more"),
        ({"red_agent": "b_line=x,meander=1"}, "'x'"),
        ({"red_agent": "b_line,meander"}, "say how often each attacks"),
        ({"red_agent": ["sleep"]}, "got 1 red agents for 2"),
        ({"red_agent": {}}, "sum to 1"),
        ({"red_agent": {"meander": "x"}}, "not a number"),
        ({"red_agent": None}, "unknown red agent"),
        ({"red_agent": "sleep!!"}, "unknown red agent"),
        ({"first_index": -1}, "first_index"),
        ({"rules": "2.1-leader"}, "2.1-final, 2.1-leaderboard; did you mean 2.1-leaderboard"),
        ({"horizon": 0}, "from 1 to 10000, got 0"),
        ({"horizon": 10_001}, "from 1 to 10000"),
        ({"observation": "bit"}, "did you mean bits"),
        ({"dtype": "float64"}, "unknown dtype"),
        ({"dtype": "uint8", "observation": "history"}, "float32"),
        ({"seed": -1}, "seed must be"),
        ({"seed": 1.5}, "seed must be"),
        ({"horizon": 2.5}, "whole number"),
        ({"horizon": "long"}, "whole number"),
        ({"dtype": "flot32"}, "did you mean float32"),
        ({"num_threads": 0}, "num_threads must be"),
        ({"num_threads": "many"}, "num_threads must be"),
    ],
)
def test_settings_that_cannot_work_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Batch(2, **config)


def test_a_batch_has_at_least_one_network() -> None:
    for wrong in (0, -3, 2.5, "4", True):
        with pytest.raises(ConfigError, match="num_envs must be a whole number, 1 or more"):
            Batch(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other",
    [
        {"num_envs": 3},
        {"horizon": 5},
        {"rules": "2.1-final"},
        {"red_agent": "meander"},
        {"red_agent": "b_line=0.5,meander=0.5"},
        {"observation": "history"},
    ],
)
def test_a_saved_state_of_other_settings_is_refused(other: dict[str, Any]) -> None:
    batch = Batch(2)
    before = batch.nets.copy()
    with pytest.raises(ConfigError, match="restore into a batch"):
        batch.restore(Batch(**{"num_envs": 2, **other}).save())
    with pytest.raises(ConfigError, match="restore into a batch"):
        batch.restore({})
    assert np.array_equal(batch.nets, before)


@pytest.mark.parametrize("observation", ["bits", "memory"])
def test_saved_memories_have_the_fields_that_they_always_had(observation: str) -> None:
    saved = Batch(2, observation=observation).save()["memories"]
    assert saved.shape == (2 if observation == "memory" else 1,)
    assert saved.dtype.itemsize == 150
    assert saved.dtype.names == (
        "turn", "scan_turn", "exploit_turn", "decoys", "last_action", "remove_turn",
        "restore_turn", "exploits", "decoys_found", "style",
    )  # fmt: skip


def test_a_restored_batch_shows_who_was_infected() -> None:
    batch = Batch(50, red_agent="meander", seed=2)
    for actions in np.random.default_rng(1).integers(NUM_ACTIONS, size=(60, 50)):
        batch.play(actions)
    saved = batch.save()
    held = batch.shown.infected_before.copy(), batch.shown.infected_after.copy()
    other = Batch(50, red_agent="meander")
    other.restore(saved)
    assert np.array_equal(held, (other.shown.infected_before, other.shown.infected_after))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, ">i4", np.uint64])
def test_actions_of_any_whole_kind_are_played_alike(dtype: Any) -> None:
    one, other = Batch(64, num_threads=2), Batch(64, num_threads=2)
    actions = np.random.default_rng(1).integers(100, size=(10, 128))
    for row in actions:
        one.play(row[::2].astype(dtype))
        other.play(row[::2])
    assert np.array_equal(one.nets, other.nets)


@pytest.mark.parametrize("chosen", [np.ones(2, np.bool_), np.ones(3), [True] * 3])
def test_who_begins_anew_must_be_said_for_every_network(chosen: Any) -> None:
    with pytest.raises(ConfigError, match=r"bool array of shape \(3,\)"):
        Batch(3).begin(chosen)


def test_nothing_of_an_episode_reaches_the_next() -> None:
    batch = Batch(1, red_agent="meander")
    first = batch.nets.copy()
    fields = set(NETWORK.names or ())
    for name in fields - {"stream", "episode", "horizon", "red_plan", "rules", "world"}:
        batch.nets[name] = 5
    batch.begin()
    for name in fields - {"episode"}:
        assert np.array_equal(batch.nets[name], first[name]), name


def test_infected_after_is_taken_between_the_two_moves() -> None:
    game = Game().session("User1", "removable").session("User2", "root").remembers("User3", 25)
    batch = Batch(1, red_agent="meander")
    game.red_will("exploit", "User3").put_into(batch)
    shown = batch.play(np.array([action_index("Remove", "User1")]))
    assert names(shown.infected_before[0]) == {"User0", "User1", "User2"}
    assert names(shown.infected_after[0]) == {"User0", "User2"}
    assert names(batch.nets["sessions"][0]) == {"User0", "User2", "User3"}


def test_a_beginning_shows_user0_only() -> None:
    batch = Batch(1, red_agent="meander")
    batch.nets["sessions"] = ALL
    batch.play(np.zeros(1, np.int64))
    batch.begin()
    shown = batch.shown
    assert names(shown.infected_before[0]) == names(shown.infected_after[0]) == {"User0"}


def test_the_rule_set_arrives() -> None:
    for number, rules in enumerate(RULE_SETS):
        batches = (
            Batch(2, rules=rules),
            Cage2Env(rules=rules).batch,
            Cage2VectorEnv(2, rules=rules).batch,
        )
        assert all(set(batch.nets["rules"].tolist()) == {number} for batch in batches)


def test_seed_and_first_index_arrive() -> None:
    streams = Cage2VectorEnv(4, seed=9).batch.nets["stream"].tolist()
    later = Cage2VectorEnv(2, seed=9, first_index=2).batch.nets["stream"].tolist()
    assert later == streams[2:]
    assert set(streams).isdisjoint(Cage2VectorEnv(4, seed=8).batch.nets["stream"].tolist())


def test_limits_of_settings() -> None:
    assert checked_horizon(10_000) == 10_000
    assert checked_threads(8, 3) == 3
    with pytest.raises(ConfigError, match="twice"):
        red_agent_weights({"b_line": 0.5, "bline": 0.5})
    with pytest.raises(ConfigError, match="sum to 1"):
        red_agent_weights("b_line=0.5,meander=0.49")


def test_a_saved_set_of_hosts_holds_hosts_only() -> None:
    nets = Batch(2).nets
    nets["known"] = (1 << NUM_HOSTS) - 1
    check_networks(nets, CAGE2_WORLDS)
    nets["known"][1] = 1 << NUM_HOSTS
    with pytest.raises(ConfigError, match="known of network 1"):
        check_networks(nets, CAGE2_WORLDS)
