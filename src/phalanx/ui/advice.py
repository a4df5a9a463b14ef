"""What the champion would do in a person's game, and what it thinks another move costs.

It sees what the player sees and nothing else: its games begin in states that are possible by that,
each as often as it is likely, on dice of their own. Games are played a few at a time, so that a
first answer comes soon and gets sharper by asking again.
"""

from threading import Lock

import numpy as np
import numpy.typing as npt

from phalanx.cage2.env import one_action
from phalanx.cage2.history import History
from phalanx.cage2.rules.observation import NUM_BITS
from phalanx.files import Facts
from phalanx.play.trained import TrainedDefender, load_defender
from phalanx.play.what_if import LEAST_STATE, Knowledge, Question, WhatIf
from phalanx.show.replay.policy_view import PolicyView
from phalanx.statistics import interval
from phalanx.ui.live_game import LiveGame

CHAMPIONS = {"2.1-leaderboard": "champion", "2.1-final": "champion-final"}
LIKELY = 5  # actions that are told
GAMES, MOST_GAMES = 25, 200  # of each action: at a time, and in all
MOST_ACTIONS = 8  # that are asked about at a time
DICE = 0xAD1CE
_ONE_AT_A_TIME = Lock()  # each question uses all cores

Returns = dict[int, list[npt.NDArray[np.float64]]]  # of an action, by batch


class Adviser:
    """Follows a game from outside, and tells what it thinks.

    adviser = Adviser(game)
    adviser.likely()                  # [[action, thousandths], ...] of this turn
    adviser.ask([action])             # what these would bring, beside its own choice
    """

    def __init__(self, game: LiveGame) -> None:
        self._game, rules = game, game.settings.rules
        self.name = CHAMPIONS[rules]
        self.defender: TrainedDefender = load_defender(self.name)
        horizon = max(game.settings.horizon, self.defender.horizon)
        known = {"observation": self.defender.observation, "rules": rules, "horizon": horizon}
        self._history = History(1, prior=self.defender.prior, **known)  # type: ignore[arg-type]
        self._known = Knowledge(1, prior=self.defender.prior, **known)  # type: ignore[arg-type]
        self._obs = self._history.begin()
        self._view = PolicyView(self.defender, game.settings.horizon, None)
        self._ask = WhatIf(self.defender, (game.settings.horizon,), least=LEAST_STATE)
        seed = np.random.SeedSequence([DICE, game.settings.seed])
        self._stream = int(seed.generate_state(1, np.uint64)[0])
        self._returns: Returns = {}

    @property
    def is_exact(self) -> bool:
        """Whether an attacker that it expects explains all that was seen."""
        return self._known[0].surprises == 0 and self._known[0].dropped == 0

    def follow(self) -> None:
        """Take in the turns that were played meanwhile."""
        for turn in range(self._known.turn, self._game.turn):
            action, bits = self._game.actions[turn], self._game.bits[turn + 1][None, :NUM_BITS]
            self._obs = self._history.observe([action], bits)
            self._known.observe([action], bits)
            self._returns = {}

    def probabilities(self) -> npt.NDArray[np.float64]:
        """[145] of its actions in this turn."""
        self.follow()
        return self._view.probabilities(self._obs[0], self._history.action_masks()[0])

    def likely(self) -> list[list[int]]:
        """Its most likely actions, each with its probability in thousandths."""
        chances = self.probabilities()
        ranked = np.argsort(-chances, kind="stable")[:LIKELY].tolist()
        return [[a, round(1000 * chances[a])] for a in ranked if round(1000 * chances[a])]

    def ask(self, actions: list[int]) -> Facts:
        """What these actions would bring if it played on, and its own choice.

        Each row: action, mean return to come, its 95 % interval, gain over its own choice, and the
        interval of that. Asking again plays more games, until there are enough.
        """
        for action in actions:  # kernels check no bounds
            one_action(action)
        own = int(self.probabilities().argmax())
        asked = list(dict.fromkeys([own, *actions]))[:MOST_ACTIONS]
        self._play_more(asked)
        shared = min(len(self._returns[action]) for action in asked)
        returns = {a: np.concatenate(self._returns[a][:shared]) for a in asked}
        rows = [_row(action, returns[action], returns[own]) for action in asked]
        games = shared * GAMES
        return {"games": games, "is_settled": games >= MOST_GAMES, "actions": rows}

    def _play_more(self, asked: list[int]) -> None:
        """One more batch of the actions that have the fewest, on the same dice for all."""
        for action in asked:
            self._returns.setdefault(action, [])
        batch = min(len(self._returns[action]) for action in asked)
        if batch * GAMES >= MOST_GAMES:
            return
        short = [action for action in asked if len(self._returns[action]) == batch]
        number = self._known.turn * (MOST_GAMES // GAMES) + batch
        question = Question(0, np.array(short, np.int64), self._stream, number)
        with _ONE_AT_A_TIME:
            (outcomes,) = self._ask(self._known, [question], GAMES)
        for action, returns in zip(short, outcomes.returns, strict=True):
            self._returns[action].append(returns)

    def close(self) -> None:
        self._ask.close()


def _row(
    action: int, returns: npt.NDArray[np.float64], own: npt.NDArray[np.float64]
) -> list[float]:
    mean, gain = interval(returns), interval(returns - own)
    numbers = [one[name] for one in (mean, gain) for name in ("mean", "low", "high")]
    return [action, *(round(float(number), 3) + 0.0 for number in numbers)]
