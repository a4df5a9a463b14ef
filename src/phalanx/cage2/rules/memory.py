"""What blue can remember: everything in it follows from the 52 bits and blue's own actions."""

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.blue import placeable
from phalanx.cage2.rules.observation import (
    ACTIVITY_OF_ALL,
    EXPLOIT_SEEN,
    MANY,
    MEMORISED,
    ROAMS,
    SCAN_SEEN,
    SECOND_SCAN,
    STAYS,
    UNTOLD,
    Seen,
    shown_of,
    write_bits,
)
from phalanx.cage2.rules.scenario import (
    FIRST_DECOY,
    HORIZONS,
    NUM_VERBS,
    REMOVE,
    RESTORE,
    SLEEP,
)
from phalanx.cage2.rules.world import (
    HOSTS_PER_WORD,
    World,
    host_of,
    hosts_in,
    spot_words,
    verb_of,
)
from phalanx.compiled.bits import has, lowest, number, only
from phalanx.compiled.rule import Record, large_rule, rule
from phalanx.compiled.spread import BytesOrFloats, spread

Memory = Record  # one record of memory_dtype inside a rule
Memories = npt.NDArray[np.void]  # [N]
Spots = npt.NDArray[np.int64]  # a set of decoys by their places in observations, 64 a word
NO_ACTION = 0xFFFF


def saved_fields(num_hosts: int) -> list[tuple[object, ...]]:
    """What a saved game holds of a memory; the rest follows from it."""
    return [
        ("turn", np.uint16),  # turns played in this episode
        ("scan_turn", np.uint16, num_hosts),  # when the host last showed a scan; 0: never
        ("exploit_turn", np.uint16, num_hosts),  # ... an exploit
        ("decoys", np.uint8, num_hosts),  # decoys that stand by blue's own doing
        ("last_action", np.uint16),  # NO_ACTION before the first
        # only for `memory` observations
        ("remove_turn", np.uint16, num_hosts),  # when blue last removed there; 0: never
        ("restore_turn", np.uint16, num_hosts),  # ... restored
        ("exploits", np.uint8, num_hosts),  # how often the host showed an exploit
        ("decoys_found", np.uint8, num_hosts),  # that ever stood while the host was scanned
        ("style", np.uint8),  # of the attacker: UNTOLD, STAYS or ROAMS
    ]


def memory_dtype(num_hosts: int) -> np.dtype[np.void]:
    """A record with room for so many hosts."""
    spots = np.int64, spot_words(num_hosts)
    # the same decoys as observations show them
    shown = [("standing", *spots), ("found", *spots)]
    return np.dtype([*saved_fields(num_hosts), *shown], align=True)


def saved_memory_dtype(num_hosts: int) -> np.dtype[np.void]:
    return np.dtype(saved_fields(num_hosts), align=True)


@rule
def forget(memory: Memory) -> None:
    """A new episode: nothing was seen, nothing done."""
    memory.turn = 0
    for host in range(len(memory.decoys)):
        memory.scan_turn[host] = 0
        memory.exploit_turn[host] = 0
        memory.decoys[host] = 0
        memory.remove_turn[host] = 0
        memory.restore_turn[host] = 0
        memory.exploits[host] = 0
        memory.decoys_found[host] = 0
    for word in range(len(memory.standing)):
        memory.standing[word] = memory.found[word] = 0
    memory.last_action = NO_ACTION
    memory.style = UNTOLD


@rule
def remember(world: World, memory: Memory, action: int, seen: Seen) -> None:
    """Take in one turn: blue's own action and the bits that it was shown."""
    memory.turn += 1
    memory.last_action = action
    verb, host = verb_of(world, action), host_of(world, action)
    if verb == REMOVE:
        memory.remove_turn[host] = memory.turn
    elif verb == RESTORE:
        memory.restore_turn[host] = memory.turn
        forget_decoys(world, memory, host)
    elif FIRST_DECOY <= verb < RESTORE and has(
        placeable(world, host, memory.decoys[host]), verb - FIRST_DECOY
    ):
        note_decoy(world, memory, host, verb - FIRST_DECOY)
    if memory.turn == SECOND_SCAN:
        memory.style = style_of(world, memory, seen)
    for word in range(len(seen)):
        active = number(number(seen[word]) & ACTIVITY_OF_ALL)
        while active:
            at = lowest(active) >> 2
            host, shown = word * HOSTS_PER_WORD + at, (active >> (4 * at)) & 0b11
            active &= ~(number(0b11) << (4 * at))
            if shown == SCAN_SEEN:
                memory.scan_turn[host] = memory.turn
                note_found(world, memory, host)
            elif shown == EXPLOIT_SEEN:
                memory.exploit_turn[host] = memory.turn
                memory.exploits[host] = min(MANY, memory.exploits[host] + 1)


@rule
def note_decoy(world: World, memory: Memory, host: int, decoy: int) -> None:
    """Blue has placed it."""
    spot = number(world.spot_of_decoy[host, decoy])
    memory.decoys[host] |= only(decoy)
    memory.standing[spot >> 6] |= only(spot & 63)


@rule
def forget_decoys(world: World, memory: Memory, host: int) -> None:
    """None stand there any more."""
    memory.decoys[host] = 0
    for word in range(len(memory.standing)):
        memory.standing[word] &= ~world.spots_of_host[host, word]


@rule
def note_found(world: World, memory: Memory, host: int) -> None:
    """A scan has met all decoys that stand there."""
    memory.decoys_found[host] |= memory.decoys[host]
    for word in range(len(memory.found)):
        memory.found[word] |= memory.standing[word] & world.spots_of_host[host, word]


