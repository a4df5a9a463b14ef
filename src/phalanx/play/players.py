"""Who plays: a defender of any kind, by its name or as it is, and what it must be shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from phalanx.cage2.defenders import GREEDY, Defender, Greedy, make_defender
from phalanx.cage2.rules.scenario import NUM_ACTIONS
from phalanx.cage2.rules.world import Worlds
from phalanx.cage2.scenario.names import CAGE2_NAME, short_name
from phalanx.cage2.scenario.packed import fingerprint
from phalanx.cage2.scenario.several import open_scenarios
from phalanx.cage2.settings import DEFAULT_PRIOR
from phalanx.errors import ConfigError
from phalanx.importing import find_named
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.own_defender import OwnDefender
from phalanx.play.plan import PlanningDefender, Spent
from phalanx.play.plan_config import is_planned
from phalanx.play.trained import TrainedDefender, load_defender
from phalanx.training.recipe import Network, find_network

CHUNK = 4096  # episodes played side by side
PLANNED_AT_ONCE = 16  # ... if each decision is thousands of games
Numbers = npt.NDArray[np.int64]
Plays = Defender | Greedy  # the latter by the true state


@dataclass(frozen=True)
class Player:
    """A defender that can begin episodes, and what is known of it."""

    name: str
    begin: Callable[[Sequence[int], int, Numbers | None, bool], Plays]
    """a `Defender` for episodes that begin now, by the seed of what it draws, for how many episodes
    it draws at once, the order of repair that each is told, and whether a policy's actions are
    drawn"""
    observation: str = "bits"
    horizon: int | None = None
    """of its training, which its observations are to show; None: it does not see the time"""
    rules: str | None = None
    """of its training, if it says so"""
    prior: str = DEFAULT_PRIOR
    """whom its belief expects, if its observations show one"""
    workflow: str | None = None
    """the order of repair that it was trained to follow, or all"""
    compliance_rule: str | None = None
    """by which its fixes were judged in training"""
    at_once: int = CHUNK
    """episodes that it plays side by side"""
    can_sample: bool = False
    spent: Spent | None = None
    """what planning has cost, if it plans"""
    policy: TrainedDefender | None = None
    """the trained policy that plays, or on top of which is planned, if there is one"""
    on: Callable[[Worlds], "Player"] | None = None
    """the same defender on these networks; None: it plays CAGE-2 only"""

    @property
    def by_host(self) -> bool | None:
        """Whether its observations have as many numbers for each host; None: as usual."""
        return None if self.policy is None else self.policy.by_host

    @property
    def scenario(self) -> str | None:
        """The network of its training, if it has one."""
        return None if self.policy is None else self.policy.scenario

    def there(self, worlds: Worlds) -> "Player":
        """Ready for these networks; refused in one line if it cannot play them."""
        if self.on is None:
            raise ConfigError(f"{self.name} plays CAGE-2 only; leave out --scenario")
        return self.on(worlds)


def open_players(config: EvaluateConfig, network: Network | None = None) -> list[Player]:
    """The defenders that the settings name, ready to play.

    network: the factory of a run's own network, if it is not named.
    """
    return [open_player(name, config, network) for name in config.policies]


def check_there(players: Sequence[Player], scenario: str) -> None:
    """Refuse defenders that cannot play on these networks, before anything is played."""
    networks = open_scenarios(scenario) if players else None
    for player in players:
        if networks is not None and plays_elsewhere(player, scenario):
            player.there(networks.worlds(player.by_host))


def plays_elsewhere(player: Player, scenario: str) -> bool:
    """Whether it is to play other networks than CAGE-2, or sees them in another way."""
    return (
        scenario != CAGE2_NAME
        or player.scenario not in (None, CAGE2_NAME)
        or player.by_host is not None
    )


def open_player(name: str, config: EvaluateConfig, network: Network | None = None) -> Player:
    if name in config.checkpoints:
        needed = network or find_network(config.network)
        defender = load_defender(config.checkpoints[name], needed)
        if is_planned(name):
            return planning_player(name, PlanningDefender(defender, config))
        return trained_player(name, defender)
    if config.is_own(name):
        return own_player(name, find_named("the defender", name))
    return scripted_player(name)


def player_of(thing: object) -> Player:
    """A defender that is in memory already."""
    if isinstance(thing, TrainedDefender):
        return trained_player("policy", thing)
    if isinstance(thing, PlanningDefender):
        return planning_player("planned", thing)
    return own_player(str(getattr(thing, "__name__", type(thing).__name__)), thing)


def trained_player(name: str, defender: TrainedDefender) -> Player:
    def begin(
        seed: Sequence[int], width: int, orders: Numbers | None, sample: bool
    ) -> TrainedDefender:
        told = defender.following(orders)
        return told.sampling(seed, width) if sample else told

    return Player(
        name,
        begin,
        defender.observation,
        defender.horizon,
        defender.rules,
        defender.prior,
        defender.workflow,
        defender.compliance_rule,
        can_sample=True,
        policy=defender,
        on=lambda worlds: trained_player(name, defender.on(worlds, name)),
    )


def planning_player(name: str, defender: PlanningDefender) -> Player:
    def begin(
        seed: Sequence[int], _width: int, orders: Numbers | None, _sample: bool
    ) -> PlanningDefender:
        game_seed, first = seed
        defender.expect(game_seed, first, orders)
        return defender

    player = replace(trained_player(name, defender.base), begin=begin, spent=defender.spent)
    player = replace(player, on=None)
    return replace(player, at_once=PLANNED_AT_ONCE, can_sample=False)


def own_player(name: str, given: object, num_actions: int = NUM_ACTIONS) -> Player:
    own = OwnDefender(given, name, num_actions)
    return Player(
        name,
        lambda _seed, _width, _orders, sample: own.begin(sample),
        own.observation,
        own.horizon,
        own.rules,
        own.prior,
        at_once=CHUNK if own.batched else 1,
        can_sample=own.can_sample,
        on=lambda worlds: own_player(name, given, int(worlds["num_actions"][0])),
    )


def scripted_player(name: str, worlds: Worlds | None = None) -> Player:
    is_greedy = name.lower() == GREEDY  # by an order of CAGE-2's kinds of hosts
    on = None if is_greedy else partial(scripted_player, name)
    return Player(name, partial(_scripted, name, worlds), on=on)


def _scripted(
    name: str,
    worlds: Worlds | None,
    seed: Sequence[int],
    width: int,
    orders: Numbers | None,
    _sample: bool,
) -> Plays:
    if name.lower() == GREEDY:
        return Greedy(orders)  # type: ignore[arg-type]
    return make_defender(name, seed, width, worlds)


def remarks(players: Sequence[Player], rules: str, scenario: str = CAGE2_NAME) -> list[str]:
    """What a reader of the table should know: who is played under other rules than it knows, or on
    other networks.
    """
    elsewhere = [
        f"{player.name} was trained on {short_name(player.scenario)} and is played on "
        f"{short_name(scenario)}"
        for player in players
        if player.scenario is not None and fingerprint(player.scenario) != fingerprint(scenario)
    ]
    return elsewhere + [
        f"{player.name} was trained under {player.rules} and is played under {rules}"
        for player in players
        if player.rules not in (None, rules)
    ]
