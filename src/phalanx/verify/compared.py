"""What of a recorded game is compared with its replay, and how a difference is said."""

from collections.abc import Iterator

import numpy as np

from phalanx.arrays import Array
from phalanx.cage2.rules.network import ACTIVE, NAME_KNOWN, RUNNING, TRUE, UNKNOWN
from phalanx.cage2.rules.red_actions import ESCALATE, EXPLOIT, IMPACT, SCAN, SWEEP, red_action_name
from phalanx.cage2.rules.scenario import (
    B_LINE,
    DECOYS,
    EXPLOIT_PORTS,
    EXPLOITS,
    FIRST_DECOY,
    HARAKA,
    LEADERBOARD,
    LURES,
    MEANDER,
    NO_EXPLOIT,
    NO_HOST,
    NOTHING,
    RESTORE,
    SLEEP,
    SSH,
)
from phalanx.cage2.scenario.plan import Scenario

PID_REUSED = 1 << 7  # in the recording's `misc`
SPOILABLE = ("User3", "User4")  # hosts whose Haraka it tells of


class Compared:
    """What is compared of games in one scenario."""

    def __init__(self, scenario: Scenario, world: np.void) -> None:
        self.names, self.world = scenario.host_names, world
        self.told = [{host.name, *host.addresses, *host.services_told} for host in scenario.hosts]

    def moves(
        self, recorded: dict[str, Array], nets: Array, log: Array
    ) -> Iterator[tuple[str, Array, Array]]:
        """What was done in a turn, as recorded and as replayed."""
        verbs = self.world["verb_of_action"][recorded["blue"]]
        decoy = (verbs >= FIRST_DECOY) & (verbs < RESTORE)
        placed = np.where(decoy, log["decoy"] != NO_HOST, TRUE)
        shell = _is_exploit(log) & (nets["succeeded"] == TRUE) & (log["exploit"] != SSH)
        yield "blue success", recorded["blue_ok"], np.where(verbs == SLEEP, UNKNOWN, placed)
        yield (
            "red move",
            _pairs(recorded["red"], recorded["red_tgt"]),
            _pairs(log["red"], log["target"]),
        )
        yield "exploit", recorded["exploit"], log["exploit"]
        yield "red success", recorded["red_ok"], nets["succeeded"]
        yield "detection", recorded["detect"], np.where(shell, nets["alert"] != NO_HOST, -1)
        yield "hosts that red is shown", recorded["red_nobs"], self._hosts_shown(nets, log)
        yield "green's move", recorded["green"], log["green"] + 1
        yield "reward in tenths", recorded["reward10"], -log["cost"]
        yield "observation", recorded["obs"], self._bits(nets)
        yield "agent memory", recorded["mem"], _agent_memory(nets)

    def state(self, recorded: dict[str, Array], nets: Array) -> Iterator[tuple[str, Array, Array]]:
        """What is true after it."""
        sessions, root = self._members(nets["sessions"]), self._members(nets["root"])
        if is_own(nets):  # of the oldest session [Q15]; other attackers' are root at once
            root = self._members(nets["oldest_root"])
            kinds = np.where(root, 3, np.where(nets["ahead"] > 0, 2, sessions))
            yield from self._own_state(recorded, nets)
        else:
            kinds = np.where(root, 3, np.where(self._members(nets["removable"]), 2, sessions))
        yield "known", recorded["known"], self._members(nets["known"])
        yield "scanned", recorded["scanned"], self._members(nets["scanned"])
        yield "access", recorded["access"], sessions + root
        yield "session class", recorded["sess"].astype(np.int64) & 3, kinds
        yield "decoys", recorded["decoys"], nets["decoys"]
        yield "files", recorded["files"], self._members(nets["files"])
        yield "remembered ports", recorded["red_ports"], nets["ports"]
        yield "hostname known", recorded["hname_known"], self._members(nets["named"])
        yield "subnets known", recorded["subnets_known"], nets["subnets"]
        yield "flags", recorded["misc"].astype(np.int64) & ~PID_REUSED, self._flags(nets)

    def _own_state(
        self, recorded: dict[str, Array], nets: Array
    ) -> Iterator[tuple[str, Array, Array]]:
        """What counts besides where red may hold any number of sessions on a host."""
        removable = nets["ahead"].astype(np.int64) + nets["behind"]
        yield "sessions", recorded["n_sess"], removable + nets["stuck"] + nets["rooted"]
        yield "root sessions", recorded["n_root"], nets["rooted"]
        yield "removable sessions", recorded["n_sus"], removable
        yield "system known", recorded["systems"], self._members(nets["systems"])

    def _members(self, sets: Array) -> Array:
        """Sets of hosts [N] as 0 or 1 per host [N, hosts]."""
        return sets.astype(np.int64)[:, None] >> np.arange(len(self.names)) & 1

    def _bits(self, nets: Array) -> Array:
        """What blue was shown, [N, 4 * hosts]."""
        bits = nets["seen"][:, :, None] >> np.arange(64) & 1
        return bits.reshape(len(nets), -1)[:, : 4 * len(self.names)]

    def _hosts_shown(self, nets: Array, log: Array) -> Array:
        """How many hosts red is told of by its move.

        A sweep: those of the subnet. A scan: its target, if it found ports. An escalation: its
        target and the hosts that it points to. An exploit: both ends of the shell, which are one on
        red's first host, and both ends of the attempt where something else answered it; over SSH,
        only the target.
        """
        world, target, chosen = self.world, log["target"], log["exploit"]
        worked = nets["succeeded"] == TRUE
        rows, keys = np.arange(len(nets)), np.int64(world["keys"])
        held = nets["sessions"].astype(np.int64) & keys != 0
        is_open, is_gated = (
            np.int64(world[name]) >> np.maximum(target, 0) & 1 != 0
            for name in ("open_hosts", "gated_hosts")
        )
        lets = world["let_through"][target % len(self.names)] >> np.maximum(chosen, 0) & 1 != 0
        reached = (is_open | (is_gated & held)) & lets
        lured = nets["decoys"][rows, target % len(self.names)] & LURES[chosen] != 0
        genuine = world["meets"][target % len(self.names), chosen] != NOTHING
        answered = (chosen != NO_EXPLOIT) & reached & (lured | genuine)
        attempt = np.where(answered, np.where(chosen == SSH, 1, 2), 0)
        told = np.array([len(hosts) for hosts in self.told])
        swept = np.bitwise_count(world["hosts_of_subnet"].astype(np.uint64))
        shown = [
            (SWEEP, np.where(worked, swept[target % len(swept)], 0)),
            (SCAN, nets["found_nothing"] == 0),
            (ESCALATE, np.where(worked, told[target % len(told)], 0)),
            (EXPLOIT, np.where(worked, np.where(target == world["start"], 1, 2), attempt)),
        ]
        move = np.where(_is_exploit(log), EXPLOIT, log["red"])
        return np.select([move == one for one, _ in shown], [many for _, many in shown], 0)

    def _flags(self, nets: Array) -> Array:
        """The bits of the recording's `misc`."""
        service, restored = nets["service"], self._members(nets["restored"])
        goal, linked = int(self.world["goal"]), np.ones(len(nets), np.int64)
        if goal != NO_HOST and int(self.world["services"]) >> goal & 1:
            linked = 1 - restored[:, goal]
        flags = (
            (service & RUNNING != 0)
            | linked << 1
            | (service & NAME_KNOWN != 0) << 2
            | (service & ACTIVE != 0) << 3
        )
        for k, name in enumerate(SPOILABLE):
            whole = np.ones(len(nets), np.int64)
            if name in self.names:
                host = self.names.index(name)
                haraka = self.world["meets"][host, HARAKA] != NOTHING
                whole -= restored[:, host] & (nets["rules"] == LEADERBOARD) & haraka
            flags |= whole << (4 + k)
        return flags


