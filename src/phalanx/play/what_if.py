"""What if? The returns of actions in mid-episode, from all that a defender can know, on equal dice.

A defender does not see the true state, but knows exactly which states are possible and how likely
each is. So the worth of an action is found by playing on from these with a policy, and two actions
are compared in the same states and with the same dice. Who looks back at an episode knows the true
state, too: then games begin there, while the policy goes on with what it knew (`TrueStates`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array
from phalanx.cage2.batch import Batch
from phalanx.cage2.belief import BeliefBatch, BeliefView
from phalanx.cage2.history import History
from phalanx.cage2.rules.belief import NO_PRIOR, Prior, words_of
from phalanx.cage2.rules.mind import Minds, make_minds, shows_past
from phalanx.cage2.rules.network import Networks
from phalanx.cage2.rules.observation import NUM_BITS, OBS_SIZES, TRUE, observation_kind
from phalanx.cage2.rules.scenario import DEFAULT_RULES
from phalanx.cage2.rules.world import Worlds, num_hosts_of
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.cage2.settings import DEFAULT_PRIOR
from phalanx.compiled.rule import COMPILED, records
from phalanx.compiled.team import ThreadTeam
from phalanx.errors import ConfigError
from phalanx.learn.cage2.play_on import Counted, Starts, make_desks, play_on
from phalanx.learn.compiled.policy import Policy
from phalanx.machine import count_cores
from phalanx.play.trained import TrainedDefender
from phalanx.statistics import interval

MOST_GAMES = 2**16  # for one question
# States that are less likely are left out of the policy's belief while it plays on: that is seven
# times as fast against Meander, and changed 3 of 832 games of the champion, by 0.002 on average.
LEAST_STATE = 1e-4

Actions = npt.NDArray[np.int64]
Returns = npt.NDArray[np.float64]


class Knowledge:
    """What N defenders know in mid-episode, from the 52 bits and their own actions alone.

    known = Knowledge(1, observation="memory")
    known.observe([action], bits)       # after each turn: actions played, bits [N, 52] returned
    known[0].states, known[0].weights   # all that is possible, and how likely
    """

    def __init__(
        self,
        size: int,
        *,
        observation: str,
        rules: str = DEFAULT_RULES,
        prior: str = DEFAULT_PRIOR,
        horizon: int = 100,
    ) -> None:
        self.size, self.turn = size, 0
        self._history = History(
            size, horizon=horizon, observation=observation, rules=rules, prior=prior
        )
        self._beliefs = BeliefBatch(size, rules=rules, red_agents=prior, horizon=horizon)
        kept, kind = self._history.minds, observation_kind(observation)
        self.minds = Minds(kept.memories if kind else None, kept.beliefs, kind, shows_past(kind))

    def observe(self, actions: npt.ArrayLike, bits: Array) -> None:
        """Take in a turn of each: its action, and the 52 bits that it was shown."""
        shown = np.ascontiguousarray(bits[:, :NUM_BITS])
        self._history.observe(actions, shown)
        self._beliefs.observe(np.asarray(actions), shown)
        self.turn += 1

    def action_masks(self) -> npt.NDArray[np.bool_]:
        return self._history.action_masks()

    def __getitem__(self, i: int) -> BeliefView:
        return self._beliefs[i]


class Possible(Protocol):
    """States that games may begin in."""

    @property
    def states(self) -> npt.NDArray[np.void]:
        """records of networks [K]"""

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """[K] how likely each is"""


class Standpoints(Protocol):
    """Where games may begin, and what the defender knows there: one of each for each owner."""

    size: int
    minds: Minds

    def __getitem__(self, i: int) -> Possible:
        """The states of one"""


class TrueState(NamedTuple):
    """A belief of one state, which is true."""

    states: npt.NDArray[np.void]
    weights: npt.NDArray[np.float64]


class TrueStates:
    """The true states of an episode's turns, and what the defender knew in each.

    states = TrueStates(batch, turns=100)
    states.add(batch.nets[i], batch.minds, i)     # before each turn of network i
    """

    def __init__(self, batch: Batch, turns: int) -> None:
        kind, network = batch.kind, batch.nets.dtype
        nobody = Prior(records(1, network), np.ones(1))  # episodes begin elsewhere
        hosts, features = num_hosts_of(batch.worlds), batch.minds.features
        self.minds = make_minds(turns, kind, nobody if kind >= TRUE else NO_PRIOR, hosts, features)
        self.nets: Networks = records(turns, network)
        self.size = 0

    def add(self, net: np.void, minds: Minds, i: int) -> None:
        """Take in what is true of a network, and what its defender keeps: row i of `minds`."""
        k, mine = self.size, self.minds
        self.nets[k] = net
        if mine.memories is not None and minds.memories is not None:
            mine.memories[k] = minds.memories[i]
        if mine.beliefs is not None and minds.beliefs is not None:
            for name in ("states", "weights", "standing"):
                getattr(mine.beliefs, name)[k] = getattr(minds.beliefs, name)[i]
        self.size += 1

    def __getitem__(self, i: int) -> TrueState:
        return TrueState(self.nets[i : i + 1], np.ones(1))


class Question(NamedTuple):
    """What would each of these actions bring?"""

    owner: int
    """whose: the row of `Knowledge`"""
    actions: Actions
    """[A]"""
    stream: int
    """its dice; with the same stream and number, the same games are played"""
    number: int


class Outcomes(NamedTuple):
    """The answer: what each action brought, in the same games."""

    actions: Actions  # [A]
    returns: Returns  # [A, K]

    @property
    def means(self) -> Returns:
        return self.returns.mean(axis=1)

    def interval(self, k: int, beside: int | None = None) -> dict[str, float]:
        """Mean return of an action, or its gain over another: standard error, 95 % interval."""
        returns = self.returns[k]
        return interval(returns if beside is None else returns - self.returns[beside])


@dataclass(eq=False)
class WhatIf:
    """Plays on with a policy from what defenders know.

    ask = WhatIf(phalanx.load_defender("champion"), horizons=(100,))
    known = Knowledge(1, observation=ask.defender.observation)
    (answer,) = ask(known, [Question(0, np.array([a, b]), stream=7, number=0)], games=200)
    answer.means, answer.interval(1, beside=0)

    horizons: the games' ends that count: a reward counts once for each that it comes before. Those
        of the policy's training if not given.
    least: states that are less likely are left out of the policy's belief while it plays on, which
        takes a fraction of the time; 0: none.
    worlds, features: of the batch that is played on, if that is not CAGE-2 as it usually is shown.
    """

    defender: TrainedDefender
    horizons: tuple[int, ...] = ()
    num_threads: int | str = "auto"
    least: float = 0.0
    worlds: Worlds = field(default_factory=lambda: CAGE2_WORLDS)
    features: npt.NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        policy = networks_of(self.defender)
        self.weights = turn_weights(self.horizons) if self.horizons else self.defender.turn_weights
        threads = count_cores() if self.num_threads == "auto" else int(self.num_threads)
        self._team = ThreadTeam(threads if COMPILED else 1)
        kind = observation_kind(self.defender.observation)
        shown_size = self.defender.shown_size or OBS_SIZES[self.defender.observation]
        self._desks = make_desks(
            self._team.num_threads,
            kind,
            policy.actions,
            self.defender.useful,
            policy.obs_size - shown_size,
            self.worlds,
            self.features,
            self.defender.effective_in is not None,
        )

    @property
    def value_worth(self) -> Returns:
        """[turns] what the critic's values stand for as turns count here; none: for nothing."""
        is_same = np.array_equal(self.weights, self.defender.turn_weights)
        return self.defender.value_worth if is_same else np.zeros(0)

    def __call__(
        self,
        known: Standpoints,
        questions: Sequence[Question],
        games: int,
        turns: int | None = None,
    ) -> list[Outcomes]:
        """The answers, each from so many games: to the last horizon, or so many turns.

        Games that are cut are closed with the critic's value, where that is in the same units.
        """
        policy = networks_of(self.defender)
        begun = [_begin(known[one.owner], one, games) for one in questions]
        counts = [len(one.actions) for one in questions]
        lengths = np.multiply(counts, games)
        starts = Starts(
            np.concatenate([w.repeat(n, axis=0) for w, n in zip(begun, counts, strict=True)]),
            np.repeat(np.arange(games * len(questions)), np.repeat(counts, games)),
            np.repeat([one.owner for one in questions], lengths),
            np.concatenate([np.tile(one.actions, games) for one in questions]),
            known.minds,
            np.ascontiguousarray(self.defender.told(known.size, self.defender.orders), np.float32),
        )
        limit = len(self.weights) if turns is None else turns
        value_worth = np.zeros(0) if turns is None else self.value_worth
        counted = Counted(self.weights, limit, value_worth, self.least)
        returns = play_on(self._team, self._desks, policy, starts, counted)
        parts = np.split(returns, np.cumsum(lengths)[:-1])
        return [
            Outcomes(one.actions, part.reshape(games, -1).T.copy())
            for one, part in zip(questions, parts, strict=True)
        ]

    def close(self) -> None:
        self._team.close()


