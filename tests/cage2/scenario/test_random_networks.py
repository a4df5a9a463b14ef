"""Networks that are drawn by a seed."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from phalanx.cage2.rules.scenario import ALL_RED_AGENTS
from phalanx.cage2.scenario.attackers import check_attackers
from phalanx.cage2.scenario.original_form import in_original_form
from phalanx.cage2.scenario.random_networks import random_networks
from phalanx.cage2.scenario.random_spec import parse_random
from phalanx.cage2.scenario.read import read_scenario
from phalanx.cage2.scenario.several import open_scenarios
from phalanx.cage2.scenario.worlds import worlds_of
from phalanx.errors import ConfigError

WORDS = "random:seed=7,users=2-6,enterprise=2-5,op=1-4,networks=60"
WORDS_OF_NAMES = ("User", "Enterprise", "Op")


def test_the_same_words_are_the_same_networks_and_others_are_others() -> None:
    one = random_networks(parse_random(WORDS))
    assert one == random_networks(parse_random(WORDS))
    assert one != random_networks(parse_random(WORDS.replace("seed=7", "seed=8")))
    more = random_networks(parse_random(WORDS.replace("networks=60", "networks=70")))
    assert more[:60] == one
    assert random_networks(parse_random(f"{WORDS},network=41")) == (one[41],)


def test_this_network_is_the_same_for_ever() -> None:
    (network,) = open_scenarios("random:seed=1,network=3").members
    assert len(network.hosts) == 15
    points = [host.addresses[1:] for host in network.hosts if host.name.startswith("User")]
    assert [to[0][-1] for to in points[1:]] == ["0", "0", "0", "0", "1", "0", "0"]
    assert [len(host.image.ports) for host in network.hosts[-7:]] == [4, 4, 4, 5, 4, 4, 5]


def test_all_that_may_come_up_comes_up_and_nothing_else() -> None:
    networks = random_networks(parse_random(WORDS))
    counted = np.array(
        [
            [
                sum(name.startswith(word) for name in one.host_names)
                for word in ("User", "Ent", "Op")
            ]
            for one in networks
        ]
    )
    assert [set(column) for column in counted.T] == [{2, 3, 4, 5, 6}, {2, 3, 4, 5}, {1, 2, 3, 4}]
    assert max(len(one.hosts) for one in networks) <= parse_random(WORDS).room == 16
    images = {host.image.ports for one in networks for host in one.hosts if "User" in host.name}
    assert len(images) == 4


def test_every_attacker_finds_its_way_in_every_network() -> None:
    for network in random_networks(parse_random(WORDS)):
        check_attackers(network, ALL_RED_AGENTS)


def test_they_can_be_written_for_the_original(tmp_path: Path) -> None:
    for network in random_networks(parse_random(WORDS))[:10]:
        path = tmp_path / f"{network.name}.yaml"
        path.write_text(yaml.safe_dump(in_original_form(network), sort_keys=False))
        ours, theirs = worlds_of([network]), worlds_of([read_scenario(path)])
        for field in ours.dtype.names or ():
            assert np.array_equal(ours[field], theirs[field]), field


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("random:uesrs=3", "did you mean users"),
        ("random:users", "give users once, with a value"),
        ("random:users=3,users=4", "give users once"),
        ("random:users=1-4", "users must be a whole number from 2 to 48, got 1"),
        ("random:users=5-3", "users must go from less to more, got 5-3"),
        ("random:users=three", "got three"),
        ("random:users=-3", "users must be a whole number"),
        ("random:seed=99999999999999999999", "seed must be a whole number"),
        ("random:networks=0", "networks must be a whole number from 1 to 10000"),
        ("random:users=48,enterprise=16", "networks of up to 69 hosts"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(words: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        open_scenarios(words)
    assert "\n" not in str(caught.value)
