"""Play many episodes with a defender of any kind, in phalanx or in another simulator."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.cyborg import CyborgEnv
from phalanx.cage2.defenders import GREEDY, Greedy, Reactor
from phalanx.cage2.own_simulator import OwnSimulator, open_own
from phalanx.cage2.referee import Referee
from phalanx.cage2.rules.scenario import NUM_HOSTS
from phalanx.cage2.rules.scoring import NO_ORDERS, make_orders
from phalanx.cage2.scenario.several import open_scenarios
from phalanx.cage2.workflow import parse_order
from phalanx.errors import ConfigError
from phalanx.learn.cage2.greedy import Played, nothing_played, play_out
from phalanx.learn.compiled.policy import Policy
from phalanx.play.evaluate_config import Games
from phalanx.play.own_defender import OwnDefender
from phalanx.play.plan import PlanningDefender
from phalanx.play.players import CHUNK, Player, Plays, plays_elsewhere
from phalanx.play.trained import TrainedDefender

Numbers = npt.NDArray[np.int64]


class InPhalanx(Batch):
    """Episodes side by side."""

    def actions_of(self, defender: Plays) -> Numbers:
        """What a defender does next in each network."""
        if isinstance(defender, Greedy):
            return defender.act_on_truth(self.nets)
        if isinstance(defender, Reactor):
            defender.spared = self.worlds["start"][self.nets["world"]]
        obs, alerts = self.shown.obs, self.nets["alert"]
        if isinstance(defender, OwnDefender) and not defender.takes_masks:
            return defender.act(obs, alerts, None)
        return defender.act(obs, alerts, self.action_masks())

    def infected(self) -> npt.NDArray[np.uint16]:
        return self.nets["sessions"]

    @property
    def returns(self) -> npt.NDArray[np.float64]:
        """Of each episode, so far."""
        return self.nets["tenths"] / 10


class Elsewhere:
    """The same for one episode of the original simulator, or of one of the user's own."""

    num_envs = 1

    def __init__(self, env: CyborgEnv | OwnSimulator, seed: int) -> None:
        self.env, self.returns = env, np.zeros(1)
        self.obs, self.info = env.reset(seed=seed)

    def actions_of(self, defender: Plays) -> Numbers:
        assert not isinstance(defender, Greedy), "it plays by the true state of phalanx"
        alerts, masks = np.array([self.info["alert"]], np.int8), self.info["action_mask"][None] != 0
        return defender.act(self.obs[None], alerts, masks)

    def play(self, actions: Numbers) -> None:
        self.obs, reward, _, _, self.info = self.env.step(int(actions[0]))
        self.returns += reward

    def infected(self) -> npt.NDArray[np.uint16]:
        held = self.env.true_state()[2] != 0
        return np.array([held @ (1 << np.arange(NUM_HOSTS))], np.uint16)

    def close(self) -> None:
        """The next episode is played in the same simulator."""


def open_simulator(name: str, **shown: Any) -> CyborgEnv | OwnSimulator:
    """The original, or a simulator of the user's own."""
    return CyborgEnv(**shown) if name == "cyborg" else open_own(name, **shown)


class Begun(NamedTuple):
    """Episodes that are played side by side, just begun, and who plays them."""

    chosen: slice  # which of all episodes
    game: InPhalanx | Elsewhere
    defender: Plays
    orders: Numbers | None  # that they are to follow

    @property
    def batch(self) -> InPhalanx:
        """The game, where no other simulator can be asked for."""
        assert isinstance(self.game, InPhalanx)
        return self.game


def begin_episodes(
    games: Games,
    player: Player,
    red_agent: str,
    horizons: tuple[int, ...],
    orders: Numbers | None = None,
    start: int = 0,
) -> Iterator[Begun]:
    """All episodes, as many at a time as the defender plays; episode i is that of (seed, i).

    start: the first of them.
    """
    shown: dict[str, Any] = {
        "red_agent": red_agent,
        "horizon": max(*horizons, player.horizon or 1),  # who sees the time is shown what it knows
        "rules": games.rules,
        "observation": player.observation,
        "prior": player.prior,
        "green": games.green,
    }
    if plays_elsewhere(player, games.scenario):
        networks = open_scenarios(games.scenario)
        shown |= {"scenario": networks, "by_host": player.by_host}
        player = player.there(networks.worlds(player.by_host))
    at_once, width, env = player.at_once, CHUNK, None
    if games.simulator != "phalanx":
        if "scenario" in shown:
            if games.simulator != "cyborg":
                raise ConfigError(
                    f"--simulator {games.simulator} plays CAGE-2 itself; leave out --scenario"
                )
            shown["scenario"] = games.scenario  # the original reads the file itself
        if player.name.lower() == GREEDY:
            raise ConfigError(
                "greedy plays by the true state of phalanx; leave out --simulator "
                + games.simulator
            )
        at_once, width, env = 1, 1, open_simulator(games.simulator, **shown)
    for first in range(start, games.episodes, at_once):
        chosen = slice(first, min(first + at_once, games.episodes))
        mine = None if orders is None else orders[chosen]
        defender = player.begin([games.seed, first], width, mine, games.sample)
        if isinstance(defender, PlanningDefender):
            if games.green:
                raise ConfigError("+plan looks ahead without green; leave out --green, or +plan")
            defender.look_at(shown["rules"], shown["horizon"], games.num_threads)
        if env is None:
            game: InPhalanx | Elsewhere = InPhalanx(
                chosen.stop - first,
                **shown,
                seed=games.seed,
                first_index=first,
                num_threads=games.num_threads,
                same_step=False,
            )
        else:
            game = Elsewhere(env, games.seed + first)
        with closing(game):
            yield Begun(chosen, game, defender, mine)
        if hasattr(defender, "end"):
            defender.end()


