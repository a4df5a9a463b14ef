"""What no defender can beat: the best play of one who sees everything. See docs/bounds.md.

B-line's whole game is put into a table. Blue is helped in two ways, and in no way hindered: it sees
the hidden state (but not the dice to come), and decoys cost no time. So the best value in the table
is at least that of any defender of the game itself.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.belief import prior_of
from phalanx.cage2.rules.attackers import EXPLOIT, EXPLOIT_SERVER, SCAN, plan_move
from phalanx.cage2.rules.belief import SEEN_SHELL, UNSEEN_SHELL, words_of
from phalanx.cage2.rules.network import LOADED, NETWORK, Network
from phalanx.cage2.rules.red import (
    SEEN_SHARE,
    chance_of_exploit,
    exploits_against,
    meets,
    reaches,
)
from phalanx.cage2.rules.scenario import (
    ACTION_SLEEP,
    AS_ROOT,
    AS_USER,
    DEFAULT_RULES,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    HARAKA_HOSTS,
    LISTENING,
    NO_HOST,
    NUM_ACTIONS,
    NUM_HOSTS,
    OP_SERVER0,
    REMOVE,
    RESTORE,
    SSH,
    USER1,
    USER2,
    USER3,
    USER4,
    VERB_OF_ACTION,
)
from phalanx.cage2.rules.scoring import cost
from phalanx.cage2.rules.turn import begin_turn, red_acts
from phalanx.compiled.bits import lowest, only
from phalanx.compiled.rule import kernel, records, rule

OPENING = 2  # turns before blue can know which user host B-line goes for
LOOKED_AT = HARAKA_HOSTS | 1 << OP_SERVER0  # where the rules ask whether a host was restored


class Choices(NamedTuple):
    """What blue may choose from in the table."""

    actions: npt.NDArray[np.int64]  # [A] Sleep, and Remove and Restore where B-line passes
    ports: npt.NDArray[np.int64]  # [13, P] sets of ports that a scan of the host may find
    counts: npt.NDArray[np.int64]  # [13] how many


class Branches(NamedTuple):
    """What can come of choices: rows of (state, choice, chance, reward, next state)."""

    states: npt.NDArray[np.int64]
    choices: npt.NDArray[np.int64]
    chances: npt.NDArray[np.float64]
    rewards: npt.NDArray[np.float64]
    words: npt.NDArray[np.uint64]  # [rows, words] of the next state


class Table(NamedTuple):
    """B-line's game, all states that can be reached from its openings."""

    words: npt.NDArray[np.uint64]  # [states, words]
    choice_of_row: npt.NDArray[np.int64]  # [rows] ascending
    chances: npt.NDArray[np.float64]  # [rows]
    rewards: npt.NDArray[np.float64]  # [rows]
    next_states: npt.NDArray[np.int64]  # [rows]
    first_choice: npt.NDArray[np.int64]  # [states] where its choices begin


# --- what is left out of a state ------------------------------------------------------------------


@rule
def strip(net: Network) -> None:
    """Take out what no later turn of B-line's looks at."""
    net.seen = net.tenths = net.turn = net.files = 0
    net.known = net.named = net.scanned = net.subnets = 0
    net.restored &= LOOKED_AT
    net.line_done &= only(EXPLOIT_SERVER)
    if net.line_step != EXPLOIT_SERVER - 1:
        net.found_nothing = 0
    net.alert = NO_HOST
    for host in range(NUM_HOSTS):
        net.decoys[host] = 0


@kernel
def effects(nets: Any, host: int, ports: Any, out: Any) -> None:
    """What an exploit of the host does, for each set of ports: chances of root, shell, SSH."""
    for i in range(len(nets)):
        for k in range(len(ports)):
            nets[i].ports[host] = ports[k]
            options = exploits_against(nets[i], host)
            left = options
            while left:
                chosen = lowest(left)
                left &= left - 1
                answer = meets(nets[i], host, chosen)
                if answer in (AS_USER, AS_ROOT):
                    kind = 0 if answer == AS_ROOT else (2 if chosen == SSH else 1)
                    out[k, i, kind] += chance_of_exploit(options, chosen)


