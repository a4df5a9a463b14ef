"""Replay recorded games of the original through the simulator, and name the first difference."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array
from phalanx.cage2.attack.attacker import attacker
from phalanx.cage2.attack.knowledge import View
from phalanx.cage2.attack.own_red import OwnRed
from phalanx.cage2.rules.batch_turn import LOG, allocate, begin_episodes, replay_turn
from phalanx.cage2.rules.mind import NO_MINDS
from phalanx.cage2.rules.network import LOADED, network_dtype
from phalanx.cage2.rules.red_actions import BITS_OF_ACTION
from phalanx.cage2.rules.web_decoys import counts_vsftpd
from phalanx.cage2.rules.world import Worlds, num_hosts_of
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.cage2.scenario.worlds import worlds_of
from phalanx.cage2.settings import FIRST_OWN, rule_set_number
from phalanx.compiled.rule import records
from phalanx.errors import TraceError
from phalanx.verify.compared import PID_REUSED, Compared, in_words
from phalanx.verify.traces import COMPARED_OF_OWN, NOT_COMPARED, Traces, read_folder


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
    """steps on which anything differs; a wrong beginning is one too"""
    broken_episodes: int = 0
    first_mismatch: Mismatch | None = None
    by_field: dict[str, int] = field(default_factory=dict)
    """steps on which each field differs"""
    reused_pids: int = 0
    """episodes in which the original gave a new shell a suspicious process id again (Q17)"""
    not_compared: dict[str, str] = field(default_factory=lambda: dict(NOT_COMPARED))
    """what is recorded, but not compared, and why"""


GAMES = Path(__file__).parent / "golden"  # a folder of recorded games for each rule set


def verify(
    folder: Path = GAMES, rules: str | None = None, red_agent: object = None
) -> VerifyResult:
    """Replay every trace of a folder. `rules` must be those of the traces, if given.

    red_agent: the same attacker for phalanx, where the recorded one is of the user's own: it must
    choose the recorded moves. Without it, these are played.
    """
    if rules is not None:
        rule_set_number(rules)
    played = set()
    for traces in read_folder(folder):  # all that cannot be read is refused before any is played
        played.add(traces.rules)
        if rules not in (None, traces.rules):
            raise TraceError(
                f"{traces.path} was recorded under rules {traces.rules}, not {rules}; "
                f"leave --rules out, or give --rules {traces.rules}"
            )
    result = VerifyResult(", ".join(sorted(played)))
    for traces in read_folder(folder):
        replay(traces, result, red_agent)
    return result


@attacker
def recorded_red(net: View, memory: npt.NDArray[np.int64], die: int) -> int:
    """Plays what was recorded."""
    return memory[0]


def recorded_moves(recorded: dict[str, Array]) -> npt.NDArray[np.int64]:
    """What red did in a turn, as moves, for the memory of `recorded_red`."""
    target = np.maximum(recorded["red_tgt"].astype(np.int64), 0)
    moves: npt.NDArray[np.int64] = recorded["red"].astype(np.int64) | target << BITS_OF_ACTION
    return moves


def replay(traces: Traces, result: VerifyResult, red_agent: object = None) -> None:
    """Play all episodes of a file side by side; each takes its outcomes from its own recording."""
    lengths = np.diff(traces.start)
    worlds = worlds_of([traces.scenario])
    own = None
    if (traces.red == FIRST_OWN).any():
        own = OwnRed((red_agent or recorded_red,), worlds, [traces.scenario])
        for name in COMPARED_OF_OWN:
            result.not_compared.pop(name, None)
    elif red_agent is not None:
        raise TraceError(f"{traces.path} was recorded with an attacker of the original's own")
    nets, log = begin_recorded(traces, worlds), records(len(traces.red), LOG)
    compared, found = Compared(traces.scenario, worlds[0]), _Differences(traces, result)
    if traces.initial:
        everyone = np.ones(len(nets), np.bool_)
        found.compare(0, everyone, None, compared.state(traces.initial, nets))
    for turn in range(int(lengths.max(initial=0))):
        playing = lengths > turn
        rows = np.where(playing, traces.start[:-1] + turn, 0)
        recorded = {name: values[rows] for name, values in traces.steps.items()}
        if own is not None and red_agent is None:
            nets["memory"][:, 0] = recorded_moves(recorded)
        blue = recorded["blue"].astype(np.int64)  # as others give it: it is not compiled twice
        replay_turn(worlds, nets, playing, blue, loaded_dice(recorded), log)
        if own is not None and worlds["refused"].any():
            own.refuse(nets)
        both = chain(compared.moves(recorded, nets, log), compared.state(recorded, nets))
        found.compare(turn + 1, playing, recorded["blue"], both)
    result.episodes += len(nets)
    result.steps += int(lengths.sum())
    result.broken_episodes += int(found.broken.sum())
    flagged = np.flatnonzero(traces.steps["misc"].astype(np.int64) & PID_REUSED)
    result.reused_pids += len(np.unique(np.searchsorted(traces.start, flagged, side="right")))
    if result.first_mismatch is None:
        result.first_mismatch = found.first


class _Differences:
    """Which episodes of one file differ, and where the first of them first does."""

    def __init__(self, traces: Traces, result: VerifyResult) -> None:
        self.traces, self.result = traces, result
        self.broken = np.zeros(len(traces.red), np.bool_)
        self.first: Mismatch | None = None

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
            here = unequal.any(axis=1)
            self.result.by_field[name] = self.result.by_field.get(name, 0) + int(here.sum())
            fresh = np.flatnonzero(here & ~self.broken & ~differs)
            if fresh.size and (self.first is None or fresh[0] < self.first.episode):
                episode = int(fresh[0])
                action_name = self.traces.scenario.action_name
                blue = "reset" if actions is None else action_name(int(actions[episode]))
                words = in_words(self.traces.scenario, name, expected[episode], got[episode])
                self.first = Mismatch(self.traces.path.name, episode, step, blue, *words)
            differs |= here
        self.result.mismatches += int(differs.sum())
        self.broken |= differs


def begin_recorded(traces: Traces, worlds: Worlds = CAGE2_WORLDS) -> Array:
    """The networks of all episodes as they begin, [E]."""
    n, hosts = len(traces.red), num_hosts_of(worlds)
    is_own = bool((traces.red == FIRST_OWN).any())
    nets = records(n, network_dtype(hosts, counts_vsftpd(worlds), is_own))
    nets["red_plan"], nets["rules"] = traces.red, rule_set_number(traces.rules)
    everyone, odds = np.ones(n, np.bool_), np.zeros(3, np.int64)
    shown = allocate(n, 4 * hosts, np.float32, hosts)
    begin_episodes(worlds, nets, NO_MINDS, everyone, odds, shown)
    return nets


def loaded_dice(recorded: dict[str, Array]) -> npt.NDArray[np.int64]:
    """What the recorded game drew, as loaded dice, and where green scanned, [N, 4]; dice for which
    it drew nothing are not looked at.
    """
    dice = np.empty((len(recorded["red"]), 4), np.int64)
    dice[:, 0] = LOADED + np.maximum(recorded["red_tgt"].astype(np.int64), 0)
    dice[:, 1] = LOADED + np.maximum(recorded["exploit"].astype(np.int64), 0)
    if "esc" in recorded:
        raised = recorded["esc"].astype(np.int64)
        dice[:, 1] = np.where(raised >= 0, LOADED + raised, dice[:, 1])
    dice[:, 2] = np.where(recorded["detect"] == 1, 0, LOADED - 1)
    dice[:, 3] = recorded["green"].astype(np.int64) - 1
    return dice
