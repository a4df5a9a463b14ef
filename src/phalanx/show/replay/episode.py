"""Play one of the episodes that `phalanx evaluate` plays, and write it down turn by turn."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from phalanx.cage2.batch import Batch
from phalanx.cage2.scenario.several import open_scenarios
from phalanx.errors import ActionError
from phalanx.play.cells import order_numbers
from phalanx.play.episodes import Begun, begin_episodes
from phalanx.play.evaluate_config import Games
from phalanx.play.players import Player, plays_elsewhere
from phalanx.play.trained import TrainedDefender
from phalanx.play.what_if import TrueStates
from phalanx.show.replay.asked_once import ask_once
from phalanx.show.replay.left_out import about_attackers, own_attackers, prior_told
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
        if batch.own_red is not None:
            ask_once(batch.own_red)
        self.recorder = Recorder(
            nets,
            policy=name,
            seed=seed,
            episode=number,
            horizon=horizon,
            scenario=batch.scenario_of(row),
            worlds=batch.worlds,
            attackers=batch.red_agents,
            **facts,
        )
        self.states = TrueStates(batch, self.recorder.horizon)
        self.is_foreseen = batch.own_red is None  # whether games can be played on from its states
        self.chances: list[Floats] = []
        """[actions] of each turn: the policy's probabilities"""
        self._view = None if policy is None else PolicyView(policy, self.recorder.horizon, order)
        self._value: float | None = None

    def look(self) -> None:
        """Before a turn: keep what is true and what blue knows, and ask the policy."""
        net, obs = self.batch.nets[self.row], self.batch.shown.obs[self.row]
        if self.is_foreseen:
            self.states.add(net, self.batch.minds, self.row)
        if self._view is not None:
            self.chances.append(self._view.probabilities(obs, self.batch.action_masks()[self.row]))
            self._value = self._view.value(obs, net)

    def note(self, action: int) -> Turn:
        """After it: the action that was played."""
        likely = likeliest(self.chances[-1], action) if self.chances else None
        turn = self.recorder.play(action, likely=likely, value=self._value)
        if self.recorder.nets[0] != self.batch.nets[self.row]:
            assert not self.is_foreseen, "it must be the game itself"
            raise ActionError(
                f"{own_attackers(self.batch)} plays otherwise when it is asked again in turn "
                f"{len(self.recorder.turns)}, so its game cannot be told; draw by `die` alone "
                "(docs/attackers.md)"
            )
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
    number, width = chosen.number, player.at_once
    first = number // width * width  # who draws actions does so for all episodes of a chunk
    stop = min(first + width, max(games.episodes, number + 1))
    if plays_elsewhere(player, games.scenario):
        player = player.there(open_scenarios(games.scenario).worlds(player.by_host))
    if player.policy is not None:
        first, stop = number, number + 1
    orders = order_numbers(chosen.workflow or player.workflow, stop)
    whole = games._replace(episodes=stop)
    alone = replace(player, on=lambda _worlds_it_is_ready_for: alone)
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
    batch, defender = begun.batch, begun.defender
    order = None if begun.orders is None else int(begun.orders[row])
    prior, left_out = prior_told(batch.scenario_of(row), player.prior, own_attackers(batch))
    episode = Episode(
        batch,
        row,
        name=player.name,
        seed=games.seed,
        number=chosen.number,
        horizon=chosen.horizon,
        policy=player.policy,
        order=order,
        prior=prior,
    )
    episode.recorder.notes += [*left_out, *about_attackers(batch)]
    for turn in range(chosen.horizon):
        episode.look()
        actions = batch.actions_of(defender)
        batch.play(actions)
        episode.note(int(actions[row]))
        played(turn + 1)
    return episode
