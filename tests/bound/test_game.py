"""The relaxed game: it holds every real turn, and no real plan gets more than it says."""

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from phalanx.bound.game import RelaxedGame
from phalanx.bound.position import positions_of
from phalanx.cage2 import Batch
from phalanx.cage2.rules.scenario import (
    NUM_ACTIONS,
    RESTORE,
    RESTORE_COST,
    SLEEP_AGENT,
    VERB_OF_ACTION,
)
from tests.bound.test_position import DICE, play, random_actions
from tests.cage2.test_belief import DETECTION_DICE, EXPLOIT_DICE

CASES = [("b_line", "2.1-leaderboard"), ("b_line", "2.1-final"), ("meander", "2.1-leaderboard")]
CHANCES = np.array([p * q for _, p in EXPLOIT_DICE for _, q in DETECTION_DICE])


@cache
def game_of(red_agent: str, rules: str) -> RelaxedGame:
    return RelaxedGame(red_agent, rules=rules)


def after_blue(game: RelaxedGame, position: int, action: int) -> int:
    """Where an action leads; most change nothing."""
    graph = game.graph
    moves = slice(graph.first_move[position], graph.first_move[position + 1])
    found = graph.move_to[moves][graph.move_action[moves] == action]
    return int(found[0]) if len(found) else position


def after_red(game: RelaxedGame, position: int) -> npt.NDArray[np.int32]:
    """All that can come of red's move."""
    graph = game.graph
    branches = slice(graph.first_branch[position], graph.first_branch[position + 1])
    begins, menus = graph.branch_outcome[branches], graph.branch_menu[branches]
    return graph.outcomes[begins[0] : begins[-1] + game.menus.sizes[menus[-1]]]


@pytest.mark.parametrize(("red_agent", "rules"), CASES)
def test_every_real_turn_is_one_of_the_relaxed_game_at_the_same_cost(
    red_agent: str, rules: str
) -> None:
    rng = np.random.default_rng(1)
    game = game_of(red_agent, rules)
    batch = Batch(100, red_agent=red_agent, rules=rules, seed=2, horizon=60, num_threads=1)
    checked = 0
    for _turn in range(59):
        actions = random_actions(rng, 100)
        is_awake = positions_of(batch.nets, game.menus)["red"] != SLEEP_AGENT
        before = game.positions_of(batch.nets)
        shown = batch.play(actions)
        after = game.positions_of(batch.nets)
        for k in np.flatnonzero(
            is_awake
        ):  # red that was put to sleep does less than it really does
            moved = after_blue(game, before[k], actions[k])
            assert moved >= 0
            if game.graph.states["red"][moved] == SLEEP_AGENT:
                continue
            assert after[k] in after_red(game, moved)
            price = RESTORE_COST if VERB_OF_ACTION[actions[k]] == RESTORE else 0
            assert game.graph.costs[after[k]] + price == round(-10 * shown.rewards[k])
            checked += 1
    assert checked > 2000


def best_of_two_turns(net: npt.NDArray[np.void]) -> tuple[float, float]:
    """By playing all 145 x 145 plans with all dice: what a blue can get that knows where it begins,
    and then sees its 52 bits; and what it can get if it sees the truth. In tenths.
    """
    actions = np.repeat(np.arange(NUM_ACTIONS), len(DICE))
    dice, chances = np.tile(DICE, (NUM_ACTIONS, 1)), np.tile(CHANCES, NUM_ACTIONS)
    after, cost = play(np.repeat(net, len(actions)), actions, dice)
    spent = np.bincount(actions, chances * cost)
    raw = np.ascontiguousarray(after).view(f"V{after.dtype.itemsize}")
    _raw, first, state = np.unique(raw, return_index=True, return_inverse=True)
    second = np.zeros((len(first), NUM_ACTIONS))  # what the second turn costs from each state
    for k, start in enumerate(first):
        _after, costs = play(np.repeat(after[start : start + 1], len(actions)), actions, dice)
        second[k] = np.bincount(actions, chances * costs)
    blind, seeing = -spent, -spent
    for action in range(NUM_ACTIONS):
        its = slice(action * len(DICE), (action + 1) * len(DICE))
        each = CHANCES[:, None] * second[state[its]]
        seeing[action] -= each.min(axis=1).sum()
        for seen in np.unique(after["seen"][its, 0]):
            blind[action] -= each[after["seen"][its, 0] == seen].sum(axis=0).min()
    return float(blind.max()), float(seeing.max())


@pytest.mark.parametrize("rules", ["2.1-leaderboard", "2.1-final"])
def test_no_plan_of_two_turns_gets_more_than_a_position_is_worth(rules: str) -> None:
    game = game_of("b_line", rules)
    late, at_once = [[one.values.copy() for one in game.solve(2, how)][-1] for how in (False, True)]
    rng = np.random.default_rng(5)
    batch = Batch(60, red_agent="b_line", rules=rules, seed=9, num_threads=1)
    differences = []
    for _case in range(5):
        for _turn in range(3):
            batch.play(random_actions(rng, 60))
        chosen = batch.nets[rng.integers(60)][None].copy()
        position = game.positions_of(chosen)[0]
        blind, seeing = best_of_two_turns(chosen)
        assert blind <= late[position] + 1e-9
        assert seeing <= at_once[position] + 1e-9
        differences.append(late[position] - blind)
    assert np.median(differences) < 1e-9  # and it is no more than that, mostly


@pytest.mark.parametrize(("red_agent", "rules"), CASES)
def test_to_know_late_is_worth_no_more_than_to_know_at_once(red_agent: str, rules: str) -> None:
    game = game_of(red_agent, rules)
    for late, at_once in zip(game.solve(5), game.solve(5, at_once=True), strict=True):
        assert (late.values <= at_once.values + 1e-9).all()
    assert (late.values < at_once.values - 1e-3).any()


@pytest.mark.parametrize(("red_agent", "rules"), CASES)
def test_from_no_turn_on_does_a_player_get_more_than_its_positions_are_worth(
    red_agent: str, rules: str
) -> None:
    """A player that sees the truth and does what the table says, though no decoy stands for it."""
    turns, size = 8, 2000
    game = game_of(red_agent, rules)
    solved = [(one.values.copy(), one.actions.copy()) for one in game.solve(turns, at_once=True)]
    batch = Batch(
        size,
        red_agent=red_agent,
        rules=rules,
        seed=4,
        horizon=turns,
        num_threads=1,
        same_step=False,
    )
    rng = np.random.default_rng(6)
    worth, got = np.zeros((turns, size)), np.zeros((turns, size))
    for turn in range(turns):
        position = game.positions_of(batch.nets)
        values, actions = solved[turns - turn - 1]
        worth[turn] = values[position]
        at_random = rng.random(size) < 0.2
        chosen = np.where(at_random, random_actions(rng, size), actions[position])
        got[turn] = 10 * batch.play(chosen).rewards
    to_go = np.cumsum(got[::-1], axis=0)[::-1]
    gained = to_go - worth
    assert (gained.mean(axis=1) <= 4 * gained.std(axis=1) / size**0.5 + 1e-9).all()
