"""Attackers of the user's own in replays: what cannot be known of them is left out, and said."""

import random
from pathlib import Path
from typing import Any

import pytest

import phalanx
from phalanx.cage2.attack import attacker, first_host, subnet_of, sweep
from phalanx.cage2.attack.original_actions import DiscoverRemoteSystems, Sleep
from phalanx.cli.commands import main
from phalanx.errors import ActionError

MORE_USERS = str(Path(__file__).parent.parent.parent / "scenarios" / "more_users.yaml")
SWEEPER = """\
from phalanx.cage2.attack import *

@attacker
def sweeper(net, memory, die):
    memory[0] += 1
    return sweep(subnet_of(net, first_host(net))) if memory[0] % 2 else sleep()
"""


class Dicey:
    """Sleeps or sweeps by dice of its own, and counts what it was asked."""

    asked = 0

    def get_action(self, _observation: Any, action_space: dict[str, dict[Any, bool]]) -> object:
        Dicey.asked += 1
        (known,) = (one for one, is_known in action_space["subnet"].items() if is_known)
        return DiscoverRemoteSystems(subnet=known) if random.random() < 0.5 else Sleep()


@attacker
def fickle(net: Any, memory: Any, die: int) -> int:
    """Looks at other dice than its own."""
    return sweep(subnet_of(net, first_host(net))) if random.random() < 0.5 else 0


def test_one_from_a_file_is_shown_on_any_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(SWEEPER)
    words = f"replay react-restore --scenario {MORE_USERS} --horizon 8 --out {tmp_path}/it.html"
    assert main([*words.split(), "--red-agent", f"{tmp_path}/mine.py:sweeper"]) == 0
    said = capsys.readouterr()
    assert "react-restore against sweeper on more_users" in said.out
    assert "phalanx: The belief is left out: it expects phalanx's attackers, and" in said.err
    told = phalanx.replay(
        "react-restore", scenario=MORE_USERS, red_agent=f"{tmp_path}/mine.py:sweeper", horizon=8
    ).trajectory
    (play,) = told["plays"]
    assert play["states"]["belief"] is None
    assert len(play["notes"]) == 1
    words_of_red = play["turns"]["red_words"]
    assert words_of_red[0] == "Your attacker scans the User subnet: finds 8 hosts"
    assert words_of_red[1] == "Your attacker sleeps"


def test_in_cage2_the_belief_stays_and_what_if_is_said_to_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SWEEPER)
    told = phalanx.replay("champion", red_agent=f"{tmp_path}/mine.py:sweeper", horizon=6)
    (play,) = told.trajectory["plays"]
    assert play["states"]["belief"] is not None
    assert play["turns"]["what_if"] is None
    assert told.notes == [
        "What if is left out: games cannot be played on against sweeper, an attacker of your own."
    ]


def test_a_class_with_dice_of_its_own_is_asked_once_in_a_turn() -> None:
    Dicey.asked = 0
    told = phalanx.replay("champion", red_agent=Dicey, horizon=30, what_if=False)
    (play,) = told.trajectory["plays"]
    assert Dicey.asked == 30
    assert set(play["turns"]["red_kind"]) == {"sleep", "scan_subnet"}
    assert told.notes == [
        "Dicey is a class, whose memory and dice are its own: it may play another game when it is "
        "asked again."
    ]


def test_one_that_plays_otherwise_when_it_is_asked_again_is_refused() -> None:
    with pytest.raises(ActionError, match="fickle plays otherwise when it is asked again in turn"):
        phalanx.replay("react-restore", red_agent=fickle, horizon=100)