def port_sets(host: int, rules: str) -> tuple[list[int], npt.NDArray[np.int64]]:
    """Sets of ports with different effects; and [256] which of them stands for a set.

    A scan finds the genuine ports, and those of any decoys. Sets with which every exploit does the
    same, whether the host was restored before or not, are one.
    """
    every = int(np.bitwise_or.reduce(LISTENING[host]))
    genuine = int(LISTENING[host, 0])
    ports = np.array([p for p in range(256) if p & genuine == genuine and p | every == every])
    nets = records(2, NETWORK)
    nets[:] = prior_of("b_line", rules, 100).states[0]
    nets["restored"][1] = 1 << host
    found = np.zeros((len(ports), 2, 3))
    effects(nets, host, ports, found)
    _, first, same = np.unique(
        found.round(12).reshape(len(ports), -1), axis=0, return_index=True, return_inverse=True
    )
    stands_for = np.zeros(256, np.int64)
    stands_for[ports] = ports[first][same.ravel()]
    return ports[first].tolist(), stands_for


# --- the table ------------------------------------------------------------------------------------


class Room(NamedTuple):
    """Where two states are played with."""

    nets: npt.NDArray[np.void]  # NETWORK [2]: with red's move planned, and after it
    words: npt.NDArray[np.uint64]  # the same memory


@kernel
def expand(words: Any, room: Room, choices: Choices, out: Branches) -> int:
    """All that can come of each state with each choice; how many rows."""
    row = 0
    planned, played = room.nets[0], room.nets[1]
    for i in range(len(words)):
        choice = 0
        for a in range(len(choices.actions)):
            room.words[0] = words[i]
            begin_turn(planned, choices.actions[a])
            move, targets = plan_move(planned, 0)
            target = lowest(targets)
            restores = VERB_OF_ACTION[choices.actions[a]] == RESTORE
            finds_ports = move == SCAN and reaches(planned, target)
            options = exploits_against(planned, target) if move == EXPLOIT else 0
            for c in range(choices.counts[target] if finds_ports else 1):
                left = options if options else 1
                while left:
                    chosen = lowest(left)
                    left &= left - 1
                    share = chance_of_exploit(options, chosen) if options else 1.0
                    for detection_die in (SEEN_SHELL, UNSEEN_SHELL):
                        room.words[1] = room.words[0]
                        red_acts(played, move, target, LOADED + chosen, detection_die)
                        if finds_ports:
                            played.ports[target] = choices.ports[target, c]
                        shell = played.alert != NO_HOST
                        chance = share
                        if shell:
                            chance *= SEEN_SHARE
                        elif detection_die == UNSEEN_SHELL:
                            chance *= 1 - SEEN_SHARE
                        out.rewards[row] = (0 - cost(played, restores)) / 10.0
                        strip(played)
                        out.states[row], out.choices[row] = i, choice
                        out.chances[row] = chance
                        out.words[row] = room.words[1]
                        row += 1
                        if not shell:
                            break
                choice += 1
    return row


def open_room() -> Room:
    nets = records(2, NETWORK)
    return Room(nets, words_of(nets))


def build(first: npt.NDArray[np.uint64], choices: Choices) -> Table:
    """Everything that can be reached from the first states."""
    room, chunk = open_room(), 256
    most = chunk * len(choices.actions) * max(16, int(choices.counts.max()))
    out = Branches(
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most), np.zeros(most),
        np.zeros((most, first.shape[1]), np.uint64),
    )  # fmt: skip
    known: dict[bytes, int] = {}
    queue: list[npt.NDArray[np.uint64]] = []

    def number_of(row: npt.NDArray[np.uint64]) -> int:
        name = row.tobytes()
        if name not in known:
            known[name] = len(queue)
            queue.append(row.copy())
        return known[name]

    for row in first:
        number_of(row)
    parts = []
    done = total_choices = 0
    while done < len(queue):
        words = np.array(queue[done : done + chunk])
        rows = expand(words, room, choices, out)
        distinct, which = np.unique(out.words[:rows], axis=0, return_inverse=True)
        numbers = np.array([number_of(row) for row in distinct])
        per_state = np.zeros(len(words), np.int64)
        np.maximum.at(per_state, out.states[:rows], out.choices[:rows] + 1)
        first_choice = total_choices + np.cumsum(per_state) - per_state
        total_choices += int(per_state.sum())
        parts.append((
            first_choice[out.states[:rows]] + out.choices[:rows], out.chances[:rows].copy(),
            out.rewards[:rows].copy(), numbers[which.ravel()], first_choice,
        ))  # fmt: skip
        done += len(words)
    choice_of_row, chances, rewards, next_states, first_choice = map(
        np.concatenate, zip(*parts, strict=True)
    )
    return Table(np.array(queue), choice_of_row, chances, rewards, next_states, first_choice)


