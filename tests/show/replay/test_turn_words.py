"""Both moves in words, on states built by hand, where what happens is known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from phalanx.cage2 import ALL_RED_AGENTS, HOSTS, RULE_SETS
from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.network import LOADED
from phalanx.cage2.rules.scenario import EXPLOITS, NUM_ACTIONS, action_index
from phalanx.show.replay.trajectory import Recorder
from tests.cage2.game import Game


def told(
    game: Game, blue: str = "Sleep", exploit: str = "EternalBlue", detected: bool = True
) -> dict[str, Any]:
    """A turn of the game, as a trajectory has it."""
    dice = np.array([[LOADED, LOADED + EXPLOITS.index(exploit), 0 if detected else LOADED - 1]])
    recorder = Recorder(game.nets, policy="mine", seed=0, prior=None)
    recorder.play(action_index(*blue.split()), dice=dice)
    return {name: of[0] for name, of in recorder.as_play()["turns"].items() if of is not None}


def knowing(port: int) -> Game:
    """Red has found a port of Enterprise1."""
    return Game().remembers("Enterprise1", port)


def reached() -> Game:
    return Game(rules="2.1-leaderboard").session("Enterprise0", "root")


@pytest.mark.parametrize(
    ("game", "exploit", "detected", "says"),
    [
        (lambda: knowing(443), "HTTPSRFI", True, "succeeds, detected"),
        (lambda: knowing(443), "HTTPSRFI", False, "succeeds, seen as a scan"),
        (lambda: knowing(3389), "BlueKeep", True, "succeeds as root, detected"),
        (lambda: knowing(22), "SSHBruteForce", False, "succeeds, detected"),
        (
            lambda: knowing(21).decoy("Enterprise1", "Femitter"),
            "FTPDirectoryTraversal",
            True,
            "fails, met by the decoy Femitter, seen as a scan",
        ),
        (
            lambda: knowing(21),
            "FTPDirectoryTraversal",
            True,
            "fails, nothing answers, unseen",
        ),
    ],
)
def test_an_exploit_is_told_by_its_name_and_what_came_of_it(
    game: Callable[[], Game], exploit: str, detected: bool, says: str
) -> None:
    turn = told(game().red_will("exploit", "Enterprise1"), "Sleep", exploit, detected)
    assert turn["red_words"] == f"Meander exploits Enterprise1 by {exploit}: {says}"
    assert turn["red_kind"] == "exploit"
    assert turn["red_host"] == HOSTS.index("Enterprise1")
    assert turn["red_success"] == str(int(says.startswith("succeeds")))


def test_why_an_exploit_fails() -> None:
    knows_nothing = Game().red_will("exploit", "Enterprise1")
    assert told(knows_nothing)["red_words"] == (
        "Meander tries to exploit Enterprise1: fails, it knows no open port"
    )
    far = Game().remembers("Op_Host1", 22).red_will("exploit", "Op_Host1")
    assert told(far, exploit="SSHBruteForce")["red_words"] == (
        "Meander exploits Op_Host1 by SSHBruteForce: fails, out of reach, unseen"
    )
    locked = reached().remembers("Defender", 22).red_will("exploit", "Defender")
    assert told(locked, exploit="SSHBruteForce")["red_words"] == (
        "Meander exploits Defender by SSHBruteForce: fails, no account to guess, detected"
    )
    spoiled = reached().remembers("User3", 25).red_will("exploit", "User3")
    spoiled.nets["restored"] = 1 << HOSTS.index("User3")
    assert told(spoiled, exploit="HarakaRCE")["red_words"] == (
        "Meander exploits User3 by HarakaRCE: fails, spoiled by a Restore, seen as a scan"
    )


def test_who_is_thrown_out_and_comes_back_in_the_same_turn_is_root_again() -> None:
    game = Game().session("Enterprise1", "root").remembers("Enterprise1", 3389)
    turn = told(game.red_will("exploit", "Enterprise1"), "Restore Enterprise1", "BlueKeep")
    assert turn["blue_words"] == "restores Enterprise1, where red was root"
    assert turn["red_words"].endswith("by BlueKeep: succeeds as root, detected")
    still = Game().session("Enterprise1", "root").remembers("Enterprise1", 3389)
    turn = told(still.red_will("exploit", "Enterprise1"), "Sleep", "BlueKeep")
    assert turn["red_words"].endswith("by BlueKeep: succeeds, detected")


@pytest.mark.parametrize(
    ("game", "says"),
    [
        (lambda: Game().red_will("sweep", "User"), "scans the User subnet: finds 4 hosts"),
        (
            lambda: Game().red_will("sweep", "Operational"),
            "scans the Operational subnet: fails, out of reach",
        ),
        (lambda: Game().red_will("scan", "User2"), "scans User2: detected"),
        (lambda: Game().red_will("scan", "Op_Host0"), "scans Op_Host0: out of reach, unseen"),
        (
            lambda: Game().session("User1", "stuck").red_will("escalate", "User1"),
            "escalates on User1: becomes root, finds Enterprise1",
        ),
        (
            lambda: Game().session("User1", "root").red_will("escalate", "User1"),
            "escalates on User1: it is root already, finds Enterprise1",
        ),
        (
            lambda: Game().red_will("escalate", "User1"),
            "escalates on User1: fails, it has no session there",
        ),
        (
            lambda: Game().red_will("impact"),
            "tries to stop the operational service: fails, it has no session on Op_Server0",
        ),
        (
            lambda: Game().session("Op_Server0", "root").red_will("impact"),
            "tries to stop the operational service: fails, it does not know its name",
        ),
        (
            lambda: Game().session("Op_Server0", "root").having(service=7).red_will("impact"),
            "stops the operational service",
        ),
        (
            lambda: Game().session("Op_Server0", "root").having(service=4).red_will("impact"),
            "stops the operational service, which stands still already",
        ),
        (
            lambda: (
                Game()
                .session("Op_Server0", "root")
                .having(service=7, restored=1 << HOSTS.index("Op_Server0"))
                .red_will("impact")
            ),
            "tries to stop the operational service: a Restore keeps it running",
        ),
        (lambda: Game("sleep"), "sleeps"),
    ],
)
def test_reds_other_moves(game: Callable[[], Game], says: str) -> None:
    turn = told(game())
    assert turn["red_words"] == f"{'Sleep' if says == 'sleeps' else 'Meander'} {says}"


def test_a_decoy_that_is_placed_hides_a_scan_of_its_host() -> None:
    turn = told(Game().red_will("scan", "Op_Server0"), "DecoyApache Op_Server0")
    assert turn["red_words"].endswith("scans Op_Server0: out of reach, unseen")
    turn = told(reached().red_will("scan", "Op_Server0"), "DecoyApache Op_Server0")
    assert turn["red_words"].endswith("scans Op_Server0: unseen")
    assert turn["blue_words"] == "places a decoy Apache on Op_Server0"


@pytest.mark.parametrize(
    ("game", "blue", "says"),
    [
        (Game, "Sleep", "sleeps"),
        (Game, "Monitor", "monitors"),
        (Game, "Restore User2", "restores User2, where red was not"),
        (
            lambda: Game().session("User2", "removable"),
            "Restore User2",
            "restores User2, where red was user",
        ),
        (Game, "Remove User2", "removes red from User2: it was not there"),
        (
            lambda: Game().session("User2", "removable"),
            "Remove User2",
            "removes red from User2: its shell is stopped",
        ),
        (
            lambda: Game().session("User2", "stuck"),
            "Remove User2",
            "removes red from User2: user stays",
        ),
        (
            lambda: Game().session("User2", "root"),
            "Remove User2",
            "removes red from User2: root stays",
        ),
        (Game, "Analyse User2", "analyses User2: nothing found"),
        (
            lambda: Game().having(files=1 << HOSTS.index("User2")),
            "Analyse User2",
            "analyses User2: malware found",
        ),
        (Game, "DecoyTomcat User2", "places a decoy Tomcat on User2"),
        (
            lambda: Game().decoy("User2", "Tomcat"),
            "DecoyTomcat User2",
            "tries a decoy Tomcat on User2: there is no room for it",
        ),
    ],
)
def test_blues_moves(game: Callable[[], Game], blue: str, says: str) -> None:
    turn = told(game().having(red=ALL_RED_AGENTS.index("sleep")), blue)
    assert turn["blue_words"] == says
    assert turn["blue_host"] == (HOSTS.index(blue.split()[1]) if " " in blue else -1)


@pytest.mark.parametrize("red_agent", ALL_RED_AGENTS)
@pytest.mark.parametrize("rules", RULE_SETS)
def test_nothing_is_left_without_words(red_agent: str, rules: str) -> None:
    for seed in range(4):
        batch = Batch(1, red_agent=red_agent, rules=rules, seed=seed)
        recorder = Recorder(batch.nets, policy="anything", seed=seed, prior=None)
        for action in np.random.default_rng(seed).integers(NUM_ACTIONS, size=100):
            recorder.play(int(action))
        turns = recorder.as_play()["turns"]
        for blue, red in zip(turns["blue_words"], turns["red_words"], strict=True):
            assert blue
            assert red
            assert "  " not in blue + red
