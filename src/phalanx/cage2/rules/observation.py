"""What blue sees of a network: 52 bits. Where observations have what."""

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.hidden import HIDDEN_SIZE
from phalanx.cage2.rules.network import Network
from phalanx.cage2.rules.scenario import (
    DECOY_SPOTS,
    HORIZONS,
    NUM_HOSTS,
    NUM_VERBS,
)
from phalanx.cage2.rules.world import (
    HOSTS_PER_WORD,
    World,
    hosts_in,
)
from phalanx.cage2.settings import OBSERVATIONS
from phalanx.compiled.bits import number
from phalanx.compiled.rule import rule
from phalanx.compiled.spread import BytesOrFloats, spread
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
def word_of(seen: Seen, host: int) -> int:
    """The word that the bits of a host are in: sixteen hosts share one."""
    return host >> 4 if len(seen) > 1 else 0  # the compiler knows how many there are


@rule
def shift_of(host: int) -> int:
    """Where they begin in it."""
    return 4 * (host & 15)


@rule
def shown_of(seen: Seen, host: int) -> int:
    """The four bits of a host."""
    return (number(seen[word_of(seen, host)]) >> shift_of(host)) & 0b1111


@rule
def add_bits(net: Network, host: int, bits: int) -> None:
    net.seen[word_of(net.seen, host)] |= number(bits) << shift_of(host)


@rule
def forget_activity(net: Network) -> None:
    """Activity is shown only for the turn in which it happens."""
    for word in range(len(net.seen)):
        net.seen[word] &= COMPROMISED_OF_ALL


@rule
def mark_cleaned(net: Network, host: int) -> None:
    """After Restore the table says No, whatever is true."""
    net.seen[word_of(net.seen, host)] &= ~(number(PRIVILEGED) << shift_of(host))


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
    hosts = hosts_in(world)
    for pair in range(hosts // 2):  # two hosts have a byte
        spread(number(seen[pair >> 3]) >> (8 * (pair & 7)), row, 8 * pair)
    if hosts % 2:  # the last but one again
        last = shown_of(seen, hosts - 2) | shown_of(seen, hosts - 1) << 4
        spread(last, row, 4 * hosts - 8)


@rule
def read_bits(world: World, row: BytesOrFloats, seen: Seen) -> None:
    """Values as the bits that they stand for."""
    for word in range(len(seen)):
        seen[word] = 0
    for k in range(4 * hosts_in(world)):
        if row[k]:
            seen[k // BITS_PER_WORD] |= number(1) << (k % BITS_PER_WORD)


# --- where observations of other kinds have their numbers -----------------------------------------


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
def write_truth(net: Network, hosts: int, row: BytesOrFloats) -> None:
    """Red's true standing on each host: address known, ports known, access from 0 to 1."""
    for host in range(hosts):
        row[host] = (net.known >> host) & 1
        row[hosts + host] = (net.scanned >> host) & 1
        row[2 * hosts + host] = (
            np.float32(((net.sessions >> host) & 1) + ((net.root >> host) & 1)) / 2
        )
