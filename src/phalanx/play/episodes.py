"""Play many episodes with a defender of any kind, in phalanx or in the original."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.cyborg import CyborgEnv
from phalanx.cage2.defenders import GREEDY, Greedy
from phalanx.cage2.referee import Referee
from phalanx.cage2.rules.scenario import NUM_HOSTS
from phalanx.cage2.rules.scoring import NO_ORDERS, make_orders
from phalanx.cage2.workflow import parse_order
from phalanx.errors import ConfigError
from phalanx.learn.cage2.greedy import Played, nothing_played, play_out
from phalanx.play.evaluate_config import Games
from phalanx.play.players import CHUNK, Player, Start
from phalanx.play.trained import TrainedDefender

Heard = Callable[[int, float], None]  # episodes played, mean return so far
Numbers = npt.NDArray[np.int64]


@dataclass
class StateCost:
    """What the true state cost, and how far compliance is off where it was not fetched each time"""

    turns: int = 0
    seconds: float = 0.0
    """of playing, without any fetching"""
    fetch_s: float = 0.0
    exact_fetch_s: float = 0.0
    fetches: int = 0
    exact_fetches: int = 0
    age: float = 0.0
    """turns between a fix and the state by which it was judged, summed over fixes"""
    fixes: int = 0
    compliant: int = 0
    exact_compliant: int = 0

    def add(self, referee: Referee, exact: Referee, turns: int, seconds: float) -> None:
        fixes = int(exact.fixes.sum())
        self.turns, self.seconds = self.turns + turns, self.seconds + seconds
        self.fetch_s += referee.seconds
        self.exact_fetch_s += exact.seconds
        self.fetches += referee.fetches
        self.exact_fetches += exact.fetches
        self.age += referee.mean_age * fixes
        self.fixes += fixes
        self.compliant += int(referee.compliant.sum())
        self.exact_compliant += int(exact.compliant.sum())

    def figures(self, mode: str, episodes: int) -> dict[str, Any]:
        fixes = max(1, self.fixes)
        judged = None if mode == "off" else self.compliant / fixes
        exact = self.exact_compliant / fixes
        speed = self.turns / (self.seconds + self.fetch_s)
        exact_speed = self.turns / (self.seconds + self.exact_fetch_s)
        return {
            "mode": mode,
            "compliance": judged,
            "exact_compliance": exact,
            "error": None if judged is None else judged - exact,
            "mean_age": self.age / fixes,
            "fetches_per_episode": self.fetches / episodes,
            "exact_fetches_per_episode": self.exact_fetches / episodes,
            "turns_per_s": speed,
            "exact_turns_per_s": exact_speed,
            "speed_gained": speed / exact_speed,
        }


def play_episodes(
    games: Games,
    player: Player,
    red_agent: str,
    horizons: tuple[int, ...],
    orders: Numbers | None = None,
    played: Heard = lambda *_: None,
    cost: StateCost | None = None,
) -> Played:
    """Returns and fixes by each horizon; episode i is always that of (seed, i).

    orders: [episodes], the order of repair that each is to follow, and is judged by.
    """
    if games.simulator == "cyborg":
        return _play_original(games, player, red_agent, horizons, orders, played, cost)
    results, trained = nothing_played(games.episodes, len(horizons)), player.trained
    for first in range(0, games.episodes, player.at_once):
        chosen = slice(first, min(first + player.at_once, games.episodes))
        size = chosen.stop - first
        batch = new_batch(games, red_agent, horizons, player, first, size)
        mine = None if orders is None else orders[chosen]
        if trained is not None and trained.policy is not None and games.are_compiled:
            some = _play_compiled(batch, trained, mine, games, horizons)
        else:
            defender = begin(games, player, first, mine)
            some = _play_turn_by_turn(batch, defender, mine, games, horizons, cost)
            end(defender)
        for whole, part in zip(results, some, strict=True):
            whole[chosen] = part
        batch.close()
        played(size * len(horizons), float(results.returns[: chosen.stop, -1].mean()))
    return results


def new_batch(
    games: Games,
    red_agent: str,
    horizons: tuple[int, ...],
    player: Player,
    first: int,
    size: int,
) -> Batch:
    """Episodes first, first + 1, ... of a cell, just begun."""
    return Batch(
        size,
        red_agent=red_agent,
        horizon=shown_horizon(horizons, player),
        rules=games.rules,
        observation=player.observation,
        seed=games.seed,
        first_index=first,
        num_threads=games.num_threads,
        same_step=False,
    )


def next_actions(batch: Batch, defender: Any) -> Numbers:
    """What a defender does next in each network."""
    if isinstance(defender, Greedy):
        return defender.act_on_truth(batch.nets)
    masks = batch.action_masks() if getattr(defender, "takes_masks", True) else None
    actions: Numbers = defender.act(batch.shown.obs, batch.nets["alert"], masks)
    return actions


def judging(orders: Numbers, games: Games) -> Numbers:
    """The orders by which fixes are judged: those that were told, unless another is asked for."""
    return orders if games.judged_by is None else np.full_like(orders, parse_order(games.judged_by))


def _play_compiled(
    batch: Batch,
    trained: TrainedDefender,
    orders: Numbers | None,
    games: Games,
    horizons: tuple[int, ...],
) -> Played:
    """Whole episodes in one compiled call."""
    assert trained.policy is not None
    ascending = tuple(sorted(set(horizons)))
    numbers = np.zeros(batch.num_envs, np.int64) if orders is None else judging(orders, games)
    judged = NO_ORDERS if orders is None else make_orders([0], games.compliance_rule)
    some = play_out(
        batch, trained.policy, trained.useful, trained.told(batch.num_envs, orders), judged,
        numbers, ascending,
    )  # fmt: skip
    columns = [ascending.index(horizon) for horizon in horizons]
    return Played(some.returns[:, columns], some.fixes[:, columns], some.compliant[:, columns])


def _play_turn_by_turn(
    batch: Batch,
    defender: Any,
    orders: Numbers | None,
    games: Games,
    horizons: tuple[int, ...],
    cost: StateCost | None,
) -> Played:
    """Any defender, judged as often as asked for."""
    results = nothing_played(batch.num_envs, len(horizons))
    judges = _Judges(orders, games)
    began = time.perf_counter()

    def infected() -> npt.NDArray[np.uint16]:
        return batch.nets["sessions"]

    for turn in range(1, max(horizons) + 1):
        actions = next_actions(batch, defender)
        judges.before(actions, infected)
        batch.play(actions)
        for k, horizon in enumerate(horizons):
            if turn == horizon:
                results.returns[:, k] = batch.nets["tenths"] / 10
                judges.write(results, slice(None), k, infected)
    judges.end(cost, batch.num_envs * max(horizons), time.perf_counter() - began)
    return results


def _play_original(
    games: Games,
    player: Player,
    red_agent: str,
    horizons: tuple[int, ...],
    orders: Numbers | None,
    played: Heard,
    cost: StateCost | None,
) -> Played:
    """The same in the original simulator, one episode after the other."""
    if player.name.lower() == GREEDY:
        raise ConfigError("greedy plays by the true state of phalanx; leave out --simulator cyborg")
    results = nothing_played(games.episodes, len(horizons))
    results.returns[:] = 0
    env = CyborgEnv(
        red_agent=red_agent,
        horizon=shown_horizon(horizons, player),
        rules=games.rules,
        observation=player.observation,
    )

    def infected() -> npt.NDArray[np.uint16]:
        held = env.true_state()[2] != 0
        return np.array([held @ (1 << np.arange(NUM_HOSTS))], np.uint16)

    for episode in range(games.episodes):
        mine = None if orders is None else orders[episode : episode + 1]
        defender = begin(games, player, episode, mine)
        judges = _Judges(mine, games)
        obs, info = env.reset(seed=games.seed + episode)
        began = time.perf_counter()
        for turn in range(max(horizons)):
            alerts, masks = np.array([info["alert"]], np.int8), info["action_mask"][None] != 0
            actions = defender.act(obs[None], alerts, masks)
            judges.before(actions, infected)
            obs, reward, _, _, info = env.step(int(actions[0]))
            results.returns[episode, np.array(horizons) > turn] += reward
            for k, horizon in enumerate(horizons):
                if turn + 1 == horizon:
                    judges.write(results, slice(episode, episode + 1), k, infected)
        end(defender)
        judges.end(cost, max(horizons), time.perf_counter() - began)
        played(len(horizons), float(results.returns[: episode + 1, -1].mean()))
    return results


class _Judges:
    """The referee as asked for and, where it saves on the true state, an exact one beside it."""

    def __init__(self, orders: Numbers | None, games: Games) -> None:
        self._own = self._exact = None
        if orders is not None:
            orders = judging(orders, games)
            self._own = Referee(orders, games.compliance_rule, games.true_state)
            self._exact = self._own
            if games.true_state != "exact":
                self._exact = Referee(orders, games.compliance_rule)

    def before(self, actions: Any, infected: Any) -> None:
        for referee in self._each():
            referee.before(actions, infected)

    def write(self, results: Played, rows: slice, k: int, infected: Any) -> None:
        """What was judged by now."""
        for referee in self._each():
            referee.end(infected)
        if self._own is not None:
            results.fixes[rows, k] = self._own.fixes
            results.compliant[rows, k] = self._own.compliant

    def end(self, cost: StateCost | None, turns: int, seconds: float) -> None:
        if cost is not None and self._own is not None and self._exact is not None:
            fetching = sum(referee.seconds for referee in self._each())
            cost.add(self._own, self._exact, turns, seconds - fetching)

    def _each(self) -> list[Referee]:
        both = [self._own] if self._own is self._exact else [self._own, self._exact]
        return [referee for referee in both if referee is not None]


def shown_horizon(horizons: tuple[int, ...], player: Player) -> int:
    """The horizon of the game: who sees the time is shown the one it knows, if that is longer."""
    return max(*horizons, player.horizon or 1)


def begin(games: Games, player: Player, first: int, orders: Numbers | None) -> Any:
    """The defender of a cell, for the episodes that begin with number `first`."""
    width = CHUNK if games.simulator == "phalanx" else 1
    return player.begin(Start([games.seed, first], width, orders, games.sample))


def end(defender: Any) -> None:
    """Let a defender know that its episodes are over, if it wants to."""
    if hasattr(defender, "end"):
        defender.end()
