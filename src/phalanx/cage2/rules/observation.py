"""What blue sees of a network: 52 bits. What blue can remember: numbers made of them and of its own
actions.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.hidden import HIDDEN_SIZE
from phalanx.cage2.rules.network import Network
from phalanx.cage2.rules.scenario import (
    DECOY_SPOTS,
    FIRST_DECOY,
    HORIZONS,
    HOST_OF_ACTION,
    NUM_ACTIONS,
    NUM_HOSTS,
    NUM_VERBS,
    PLACEABLE,
    REMOVE,
    RESTORE,
    SLEEP,
    VERB_OF_ACTION,
)
from phalanx.cage2.settings import OBSERVATIONS
from phalanx.compiled.bits import has, number, only
from phalanx.compiled.rule import kernel, rule
from phalanx.errors import ConfigError, choices

# --- the 52 bits: four per host, activity (two) and compromised (two), first bit lowest -----------

NUM_BITS = 4 * NUM_HOSTS
NO_ACTIVITY, SCAN_SEEN, EXPLOIT_SEEN = 0b00, 0b01, 0b11
CLEAN, UNSURE, USER_LEVEL, PRIVILEGED = 0b0000, 0b0100, 0b1000, 0b1100
ACTIVITY_OF_ALL = int("0011" * NUM_HOSTS, 2)
COMPROMISED_OF_ALL = int("1100" * NUM_HOSTS, 2)


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
def forget_activity(net: Network) -> None:
    """Activity is shown only for the turn in which it happens."""
    net.seen &= COMPROMISED_OF_ALL


@rule
def mark_cleaned(net: Network, host: int) -> None:
    """After Restore the table says No, whatever is true."""
    net.seen &= ~(number(PRIVILEGED) << (4 * host))


@rule
def mark_removed(net: Network, host: int) -> None:
    """After Remove the table says Unknown, unless it said No.

    [Q2] It says so even if the session survived.
    """
    if net.seen & (number(PRIVILEGED) << (4 * host)):
        mark_cleaned(net, host)
        net.seen |= number(UNSURE) << (4 * host)


@rule
def mark_activity(net: Network, host: int, seen: int) -> None:
    """Show the turn's activity.

    [Q11] An exploit sets the host to User, also where it was Privileged.
    """
    net.seen |= number(seen) << (4 * host)
    if seen == EXPLOIT_SEEN:
        mark_cleaned(net, host)
        net.seen |= number(USER_LEVEL) << (4 * host)


@rule
def mark_malware(net: Network, host: int) -> None:
    """Analyse found malware: Privileged, also over what the same turn's exploit said."""
    net.seen |= number(PRIVILEGED) << (4 * host)


@rule
def write_bits(seen: int, row: Any) -> None:
    """The 52 bits as 52 values."""
    for k in range(NUM_BITS):
        row[k] = (seen >> k) & 1


@rule
def read_bits(row: Any) -> int:
    """52 values as the 52 bits."""
    seen = number(0)
    for k in range(NUM_BITS):
        if row[k]:
            seen |= number(1) << k
    return seen


# --- memory: everything in it follows from the 52 bits and blue's own actions ---------------------

MEMORY = np.dtype(
    [
        ("turn", np.uint16),  # turns played in this episode
        ("scan_turn", np.uint16, NUM_HOSTS),  # when the host last showed a scan; 0: never
        ("exploit_turn", np.uint16, NUM_HOSTS),  # ... an exploit
        ("decoys", np.uint8, NUM_HOSTS),  # decoys that stand by blue's own doing
        ("last_action", np.uint8),  # NUM_ACTIONS before the first
        # only for `memory` observations
        ("remove_turn", np.uint16, NUM_HOSTS),  # when blue last removed there; 0: never
        ("restore_turn", np.uint16, NUM_HOSTS),  # ... restored
        ("exploits", np.uint8, NUM_HOSTS),  # how often the host showed an exploit
        ("decoys_found", np.uint8, NUM_HOSTS),  # decoys that ever stood while the host was scanned
        ("style", np.uint8),  # of the attacker: UNTOLD, STAYS or ROAMS
    ],
    align=True,
)
Memory = Any  # one record of MEMORY inside a rule

