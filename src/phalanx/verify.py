"""Replay recorded games of the original through the simulator, and name the first difference."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from phalanx.cage2.attackers import EXPLOIT, RED_ACTIONS, SCAN, SWEEP
from phalanx.cage2.kernel import LOG, allocate, begin_episodes, replay_turn
from phalanx.cage2.network import ACTIVE, LOADED, NAME_KNOWN, NETWORK, RUNNING, TRUE, UNKNOWN
from phalanx.cage2.observation import MEMORY, NUM_BITS
from phalanx.cage2.rule import announce_compilation, records
from phalanx.cage2.scenario import (
    B_LINE,
    DECOYS,
    EXPLOIT_PORTS,
    EXPLOITS,
    FIRST_DECOY,
    HOSTS,
    LEADERBOARD,
    MEANDER,
    NO_HOST,
    NUM_HOSTS,
    OP_SERVER0,
    RESTORE,
    SLEEP,
    SSH,
    SUBNETS,
    USER3,
    USER4,
    VERB_OF_ACTION,
    action_name,
)
from phalanx.cage2.settings import rule_set_number
from phalanx.config import VerifyConfig
from phalanx.errors import TraceError
from phalanx.results import write_json
from phalanx.traces import Array, Traces, read_folder


@dataclass
class Mismatch:
    """Where a replay first left the recording."""

    file: str
    episode: int
    step: int  # counted from 1
    blue_action: str
    field: str
    host: str | None
    expected: object
    got: object

    def __str__(self) -> str:
        where = f" of {self.host}" if self.host else ""
        return (
            f"{self.file}, episode {self.episode}, step {self.step} (blue: {self.blue_action}): "
            f"{self.field}{where} should be {self.expected}, got {self.got}"
        )


@dataclass
class VerifyResult:
    rules: str
    episodes: int = 0
    steps: int = 0
    mismatches: int = 0
    """steps on which anything differs"""
    broken_episodes: int = 0
    first_mismatch: Mismatch | None = None
    by_field: dict[str, int] = field(default_factory=dict)
    reused_pids: int = 0
    """episodes in which the original gave a new shell a suspicious process id again (Q17)"""


def verify(folder: Path, rules: str | None = None) -> VerifyResult:
    """Replay every trace of a folder. `rules` must be those of the traces, if given."""
    if rules is not None:
        rule_set_number(rules)
    all_traces = read_folder(folder)
    for traces in all_traces:
        if rules not in (None, traces.rules):
            raise TraceError(
                f"{traces.path} was recorded under rules {traces.rules}, not {rules}; "
                f"leave --rules out, or give --rules {traces.rules}"
            )
    announce_compilation(replay_turn)
    result = VerifyResult(", ".join(sorted({traces.rules for traces in all_traces})))
    for traces in all_traces:
        replay(traces, result)
    return result


def replay(traces: Traces, result: VerifyResult) -> None:
    """Play all episodes of a file side by side; each takes its outcomes from its own recording."""
    lengths = np.diff(traces.start)
    nets, log = _begin(traces), records(len(traces.red), LOG)
    found = _Differences(traces, result)
    if traces.initial:
        found.compare(0, np.ones(len(nets), np.bool_), None, _compare_state(traces.initial, nets))
    for turn in range(int(lengths.max(initial=0))):
        playing = lengths > turn
        rows = np.where(playing, traces.start[:-1] + turn, 0)
        recorded = {name: values[rows] for name, values in traces.steps.items()}
        replay_turn(nets, playing, recorded["blue"], _loaded_dice(recorded), log)
        compared = chain(_compare_moves(recorded, nets, log), _compare_state(recorded, nets))
        found.compare(turn + 1, playing, recorded["blue"], compared)
    result.episodes += len(nets)
    result.steps += int(lengths.sum())
    result.broken_episodes += int(found.broken.sum())
    flagged = np.flatnonzero(traces.steps["misc"] & PID_REUSED)
    result.reused_pids += len(np.unique(np.searchsorted(traces.start, flagged, side="right")))
    if result.first_mismatch is None:
        result.first_mismatch = found.first()


PID_REUSED = 1 << 7  # in the recording's `misc`


class _Differences:
    """What differed in the episodes of one file, and where each of them first did."""

    def __init__(self, traces: Traces, result: VerifyResult) -> None:
        self.traces, self.result = traces, result
        self.broken = np.zeros(len(traces.red), np.bool_)
        self._firsts: list[Mismatch] = []

    def compare(
        self,
        step: int,
        playing: Array,
        actions: Array | None,
        fields: Iterable[tuple[str, Array, Array]],
    ) -> None:
        """Take in one step of all episodes; step 0 is the beginning."""
        differs = np.zeros_like(self.broken)
        for name, expected, got in fields:
            unequal = (expected != got).reshape(len(playing), -1) & playing[:, None]
            if not unequal.any():
                continue
            self.result.by_field[name] = self.result.by_field.get(name, 0) + int(unequal.sum())
            here = unequal.any(axis=1)
            for episode in np.flatnonzero(here & ~self.broken & ~differs).tolist():
                blue = "reset" if actions is None else action_name(int(actions[episode]))
                words = in_words(name, expected[episode], got[episode])
                place = (self.traces.path.name, episode, step, blue)
                self._firsts.append(Mismatch(*place, *words))
            differs |= here
        self.result.mismatches += int(differs.sum())
        self.broken |= differs

    def first(self) -> Mismatch | None:
        return min(self._firsts, key=lambda one: (one.episode, one.step), default=None)


def _begin(traces: Traces) -> Array:
    n = len(traces.red)
    nets = records(n, NETWORK)
    nets["red_plan"], nets["rules"] = traces.red, rule_set_number(traces.rules)
    everyone, odds = np.ones(n, np.bool_), np.zeros(3, np.int64)
    shown = allocate(n, NUM_BITS, np.float32)
    begin_episodes(nets, records(1, MEMORY), False, everyone, odds, shown)
    return nets


def _loaded_dice(recorded: dict[str, Array]) -> npt.NDArray[np.int64]:
    """What the recorded game drew, as loaded dice [N, 3]; those for which it drew nothing are not
    looked at.
    """
    dice = np.empty((len(recorded["red"]), 3), np.int64)
    dice[:, 0] = LOADED + np.maximum(recorded["red_tgt"].astype(np.int64), 0)
    dice[:, 1] = LOADED + np.maximum(recorded["exploit"].astype(np.int64), 0)
    dice[:, 2] = np.where(recorded["detect"] == 1, 0, LOADED - 1)
    return dice


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
        wanted, shown = (names[int(b[first]) + 2 * int(b[first + 1])] for b in (expected, got))
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


# --- what is compared -----------------------------------------------------------------------------


def _compare_moves(
    recorded: dict[str, Array], nets: Array, log: Array
) -> Iterator[tuple[str, Array, Array]]:
    """What was done in a turn, as recorded and as replayed."""
    verbs = VERB_OF_ACTION[recorded["blue"]]
    decoy = (verbs >= FIRST_DECOY) & (verbs < RESTORE)
    placed = np.where(decoy, log["decoy"] != NO_HOST, TRUE)
    scan = log["red"] == SCAN
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
    yield "scan found ports", scan & (recorded["red_nobs"] > 0), scan & (nets["found_nothing"] == 0)
    yield "reward in tenths", recorded["reward10"], -log["cost"]
    yield "observation", recorded["obs"], nets["seen"][:, None] >> np.arange(NUM_BITS) & 1
    yield "agent memory", recorded["mem"], _agent_memory(nets)


def _compare_state(recorded: dict[str, Array], nets: Array) -> Iterator[tuple[str, Array, Array]]:
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
    yield "flags", recorded["misc"] & ~np.uint8(PID_REUSED), _flags(nets)


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


# --- the command ----------------------------------------------------------------------------------


def main(config: VerifyConfig) -> int:
    """Print episodes, steps, mismatches and the first of them; exit code 1 if there is one."""
    result = verify(config.folder, config.rules)
    if config.json is not None:
        write_json(config.json, dataclasses.asdict(result))
    print(
        f"rules {result.rules}: {result.episodes} episodes, {result.steps} steps, "
        f"{result.mismatches} mismatches"
    )
    if result.first_mismatch is not None:
        print(f"first mismatch: {result.first_mismatch}")
        fields = ", ".join(f"{name} {n}" for name, n in result.by_field.items())
        print(
            f"steps that differ: {result.mismatches} in {result.broken_episodes} episodes; {fields}"
        )
    if result.reused_pids:
        print(
            f"{result.reused_pids} episodes hold a process id that the original used again (Q17): "
            "phalanx does not model it, and may differ there in whether Remove stops that shell"
        )
    return 1 if result.mismatches else 0
