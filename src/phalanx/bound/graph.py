"""All positions of the relaxed game that can come up, and what leads from one to another."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.bound.menus import MOST_OUTCOMES, OF_HOST, OF_PORTS, Menus
from phalanx.bound.position import forget
from phalanx.cage2.rules.attackers import plan_move
from phalanx.cage2.rules.belief import words_of
from phalanx.cage2.rules.network import NETWORK, mix
from phalanx.cage2.rules.observation import activity
from phalanx.cage2.rules.red import exploits_against
from phalanx.cage2.rules.red_actions import EXPLOIT, RED_SLEEP, SCAN
from phalanx.cage2.rules.scenario import (
    ACTION_MONITOR,
    MEANDER,
    NO_HOST,
    NUM_ACTIONS,
    NUM_HOSTS,
    OP_HOSTS,
    REMOVE,
    RESTORE,
    SLEEP,
    VERB_OF_ACTION,
)
from phalanx.cage2.rules.scoring import cost
from phalanx.cage2.rules.turn import begin_turn, red_acts
from phalanx.compiled.bits import has, lowest, number
from phalanx.compiled.rule import kernel, records, rule

MOST_MOVES = NUM_ACTIONS  # of blue's that a position can have
MOST_BRANCHES = NUM_HOSTS
EXPLORED, FOUND, MOVES, BRANCHES, OUTCOMES = range(5)
_PRIMES = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))

Words = npt.NDArray[np.uint64]  # positions as whole words


class Graph(NamedTuple):
    """Positions, and for each of them blue's moves and red's branches.

    A move leads from the position before blue's action to the one after it. A branch is one target
    of red's planned move, all as likely: a menu (menus.py), whose outcomes are positions.
    """

    states: npt.NDArray[np.void]  # NETWORK [positions]
    words: npt.NDArray[np.uint64]  # the same memory [positions, words]
    costs: npt.NDArray[np.int32]  # [positions] tenths, of a turn that ends there
    first_move: npt.NDArray[np.int64]  # [positions + 1]
    move_action: npt.NDArray[np.int16]  # [moves] Remove or Restore, in the order of actions
    move_to: npt.NDArray[np.int32]  # [moves]
    first_branch: npt.NDArray[np.int64]  # [positions + 1]
    branch_menu: npt.NDArray[np.int16]  # [branches]
    branch_outcome: npt.NDArray[np.int64]  # [branches] where its outcomes begin
    outcomes: npt.NDArray[np.int32]  # positions
    shown: npt.NDArray[np.int8]  # [outcomes] the activity that blue is shown on the target
    table: npt.NDArray[np.int32]  # positions by their hash; -1: none
    counts: npt.NDArray[np.int64]  # [5] see above
    scratch: npt.NDArray[np.void]  # NETWORK [2]
    scratch_words: npt.NDArray[np.uint64]

    @property
    def size(self) -> int:
        return int(self.counts[FOUND])


def make_graph(positions: int, moves: int, branches: int, outcomes: int) -> Graph:
    """Room for so many."""
    states, scratch = records(positions, NETWORK), records(2, NETWORK)
    return Graph(
        states,
        words_of(states),
        np.zeros(positions, np.int32),
        np.zeros(positions + 1, np.int64),
        np.zeros(moves, np.int16),
        np.zeros(moves, np.int32),
        np.zeros(positions + 1, np.int64),
        np.zeros(branches, np.int16),
        np.zeros(branches, np.int64),
        np.zeros(outcomes, np.int32),
        np.zeros(outcomes, np.int8),
        np.full(1 << (2 * positions).bit_length(), -1, np.int32),
        np.zeros(5, np.int64),
        scratch,
        words_of(scratch),
    )


def with_twice_the_room(graph: Graph) -> Graph:
    lengths = (graph.states, graph.move_to, graph.branch_menu, graph.outcomes)
    larger = make_graph(*(2 * len(array) for array in lengths))
    for name in Graph._fields:
        if name not in ("words", "table", "scratch", "scratch_words"):
            old = getattr(graph, name)
            getattr(larger, name)[: len(old)] = old
    fill_table(larger)
    return larger


@kernel
def slot_of(graph: Graph, words: Words) -> int:
    """Where a position stands in the table, or would stand."""
    hashed = np.uint64(0)
    for word in words:
        hashed = mix((hashed ^ word) * _PRIMES[0] + _PRIMES[1])
    last = len(graph.table) - 1
    slot = number(hashed & np.uint64(last))
    while graph.table[slot] >= 0:
        there = graph.words[graph.table[slot]]
        w = 0
        while w < len(words) and there[w] == words[w]:
            w += 1
        if w == len(words):
            break
        slot = (slot + 1) & last
    return slot


@kernel
def intern(graph: Graph, menus: Menus, row: int) -> int:
    """The number of the position that row of the scratch is; a new one if it is not there yet."""
    state = graph.scratch[row]
    tenths = cost(menus.worlds[0], state, SLEEP)
    forget(state, menus)
    words = graph.scratch_words[row]
    slot = slot_of(graph, words)
    if graph.table[slot] >= 0:
        return number(graph.table[slot])
    new = graph.counts[FOUND]
    graph.counts[FOUND] += 1
    graph.table[slot] = new
    graph.words[new] = words
    graph.costs[new] = tenths
    return number(new)


@rule
def add_moves(graph: Graph, menus: Menus, position: int) -> None:
    """Blue's actions that change the position; Sleep is always there, and not listed."""
    for action in range(ACTION_MONITOR + 1, NUM_ACTIONS):
        if VERB_OF_ACTION[action] not in (REMOVE, RESTORE):
            continue
        graph.scratch_words[0] = graph.words[position]
        begin_turn(menus.worlds[0], graph.scratch[0], action)
        to = intern(graph, menus, number(0))
        if to != position:
            graph.move_action[graph.counts[MOVES]] = action
            graph.move_to[graph.counts[MOVES]] = to
            graph.counts[MOVES] += 1