# Where each part of a `history` observation begins.
SCANNED_BEFORE = NUM_BITS  # 1 if the host ever showed a scan
SINCE_SCAN = SCANNED_BEFORE + NUM_HOSTS  # 1 / (1 + turns since it last did), 0 if never
SINCE_EXPLOIT = SINCE_SCAN + NUM_HOSTS
SINCE_ACTIVITY = SINCE_EXPLOIT + NUM_HOSTS  # since either
STANDING = SINCE_ACTIVITY + NUM_HOSTS  # one per decoy that can stand, in the order of DECOY_SPOTS
LAST_VERB = STANDING + len(
    DECOY_SPOTS
)  # one-hot: Analyse, Remove, the decoys, Restore, Sleep, Monitor
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
OBS_SIZES = dict(zip(OBSERVATIONS, _SIZES, strict=True))
BITS, HISTORY, MEMORISED, TRUE, BELIEVED = range(5)  # the same for rules, in the same order


def observation_kind(name: str) -> int:
    if name not in OBSERVATIONS:
        raise ConfigError(choices("observation", name, OBSERVATIONS))
    return OBSERVATIONS.index(name)


_SPOT_HOSTS = np.array([host for host, _ in DECOY_SPOTS], np.int64)
_SPOT_DECOYS = np.array([decoy for _, decoy in DECOY_SPOTS], np.int64)


@rule
def forget(memory: Memory) -> None:
    """A new episode: nothing was seen, nothing done."""
    memory.turn = 0
    for host in range(NUM_HOSTS):
        memory.scan_turn[host] = 0
        memory.exploit_turn[host] = 0
        memory.decoys[host] = 0
        memory.remove_turn[host] = 0
        memory.restore_turn[host] = 0
        memory.exploits[host] = 0
        memory.decoys_found[host] = 0
    memory.last_action = NUM_ACTIONS
    memory.style = UNTOLD


@rule
def remember(memory: Memory, action: int, seen: int) -> None:
    """Take in one turn: blue's own action and the bits that it was shown."""
    memory.turn += 1
    memory.last_action = action
    verb, host = number(VERB_OF_ACTION[action]), number(HOST_OF_ACTION[action])
    if verb == REMOVE:
        memory.remove_turn[host] = memory.turn
    elif verb == RESTORE:
        memory.restore_turn[host] = memory.turn
        memory.decoys[host] = 0
    elif FIRST_DECOY <= verb < RESTORE and has(
        PLACEABLE[host, memory.decoys[host]], verb - FIRST_DECOY
    ):
        memory.decoys[host] |= only(verb - FIRST_DECOY)
    active = seen & ACTIVITY_OF_ALL
    if memory.turn == SECOND_SCAN:
        memory.style = style_of(memory, active)
    if active:
        for host in range(NUM_HOSTS):
            shown = (active >> (4 * host)) & 0b11
            if shown == SCAN_SEEN:
                memory.scan_turn[host] = memory.turn
                memory.decoys_found[host] |= memory.decoys[host]
            elif shown == EXPLOIT_SEEN:
                memory.exploit_turn[host] = memory.turn
                memory.exploits[host] = min(MANY, memory.exploits[host] + 1)


@rule
def is_same_memory(one: Memory, other: Memory) -> bool:
    """Whether two memories will always show the same, if the same happens to both."""
    for host in range(NUM_HOSTS):
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
    for host in range(NUM_HOSTS):
        is_restored, is_other = one.restore_turn[host] > 0, other.restore_turn[host] > 0
        if one.decoys[host] != other.decoys[host] or is_restored != is_other:
            return False
    return one.turn == other.turn


@rule
def style_of(memory: Memory, active: int) -> int:
    """Who scans a first host in turn 2 either stays with it in turn 3, or goes on to another."""
    style = UNTOLD
    for host in range(NUM_HOSTS):
        if memory.scan_turn[host] == SECOND_SCAN - 1:
            others = active & ~(number(0b11) << (4 * host))
            style = ROAMS if others else STAYS
    return style


@rule
def nearness(turn: int, now: int) -> np.float32:
    """1 for this turn, 1/2 for the last, 1/3 for the one before, ...; 0 for never."""
    return np.float32(0) if turn == 0 else np.float32(1) / np.float32(1 + now - turn)


