"""What of a recorded game is compared with its replay, and how a difference is said."""

from collections.abc import Iterator

import numpy as np

from phalanx.cage2.rules.attackers import ESCALATE, EXPLOIT, RED_ACTIONS, SCAN, SWEEP
from phalanx.cage2.rules.network import ACTIVE, NAME_KNOWN, RUNNING, TRUE, UNKNOWN
from phalanx.cage2.rules.observation import NUM_BITS
from phalanx.cage2.rules.scenario import (
    B_LINE,
    DECOYS,
    ENTERPRISE_HOSTS,
    EXPLOIT_PORTS,
    EXPLOITS,
    FIRST_DECOY,
    HOSTS,
    HOSTS_OF_SUBNET,
    LEADERBOARD,
    LURES,
    MEANDER,
    MEETS,
    NO_EXPLOIT,
    NO_HOST,
    NOTHING,
    NUM_HOSTS,
    OP_SERVER0,
    OPERATIONAL,
    READ_ON,
    RESTORE,
    SLEEP,
    SSH,
    SUBNET_OF_HOST,
    SUBNETS,
    USER0,
    USER3,
    USER4,
    VERB_OF_ACTION,
)
from phalanx.verify.traces import Array

PID_REUSED = 1 << 7  # in the recording's `misc`


def compare_moves(
    recorded: dict[str, Array], nets: Array, log: Array
) -> Iterator[tuple[str, Array, Array]]:
    """What was done in a turn, as recorded and as replayed."""
    verbs = VERB_OF_ACTION[recorded["blue"]]
    decoy = (verbs >= FIRST_DECOY) & (verbs < RESTORE)
    placed = np.where(decoy, log["decoy"] != NO_HOST, TRUE)
    shell = (log["red"] == EXPLOIT) & (nets["succeeded"] == TRUE) & (log["exploit"] != SSH)
    yield "blue success", recorded["blue_ok"], np.where(verbs == SLEEP, UNKNOWN, placed)
    yield (
        "red move",
        _pairs(recorded["red"], recorded["red_tgt"]),
        _pairs(log["red"], log["target"]),
    )
    yield "exploit", recorded["exploit"], log["exploit"]
    yield "red success", recorded["red_ok"], nets["succeeded"]
    yield "detection", recorded["detect"], np.where(shell, nets["alert"] != NO_HOST, -1)
    yield "hosts that red is shown", recorded["red_nobs"], _hosts_shown(nets, log)
    yield "green's move", recorded["green"], np.zeros(len(nets), np.int64)
    yield "reward in tenths", recorded["reward10"], -log["cost"]
    yield "observation", recorded["obs"], nets["seen"][:, None] >> np.arange(NUM_BITS) & 1
    yield "agent memory", recorded["mem"], _agent_memory(nets)


def compare_state(recorded: dict[str, Array], nets: Array) -> Iterator[tuple[str, Array, Array]]:
    """What is true after it."""
    yield "known", recorded["known"], _members(nets["known"])
    yield "scanned", recorded["scanned"], _members(nets["scanned"])
    yield "access", recorded["access"], _members(nets["sessions"]) + _members(nets["root"])
    yield "session class", recorded["sess"].astype(np.int64) & 3, _session_class(nets)
    yield "decoys", recorded["decoys"], nets["decoys"]
    yield "files", recorded["files"], _members(nets["files"])
    yield "remembered ports", recorded["red_ports"], nets["ports"]
    yield "hostname known", recorded["hname_known"], _members(nets["named"])
    yield "subnets known", recorded["subnets_known"], nets["subnets"]
    yield "flags", recorded["misc"].astype(np.int64) & ~PID_REUSED, _flags(nets)


def _hosts_shown(nets: Array, log: Array) -> Array:
    """How many hosts red is told of by its move.

    A sweep: those of the subnet. A scan: its target, if it found ports. An escalation: its target
    and the host that it points to. An exploit: both ends of the shell, which are one on User0, and
    both ends of the attempt where something else answered it; over SSH, only the target.
    """
    target, chosen, worked = log["target"], log["exploit"], nets["succeeded"] == TRUE
    held = nets["sessions"] & ENTERPRISE_HOSTS != 0
    reached = held | (SUBNET_OF_HOST[target] != OPERATIONAL)
    lured = nets["decoys"][np.arange(len(nets)), target] & LURES[chosen] != 0
    answered = (chosen != NO_EXPLOIT) & reached & (lured | (MEETS[target, chosen] != NOTHING))
    attempt = np.where(answered, np.where(chosen == SSH, 1, 2), 0)
    shown = [
        (SWEEP, np.where(worked, np.bitwise_count(HOSTS_OF_SUBNET)[target % len(SUBNETS)], 0)),
        (SCAN, nets["found_nothing"] == 0),
        (ESCALATE, np.where(worked, np.bitwise_count(READ_ON)[target], 0)),
        (EXPLOIT, np.where(worked, np.where(target == USER0, 1, 2), attempt)),
    ]
    return np.select([log["red"] == move for move, _ in shown], [many for _, many in shown], 0)


