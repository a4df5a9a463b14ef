"""Scenario files as the tables that rules look up."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from phalanx.cage2.rules import scenario as cage2
from phalanx.cage2.rules.hidden import PORT_SPOTS
from phalanx.cage2.rules.observation import OBS_SIZES
from phalanx.cage2.rules.sizes import observation_size
from phalanx.cage2.scenario.original_form import in_original_form
from phalanx.cage2.scenario.read import CAGE2, CAGE2_WORLDS, read_scenario
from phalanx.cage2.scenario.worlds import worlds_of
from phalanx.cage2.settings import OBSERVATIONS

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NAMES = sorted(path.stem for path in SCENARIOS.glob("*.yaml"))
WORLD = CAGE2_WORLDS[0]


def test_the_file_of_cage2_names_what_the_challenge_has() -> None:
    assert CAGE2.host_names == cage2.HOSTS
    assert CAGE2.subnet_names == cage2.SUBNETS
    numbers = range(cage2.NUM_ACTIONS)
    assert [CAGE2.action_name(a) for a in numbers] == [cage2.action_name(a) for a in numbers]
    assert CAGE2.action_index("Restore", "User3") == cage2.action_index("Restore", "User3")


def test_ports_and_decoys_are_those_of_the_tables_of_cage2() -> None:
    for host in range(cage2.NUM_HOSTS):
        for decoys in range(256):
            fits = int(WORLD["fits"][host]) & ~int(cage2.BLOCKED[decoys])
            open_ports = int(WORLD["ports"][host]) | int(cage2.OPENED[decoys])
            assert fits == cage2.PLACEABLE[host, decoys]
            assert open_ports == cage2.LISTENING[host, decoys]
            count = open_ports.bit_count() + int(WORLD["other_ports"][host])
            assert count == cage2.NUM_LISTENING[host, decoys]
    assert np.array_equal(WORLD["meets"], cage2.MEETS)


def test_prices_of_a_set_of_hosts_are_those_of_its_members() -> None:
    for first in range(0, 16, 4):
        for held in range(1 << 4):
            members = [first + k for k in range(4) if held >> k & 1]
            there = [host for host in members if host < cage2.NUM_HOSTS]
            assert WORLD["prices"][first // 4, held] == cage2.ROOT_COST[there].sum()


def test_observations_have_the_sizes_that_they_had() -> None:
    assert WORLD["num_port_spots"] == len(PORT_SPOTS)
    assert WORLD["num_decoy_spots"] == len(cage2.DECOY_SPOTS)
    for kind, name in enumerate(OBSERVATIONS):
        assert observation_size(kind, CAGE2_WORLDS) == OBS_SIZES[name]


@pytest.mark.parametrize("name", [*NAMES, "cage2"])
def test_the_original_s_form_says_the_same(name: str, tmp_path: Path) -> None:
    source = "cage2" if name == "cage2" else SCENARIOS / f"{name}.yaml"
    scenario = read_scenario(source)
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump(in_original_form(scenario), sort_keys=False))
    again = read_scenario(path)
    assert again.actions == scenario.actions
    ours, theirs = worlds_of([scenario]), worlds_of([again])
    for field in ours.dtype.names or ():
        assert np.array_equal(ours[field], theirs[field]), field


def test_actions_of_a_larger_network_count_its_hosts() -> None:
    thirty = read_scenario(SCENARIOS / "thirty_hosts.yaml")
    assert len(thirty.actions) == 2 + 11 * 30
    assert thirty.action_name(2 + 30 + 29) == f"Remove {thirty.host_names[29]}"
    world = worlds_of([thirty])[0]
    assert world["num_actions"] == 332
    assert world["host_of_action"][2 + 30 + 29] == 29


def test_networks_of_different_sizes_get_numbers_in_common() -> None:
    fewer, more = (read_scenario(SCENARIOS / f"{n}.yaml") for n in ("fewer_users", "more_users"))
    worlds = worlds_of([fewer, more])
    assert worlds["num_actions"].tolist() == [2 + 11 * 17] * 2
    assert worlds["meets"].shape == (2, 17, 8)
    assert not worlds["fits"][0, 10:].any()  # hosts that are not there take no decoys


def green_targets(tmp_path: Path, **changes: object) -> list[int]:
    """What green may scan in CAGE-2 in the original's form, its Green changed so."""
    content = in_original_form(CAGE2)
    content["Agents"]["Green"].update(changes)
    (tmp_path / "net.yaml").write_text(yaml.safe_dump(content))
    world = worlds_of([read_scenario(tmp_path / "net.yaml")])[0]
    return [int(host) for host in world["green_targets"]]


def test_green_scans_by_name_what_the_original_lets_it(tmp_path: Path) -> None:
    everything = [CAGE2.host_names.index(name) for name in cage2.GREEN_HOSTS]
    assert [int(host) for host in WORLD["green_targets"]] == everything
    assert green_targets(tmp_path) == everything
    nothing = [cage2.NO_HOST] * len(everything)
    assert green_targets(tmp_path, actions=["Sleep"]) == nothing
    assert green_targets(tmp_path, starting_sessions=[]) == nothing
    known = {"Hosts": {name: {"System info": "All"} for name in ("Defender", "User1")}}
    first = CAGE2.host_names.index("User1")
    assert green_targets(tmp_path, INT=known) == [-1, first, -1, -1, -1, -1, -1, -1]
