"""Play one of the episodes that `phalanx evaluate` plays, and write it down turn by turn."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.learn.cage2.collect import BLOCK
from phalanx.play.cells import order_numbers
from phalanx.play.episodes import Begun, begin_episodes
from phalanx.play.evaluate_config import Games
from phalanx.play.players import Player
from phalanx.play.trained import TrainedDefender
from phalanx.play.what_if import TrueStates
from phalanx.show.replay.policy_view import Floats, PolicyView, likeliest
from phalanx.show.replay.trajectory import Recorder
from phalanx.show.replay.turn_log import Turn


class Chosen(NamedTuple):
    """Which episode, whoever plays it: the dice of (seed, number)."""

    red_agent: str
    horizon: int
    number: int = 0
    workflow: str | None = None


class Episode:
    """One network of a batch, written down while it is played, with what a policy thinks of it.

    episode = Episode(env.unwrapped.batch, policy=phalanx.load_defender("champion"), name="you")
    episode.look()                  # before each turn: what is true now, and what blue knows
    env.step(action)
    episode.note(action)
    episode.recorder.trajectory()

    policy: who is asked, whoever plays; the batch must show what it sees. order: of repair, by
    number, if it follows one. facts: more for the `Recorder`.
    """

    def __init__(
        self,
        batch: Batch,
        row: int = 0,
        *,
        name: str,
        seed: int,
        number: int = 0,
        horizon: int | None = None,
        policy: TrainedDefender | None = None,
        order: int | None = None,
        **facts: Any,
    ) -> None:
        self.batch, self.row, self.policy, self.order = batch, row, policy, order
        nets = batch.nets[row : row + 1]
        self.recorder = Recorder(
            nets, policy=name, seed=seed, episode=number, horizon=horizon, **facts
        )
        self.states = TrueStates(batch.kind, self.recorder.horizon)
        self.chances: list[Floats] = []
        """[145] of each turn: the policy's probabilities"""
        self._view = None if policy is None else PolicyView(policy, self.recorder.horizon, order)
        self._value: float | None = None

    def look(self) -> None:
        """Before a turn: keep what is true and what blue knows, and ask the policy."""
        net, obs = self.batch.nets[self.row], self.batch.shown.obs[self.row]
        self.states.add(net, self.batch.minds, self.row)
        if self._view is not None:
            self.chances.append(self._view.probabilities(obs, self.batch.action_masks()[self.row]))
            self._value = self._view.value(obs, net)

    def note(self, action: int) -> Turn:
        """After it: the action that was played."""
        likely = likeliest(self.chances[-1], action) if self.chances else None
        turn = self.recorder.play(action, likely=likely, value=self._value)
        assert self.recorder.nets[0] == self.batch.nets[self.row], "it must be the game itself"
        return turn


def record_episode(
    games: Games,
    player: Player,
    chosen: Chosen,
    played: Callable[[int], None] = lambda _: None,
) -> Episode:
    """An episode with the same turns as `phalanx evaluate` plays under its number.

    played: hears how many turns were played.
    """
    number, width, begin = chosen.number, player.at_once, player.begin
    first = number // width * width  # who draws actions does so for all episodes of a chunk
    stop = min(first + width, max(games.episodes, number + 1))
    if player.policy is not None:
        first, stop, begin = number, number + 1, _alone(player.begin, number)
    orders = order_numbers(chosen.workflow or player.workflow, stop)
    alone, whole = replace(player, begin=begin), games._replace(episodes=stop)
    game = chosen.red_agent, (chosen.horizon,)
    begun = begin_episodes(whole, alone, *game, orders, first)
    (episode,) = (_play(each, number - first, games, player, chosen, played) for each in begun)
    return episode


def _play(
    begun: Begun,
    row: int,
    games: Games,
    player: Player,
    chosen: Chosen,
    played: Callable[[int], None],
) -> Episode:
    batch, defender = begun.game, begun.defender
    order = None if begun.orders is None else int(begun.orders[row])
    episode = Episode(
        batch,
        row,
        name=player.name,
        seed=games.seed,
        number=chosen.number,
        horizon=chosen.horizon,
        policy=player.policy,
        order=order,
        prior=player.prior,
    )
    for turn in range(chosen.horizon):
        episode.look()
        actions = batch.actions_of(defender)
        batch.play(actions)
        episode.note(int(actions[row]))
        played(turn + 1)
    return episode


def _alone(begin: Callable[..., object], number: int) -> Callable[..., object]:
    """A policy that rounds as in an evaluation, though it plays one of its episodes only.

    What a product of matrices gives for a row depends on how many rows there are.
    """

    def begun(*given: object) -> object:
        defender = begin(*given)
        if not isinstance(defender, TrainedDefender) or defender.policy is None:
            return defender
        place = number % BLOCK

        def logits(obs: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
            block = np.zeros((BLOCK, obs.shape[1]), np.float32)
            block[place] = obs[0]
            return defender.logits(block)[place : place + 1]

        return replace(defender, logits=logits)

    return begun