def _pairs(first: Array, second: Array) -> Array:
    return np.stack([first.astype(np.int64), second.astype(np.int64)], axis=1)


def _members(sets: Array) -> Array:
    """Sets of hosts [N] as 0 or 1 per host [N, 13]."""
    return sets[:, None] >> np.arange(NUM_HOSTS) & 1


def _session_class(nets: Array) -> Array:
    """0 none, 1 user that Remove cannot stop, 2 user that it can, 3 root."""
    session, removable, root = (_members(nets[name]) for name in ("sessions", "removable", "root"))
    return np.where(root, 3, np.where(removable, 2, session))


def _flags(nets: Array) -> Array:
    """The bits of the recording's `misc`."""
    service, restored = nets["service"], _members(nets["restored"])
    spoiled = restored & (nets["rules"] == LEADERBOARD)[:, None]
    return (
        (service & RUNNING != 0)
        | (restored[:, OP_SERVER0] == 0) << 1
        | (service & NAME_KNOWN != 0) << 2
        | (service & ACTIVE != 0) << 3
        | (spoiled[:, USER3] == 0) << 4
        | (spoiled[:, USER4] == 0) << 5
    )


def _agent_memory(nets: Array) -> Array:
    """The six numbers in which the recording keeps what the red agent remembers."""
    memory = np.zeros((len(nets), 6), np.int64)
    line, meander = nets["red"] == B_LINE, nets["red"] == MEANDER
    for column, name in enumerate(("line_step", "line_done")):
        memory[line, column] = nets[name][line]
    for column, name in enumerate(("swept", "scan_tried", "exploited", "escalated", "mapped")):
        memory[meander, column] = nets[name][meander]
    last = 100 * nets["last_escalated"].astype(np.int64) + nets["last_exploited"]
    memory[meander, 5] = last[meander]
    return memory


# --- in words -------------------------------------------------------------------------------------

_OK = ("FALSE", "TRUE", "UNKNOWN")
_ACTIVITY = ("None", "Scan", "?", "Exploit")
_COMPROMISED = ("No", "Unknown", "User", "Privileged")
_WORDS: dict[str, tuple[str, ...]] = {
    "blue success": _OK,
    "red success": _OK,
    "exploit": EXPLOITS,
    "access": ("None", "User", "Privileged"),
    "session class": ("none", "user, not removable", "user, removable", "root"),
}


def in_words(name: str, expected: Array, got: Array) -> tuple[str, str | None, object, object]:
    """The first difference within a field: its name, the host, and both values as people say."""
    if name == "red move":
        return name, None, _move(expected), _move(got)
    at = int(np.flatnonzero(np.atleast_1d(expected != got))[0])
    if name == "observation":
        host, activity = at // 4, at % 4 < 2
        names, first = (_ACTIVITY, 4 * host) if activity else (_COMPROMISED, 4 * host + 2)
        kind = "activity" if activity else "compromised"
        pairs = [(int(bits[first]), int(bits[first + 1])) for bits in (expected, got)]
        wanted, shown = (names[a + 2 * b] if {a, b} <= {0, 1} else f"{a} {b}" for a, b in pairs)
        return f"observation ({kind})", HOSTS[host], wanted, shown
    if np.ndim(expected) == 0:
        return name, None, _word(name, int(expected)), _word(name, int(got))
    values = _word(name, int(expected[at])), _word(name, int(got[at]))
    if len(expected) == NUM_HOSTS:
        return name, HOSTS[at], *values
    return f"{name} [{at}]", None, *values


def _move(move: Array) -> str:
    action, target = (int(part) for part in move)
    names = SUBNETS if action == SWEEP else HOSTS
    where = names[target] if 0 <= target < len(names) else "" if target == -1 else str(target)
    what = RED_ACTIONS[action] if 0 <= action < len(RED_ACTIONS) else f"action {action}"
    return f"{what} {where}".rstrip()


def _word(name: str, value: int) -> str | int:
    """A recorded number as the word that it stands for."""
    if name == "decoys":
        return " + ".join(d.name for k, d in enumerate(DECOYS) if value >> k & 1) or "none"
    if name == "remembered ports":
        return ", ".join(str(p) for k, p in enumerate(EXPLOIT_PORTS) if value >> k & 1) or "none"
    words = _WORDS.get(name, ())
    if 0 <= value < len(words):
        return words[value]
    return "none" if words and value == -1 else value