def is_own(nets: Array) -> bool:
    """Whether an attacker of the user's own plays."""
    return "memory" in (nets.dtype.names or ())


def _is_exploit(log: Array) -> Array:
    """By itself, or as ExploitRemoteService."""
    return (log["red"] == EXPLOIT) | (log["red"] > IMPACT)


def _pairs(first: Array, second: Array) -> Array:
    return np.stack([first.astype(np.int64), second.astype(np.int64)], axis=1)


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


def in_words(
    scenario: Scenario, name: str, expected: Array, got: Array
) -> tuple[str, str | None, object, object]:
    """The first difference within a field: its name, the host, and both values as people say."""
    hosts = scenario.host_names
    if name == "red move":
        return name, None, _move(scenario, expected), _move(scenario, got)
    at = int(np.flatnonzero(np.atleast_1d(expected != got))[0])
    if name == "observation":
        host, activity = at // 4, at % 4 < 2
        names, first = (_ACTIVITY, 4 * host) if activity else (_COMPROMISED, 4 * host + 2)
        kind = "activity" if activity else "compromised"
        pairs = [(int(bits[first]), int(bits[first + 1])) for bits in (expected, got)]
        wanted, shown = (names[a + 2 * b] if {a, b} <= {0, 1} else f"{a} {b}" for a, b in pairs)
        return f"observation ({kind})", hosts[host], wanted, shown
    if np.ndim(expected) == 0:
        return name, None, _word(name, int(expected)), _word(name, int(got))
    values = _word(name, int(expected[at])), _word(name, int(got[at]))
    if len(expected) == len(hosts):
        return name, hosts[at], *values
    return f"{name} [{at}]", None, *values


def _move(scenario: Scenario, move: Array) -> str:
    action, target = (int(part) for part in move)
    names = scenario.subnet_names if action == SWEEP else scenario.host_names
    where = names[target] if 0 <= target < len(names) else "" if target == -1 else str(target)
    return f"{red_action_name(action)} {where}".rstrip()


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
