"""An episode turn by turn, as numbers and words that a viewer can draw and anybody can read."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.network import RUNNING, Networks
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, NO_HOST, RULE_SETS
from phalanx.cage2.rules.world import Worlds
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.read import CAGE2, CAGE2_WORLDS
from phalanx.cage2.settings import DEFAULT_PRIOR
from phalanx.files import Facts
from phalanx.show.replay.blue_belief import BlueBelief
from phalanx.show.replay.place import Ints, Place
from phalanx.show.replay.scenario_facts import scenario_facts
from phalanx.show.replay.turn_log import Dice, Turn, play_and_tell
from phalanx.show.replay.turn_words import RED_KINDS, blue_words, green_words, red_words

FORMAT, VERSION = "phalanx-trajectory", 1
LIKELY = 5  # actions of a policy that are told
SCAN_SHOWN, EXPLOIT_SHOWN = 1, 3
BELIEFS = ("session", "root", "attackers", "states", "entropy")
STATES = ("access", "known", "files", "decoys", "activity", "compromised")

Trajectory = Facts  # or a play of it: docs/trajectory.md says what is in it


class Recorder:
    """Writes down an episode while it is played, by anybody.

    recorder = Recorder(batch.nets[:1], policy="mine", seed=7)    # the record as the episode begins
    turn = recorder.play(action)          # the same turn as the game's: equal records, equal dice
    recorder.play(action, likely=[(action, 0.9)], value=-7.8)     # and what a policy thought
    recorder.trajectory()                 # at any time

    seed: of the game's dice, if that is known. prior: whom blue's belief expects; None: no belief
    is kept. scenario, worlds: the network, if it is not CAGE-2, and those of its batch. attackers:
    of a batch in which attackers of the user's own play.
    """

    def __init__(
        self,
        nets: Networks,
        *,
        policy: str,
        seed: int | None,
        episode: int = 0,
        source: str = "phalanx",
        horizon: int | None = None,
        prior: str | None = DEFAULT_PRIOR,
        scenario: Scenario = CAGE2,
        worlds: Worlds = CAGE2_WORLDS,
        attackers: Sequence[str] = ALL_RED_AGENTS,
    ) -> None:
        self.nets = nets.copy()
        self.place = Place(scenario, worlds, int(nets["world"][0]))
        self.rules = RULE_SETS[int(nets["rules"][0])]
        self.horizon = int(nets["horizon"][0]) if horizon is None else horizon
        self.turns: list[Turn] = []
        self.notes: list[str] = []
        """what is left out of this play, and why: a sentence each"""
        self.facts: Facts = {
            "policy": policy,
            "attacker": attackers[int(nets["red"][0])],
            "seed": seed,
            "episode": episode,
            "source": source,
        }
        self._states: dict[str, list[object]] = {name: [] for name in STATES}
        self._remembered: dict[str, list[list[int]]] = {"scan": [], "exploit": []}
        self._service = ""
        self._belief = None if prior is None else BlueBelief(self.place, self.rules, prior)
        self._believed: Facts = {name: [] for name in BELIEFS} | {"exact": ""}
        self._likely: list[list[list[int]] | None] = []
        self._values: list[float | None] = []
        self._answers: dict[int, tuple[Mapping[str, object], list[float]]] = {}
        self._look()

    def play(
        self,
        action: int,
        *,
        dice: Dice | None = None,
        likely: Sequence[tuple[int, float]] | None = None,
        value: float | None = None,
    ) -> Turn:
        """Take in a turn: blue's action, by what its policy thought of it.

        dice: loaded ones of a recorded game, if not the record's own.
        likely: actions with their probabilities, most likely first. value: points to come.
        """
        turn = play_and_tell(self.nets, action, self.place, dice)
        assert sum(cost for _, _, cost in turn.costs) == turn.tenths
        self.turns.append(turn)
        if self._belief is not None:
            self._belief.observe(action, self.nets[0])
        told = [[a, round(1000 * p)] for a, p in likely or ()]
        self._likely.append(None if likely is None else told[:LIKELY])
        self._values.append(None if value is None else round(value, 3))
        self._look()
        return turn

    def answer(self, turn: int, what_if: Mapping[str, object], regret: list[float]) -> None:
        """What other actions would have brought in a turn, counted from 0."""
        self._answers[turn] = what_if, regret

    def _look(self) -> None:
        """Write down what is true, what blue is shown, and what it can know."""
        net, states, hosts = self.nets[0], self._states, len(self.place.hosts)
        known, scanned, session, root, files = (
            self.place.members(net, name)
            for name in ("known", "scanned", "sessions", "root", "files")
        )
        states["access"].append(_digits(session + root))
        states["known"].append(_digits(np.maximum(known, 2 * scanned)))
        states["files"].append(_digits(files))
        states["decoys"].append(net["decoys"][:hosts].tolist())
        seen = self.place.shown(net)
        states["activity"].append(_digits(seen & 3))
        states["compromised"].append(_digits(seen >> 2 & 3))
        self._service += str(int(net["service"]) & RUNNING)
        for name, bits in (("scan", SCAN_SHOWN), ("exploit", EXPLOIT_SHOWN)):
            before = self._remembered[name][-1:] or [[0] * hosts]
            now = np.where(seen & 3 == bits, len(self.turns), before[0])
            self._remembered[name].append(now.tolist())
        if self._belief is not None:
            self._write_belief(self._belief)

    def _write_belief(self, belief: BlueBelief) -> None:
        told = self._believed
        for name, held in (("session", "sessions"), ("root", "root")):
            told[name].append(_thousandths(belief.chances(held)))
        attackers = {name: round(1000 * p) for name, p in belief.attackers().items()}
        told["attackers"].append({name: share for name, share in attackers.items() if share})
        told["states"].append(len(belief.weights))
        told["entropy"].append(round(belief.entropy, 2))
        told["exact"] += str(int(belief.surprises == 0 and belief.dropped == 0))
        told["surprises"] = belief.surprises

    @property
    def total(self) -> float:
        """The return so far."""
        return _points(-sum(turn.tenths for turn in self.turns))

    @property
    def _has_green(self) -> bool:
        """Whether green may act, or did in a recorded game."""
        return self.place.green > 0 or any(turn.green != NO_HOST for turn in self.turns)

    def trajectory(self) -> Trajectory:
        """All that was recorded so far (docs/trajectory.md)."""
        return trajectory_of([self])

    def as_play(self) -> Trajectory:
        """The part of a trajectory that tells of this episode."""
        turns = self.turns
        has_likely = any(one is not None for one in self._likely)
        has_values = any(one is not None for one in self._values)
        what_if, regret = (
            [self._answers[t][k] if t in self._answers else None for t in range(len(turns))]
            for k in range(2)
        )
        green = {
            "green_words": [green_words(turn) for turn in turns],
            "green_host": [turn.green for turn in turns],
        }
        return {
            **self.facts,
            "seed": _as_number(self.facts["seed"]),
            **({"notes": self.notes} if self.notes else {}),
            "return": self.total,
            "states": {
                **self._states,
                "remembered": self._remembered,
                "service": self._service,
                "belief": None if self._belief is None else self._believed,
            },
            "turns": {
                "blue": [turn.action for turn in turns],
                "blue_words": [blue_words(turn) for turn in turns],
                "blue_host": [self.place.host_of(turn.action) for turn in turns],
                "red_words": [red_words(turn) for turn in turns],
                "red_kind": [RED_KINDS.get(turn.move, "exploit") for turn in turns],
                "red_host": [turn.target_host for turn in turns],
                "red_success": "".join(str(int(turn.succeeded)) for turn in turns),
                **(green if self._has_green else {}),
                "reward": [_points(-turn.tenths) for turn in turns],
                "costs": [
                    [[cause, host, _points(-tenths)] for cause, host, tenths in turn.costs]
                    for turn in turns
                ],
                "likely": self._likely if has_likely else None,
                "value": self._values if has_values else None,
                "what_if": what_if if self._answers else None,
                "regret": regret if self._answers else None,
            },
        }


def trajectory_of(plays: Sequence[Recorder]) -> Trajectory:
    """One episode, or two on the same dice."""
    first = plays[0]
    return {
        "format": FORMAT,
        "version": VERSION,
        "scenario": scenario_facts(first.rules, first.horizon, first.place),
        "plays": [play.as_play() for play in plays],
    }


def _as_number(seed: int | None) -> int | str | None:
    """A seed for whoever reads JSON: JavaScript rounds whole numbers of more than 53 bits."""
    return seed if seed is None or seed < 1 << 53 else str(seed)


def _digits(numbers: Ints) -> str:
    return "".join(map(str, numbers.tolist()))


def _thousandths(chances: npt.NDArray[np.float64]) -> list[int]:
    rounded: list[int] = np.rint(1000 * chances).astype(int).tolist()
    return rounded


def _points(tenths: int) -> float:
    return tenths / 10 if tenths else 0.0  # no minus zero
