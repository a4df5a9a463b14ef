"""A position: what a network may forget without a change of what comes."""

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from phalanx.bound.menus import OF_HOST, Menus, make_menus, standable_sets
from phalanx.bound.position import positions_of
from phalanx.cage2 import Batch
from phalanx.cage2.rules.batch_turn import LOG, replay_turn
from phalanx.cage2.rules.belief import words_of
from phalanx.cage2.rules.network import LOADED
from phalanx.cage2.rules.red import chance_of_exploit
from phalanx.cage2.rules.scenario import (
    FAILS,
    LISTENING,
    MEETS,
    NOTHING,
    NUM_ACTIONS,
    NUM_EXPLOITS,
    NUM_HOSTS,
    OPTIONS,
    REMOVE,
    RESTORE,
    RULE_SETS,
    SLEEP_AGENT,
    VERB_OF_ACTION,
    useful_actions,
)
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.compiled.rule import records
from tests.cage2.test_belief import DETECTION_DICE, EXPLOIT_DICE

DICE = np.array([(0, exploit, seen) for exploit, _ in EXPLOIT_DICE for seen, _ in DETECTION_DICE])
CASES = [(red, rules) for red in ("b_line", "meander") for rules in RULE_SETS]


@cache
def menus() -> Menus:
    return make_menus()


def position(nets: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    return positions_of(nets, menus())


def random_actions(rng: np.random.Generator, size: int) -> npt.NDArray[np.int64]:
    """Mostly rest or an action that can help; sometimes any."""
    kind = rng.random(size)
    useful = rng.choice(np.flatnonzero(useful_actions()), size)
    return np.where(
        kind < 0.5, 0, np.where(kind < 0.9, useful, rng.integers(NUM_ACTIONS, size=size))
    )


def play(
    nets: npt.NDArray[np.void], actions: npt.NDArray[np.int64], dice: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int32]]:
    """Copies of the networks after a turn, and what it cost."""
    after, log = nets.copy(), records(len(nets), LOG)
    replay_turn(CAGE2_WORLDS, after, np.ones(len(nets), np.bool_), actions, dice, log)
    return after, log["cost"]


@pytest.mark.parametrize(("red_agent", "rules"), CASES)
def test_what_a_position_forgets_changes_nothing_that_comes(red_agent: str, rules: str) -> None:
    """From a network, and from its position with the network's own decoys and ports."""
    rng = np.random.default_rng(1)
    batch = Batch(400, red_agent=red_agent, rules=rules, seed=3, num_threads=1)
    checked = 0
    for _turn in range(60):
        nets = batch.nets.copy()
        short = position(nets)
        short["decoys"], short["ports"] = nets["decoys"], nets["ports"]
        actions = random_actions(rng, len(nets))
        dice = rng.integers(2**32, size=(len(nets), 3))
        full, cost = play(nets, actions, dice)
        reduced, same_cost = play(short, actions, dice)
        awake = short["red"] != SLEEP_AGENT
        assert (cost[awake] == same_cost[awake]).all()
        assert (words_of(position(full))[awake] == words_of(position(reduced))[awake]).all()
        checked += int(awake.sum())
        batch.play(random_actions(rng, len(nets)))
    assert checked > 10_000


@pytest.mark.parametrize(("red_agent", "rules"), CASES)
def test_to_forget_twice_is_to_forget_once(red_agent: str, rules: str) -> None:
    rng = np.random.default_rng(2)
    batch = Batch(100, red_agent=red_agent, rules=rules, seed=5, num_threads=1)
    for _turn in range(40):
        once = position(batch.nets)
        assert (words_of(position(once)) == words_of(once)).all()
        batch.play(random_actions(rng, 100))


@pytest.mark.parametrize("red_agent", ["b_line", "meander"])
def test_a_sleeping_red_costs_blue_no_more_than_one_that_goes_on(red_agent: str) -> None:
    """In every turn, whatever blue does: what red holds can only grow."""
    rng = np.random.default_rng(3)
    batch = Batch(400, red_agent=red_agent, seed=8, num_threads=1)
    for _turn in range(25):
        batch.play(random_actions(rng, 400))
    awake, asleep = batch.nets.copy(), batch.nets.copy()
    asleep["red"] = asleep["red_plan"] = SLEEP_AGENT
    saved = 0
    for _turn in range(30):
        actions, dice = random_actions(rng, 400), rng.integers(2**32, size=(400, 3))
        awake, cost = play(awake, actions, dice)
        asleep, less = play(asleep, actions, dice)
        assert (less <= cost).all()
        saved += int((cost - less).sum())
    assert saved > 0


