"""Chances, within four standard errors of what the rules say."""

import numpy as np
import numpy.typing as npt
import pytest

from phalanx.cage2 import Batch
from phalanx.cage2.rules.batch_turn import LOG, allocate, begin_episodes, replay_turn
from phalanx.cage2.rules.mind import NO_MINDS
from phalanx.cage2.rules.network import LOADED, NETWORK, TRUE, seed_networks
from phalanx.cage2.rules.observation import NUM_BITS
from phalanx.cage2.rules.red import BEST_CHANCE, DETECTION_CHANCE
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, DRAWN, EXPLOITS, HOSTS, MEANDER
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.compiled.rule import records
from tests.cage2.game import ALL, Game, mask

DRAWS = 20_000


def within_four_errors(hits: int, chance: float, draws: int = DRAWS) -> bool:
    return abs(hits - chance * draws) <= 4 * (draws * chance * (1 - chance)) ** 0.5


def many(game: Game) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """The same state in 20 000 networks, one turn played with fair dice."""
    nets = records(DRAWS, NETWORK)
    nets[:] = game.nets[0]
    dice = np.random.default_rng(11).integers(0, LOADED, size=(DRAWS, 3))
    log = records(DRAWS, LOG)
    replay_turn(CAGE2_WORLDS, nets, np.ones(DRAWS, np.bool_), np.zeros(DRAWS, np.int64), dice, log)
    return nets, log


CHANCES = {  # without decoys, as red sees each image
    "User1": {"FTPDirectoryTraversal": 0.75, "SSHBruteForce": 0.25},
    "User2": {"EternalBlue": 0.75, "BlueKeep": 0.25},
    "User3": {"HarakaRCE": 0.75, "BlueKeep": 1 / 12, "HTTPRFI": 1 / 12, "HTTPSRFI": 1 / 12},
    "User4": {
        "HarakaRCE": 0.75,
        "SSHBruteForce": 1 / 16,
        "HTTPRFI": 1 / 16,
        "HTTPSRFI": 1 / 16,
        "SQLInjection": 1 / 16,
    },
    "Enterprise1": {
        "HTTPSRFI": 0.75,
        "EternalBlue": 1 / 16,
        "BlueKeep": 1 / 16,
        "HTTPRFI": 1 / 16,
        "SSHBruteForce": 1 / 16,
    },
    "Enterprise0": {"SSHBruteForce": 1.0},
}
PORTS = {
    "User1": (22, 21),
    "User2": (139, 3389),
    "User3": (80, 3389, 443, 25),
    "User4": (22, 80, 3390, 443, 25),
    "Enterprise1": (22, 3389, 139, 80, 443),
    "Enterprise0": (22,),
}


@pytest.mark.parametrize("host", CHANCES)
def test_red_takes_its_favourite_exploit_three_times_in_four(host: str) -> None:
    _, log = many(Game().remembers(host, *PORTS[host]).red_will("exploit", host))
    for k, exploit in enumerate(EXPLOITS):
        chance = CHANCES[host].get(exploit, 0.0)
        assert within_four_errors(int((log["exploit"] == k).sum()), chance), exploit


def test_a_shell_is_detected_nineteen_times_in_twenty() -> None:
    nets, _ = many(Game().remembers("User3", 25).red_will("exploit", "User3"))
    assert within_four_errors(int((nets["alert"] == HOSTS.index("User3")).sum()), 0.95)


def test_b_line_draws_its_target_among_four() -> None:
    nets, _ = many(Game(red="b_line").having(succeeded=TRUE))
    for host in ("User1", "User2", "User3", "User4"):
        assert within_four_errors(int((nets["line_target"] == HOSTS.index(host)).sum()), 0.25)


@pytest.mark.parametrize("known", [ALL, 0b1010101010101, 0b11, 1 << 12])
def test_meander_draws_its_target_evenly(known: int) -> None:
    game = Game().having(red=MEANDER, known=known, swept=7, subnets=0)
    _, log = many(game)
    candidates = [h for h in range(13) if known >> h & 1]
    for host in candidates:
        assert within_four_errors(int((log["target"] == host).sum()), 1 / len(candidates))


