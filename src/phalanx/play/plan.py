"""Planning on top of a trained policy: try the likely actions in games from what can be known."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array
from phalanx.cage2.belief import BeliefView
from phalanx.cage2.rules.scenario import ANALYSE, NUM_HOSTS, REMOVE, RESTORE, USER0
from phalanx.errors import ConfigError
from phalanx.play import trained
from phalanx.play.plan_config import PlanConfig, base_of, is_planned
from phalanx.play.trained import TrainedDefender, check_shown
from phalanx.play.what_if import LEAST_STATE, Knowledge, Outcomes, Question, WhatIf, check_askable
from phalanx.training.recipe import Network

DICE = 0x9E37  # of planning; those of the game are others of the same seed
UNCLOSED = 3  # times as many turns have short games that no critic closes
TREATMENTS = (ANALYSE, REMOVE, RESTORE)
Actions = npt.NDArray[np.int64]


@dataclass
class Spent:
    """What planning has cost and changed so far."""

    decisions: int = 0
    planned: int = 0
    """decisions in which more than one action was worth a try"""
    changed: int = 0
    """decisions that the policy alone would have made otherwise"""
    seconds: float = 0.0

    def since(self, before: "Spent") -> dict[str, float]:
        """What was added: decisions, the shares that were planned and changed, and how fast."""
        decisions = max(1, self.decisions - before.decisions)
        return {
            "decisions": decisions,
            "share_planned": (self.planned - before.planned) / decisions,
            "share_changed": (self.changed - before.changed) / decisions,
            "decisions_per_s": decisions / max(1e-9, self.seconds - before.seconds),
        }


class Round(NamedTuple):
    """Games that actions are tried in, and which of them are tried further."""

    games: int
    turns: int | None
    """that a game has; None: all to its end"""
    hope: float = 0.0
    """standard errors by which these games may be wrong"""
    least: float = 0.0
    """points by which an action must do better than the policy's own, if they are"""
    most: int | None = None
    """actions that are tried further; None: all"""


class PlanningDefender:
    """Plays what a policy would, unless games from what can be known show a better action.

    defender = phalanx.load_defender("champion+plan")
    defender.reset()                            # before new episodes, as many as are shown next
    actions = defender.act(obs, masks=masks)    # once in each turn

    In each decision the policy's most likely actions are screened in short games that begin in
    states drawn from the exact belief, all with the same dice: a few for all, more for those that
    may be better than the policy's own. What still seems better is played to the end, and the best
    is chosen if its gain is beyond chance. After a turn that no attacker of the prior explains, the
    policy plays alone.
    """

    def __init__(
        self,
        base: TrainedDefender,
        settings: PlanConfig | None = None,
        num_threads: int | str = "auto",
    ) -> None:
        check_askable(base)
        self.base, self.settings, self.spent = base, settings or PlanConfig(), Spent()
        self.observation, self.horizon = base.observation, base.horizon
        self.rules, self.prior = base.rules, base.prior
        self.env_settings = base.env_settings
        self._num_threads, self._seed, self._first = num_threads, 0, 0
        self.reset()

    def expect(self, seed: int, first: int, orders: Actions | None = None) -> None:
        """Episodes first, first + 1, ... of this seed, and the order of repair that each is told"""
        self.base, self._seed, self._first = self.base.following(orders), seed, first
        self.reset()

    def look_at(self, rules: str, horizon: int, num_threads: int | str) -> None:
        """The game is played by these rules, and its observations show this horizon."""
        self.rules, self.horizon, self._num_threads = rules, horizon, num_threads
        self.reset()

    def reset(self) -> None:
        """New episodes begin."""
        self._known: Knowledge | None = None
        self._last: Actions = np.zeros(0, np.int64)

    def end(self) -> None:
        """Episodes are over."""
        if self._known is not None:
            self._ask.close()
        self.reset()

    def act(
        self,
        obs: Array,
        alerts: npt.NDArray[np.int8] | None = None,
        masks: npt.NDArray[np.bool_] | None = None,
    ) -> Actions:
        """Actions [N] for observations [N, D], as `TrainedDefender.act`; once in each turn."""
        began = time.perf_counter()
        check_shown(obs, self.observation)
        known = self._take_in(obs)
        allowed = self.base.allowed(obs, known.action_masks() if masks is None else masks)
        logits = self.base.logits(np.hstack([obs, self.base.told(len(obs), self.base.orders)]))
        ranked = np.where(allowed, logits, -np.inf)
        actions = ranked.argmax(axis=1)
        if known.turn < len(self._ask.weights):
            self._improve(known, ranked, actions)
        self._last = actions
        self.spent.decisions += len(obs)
        self.spent.seconds += time.perf_counter() - began
        return actions

    def _take_in(self, obs: Array) -> Knowledge:
        """What is known in this turn: of episodes that begin, or by the bits of the last turn."""
        size = len(obs)
        if self._known is None:
            self._ask = WhatIf(
                self.base, self.settings.plan_horizon, self._num_threads, LEAST_STATE
            )
            self._rounds = rounds_of(self.settings, has_critic=len(self._ask.value_worth) > 0)
            self._streams = [_stream(self._seed, self._first + i) for i in range(size)]
            self._known = Knowledge(
                size,
                observation=self.observation,
                rules=self.rules,
                prior=self.prior,
                horizon=self.horizon,
            )
        elif size != self._known.size:
            raise ConfigError(
                f"{self._known.size} episodes are under way, got {size} observations; call reset() "
                "when others begin"
            )
        else:
            self._known.observe(self._last, obs)
        return self._known

    def _improve(self, known: Knowledge, ranked: npt.NDArray[np.float32], actions: Actions) -> None:
        """Put better actions in the place of the policy's own."""
        asked = [
            Question(i, candidates(ranked[i], known[i], self.settings.plan_candidates), stream, 0)
            for i, stream in enumerate(self._streams)
            if known[i].surprises == 0
        ]
        asked = [one for one in asked if len(one.actions) > 1]
        self.spent.planned += len(asked)
        for number, part in enumerate(self._rounds, len(self._rounds) * known.turn):
            if not asked:
                return
            asked = [one._replace(number=number) for one in asked]
            answers = self._ask(known, asked, part.games, part.turns)
            if part is self._rounds[-1]:
                break
            asked = [
                one._replace(actions=still_hopeful(seen, part))
                for one, seen in zip(asked, answers, strict=True)
            ]
            asked = [one for one in asked if len(one.actions) > 1]
        for one, seen in zip(asked, answers, strict=True):
            best = winner(seen, self.settings.plan_margin)
            self.spent.changed += best != 0
            actions[one.owner] = one.actions[best]


