"""Backward induction: the best that blue can get from each position in so many turns."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.bound.graph import Graph
from phalanx.bound.menus import MOST_OUTCOMES, Menus
from phalanx.cage2.rules.observation import EXPLOIT_SEEN
from phalanx.cage2.rules.scenario import (
    ACTION_SLEEP,
    NUM_ACTIONS,
    RESTORE,
    RESTORE_COST,
    VERB_OF_ACTION,
)
from phalanx.compiled.bits import number
from phalanx.compiled.rule import kernel, rule

Values = npt.NDArray[np.float64]  # [positions] expected returns, in tenths
Room = npt.NDArray[np.int64]  # [2, MOST_OUTCOMES] to work in


class Solved(NamedTuple):
    """The values of all positions with this many turns left, and what blue does first."""

    turns: int
    values: Values
    actions: npt.NDArray[np.int16]  # [positions] Sleep also where only a free decoy would do


def solve(graph: Graph, menus: Menus, turns: int, at_once: bool = False) -> Iterator[Solved]:
    """With 1, 2, ... turns left, if blue knows the position when it begins.

    Later it learns the true position one turn late, and before that only what its sensors show;
    at_once: without that delay. The arrays are written over: copy what is to be kept.
    """
    values, resting = np.zeros(graph.size), np.zeros(graph.size)
    before = np.zeros(graph.size)
    actions = np.zeros(graph.size, np.int16)
    room = np.zeros((2, MOST_OUTCOMES), np.int64)
    for turn in range(1, turns + 1):
        before, resting = resting, before
        one_turn_back(graph, menus, at_once, turn == 1, values, before, resting, room)
        best_moves(graph, resting, values, actions)
        yield Solved(turn, values, actions)


@kernel
def best_moves(
    graph: Graph, resting: Values, values: Values, actions: npt.NDArray[np.int16]
) -> None:
    """V(s) = max over blue's moves m of  R(s after m) - price(m)."""
    for i in range(len(values)):
        values[i] = resting[i]
        actions[i] = ACTION_SLEEP
        for move in range(graph.first_move[i], graph.first_move[i + 1]):
            action = number(graph.move_action[move])
            value = resting[graph.move_to[move]] - price(action)
            if value > values[i]:
                values[i] = value
                actions[i] = action


@rule
def price(action: int) -> int:
    return RESTORE_COST if VERB_OF_ACTION[action] == RESTORE else 0


@kernel
def one_turn_back(
    graph: Graph,
    menus: Menus,
    at_once: bool,
    is_last: bool,
    values: Values,
    before: Values,
    resting: Values,
    room: Room,
) -> None:
    """R(x), the return from a position x after blue's move: red moves, the turn is paid for, and
    blue goes on with a turn less, of which `values` and `before` (V and R) are known.
    """
    for i in range(len(resting)):
        total = 0.0
        for branch in range(graph.first_branch[i], graph.first_branch[i + 1]):
            menu = number(graph.branch_menu[branch])
            best = -np.inf
            for row in range(menus.rows[menu]):
                first = menus.first[menu] + row * menus.sizes[menu]
                if at_once or is_last:
                    worth = known_at_once(graph, menus, branch, first, values)
                else:
                    worth = known_late(graph, menus, branch, first, values, before, room)
                best = max(best, worth)
            total += best
        resting[i] = total / (graph.first_branch[i + 1] - graph.first_branch[i])


@rule
def known_at_once(graph: Graph, menus: Menus, branch: int, first: int, values: Values) -> float:
    """What a lottery is worth if blue sees at once what came of it."""
    begin = graph.branch_outcome[branch]
    mean = 0.0
    for k in range(menus.sizes[graph.branch_menu[branch]]):
        to = graph.outcomes[begin + k]
        mean += menus.chances[first + k] * (values[to] - graph.costs[to])
    return mean


@rule
def known_late(
    graph: Graph, menus: Menus, branch: int, first: int, values: Values, before: Values, room: Room
) -> float:
    """What a lottery is worth if blue must act once before it learns more than its sensors show."""
    begin, size = graph.branch_outcome[branch], menus.sizes[graph.branch_menu[branch]]
    mean = 0.0
    for shown in range(EXPLOIT_SEEN + 1):
        members, same = number(0), True
        for k in range(size):
            if graph.shown[begin + k] == shown and menus.chances[first + k] > 0:
                same = same and (
                    members == 0 or graph.outcomes[begin + k] == graph.outcomes[begin + room[0, 0]]
                )
                room[0, members] = k
                members += 1
        weight = 0.0
        for m in range(members):
            k = room[0, m]
            mean -= menus.chances[first + k] * graph.costs[graph.outcomes[begin + k]]
            weight += menus.chances[first + k]
        if members > 0 and same:
            mean += weight * values[graph.outcomes[begin + room[0, 0]]]
        elif members > 0:
            mean += one_move_for_all(graph, menus, begin, first, members, before, room)
    return mean


@rule
def one_move_for_all(
    graph: Graph, menus: Menus, begin: int, first: int, members: int, before: Values, room: Room
) -> float:
    """The best single move if it is one of several positions, times how likely they are.

    Moves of a position are listed in the order of actions: all lists are read side by side.
    """
    sleeping, weight = 0.0, 0.0
    for m in range(members):
        chance, to = menus.chances[first + room[0, m]], graph.outcomes[begin + room[0, m]]
        sleeping += chance * before[to]
        weight += chance
        room[1, m] = graph.first_move[to]
    best = sleeping
    while True:
        action = NUM_ACTIONS
        for m in range(members):
            to = graph.outcomes[begin + room[0, m]]
            if room[1, m] < graph.first_move[to + 1]:
                action = min(action, number(graph.move_action[room[1, m]]))
        if action == NUM_ACTIONS:
            return best
        value = sleeping - weight * price(action)
        for m in range(members):
            chance, to = menus.chances[first + room[0, m]], graph.outcomes[begin + room[0, m]]
            at = room[1, m]
            if at < graph.first_move[to + 1] and graph.move_action[at] == action:
                value += chance * (before[graph.move_to[at]] - before[to])
                room[1, m] += 1
        best = max(best, value)
