"""What blue sees of a network: 52 bits. What blue can remember: numbers made of them and of its own
actions.
"""

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.blue import placeable
from phalanx.cage2.rules.hidden import HIDDEN_SIZE
from phalanx.cage2.rules.network import Network
from phalanx.cage2.rules.scenario import (
    DECOY_SPOTS,
    FIRST_DECOY,
    HORIZONS,
    NUM_HOSTS,
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
    verb_of,
)
from phalanx.cage2.settings import OBSERVATIONS
from phalanx.compiled.bits import has, lowest, number, only
from phalanx.compiled.rule import Record, rule
from phalanx.compiled.spread import BytesOrFloats, spread_for
from phalanx.errors import ConfigError, choices

# --- the bits: four per host, activity (two) and compromised (two), first bit lowest --------------

NUM_BITS = 4 * NUM_HOSTS
BITS_PER_WORD = 4 * HOSTS_PER_WORD
NO_ACTIVITY, SCAN_SEEN, EXPLOIT_SEEN = 0b00, 0b01, 0b11
CLEAN, UNSURE, USER_LEVEL, PRIVILEGED = 0b0000, 0b0100, 0b1000, 0b1100
ACTIVITY_OF_ALL = np.int64(int("0011" * HOSTS_PER_WORD, 2))
COMPROMISED_OF_ALL = ~ACTIVITY_OF_ALL

Seen = npt.NDArray[np.int64]  # what blue sees of a network, sixteen hosts a word


@rule
def activity(connections: int, ports: int, shell_seen: bool, new_decoy: bool) -> int:
    """How the challenge's table names what happened on a host in this turn.

    [Q12] A decoy placed there in the same turn is counted as one more entry, and listed first.
    """
    if connections == 0:
        return NO_ACTIVITY
    entries = connections + new_decoy
    if entries >= 3 and ports >= 3:
        return SCAN_SEEN
    if shell_seen or (entries >= 3 and ports == 1):
        return EXPLOIT_SEEN
    return NO_ACTIVITY if new_decoy else SCAN_SEEN


@rule
def word_of(host: int) -> int:
    """The word that the bits of a host are in: sixteen hosts share one."""
    return host >> 4


@rule
def shift_of(host: int) -> int:
    """Where they begin in it."""
    return 4 * (host & 15)


@rule
def shown_of(seen: Seen, host: int) -> int:
    """The four bits of a host."""
    return (number(seen[word_of(host)]) >> shift_of(host)) & 0b1111


@rule
def add_bits(net: Network, host: int, bits: int) -> None:
    net.seen[word_of(host)] |= number(bits) << shift_of(host)


@rule
def forget_activity(net: Network) -> None:
    """Activity is shown only for the turn in which it happens."""
    for word in range(len(net.seen)):
        net.seen[word] &= COMPROMISED_OF_ALL


@rule
def mark_cleaned(net: Network, host: int) -> None:
    """After Restore the table says No, whatever is true."""
    net.seen[word_of(host)] &= ~(number(PRIVILEGED) << shift_of(host))


@rule
def mark_removed(net: Network, host: int) -> None:
    """After Remove the table says Unknown, unless it said No.

    [Q2] It says so even if the session survived.
    """
    if shown_of(net.seen, host) & PRIVILEGED:
        mark_cleaned(net, host)
        add_bits(net, host, UNSURE)


@rule
def mark_activity(net: Network, host: int, seen: int) -> None:
    """Show the turn's activity.

    [Q11] An exploit sets the host to User, also where it was Privileged.
    """
    add_bits(net, host, seen)
    if seen == EXPLOIT_SEEN:
        mark_cleaned(net, host)
        add_bits(net, host, USER_LEVEL)


@rule
def mark_malware(net: Network, host: int) -> None:
    """Analyse found malware: Privileged, also over what the same turn's exploit said."""
    add_bits(net, host, PRIVILEGED)


