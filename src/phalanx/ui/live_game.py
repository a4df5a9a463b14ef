"""A game that a person plays as the defender: each turn as Gymnasium plays it, and told in full."""

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from phalanx.cage2.env import Cage2Env
from phalanx.cage2.rules.observation import NUM_BITS
from phalanx.cage2.rules.scenario import (
    DEFAULT_RULES,
    HOST_OF_ACTION,
    HOSTS,
    NUM_HOSTS,
    SLEEP,
    VERB_OF_ACTION,
    VERBS,
)
from phalanx.cage2.settings import (
    checked_seed,
    red_agent_weights,
    refuse_own,
    rule_set_number,
    whole,
)
from phalanx.files import Facts
from phalanx.show.replay.trajectory import Recorder

MOST_TURNS = 500  # that anybody would play by hand
PLAYER = "you"
UNKNOWN = "?" * NUM_HOSTS
TRUTH = ("access", "known", "files")  # rows of a trajectory that no defender is shown
DID = {"Analyse": "analyses", "Remove": "removes red from", "Restore": "restores"}


@dataclass(frozen=True)
class GameSettings:
    """What a person may choose before a game begins."""

    red_agent: str = "meander"
    horizon: int = 30
    rules: str = DEFAULT_RULES
    seed: int = 0

    def __post_init__(self) -> None:
        for name in red_agent_weights(self.red_agent):
            refuse_own(name, "a page names no code; play against it by phalanx replay")
        rule_set_number(self.rules)
        checked_seed(self.seed)
        whole("horizon", self.horizon, 1, MOST_TURNS, f"a whole number from 1 to {MOST_TURNS}")


class LiveGame:
    """One game, from its first turn to its last.

    game = LiveGame(GameSettings(red_agent="b_line", seed=7))
    game.play(action)        # the same turn as that of Cage2Env with the same settings and seed
    game.trajectory()        # what the player may see: the truth only at the end, unless ...
    game.open_cards()        # ... it is asked for
    """

    def __init__(self, settings: GameSettings) -> None:
        self.settings = settings
        self._env = Cage2Env(**asdict(settings))
        bits, _info = self._env.reset()
        self.bits: list[npt.NDArray[np.float32]] = [bits]
        """float32 [52]: what blue was shown at first, and after each turn"""
        self.nets: list[np.void] = [self._env.batch.nets[0].copy()]
        """the records of the game: as it began, and after each turn"""
        self.actions: list[int] = []
        self.opened: int | None = None
        """the turn in which the player looked at the truth first, if that was before the end"""
        self.prior = _spread(red_agent_weights(settings.red_agent))
        """whom the player's belief expects: who was chosen is known, who is drawn is not"""
        self._recorder = Recorder(
            self._env.batch.nets, policy=PLAYER, seed=settings.seed, prior=self.prior
        )

    @property
    def turn(self) -> int:
        """Turns played."""
        return len(self.actions)

    @property
    def is_over(self) -> bool:
        return self.turn >= self.settings.horizon

    @property
    def is_open(self) -> bool:
        """Whether the truth may be seen."""
        return self.opened is not None or self.is_over

    def open_cards(self) -> None:
        """Show the truth from now on; a score that was made so is marked."""
        if not self.is_open:
            self.opened = self.turn

    @property
    def total(self) -> float:
        """The return so far."""
        return int(self._env.batch.nets["tenths"][0]) / 10 + 0.0

    @property
    def recorder(self) -> Recorder:
        return self._recorder

    def play(self, action: int) -> float:
        """Play a turn; returns its reward."""
        bits, reward, _terminated, _truncated, _info = self._env.step(action)
        self._recorder.play(action)
        assert self._recorder.nets[0] == self._env.batch.nets[0], "what is told is what was played"
        self.actions.append(action)
        self.bits.append(bits[:NUM_BITS])
        self.nets.append(self._env.batch.nets[0].copy())
        return reward

    def action_mask(self) -> list[bool]:
        """[145] False for decoys that blue knows it cannot place."""
        mask: list[bool] = self._env.action_masks().tolist()
        return mask

    def trajectory(self) -> Facts:
        """The game so far, as the viewer draws it."""
        told = self._recorder.trajectory()
        if not self.is_open:
            told["plays"] = [as_shown(play, self.settings.red_agent) for play in told["plays"]]
        return told

    def facts(self) -> dict[str, object]:
        """How it stands."""
        return {
            "turn": self.turn,
            "horizon": self.settings.horizon,
            "red_agent": self.settings.red_agent,
            "rules": self.settings.rules,
            "seed": self.settings.seed,
            "opened": self.opened,
            "is_over": self.is_over,
            "return": self.total,
            "mask": "".join("1" if may else "0" for may in self.action_mask()),
        }

    def close(self) -> None:
        self._env.close()


def as_shown(play: Facts, red_agent: str) -> dict[str, object]:
    """A game without what no defender is shown: the truth, red's moves, why a turn cost something.

    What is left: blue's own moves and decoys, the table that blue is shown, what can be concluded
    from these (the belief), and rewards, as Gymnasium gives them.
    """
    states, turns = play["states"], play["turns"]
    count = len(turns["blue"])
    return {
        **play,
        "hidden": True,
        "attacker": red_agent,
        "states": {
            **states,
            **{name: [UNKNOWN] * (count + 1) for name in TRUTH},
            "service": "?" * (count + 1),
        },
        "turns": {
            **turns,
            "blue_words": [move_words(action) for action in turns["blue"]],
            "red_words": [None] * count,
            "red_kind": ["hidden"] * count,
            "red_host": [-1] * count,
            "red_success": "?" * count,
            "costs": [_shown_costs(costs) for costs in turns["costs"]],
        },
    }


def _shown_costs(costs: list[tuple[str, int, float]]) -> list[object]:
    """Blue's own Restore, and the rest in one sum: what red holds is not told."""
    own: list[object] = [cost for cost in costs if cost[0] == "restore"]
    rest = round(sum(cost[2] for cost in costs if cost[0] != "restore"), 1)
    return [*own, ["red", -1, rest]] if rest else own


def move_words(action: int) -> str:
    """Blue's move, and nothing of what came of it."""
    verb = VERBS[VERB_OF_ACTION[action]]
    if VERB_OF_ACTION[action] >= SLEEP:
        return f"{verb.lower()}s"
    host = HOSTS[HOST_OF_ACTION[action]]
    if verb in DID:
        return f"{DID[verb]} {host}"
    return f"places a decoy {verb.removeprefix('Decoy')} on {host}"


def _spread(weights: dict[str, float]) -> str:
    return ",".join(f"{name}={weight!r}" for name, weight in weights.items())