@kernel
def add_outcome(
    graph: Graph, menus: Menus, move: int, target: int, dice: npt.NDArray[np.int64]
) -> None:
    """What comes of red's planned move (row 0 of the scratch) with these dice."""
    _chosen, (connections, ports, shell_seen) = red_acts(
        menus.worlds[0], graph.scratch[1], move, target, dice[0], dice[1]
    )
    graph.shown[graph.counts[OUTCOMES]] = activity(connections, ports, shell_seen, False)
    graph.outcomes[graph.counts[OUTCOMES]] = intern(graph, menus, number(1))
    graph.counts[OUTCOMES] += 1


@rule
def add_branches(graph: Graph, menus: Menus, position: int) -> None:
    """Red's move from a position after blue's action: a branch for each target."""
    graph.scratch_words[0] = graph.words[position]
    planned, played = graph.scratch[0], graph.scratch[1]
    move, targets = plan_move(menus.worlds[0], planned, 0)
    if move == RED_SLEEP:
        graph.scratch_words[1] = graph.scratch_words[0]
        add_branch(graph, 0)
        add_outcome(graph, menus, move, number(NO_HOST), menus.plays[0, 0])
        return
    while targets:
        target = lowest(targets)
        targets &= targets - 1
        if move == SCAN:
            begin = graph.counts[OUTCOMES]
            branch = add_branch(graph, 0)
            for k in range(menus.num_standable[target]):
                graph.scratch_words[1] = graph.scratch_words[0]
                played.decoys[target] = menus.standable[target, k]
                add_outcome(graph, menus, move, target, menus.plays[0, 0])
                drop_if_there(graph, begin)
            graph.branch_menu[branch] = graph.counts[OUTCOMES] - begin - 1
            continue
        menu = number(0)
        free_ports = False
        if move == EXPLOIT:
            menu = OF_PORTS + exploits_against(planned, target)
            if has(OP_HOSTS, target):
                free_ports = planned.ports[target] != 0
            else:
                free_ports = planned.red == MEANDER
            if free_ports:
                menu = OF_HOST + target
        add_branch(graph, menu)
        for k in range(menus.sizes[menu]):
            graph.scratch_words[1] = graph.scratch_words[0]
            if free_ports:
                played.ports[target] = 255
            add_outcome(graph, menus, move, target, menus.plays[menu, k])


@rule
def add_branch(graph: Graph, menu: int) -> int:
    branch = number(graph.counts[BRANCHES])
    graph.branch_menu[branch] = menu
    graph.branch_outcome[branch] = graph.counts[OUTCOMES]
    graph.counts[BRANCHES] += 1
    return branch


@rule
def drop_if_there(graph: Graph, begin: int) -> None:
    """Drop the last outcome if it is among those since `begin`."""
    last = graph.counts[OUTCOMES] - 1
    for k in range(begin, last):
        if graph.outcomes[k] == graph.outcomes[last]:
            graph.counts[OUTCOMES] = last
            return


@kernel
def add_position(graph: Graph, menus: Menus, words: Words) -> int:
    """The number of the position of a network; a new one if it is not there yet."""
    graph.scratch_words[0] = words
    return intern(graph, menus, number(0))


@kernel
def look_up(graph: Graph, words: Words) -> npt.NDArray[np.int32]:
    """The numbers of positions, uint64 [N, words]; -1: it cannot come up."""
    numbers = np.zeros(len(words), np.int32)
    for i in range(len(words)):
        numbers[i] = graph.table[slot_of(graph, words[i])]
    return numbers


@kernel
def explore(graph: Graph, menus: Menus, most: int) -> bool:
    """Expand up to `most` positions; returns whether there was room for all that they lead to."""
    counts = graph.counts
    for _ in range(most):
        if counts[EXPLORED] == counts[FOUND]:
            return True
        if (
            counts[FOUND] + MOST_MOVES + MOST_BRANCHES * MOST_OUTCOMES > len(graph.states)
            or counts[MOVES] + MOST_MOVES > len(graph.move_to)
            or counts[BRANCHES] + MOST_BRANCHES > len(graph.branch_menu)
            or counts[OUTCOMES] + MOST_BRANCHES * MOST_OUTCOMES > len(graph.outcomes)
        ):
            return False
        position = number(counts[EXPLORED])
        add_moves(graph, menus, position)
        add_branches(graph, menus, position)
        counts[EXPLORED] += 1
        graph.first_move[counts[EXPLORED]] = counts[MOVES]
        graph.first_branch[counts[EXPLORED]] = counts[BRANCHES]
    return True


@kernel
def fill_table(graph: Graph) -> None:
    """Enter the positions that are there already."""
    for i in range(graph.counts[FOUND]):
        graph.table[slot_of(graph, graph.words[i])] = i
