"""Many networks in one batch: each episode draws its own, and plays it as if it were alone."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.masks import useful_actions_in
from phalanx.cage2.rules.scenario import ANALYSE, useful_actions
from phalanx.cage2.scenario.features import POINTS_TO, SAME_SUBNET
from phalanx.cage2.scenario.read import CAGE2, CAGE2_WORLDS, read_scenario
from phalanx.cage2.scenario.several import Scenarios, open_scenarios
from phalanx.cage2.scenario.worlds import worlds_of
from phalanx.errors import ConfigError

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SMALL = "random:seed=5,users=2-5,enterprise=3,op=2-4,networks=20"  # 13 hosts, as CAGE-2 has


def test_what_can_help_in_cage2_is_what_the_challenge_s_tables_say() -> None:
    assert np.array_equal(useful_actions_in(CAGE2_WORLDS), useful_actions())


def test_each_episode_draws_its_network_by_its_own_dice() -> None:
    whole = Batch(12, scenario=SMALL, red_agent="meander", horizon=3, seed=4, num_threads=1)
    part = Batch(
        4, scenario=SMALL, red_agent="meander", horizon=3, seed=4, first_index=6, num_threads=1
    )
    drawn = []
    for _episode in range(6):
        assert np.array_equal(whole.nets["world"][6:10], part.nets["world"])
        drawn += whole.nets["world"].tolist()
        for _turn in range(3):
            whole.play(np.zeros(12, np.int64))
            part.play(np.zeros(4, np.int64))
        assert np.array_equal(whole.shown.obs[6:10], part.shown.obs)
    assert len(set(drawn)) > 15
    assert [whole.scenario_of(i) for i in range(12)] == [
        whole.scenarios.members[k] for k in whole.nets["world"]
    ]


@pytest.mark.parametrize("observation", ["memory", "belief"])
def test_a_network_among_many_plays_as_it_plays_alone(observation: str) -> None:
    settings: dict[str, Any] = {"red_agent": "b_line=0.5,meander=0.5", "horizon": 12, "seed": 9}
    many = Batch(6, scenario=SMALL, observation=observation, num_threads=1, **settings)
    rng = np.random.default_rng(1)
    masks = many.action_masks()
    alone = [
        Batch(
            1,
            scenario=Scenarios("one", (many.scenario_of(i),), 13),
            by_host=True,
            observation=observation,
            first_index=i,
            num_threads=1,
            **settings,
        )
        for i in range(6)
    ]
    for _turn in range(11):
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in masks])
        many.play(actions)
        for i, one in enumerate(alone):
            one.play(actions[i : i + 1])
            assert np.array_equal(one.shown.obs[0], many.shown.obs[i])
            assert one.shown.rewards[0] == many.shown.rewards[i]
        masks = many.action_masks()
    assert many.shown.obs.min() >= 0
    assert many.shown.obs.max() <= 1
    if many.minds.beliefs is not None:
        assert not many.minds.beliefs.standing["surprises"].any()


def test_hosts_that_are_not_there_are_masked_and_change_nothing() -> None:
    fewer = read_scenario(SCENARIOS / "fewer_users.yaml")
    batch = Batch(40, scenario=[fewer, CAGE2], red_agent="meander", seed=1, num_threads=1)
    there = np.array([len(batch.scenario_of(i).hosts) for i in range(40)])
    hosts = batch.worlds["host_of_action"][0, : batch.num_actions]
    masks, small = batch.action_masks(), len(fewer.hosts)
    assert {*there} == {small, 13}
    absent = hosts >= small
    assert not masks[there == small][:, absent].any()
    assert masks[there == 13][:, absent].any()
    assert batch.action_name(int(np.flatnonzero(absent)[0]), int(np.argmin(there))).endswith(
        f" {small}"
    )
    analyse = int(batch.worlds["action_of"][0, ANALYSE, 12])  # one of them, or User4
    batch.play(np.full(40, analyse))
    assert (batch.shown.rewards == 0).all()
    assert (batch.shown.obs[there == small][:, 4 * small :] == 0).all()


def test_features_and_neighbours_are_those_of_the_plan() -> None:
    batch = Batch(30, scenario=SMALL, seed=2, num_threads=1, observation="memory")
    i = 7
    network, features, adjacency = batch.scenario_of(i), batch.host_features[i], batch.adjacency[i]
    names = network.host_names
    assert features[:, 0].tolist() == [1.0] * len(names) + [0.0] * (13 - len(names))
    assert features[names.index(network.start), 1] == 1
    assert np.array_equal(batch.shown.obs[i, -features.size :], features.ravel())
    user, other = names.index("User0"), names.index("User1")
    assert adjacency[user, other] == SAME_SUBNET
    assert adjacency[user, user] == 0
    pointed = network.host("User1").addresses[1]
    assert adjacency[other, names.index(pointed)] == POINTS_TO
    assert not adjacency[len(names) :].any()


def test_a_folder_of_files_is_many_networks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has 0 scenarios"):
        open_scenarios(tmp_path)
    for name in ("fewer_users", "other_values"):
        (tmp_path / f"{name}.yaml").write_text((SCENARIOS / f"{name}.yaml").read_text())
    found = open_scenarios(tmp_path)
    assert [one.name for one in found.members] == ["fewer_users", "other_values"]
    assert found.room == 13


def test_networks_whose_actions_count_otherwise_are_no_batch() -> None:
    turned = dataclasses.replace(CAGE2, verbs=("Monitor", *CAGE2.verbs[2:], "Sleep"))
    with pytest.raises(ConfigError, match="cannot be played in one batch"):
        worlds_of([CAGE2, turned])


def test_many_networks_have_no_single_plan() -> None:
    batch = Batch(2, scenario=SMALL, num_threads=1)
    with pytest.raises(ConfigError, match=r"ask for scenario_of\(i\)"):
        _plan = batch.scenario


def test_many_networks_are_saved_and_go_on() -> None:
    settings: dict[str, Any] = {
        "scenario": SMALL,
        "red_agent": "b_line",
        "horizon": 5,
        "num_threads": 1,
    }
    one, other = Batch(8, seed=3, **settings), Batch(8, seed=4, **settings)
    for _turn in range(7):
        one.play(np.zeros(8, np.int64))
    other.restore(one.save())
    for _turn in range(9):
        one.play(np.zeros(8, np.int64))
        other.play(np.zeros(8, np.int64))
        assert np.array_equal(one.shown.obs, other.shown.obs)
    assert np.array_equal(one.nets, other.nets)