def play_episodes(
    games: Games,
    player: Player,
    red_agent: str,
    horizons: tuple[int, ...],
    orders: Numbers | None = None,
    played: Callable[[int, float], None] = lambda *_: None,
    judged: "list[Judges] | None" = None,
) -> Played:
    """Returns and fixes by each horizon.

    orders: [episodes], the order of repair that each is to follow, and is judged by.
    played: hears how many episodes were played, and the mean return so far.
    judged: receives who judged, if the episodes are not played in one compiled call.
    """
    results = nothing_played(games.episodes, len(horizons))
    for begun in begin_episodes(games, player, red_agent, horizons, orders):
        trained = begun.defender if isinstance(begun.defender, TrainedDefender) else None
        policy = None if trained is None or not games.are_compiled else trained.policy
        if trained is not None and policy is not None and isinstance(begun.game, InPhalanx):
            some = _play_compiled(begun.game, trained, policy, begun.orders, games, horizons)
        else:
            judges = Judges(begun, games)
            some = _play_turn_by_turn(begun, judges, horizons)
            if judged is not None:
                judged.append(judges)
        for whole, part in zip(results, some, strict=True):
            whole[begun.chosen] = part
        mean = float(results.returns[: begun.chosen.stop, -1].mean())
        played(begun.game.num_envs * len(horizons), mean)
    return results


def _play_compiled(
    batch: Batch,
    trained: TrainedDefender,
    policy: Policy,
    orders: Numbers | None,
    games: Games,
    horizons: tuple[int, ...],
) -> Played:
    """Whole episodes in one compiled call."""
    ascending = tuple(sorted(set(horizons)))
    numbers = np.zeros(batch.num_envs, np.int64) if orders is None else judging(orders, games)
    judged = NO_ORDERS if orders is None else make_orders([0], games.compliance_rule)
    told = trained.told(batch.num_envs, orders)
    effective = trained.effective_in is not None
    some = play_out(batch, policy, trained.useful, told, judged, numbers, ascending, effective)
    columns = [ascending.index(horizon) for horizon in horizons]
    return Played(some.returns[:, columns], some.fixes[:, columns], some.compliant[:, columns])


def _play_turn_by_turn(begun: Begun, judges: "Judges", horizons: tuple[int, ...]) -> Played:
    """Any defender, judged as often as asked for."""
    game = begun.game
    results = nothing_played(game.num_envs, len(horizons))
    for turn in range(1, max(horizons) + 1):
        actions = game.actions_of(begun.defender)
        judges.before(actions)
        game.play(actions)
        for k, horizon in enumerate(horizons):
            if turn == horizon:
                results.returns[:, k] = game.returns
                results.fixes[:, k], results.compliant[:, k] = judges.by_now()
    judges.end(game.num_envs * max(horizons))
    return results


def judging(orders: Numbers, games: Games) -> Numbers:
    """The orders by which fixes are judged: those that were told, unless another is asked for."""
    return orders if games.judged_by is None else np.full_like(orders, parse_order(games.judged_by))


class Judges:
    """The referee as asked for and, where it saves on the true state, an exact one beside it."""

    def __init__(self, begun: Begun, games: Games) -> None:
        self.referees: list[Referee] = []
        if begun.orders is not None:
            orders = judging(begun.orders, games)
            for mode in dict.fromkeys((games.true_state, "exact")):
                self.referees.append(Referee(orders, games.compliance_rule, mode))
        self._infected, self._began = begun.game.infected, time.perf_counter()

    def before(self, actions: Numbers) -> None:
        for referee in self.referees:
            referee.before(actions, self._infected)

    def by_now(self) -> tuple[Numbers | int, Numbers | int]:
        """Fixes of each episode, and those that followed its order."""
        for referee in self.referees:
            referee.end(self._infected)
        return (self.referees[0].fixes, self.referees[0].compliant) if self.referees else (0, 0)

    def end(self, turns: int) -> None:
        """So many turns were played, all episodes together."""
        fetching = sum(referee.seconds for referee in self.referees)
        self.turns, self.seconds = turns, time.perf_counter() - self._began - fetching


def cost_of_state(games: Games, judged: Sequence[Judges]) -> dict[str, object]:
    """What the true state cost, and how far compliance is off where it was not fetched each time"""
    own, exact = ([judges.referees[k] for judges in judged] for k in (0, -1))
    fixes = max(1, sum(int(one.fixes.sum()) for one in exact))
    turns, seconds = sum(judges.turns for judges in judged), sum(one.seconds for one in judged)

    def figures(referees: list[Referee]) -> tuple[float, float, float]:
        """Compliance, fetches in an episode, turns in a second."""
        compliant = sum(int(one.compliant.sum()) for one in referees)
        fetching = sum(one.seconds for one in referees)
        fetches = sum(one.fetches for one in referees) / games.episodes
        return compliant / fixes, fetches, turns / (seconds + fetching)

    compliance, fetches, speed = figures(own)
    exact_compliance, exact_fetches, exact_speed = figures(exact)
    is_judged = games.true_state != "off"
    return {
        "mode": games.true_state,
        "compliance": compliance if is_judged else None,
        "exact_compliance": exact_compliance,
        "error": compliance - exact_compliance if is_judged else None,
        "mean_age": sum(one.age for one in own) / fixes,
        "fetches_per_episode": fetches,
        "exact_fetches_per_episode": exact_fetches,
        "turns_per_s": speed,
        "exact_turns_per_s": exact_speed,
        "speed_gained": speed / exact_speed,
    }