def check_askable(defender: TrainedDefender) -> Policy:
    """The networks of a policy that can plan; others are refused."""
    if defender.observation == "truth":
        raise ConfigError(
            "this policy sees the true state, which no defender knows: it cannot plan"
        )
    return networks_of(defender)


def networks_of(defender: TrainedDefender) -> Policy:
    """The networks that games are played on with."""
    if defender.policy is None:
        raise ConfigError(
            "games are played on with phalanx's own networks, and this policy has one of torch"
        )
    return defender.policy


def turn_weights(horizons: Sequence[int]) -> Returns:
    """What a reward counts in each turn: once for each horizon that it comes before."""
    turns = np.arange(max(horizons))
    return np.sum([turns < horizon for horizon in horizons], axis=0).astype(np.float64)


def _begin(belief: Possible, asked: Question, games: int) -> npt.NDArray[np.uint64]:
    """So many states, each as often as it is likely, as words [K, words]; each its own dice."""
    die = np.random.default_rng([asked.stream, asked.number]).random()
    up_to = np.cumsum(belief.weights)
    chosen = np.searchsorted(up_to, (np.arange(games) + die) / games * up_to[-1], side="right")
    words = words_of(belief.states)[np.minimum(chosen, len(up_to) - 1)]
    states = words.view(belief.states.dtype)[:, 0]
    states["stream"] = np.uint64(asked.stream)
    states["episode"] = asked.number * MOST_GAMES + np.arange(games)
    return words