def load_defender(
    path: Path | str, network: Network | None = None
) -> TrainedDefender | PlanningDefender:
    """The policy of a run folder's last checkpoint, of a file, or one that comes with phalanx.

    CyborgAgent(load_defender("champion"))  # for the challenge's own evaluation script
    load_defender("champion+plan")          # the same policy, with planning

    network: the factory of a torch module, if the run trained one of the user's own. Checkpoints
        hold numbers only; code never comes out of a file.
    """
    policy = trained.load_defender(base_of(path), network)
    return PlanningDefender(policy) if is_planned(path) else policy


def candidates(ranked: npt.NDArray[np.float32], belief: BeliefView, count: int) -> Actions:
    """Actions worth a try, the policy's own first: its likeliest, and treatments of hosts at risk.

    ranked: [145] its logits, -inf for what cannot be played.
    """
    likely = np.argsort(-ranked, kind="stable")[:count]
    held = np.flatnonzero(belief.marginals()["session"] > 0)
    treated = 2 + NUM_HOSTS * np.array(TREATMENTS)[:, None] + held[held != USER0]
    both = dict.fromkeys([*likely.tolist(), *treated.ravel().tolist()])
    return np.array([action for action in both if np.isfinite(ranked[action])], np.int64)


def rounds_of(settings: PlanConfig, has_critic: bool) -> tuple[Round, ...]:
    """Few short games for all actions, more for those that may be better, then whole games."""
    s = settings
    turns = s.plan_turns if has_critic else UNCLOSED * s.plan_turns
    glance, look = max(2, s.plan_screen // 3), max(2, s.plan_confirm // 4)
    return (
        Round(glance, turns, hope=2.0, least=s.plan_gain),
        Round(s.plan_screen, turns, least=s.plan_gain, most=s.plan_finalists),
        Round(look, None, hope=0.5),
        Round(s.plan_confirm, None),
    )


def still_hopeful(seen: Outcomes, played: Round) -> Actions:
    """The policy's own action, and those that may be better by what is worth a look, best first."""
    gains = seen.returns - seen.returns[0]
    errors = gains.std(axis=1, ddof=1) / played.games**0.5
    means = gains.mean(axis=1)
    best = np.argsort(-means, kind="stable")[: played.most]
    hoped = means + played.hope * errors
    return seen.actions[[0, *(k for k in best if k and hoped[k] > played.least)]]


def winner(played: Outcomes, margin: float) -> int:
    """The best action that is better than the first by so many standard errors; else the first.

    Gains that are the same in all n games are not certain: what was not seen may still happen once
    in n, and change as much as games differ, so no error is below their spread / n.
    """
    gains, games = played.returns - played.returns[0], played.returns.shape[1]
    errors = gains.std(axis=1, ddof=1) / games**0.5
    errors = np.maximum(errors, played.returns[0].std(ddof=1) / games)
    is_sure = gains.mean(axis=1) > margin * errors
    return int(np.where(is_sure, gains.mean(axis=1), 0.0).argmax())


def _stream(seed: int, index: int) -> int:
    """The dice of one episode's plans."""
    return int(np.random.SeedSequence([DICE, seed, index]).generate_state(1, np.uint64)[0])