@pytest.mark.parametrize(("red_agent", "rules"), CASES)
def test_what_looks_alike_without_decoys_looks_alike_with_them(red_agent: str, rules: str) -> None:
    """Exploits that leave different positions behind, and show the same where no decoy stands, show
    the same 52 bits whatever decoys stand or have just been placed.
    """
    rng = np.random.default_rng(7)
    batch = Batch(200, red_agent=red_agent, rules=rules, seed=6, num_threads=1)
    looks_and_decoys = [a for a in range(NUM_ACTIONS) if VERB_OF_ACTION[a] not in (REMOVE, RESTORE)]
    different = 0
    for _turn in range(30):
        batch.play(rng.choice(looks_and_decoys, 200))
        nets = np.repeat(batch.nets[:20], len(DICE))
        dice = np.tile(DICE, (20, 1))
        dice[:, 0] = np.repeat(rng.integers(2**32, size=20), len(DICE))
        actions = np.repeat(rng.choice(looks_and_decoys, 20), len(DICE))
        after, _cost = play(nets, actions, dice)
        nets["decoys"] = 0
        bare, _cost = play(nets, np.zeros(len(nets), np.int64), dice)
        kept = [words_of(positions_of(one, menus())) for one in (after, bare)]
        for k in range(20):
            rows = slice(k * len(DICE), (k + 1) * len(DICE))
            for look in np.unique(bare["seen"][rows, 0]):
                alike = bare["seen"][rows, 0] == look
                if len(np.unique(kept[0][rows][alike], axis=0)) > 1:
                    different += 1
                    assert (kept[0][rows] == kept[1][rows]).all()
                    assert len(np.unique(after["seen"][rows, 0][alike])) == 1
    assert different > 20


def lottery(host: int, ports: int) -> dict[tuple[int, int], float]:
    """How likely an exploit meets what: (answer, which exploit if a genuine service gives in)."""
    options = int(OPTIONS[ports])
    chances: dict[tuple[int, int], float] = {}
    for exploit in range(NUM_EXPLOITS):
        if options >> exploit & 1:
            answer = int(MEETS[host, exploit])
            meets = (NOTHING, -1) if answer in (NOTHING, FAILS) else (answer, exploit)
            share = chance_of_exploit(options, exploit)
            chances[meets] = round(chances.get(meets, 0.0) + share, 12)
    return chances


@pytest.mark.parametrize("host", range(NUM_HOSTS))
def test_ports_that_are_alike_give_red_the_same_chances_now_and_later(host: int) -> None:
    alike = menus().alike[host]
    seen = {int(LISTENING[host, decoys]) for decoys in standable_sets(host)}
    for ports in {a | b for a in seen for b in seen}:
        assert lottery(host, ports) == lottery(host, int(alike[ports]))
        later = {int(alike[ports | more]) for more in seen}
        assert later == {int(alike[alike[ports] | more]) for more in seen}


@pytest.mark.parametrize("host", range(NUM_HOSTS))
def test_a_menu_has_a_row_for_every_set_of_ports_that_red_can_remember(host: int) -> None:
    menu, chosen = OF_HOST + host, menus()
    size, first = int(chosen.sizes[menu]), int(chosen.first[menu])
    rows = []
    for row in range(chosen.rows[menu]):
        chances = chosen.chances[first + row * size : first + (row + 1) * size]
        found: dict[int, float] = {}
        for chance, (die, _detection) in zip(chances, chosen.plays[menu], strict=False):
            answer = int(MEETS[host, die - LOADED])
            answer = NOTHING if answer == FAILS else answer
            found[answer] = found.get(answer, 0.0) + chance
        rows.append({answer: round(chance, 9) for answer, chance in found.items() if chance})
    for decoys in standable_sets(host):
        wanted: dict[int, float] = {}
        for (answer, _exploit), chance in lottery(host, int(LISTENING[host, decoys])).items():
            wanted[answer] = wanted.get(answer, 0.0) + chance
        assert {answer: round(chance, 9) for answer, chance in wanted.items()} in rows


def test_all_decoys_that_can_stand_together_are_among_the_sets() -> None:
    """Also Vsftpd, by placing decoys at random in real games."""
    rng = np.random.default_rng(4)
    batch = Batch(300, red_agent="sleep", seed=1, num_threads=1)
    for _turn in range(99):
        batch.play(rng.integers(28, NUM_ACTIONS - NUM_HOSTS, size=300))
    assert (batch.nets["decoys"] >> 7 & 1).any()
    for host in range(NUM_HOSTS):
        assert set(batch.nets["decoys"][:, host].tolist()) <= set(standable_sets(host))