@rule
def write_bits(world: World, seen: Seen, row: BytesOrFloats) -> None:
    """The bits, a value each."""
    hosts, values = hosts_in(world), spread_for(row)
    for pair in range(hosts // 2):  # two hosts have a byte, and its bits are copied at once
        shown = (number(seen[pair >> 3]) >> (8 * (pair & 7))) & 255
        for k in range(8):
            row[8 * pair + k] = values[shown, k]
    if hosts % 2:
        shown = shown_of(seen, hosts - 1)
        for k in range(4):
            row[4 * hosts - 4 + k] = values[shown, k]


@rule
def read_bits(world: World, row: BytesOrFloats, seen: Seen) -> None:
    """Values as the bits that they stand for."""
    for word in range(len(seen)):
        seen[word] = 0
    for k in range(4 * hosts_in(world)):
        if row[k]:
            seen[k // BITS_PER_WORD] |= number(1) << (k % BITS_PER_WORD)


# --- memory: everything in it follows from the 52 bits and blue's own actions ---------------------


def memory_dtype(num_hosts: int) -> np.dtype[np.void]:
    """A record with room for so many hosts."""
    return np.dtype(
        [
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
        ],
        align=True,
    )


MEMORY = memory_dtype(NUM_HOSTS)  # of CAGE-2
NO_ACTION = 0xFFFF
Memory = Record  # one record of it inside a rule

# Where each part of a `history` observation begins: these are the places in CAGE-2; other networks
# have more or fewer hosts and decoys in each.
SCANNED_BEFORE = NUM_BITS  # 1 if the host ever showed a scan
SINCE_SCAN = SCANNED_BEFORE + NUM_HOSTS  # 1 / (1 + turns since it last did), 0 if never
SINCE_EXPLOIT = SINCE_SCAN + NUM_HOSTS
SINCE_ACTIVITY = SINCE_EXPLOIT + NUM_HOSTS  # since either
STANDING = SINCE_ACTIVITY + NUM_HOSTS  # one per decoy that can stand, in the order of DECOY_SPOTS
LAST_VERB = STANDING + len(DECOY_SPOTS)  # one-hot, in the order of VERBS
LAST_HOST = LAST_VERB + NUM_VERBS  # one-hot; nothing for Sleep and Monitor
SHARE_PASSED = LAST_HOST + NUM_HOSTS  # turns played / horizon
HISTORY_SIZE = SHARE_PASSED + 1

# ... and of a `memory` observation, after those.
SINCE_REMOVE = HISTORY_SIZE
SINCE_RESTORE = SINCE_REMOVE + NUM_HOSTS
EXPLOITS = SINCE_RESTORE + NUM_HOSTS  # exploits seen, as a share of MANY
FOUND = EXPLOITS + NUM_HOSTS  # one per decoy that red can know of, in the order of DECOY_SPOTS
STYLE = FOUND + len(DECOY_SPOTS)  # one-hot: the attacker stays at its first host, or roams
MEMORY_SIZE = STYLE + 2
MANY = 8
UNTOLD, STAYS, ROAMS = range(3)
SECOND_SCAN = 3  # the turn in which an attacker shows its style

# What the critic is shown of the truth while training.
TRUTH_SIZE = 3 * NUM_HOSTS

# Where each part of a `belief` observation begins, before what is hidden; nothing else matters.
OWN_DECOYS = NUM_BITS  # one per decoy that can stand, in the order of DECOY_SPOTS
RESTORED = OWN_DECOYS + len(DECOY_SPOTS)  # [13] blue has restored the host in this episode
PASSED = RESTORED + NUM_HOSTS  # turns played / horizon
PASSED_OF = PASSED + 1  # turns played as a share of each of the challenge's horizons, 1 at most
IS_PAST = PASSED_OF + len(HORIZONS)  # 1 after each of the challenge's horizons
OPEN_SIZE = IS_PAST + len(HORIZONS)

_SIZES = (
    NUM_BITS, HISTORY_SIZE, MEMORY_SIZE, OPEN_SIZE + HIDDEN_SIZE, OPEN_SIZE + HIDDEN_SIZE,
)  # fmt: skip
OBS_SIZES = dict(zip(OBSERVATIONS, _SIZES, strict=True))  # of CAGE-2
BITS, HISTORY, MEMORISED, TRUE, BELIEVED = range(5)  # the same for rules, in the same order


def observation_kind(name: str) -> int:
    if name not in OBSERVATIONS:
        raise ConfigError(choices("observation", name, OBSERVATIONS))
    return OBSERVATIONS.index(name)


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
        memory.decoys[host] = 0
    elif FIRST_DECOY <= verb < RESTORE and has(
        placeable(world, host, memory.decoys[host]), verb - FIRST_DECOY
    ):
        memory.decoys[host] |= only(verb - FIRST_DECOY)
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
                memory.decoys_found[host] |= memory.decoys[host]
            elif shown == EXPLOIT_SEEN:
                memory.exploit_turn[host] = memory.turn
                memory.exploits[host] = min(MANY, memory.exploits[host] + 1)


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
def write_decoys(
    world: World, decoys: npt.NDArray[np.uint8], row: BytesOrFloats, first: int
) -> int:
    """Sets of decoys [host], one number for each that can stand; returns where they end."""
    for spot in range(world.num_decoy_spots):
        standing = number(decoys[world.decoy_spot_host[spot]])
        row[first + spot] = (standing >> number(world.decoy_spot[spot])) & 1
    return first + number(world.num_decoy_spots)


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
    last_verb = write_decoys(world, memory.decoys, row, 8 * hosts)
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
    style = write_decoys(world, memory.decoys_found, row, first + 3 * hosts)
    row[style] = np.float32(memory.style == STAYS)
    row[style + 1] = np.float32(memory.style == ROAMS)


@rule
def write_open(world: World, memory: Memory, seen: Seen, horizon: int, row: BytesOrFloats) -> None:
    """A `belief` observation but for the hidden state: the bits, blue's own work, and the time."""
    hosts = hosts_in(world)
    write_bits(world, seen, row)
    restored = write_decoys(world, memory.decoys, row, 4 * hosts)
    for host in range(hosts):
        row[restored + host] = np.float32(memory.restore_turn[host] > 0)
    passed = restored + hosts
    row[passed] = np.float32(memory.turn) / np.float32(horizon)
    for k in range(len(HORIZONS)):
        share = np.float32(memory.turn) / np.float32(HORIZONS[k])
        row[passed + 1 + k] = min(share, np.float32(1))
        row[passed + 1 + len(HORIZONS) + k] = np.float32(share >= 1)


@rule
def write_what_is_seen(
    world: World, memory: Memory, seen: Seen, kind: int, horizon: int, row: BytesOrFloats
) -> None:
    """The observation of this kind, as far as it is no secret."""
    if kind == BITS:
        write_bits(world, seen, row)
    elif kind >= TRUE:
        write_open(world, memory, seen, horizon, row)
    else:
        end = write_history(world, memory, seen, horizon, row)
        if kind == MEMORISED:
            write_memory(world, memory, row, end)


@rule
def write_truth(net: Network, hosts: int, row: BytesOrFloats) -> None:
    """Red's true standing on each host: address known, ports known, access from 0 to 1."""
    for host in range(hosts):
        row[host] = (net.known >> host) & 1
        row[hosts + host] = (net.scanned >> host) & 1
        row[2 * hosts + host] = (
            np.float32(((net.sessions >> host) & 1) + ((net.root >> host) & 1)) / 2
        )