@rule
def style_of(world: World, memory: Memory, seen: Seen) -> int:
    """Who scans a first host in turn 2 either stays with it in turn 3, or goes on to another."""
    style = UNTOLD
    for first in range(hosts_in(world)):
        if memory.scan_turn[first] == SECOND_SCAN - 1:
            style = STAYS
            for other in range(hosts_in(world)):
                if other != first and shown_of(seen, other) & EXPLOIT_SEEN:
                    style = ROAMS
    return style


@rule
def nearness(turn: int, now: int) -> np.float32:
    """1 for this turn, 1/2 for the last, 1/3 for the one before, ...; 0 for never."""
    return np.float32(0) if turn == 0 else np.float32(1) / np.float32(1 + now - turn)


@rule
def write_decoys(world: World, spots: npt.NDArray[np.int64], row: BytesOrFloats, first: int) -> int:
    """A set of decoys, one number for each that can stand; returns where they end."""
    end = number(world.num_decoy_spots)
    for eight in range(end // 8):
        spread(number(spots[eight >> 3]) >> (8 * (eight & 7)), row, first + 8 * eight)
    for spot in range(end & ~7, end):
        row[first + spot] = (number(spots[spot >> 6]) >> (spot & 63)) & 1
    return first + end


@rule
def write_history(
    world: World, memory: Memory, seen: Seen, horizon: int, row: BytesOrFloats
) -> int:
    """The bits and what blue remembers, as numbers from 0 to 1; returns how many."""
    write_bits(world, seen, row)
    now, hosts = number(memory.turn), hosts_in(world)
    for host in range(hosts):
        row[4 * hosts + host] = np.float32(memory.scan_turn[host] > 0)
    for host in range(hosts):
        row[5 * hosts + host] = nearness(number(memory.scan_turn[host]), now)
    for host in range(hosts):
        row[6 * hosts + host] = nearness(number(memory.exploit_turn[host]), now)
    for host in range(hosts):
        row[7 * hosts + host] = max(row[5 * hosts + host], row[6 * hosts + host])
    last_verb = write_decoys(world, memory.standing, row, 8 * hosts)
    last_host = last_verb + NUM_VERBS
    for k in range(last_verb, last_host + hosts):
        row[k] = 0
    if memory.last_action != NO_ACTION:
        verb = verb_of(world, memory.last_action)
        if verb < NUM_VERBS:
            row[last_verb + verb] = 1
        if verb < SLEEP or verb >= NUM_VERBS:
            row[last_host + host_of(world, memory.last_action)] = 1
    row[last_host + hosts] = np.float32(now) / np.float32(horizon)
    return last_host + hosts + 1


@rule
def write_memory(world: World, memory: Memory, row: BytesOrFloats, first: int) -> None:
    """What a `memory` observation has after the numbers of a `history` observation."""
    now, hosts = number(memory.turn), hosts_in(world)
    for host in range(hosts):
        row[first + host] = nearness(number(memory.remove_turn[host]), now)
    for host in range(hosts):
        row[first + hosts + host] = nearness(number(memory.restore_turn[host]), now)
    for host in range(hosts):
        row[first + 2 * hosts + host] = np.float32(memory.exploits[host]) / np.float32(MANY)
    style = write_decoys(world, memory.found, row, first + 3 * hosts)
    row[style] = np.float32(memory.style == STAYS)
    row[style + 1] = np.float32(memory.style == ROAMS)


@rule
def write_open(world: World, memory: Memory, seen: Seen, horizon: int, row: BytesOrFloats) -> None:
    """A `belief` observation but for the hidden state: the bits, blue's own work, and the time."""
    hosts = hosts_in(world)
    write_bits(world, seen, row)
    restored = write_decoys(world, memory.standing, row, 4 * hosts)
    for host in range(hosts):
        row[restored + host] = np.float32(memory.restore_turn[host] > 0)
    passed = restored + hosts
    row[passed] = np.float32(memory.turn) / np.float32(horizon)
    for k in range(len(HORIZONS)):
        share = np.float32(memory.turn) / np.float32(HORIZONS[k])
        row[passed + 1 + k] = min(share, np.float32(1))
        row[passed + 1 + len(HORIZONS) + k] = np.float32(share >= 1)


@large_rule
def write_remembered(
    world: World, memory: Memory, seen: Seen, kind: int, horizon: int, row: BytesOrFloats
) -> None:
    """A `history` or a `memory` observation."""
    end = write_history(world, memory, seen, horizon, row)
    if kind == MEMORISED:
        write_memory(world, memory, row, end)


@rule
def is_same_memory(one: Memory, other: Memory) -> bool:
    """Whether two memories will always show the same, if the same happens to both."""
    for host in range(len(one.decoys)):
        if (
            one.scan_turn[host] != other.scan_turn[host]
            or one.exploit_turn[host] != other.exploit_turn[host]
            or one.remove_turn[host] != other.remove_turn[host]
            or one.restore_turn[host] != other.restore_turn[host]
            or one.exploits[host] != other.exploits[host]
            or one.decoys_found[host] != other.decoys_found[host]
        ):
            return False
    is_same = one.last_action == other.last_action and one.style == other.style
    return is_same and is_same_to_belief(one, other)


@rule
def is_same_to_belief(one: Memory, other: Memory) -> bool:
    """The same, of what a `belief` observation shows of a memory."""
    for host in range(len(one.decoys)):
        is_restored, is_other = one.restore_turn[host] > 0, other.restore_turn[host] > 0
        if one.decoys[host] != other.decoys[host] or is_restored != is_other:
            return False
    return one.turn == other.turn