@rule
def write_history(memory: Memory, seen: int, horizon: int, row: Any) -> None:
    """The 52 bits and what blue remembers, as HISTORY_SIZE numbers from 0 to 1."""
    write_bits(seen, row)
    now = number(memory.turn)
    for host in range(NUM_HOSTS):
        scan, exploit = number(memory.scan_turn[host]), number(memory.exploit_turn[host])
        row[SCANNED_BEFORE + host] = np.float32(scan > 0)
        row[SINCE_SCAN + host] = nearness(scan, now)
        row[SINCE_EXPLOIT + host] = nearness(exploit, now)
        row[SINCE_ACTIVITY + host] = nearness(max(scan, exploit), now)
    for spot in range(len(_SPOT_HOSTS)):
        row[STANDING + spot] = (memory.decoys[_SPOT_HOSTS[spot]] >> _SPOT_DECOYS[spot]) & 1
    for k in range(LAST_VERB, SHARE_PASSED):
        row[k] = 0
    action = number(memory.last_action)
    if action < NUM_ACTIONS:
        row[LAST_VERB + number(VERB_OF_ACTION[action])] = 1
        if VERB_OF_ACTION[action] < SLEEP:
            row[LAST_HOST + number(HOST_OF_ACTION[action])] = 1
    row[SHARE_PASSED] = np.float32(now) / np.float32(horizon)


@rule
def write_memory(memory: Memory, row: Any) -> None:
    """What a `memory` observation has after the numbers of a `history` observation."""
    now = number(memory.turn)
    for host in range(NUM_HOSTS):
        row[SINCE_REMOVE + host] = nearness(number(memory.remove_turn[host]), now)
        row[SINCE_RESTORE + host] = nearness(number(memory.restore_turn[host]), now)
        row[EXPLOITS + host] = np.float32(memory.exploits[host]) / np.float32(MANY)
    for spot in range(len(_SPOT_HOSTS)):
        row[FOUND + spot] = (memory.decoys_found[_SPOT_HOSTS[spot]] >> _SPOT_DECOYS[spot]) & 1
    row[STYLE] = np.float32(memory.style == STAYS)
    row[STYLE + 1] = np.float32(memory.style == ROAMS)


@rule
def write_open(memory: Memory, seen: int, horizon: int, row: Any) -> None:
    """A `belief` observation but for the hidden state: the bits, blue's own work, and the time."""
    write_bits(seen, row)
    for spot in range(len(_SPOT_HOSTS)):
        row[OWN_DECOYS + spot] = (memory.decoys[_SPOT_HOSTS[spot]] >> _SPOT_DECOYS[spot]) & 1
    for host in range(NUM_HOSTS):
        row[RESTORED + host] = np.float32(memory.restore_turn[host] > 0)
    row[PASSED] = np.float32(memory.turn) / np.float32(horizon)
    for k in range(len(HORIZONS)):
        share = np.float32(memory.turn) / np.float32(HORIZONS[k])
        row[PASSED_OF + k] = min(share, np.float32(1))
        row[IS_PAST + k] = np.float32(share >= 1)


@rule
def write_what_is_seen(memory: Memory, seen: int, kind: int, horizon: int, row: Any) -> None:
    """The observation of this kind, as far as it is no secret."""
    if kind == BITS:
        write_bits(seen, row)
    elif kind >= TRUE:
        write_open(memory, seen, horizon, row)
    else:
        write_history(memory, seen, horizon, row)
        if kind == MEMORISED:
            write_memory(memory, row)


@rule
def write_truth(net: Network, row: Any) -> None:
    """Red's true standing on each host: address known, ports known, access from 0 to 1."""
    for host in range(NUM_HOSTS):
        row[host] = (net.known >> host) & 1
        row[NUM_HOSTS + host] = (net.scanned >> host) & 1
        row[2 * NUM_HOSTS + host] = (
            np.float32(((net.sessions >> host) & 1) + ((net.root >> host) & 1)) / 2
        )


@kernel
def write_masks(decoys: Any, masks: Any) -> None:
    for i in range(len(decoys)):
        for action in range(NUM_ACTIONS):
            verb, host = number(VERB_OF_ACTION[action]), number(HOST_OF_ACTION[action])
            masks[i, action] = (
                verb < FIRST_DECOY
                or verb >= RESTORE
                or has(PLACEABLE[host, decoys[i, host]], verb - FIRST_DECOY)
            )


def action_masks(decoys: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """bool [N, 145]: False for a decoy that blue knows it cannot place. decoys: uint8 [N, 13] that
    stand.
    """
    masks = np.empty((len(decoys), NUM_ACTIONS), np.bool_)
    write_masks(decoys, masks)
    return masks