def values(table: Table, turns: int) -> npt.NDArray[np.float64]:
    """[turns + 1, states]: the best that blue can expect with so many turns to go."""
    best = np.zeros((turns + 1, len(table.words)))
    row_starts = np.flatnonzero(np.diff(table.choice_of_row, prepend=-1))
    for k in range(turns):
        gains = table.chances * (table.rewards + best[k][table.next_states])
        best[k + 1] = np.maximum.reduceat(np.add.reduceat(gains, row_starts), table.first_choice)
    return best


# --- openings -------------------------------------------------------------------------------------


@kernel
def play_openings(start: Any, room: Room, targets: Any, stands_for: Any, out: Branches) -> None:
    """All pairs of first actions, against each user host that B-line may draw."""
    net = room.nets[1]
    row = 0
    for t in range(len(targets)):
        for first in range(NUM_ACTIONS):
            for second in range(NUM_ACTIONS):
                room.words[1] = start
                tenths = 0
                for action in (first, second):
                    begin_turn(net, action)
                    move, drawn_from = plan_move(net, 0)
                    target = targets[t] if move == SCAN else lowest(drawn_from)
                    red_acts(net, move, target, LOADED, SEEN_SHELL)
                    tenths += cost(net, VERB_OF_ACTION[action] == RESTORE)
                strip(net)
                net.ports[targets[t]] = stands_for[targets[t], net.ports[targets[t]]]
                out.states[row], out.choices[row] = t, first * NUM_ACTIONS + second
                out.rewards[row] = (0 - tenths) / 10.0
                out.words[row] = room.words[1]
                row += 1


def bound_against_b_line(
    horizons: tuple[int, ...] = (30, 50, 100), rules: str = DEFAULT_RULES
) -> dict[int, float]:
    """For each horizon a mean return that no defender can beat."""
    targets = np.array([USER1, USER2, USER3, USER4])
    passed = [ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_SERVER0]
    sets = [port_sets(host, rules) for host in range(NUM_HOSTS)]
    ports = np.zeros((NUM_HOSTS, max(len(one) for one, _ in sets)), np.int64)
    for host, (one, _) in enumerate(sets):
        ports[host, : len(one)] = one
    counts = np.array([len(one) for one, _ in sets])
    stands_for = np.array([table for _, table in sets])
    actions = [ACTION_SLEEP] + [
        2 + NUM_HOSTS * verb + host for verb in (REMOVE, RESTORE) for host in (*targets, *passed)
    ]
    rows = len(targets) * NUM_ACTIONS**2
    start = words_of(prior_of("b_line", rules, 100).states)[0]
    out = Branches(
        np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows), np.zeros(rows),
        np.zeros((rows, len(start)), np.uint64),
    )  # fmt: skip
    play_openings(start, open_room(), targets, stands_for, out)
    first, which = np.unique(out.words, axis=0, return_inverse=True)
    table = build(first, Choices(np.array(actions), ports, counts))
    best = values(table, max(horizons) - OPENING)
    bounds = {}
    for horizon in horizons:
        ahead = out.rewards + best[horizon - OPENING][: len(first)][which.ravel()]
        bounds[horizon] = float(ahead.reshape(len(targets), -1).mean(0).max())
    return bounds