def test_a_mixture_draws_the_attacker_with_its_weights() -> None:
    batch = Batch(DRAWS, red_agent={"b_line": 0.5, "meander": 0.3, "sleep": 0.2}, seed=5)
    for _ in range(2):
        for agent, chance in enumerate((0.5, 0.3, 0.2)):
            assert within_four_errors(int((batch.nets["red"] == agent).sum()), chance)
        first = batch.nets["red"].copy()
        batch.begin()
        assert within_four_errors(int((batch.nets["red"] == first).sum()), 0.25 + 0.09 + 0.04)


def test_attackers_of_weight_zero_never_come() -> None:
    batch = Batch(4096, red_agent="b_line=0,meander=1,sleep=0")
    assert set(batch.nets["red"]) == {MEANDER}


def test_the_played_dice_are_even_and_independent() -> None:
    """Dice as the kernel rolls them, by their effects: over networks, neighbours and episodes."""
    batch = Batch(DRAWS, red_agent="b_line", seed=9)
    for _ in range(2):
        batch.play(np.zeros(DRAWS, np.int64))
    targets = batch.nets["line_target"].copy()
    for host in range(9, 13):
        assert within_four_errors(int((targets == host).sum()), 0.25)
    neighbours = int((targets[1:] == targets[:-1]).sum())
    assert within_four_errors(neighbours, 0.25, DRAWS - 1)
    batch.begin()
    for _ in range(2):
        batch.play(np.zeros(DRAWS, np.int64))
    again = int((batch.nets["line_target"] == targets).sum())
    assert within_four_errors(again, 0.25)


def test_networks_have_streams_of_their_own() -> None:
    streams = []
    for seed in (0, 1):
        nets = records(10_000, NETWORK)
        seed_networks(nets, np.full(10_000, seed, np.uint64), 0, 1)
        streams.append(nets["stream"])
    assert len(np.unique(np.concatenate(streams))) == 20_000


def test_all_dice_of_an_episode_are_independent() -> None:
    """Red's target, exploit and detection in two turns, and who attacks: seven dice, in pairs."""
    game = Game().remembers("User3", 80, 25).remembers("User4", 80, 25)
    game.having(known=mask("User3", "User4"), named=0, swept=7, scan_tried=ALL)
    batch = Batch(DRAWS, red_agent="b_line=0.5,meander=0.5", seed=4)
    events = [(batch.nets["red"] == 0, 0.5)]
    for _ in range(2):
        game.put_into(batch)
        batch.play(np.zeros(DRAWS, np.int64))
        events.append((batch.nets["last_exploited"] == HOSTS.index("User3"), 0.5))
        events.append(((batch.nets["root"] & mask("User3", "User4")) != 0, 0.75))  # Haraka
        events.append((batch.nets["alert"] >= 0, 0.95))
    for k, (one, chance) in enumerate(events):
        assert within_four_errors(int(one.sum()), chance), k
        for j, (other, its) in enumerate(events[:k]):
            assert within_four_errors(int((one & other).sum()), chance * its), (j, k)


def test_the_chances_are_those_of_the_rule_book() -> None:
    assert BEST_CHANCE / LOADED == 0.75
    assert abs(DETECTION_CHANCE / LOADED - 0.95) < 1e-9


def test_an_appended_attacker_is_drawn_with_its_odds() -> None:
    """Odds are all that names the attackers of a mixture: one more of them needs no other edit."""
    appended = len(ALL_RED_AGENTS)
    odds = np.zeros(appended + 1, np.int64)
    odds[MEANDER:] = LOADED // 4  # a quarter for Meander, the rest for the new one
    odds[appended] = LOADED
    nets, everyone = records(DRAWS, NETWORK), np.ones(DRAWS, np.bool_)
    nets["red_plan"], nets["horizon"] = DRAWN, 100
    seed_networks(nets, np.full(DRAWS, 7, np.uint64), 0, 1)
    shown = allocate(DRAWS, NUM_BITS, np.float32)
    begin_episodes(CAGE2_WORLDS, nets, NO_MINDS, everyone, odds, shown)
    assert set(nets["red"]) == {MEANDER, appended}
    assert within_four_errors(int((nets["red"] == appended).sum()), 0.75)
