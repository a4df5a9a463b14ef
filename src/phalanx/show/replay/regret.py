"""Where an episode went wrong: what other actions would have brought, turn by turn.

Each game begins in the exact true state of a turn, with one action in the place of the one that was
played, and the policy plays on with what it knew then. All actions of a turn are played on the same
new dice, so their differences are known sooner than what each of them brings.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import ANALYSE, REMOVE, RESTORE
from phalanx.play.what_if import LEAST_STATE, Outcomes, Question, WhatIf
from phalanx.show.replay.episode import Episode
from phalanx.statistics import half_width

TREATMENTS = (RESTORE, REMOVE, ANALYSE)
LIKELY, LEAST_LIKELY = 5, 0.03  # of a policy's own actions; two are tried however unlikely
DICE = 0xD1CE  # of these games; those of the episode are others of the same seed
TRIED, SETTLED = range(2)  # each with dice of its own
MORE = 2  # times as many games settle whether the best of the others is better
AT_ONCE = 100_000  # games

Actions = npt.NDArray[np.int64]
Heard = Callable[[str, int, int], None]
"""hears what is done, how much of it, and of how much"""


def look_back(
    episode: Episode,
    games: int = 200,
    turns: Sequence[int] | None = None,
    num_threads: int | str = "auto",
    heard: Heard = lambda *_: None,
) -> None:
    """Write into an episode what each turn's other actions would have brought, and its regret.

    games: for each action; twice as many, new ones, to settle whether the best of them is better
    than the one that was played.
    turns: which, counted from 0; all that were played if not given.
    """
    policy, horizon = episode.policy, episode.recorder.horizon
    assert policy is not None
    if episode.order is not None:
        policy = policy.following(np.full(episode.states.size, episode.order))
    game = episode.batch
    ask = WhatIf(
        policy,
        (horizon,),
        num_threads,
        LEAST_STATE,
        worlds=game.worlds,
        features=game.minds.features,
    )
    try:
        LookBack(episode, ask, games, heard).at(
            range(len(episode.recorder.turns)) if turns is None else turns
        )
    finally:
        ask.close()


class LookBack:
    """Two rounds of games: for all actions of a turn, and for the best if it seems to be better."""

    def __init__(self, episode: Episode, ask: WhatIf, games: int, heard: Heard) -> None:
        self.episode, self.ask, self.games, self.heard = episode, ask, games, heard

    def at(self, turns: Sequence[int]) -> None:
        recorder = self.episode.recorder
        asked = [Question(t, candidates(self.episode, t), self._stream(t), 0) for t in turns]
        rounds = [self._play("trying actions", asked, self.games, TRIED)]
        asked = [
            one._replace(actions=seen.actions[[0, best(seen)]])
            for one in asked
            if (seen := rounds[0].get(one.owner)) is not None and gain(seen, best(seen)).low > 0
        ]
        rounds.append(self._play("settling", asked, MORE * self.games, SETTLED))
        for turn in turns:
            answers = [answers[turn] for answers in rounds if turn in answers]
            if answers:
                recorder.answer(turn, rows(answers), regret(answers[-1], turn in rounds[SETTLED]))

    def _play(
        self, what: str, asked: Sequence[Question], games: int, number: int
    ) -> dict[int, Outcomes]:
        """The outcomes by turn; where there is no choice, none."""
        asked = [one._replace(number=number) for one in asked if len(one.actions) > 1]
        answers: dict[int, Outcomes] = {}
        for part in _parts(asked, games):
            self.heard(what, len(answers), len(asked))
            outcomes = self.ask(self.episode.states, part, games)
            answers |= {one.owner: seen for one, seen in zip(part, outcomes, strict=True)}
        self.heard(what, len(answers), len(asked))
        return answers

    def _stream(self, turn: int) -> int:
        facts = self.episode.recorder.facts
        seed = [DICE, facts["seed"], facts["episode"], turn]
        return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


def _parts(asked: Sequence[Question], games: int) -> Iterator[list[Question]]:
    """As many questions at a time as fit into memory, and as show how far it is."""
    part: list[Question] = []
    for one in asked:
        part.append(one)
        if sum(len(each.actions) for each in part) * games >= AT_ONCE or len(part) == 10:
            yield part
            part = []
    if part:
        yield part


# --- which actions --------------------------------------------------------------------------------


def candidates(episode: Episode, turn: int) -> Actions:
    """The action that was played, other likely ones, and treatments of hosts that red is on."""
    net, chances = episode.states.nets[turn], episode.chances[turn]
    place = episode.recorder.place
    likely = np.argsort(-chances, kind="stable")[:LIKELY]
    likely = likely[(chances[likely] >= LEAST_LIKELY) | (np.arange(len(likely)) < 2)]
    held = np.flatnonzero(place.members(net, "sessions"))
    tried = [episode.recorder.turns[turn].action]
    tried += likely[chances[likely] > 0].tolist()
    for verb in TREATMENTS:
        tried += place.actions_on(verb, held[held != place.start])
    return np.array(list(dict.fromkeys(tried)), np.int64)


def best(seen: Outcomes) -> int:
    """The best of the others."""
    return 1 + int(seen.means[1:].argmax())


# --- in numbers -----------------------------------------------------------------------------------


class Estimate(NamedTuple):
    """A mean with its standard error and its 95 % interval."""

    mean: float
    stderr: float
    games: int

    @property
    def reach(self) -> float:
        return half_width(self.stderr, self.games)

    @property
    def low(self) -> float:
        return self.mean - self.reach

    @property
    def high(self) -> float:
        return self.mean + self.reach

    @property
    def rounded(self) -> list[float]:
        return [round(number, 3) + 0.0 for number in (self.mean, self.low, self.high)]


def gain(seen: Outcomes, k: int) -> Estimate:
    """By how much an action does better than the one that was played, game by game.

    A gain that is the same in all n games is not certain: what was not seen may still happen once
    in n, and change as much as games differ. So no error is below their spread / n.
    """
    games = seen.returns.shape[1]
    gains = seen.returns[k] - seen.returns[0]
    error = float(gains.std(ddof=1)) / games**0.5
    return Estimate(float(gains.mean()), max(error, _spread(seen) / games) if k else 0.0, games)


def _spread(seen: Outcomes) -> float:
    return float(seen.returns[0].std(ddof=1))


def rows(answers: Sequence[Outcomes]) -> dict[str, object]:
    """What each action would have brought: the one that was played first, then the best.

    Each is told by its last round of games. What an action brings is what the played one does, by
    its last and longest round, and its gain over that.
    """
    last = answers[-1]
    games = last.returns.shape[1]
    own = Estimate(float(last.means[0]), _spread(last) / games**0.5, games)
    told: dict[int, tuple[float, list[float]]] = {}
    for seen in answers:
        for k, action in enumerate(seen.actions.tolist()):
            more = gain(seen, k)
            error = (own.stderr**2 + more.stderr**2) ** 0.5
            if seen is last:
                error = float(seen.returns[k].std(ddof=1)) / games**0.5
            brings = Estimate(own.mean + more.mean, error, more.games)
            told[action] = more.mean, [action, *brings.rounded, *more.rounded, more.games]
    played = told.pop(int(last.actions[0]))
    others = sorted(told.values(), key=lambda one: -one[0])
    return {"games": games, "actions": [row for _, row in (played, *others)]}


def regret(last: Outcomes, is_settled: bool) -> list[float]:
    """How much the best of the others would have gained, and the interval; nothing is below 0.

    Only new games for the one that seemed best settle that it is better: else the luck of the best
    of many would count.
    """
    mean, low, high = (max(0.0, number) for number in gain(last, best(last)).rounded)
    return [mean, low if is_settled else 0.0, high]
