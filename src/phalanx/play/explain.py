"""What a defender does and where its loss comes from: episodes as they were played, and figures."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.network import RUNNING
from phalanx.cage2.rules.scenario import (
    ANALYSE,
    B_LINE,
    DECOYS,
    FIRST_DECOY,
    MONITOR,
    NO_HOST,
    NUM_DECOYS,
    REMOVE,
    RESTORE,
    SLEEP,
)
from phalanx.cage2.rules.world import set_dtype
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.read import CAGE2
from phalanx.cage2.scenario.several import open_scenarios
from phalanx.cage2.scenario.worlds import worlds_of
from phalanx.errors import ConfigError
from phalanx.play.cells import order_numbers
from phalanx.play.episodes import Begun, begin_episodes
from phalanx.play.explain_config import ExplainConfig
from phalanx.play.players import Player
from phalanx.statistics import quantiles

OPENING = 10  # turns that are told one by one
DRAWN_TURNS = 30  # turns of the heat maps
LIGHT = 5.0  # points that an episode may lose and still count as light
KINDS = ("analyse", "remove", "restore", "decoy", "wait")

Floats = npt.NDArray[np.float64]
Actions = npt.NDArray[np.integer]


# --- episodes as they were played -----------------------------------------------------------------


class Record:
    """N episodes of T turns, and how they ended."""

    def __init__(self, turns: int, episodes: int, scenario: Scenario = CAGE2) -> None:
        each, hosts = (turns, episodes), len(scenario.hosts)
        self.scenario, self.world = scenario, worlds_of([scenario])[0]
        sets = set_dtype(hosts)
        self.actions = np.zeros(each, np.uint8 if len(scenario.actions) <= 256 else np.uint16)
        self.sessions = np.zeros(each, sets)  # hosts that red held just before blue's action
        self.root = np.zeros(each, sets)  # ... as root
        self.scored_root = np.zeros(each, sets)  # ... as root when the turn was scored
        self.service_down = np.zeros(each, np.bool_)  # the operational service stood still then
        self.placed = np.zeros(each, np.bool_)  # the action placed a decoy
        self.decoys = np.zeros((episodes, hosts), np.uint8)  # that stand at the end, as bits
        self.red = np.full(episodes, B_LINE, np.uint8)  # who attacked
        self.line_target = np.full(episodes, NO_HOST, np.int8)  # user host that B-line went for
        self.returns = np.full(episodes, np.nan)  # as the simulator counted them

    @property
    def hosts(self) -> tuple[str, ...]:
        """Their names."""
        return self.scenario.host_names

    def verbs_of(self, actions: Actions) -> Actions:
        verbs: Actions = self.world["verb_of_action"][actions]
        return verbs

    def hosts_of(self, actions: Actions) -> Actions:
        hosts: Actions = self.world["host_of_action"][actions]
        return hosts


def record_episodes(
    config: ExplainConfig,
    red_agent: str,
    player: Player,
    played: Callable[[str, int], None] = lambda *_: None,
) -> Record:
    """Play the episodes that `phalanx evaluate` plays, and keep what happened in each turn."""
    games = config.played.games
    record = Record(config.horizon, config.episodes, only_network(games.scenario))
    orders = order_numbers(config.workflow or player.workflow, config.episodes)
    for begun in begin_episodes(games, player, red_agent, (config.horizon,), orders):
        nets = begun.batch.nets
        for turn in range(config.horizon):
            _record_turn(record, turn, begun)
            played(red_agent, len(nets))
        for name in ("decoys", "red", "line_target"):
            getattr(record, name)[begun.chosen] = nets[name]
        record.returns[begun.chosen] = begun.game.returns
    return record


def only_network(source: str) -> Scenario:
    """The one network whose hosts are explained; many at once are refused."""
    network, *others = open_scenarios(source).members
    if others:
        raise ConfigError(
            f"explain tells of the hosts of one network, and {source} is {1 + len(others)}; give "
            "one of them: a file, or random:… with network=0"
        )
    return network


def _record_turn(record: Record, turn: int, begun: Begun) -> None:
    """Play a turn and write down what was true before it and when it was scored."""
    at, nets = (turn, begun.chosen), begun.batch.nets
    actions = begun.game.actions_of(begun.defender)
    acted_upon = np.arange(len(nets)), record.hosts_of(actions)
    record.actions[at], decoys = actions, nets["decoys"][acted_upon]
    record.sessions[at], record.root[at] = nets["sessions"], nets["root"]
    begun.game.play(actions)
    changed = nets["decoys"][acted_upon] != decoys
    record.placed[at] = is_decoy(record.verbs_of(actions)) & changed
    record.scored_root[at] = nets["root"]
    record.service_down[at] = nets["service"] & RUNNING == 0


def is_decoy(verbs: Actions) -> npt.NDArray[np.bool_]:
    return (verbs >= FIRST_DECOY) & (verbs < RESTORE)


# --- figures --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    """An action, and the share of episodes that play it in a turn."""

    action: str
    share: float


@dataclass(frozen=True)
class Turn:
    """A turn of the opening."""

    turn: int
    first: Move
    second: Move | None
    """None where all episodes play the first"""


@dataclass(frozen=True)
class DecoyUse:
    """One kind of decoy on one host."""

    host: str
    decoy: str
    placed: float
    """share of episodes that ever placed it"""
    stands: float
    """share of episodes at whose end it stands"""
    first_turn: float
    """mean turn of the first placement, where there was one"""


@dataclass(frozen=True)
class HostActs:
    """Treatments of one host per episode, and what a Restore met there (shares of Restores)."""

    host: str
    analyse: float
    remove: float
    restore: float
    restore_of_root: float | None
    restore_of_user: float | None
    wasted: float | None
    """red was not on the host; None without a Restore"""


@dataclass(frozen=True)
class HostLoss:
    """Points that a host costs per episode: while red is root there, and by its Restores."""

    host: str
    root: float
    restore: float

    @property
    def total(self) -> float:
        return self.root + self.restore


@dataclass(frozen=True)
class Target:
    """Episodes in which B-line went for one of the user hosts."""

    host: str
    share: float
    mean: float


@dataclass(frozen=True)
class Explanation:
    """All figures of a defender against one attacker."""

    red_agent: str
    episodes: int
    horizon: int
    mean: float
    share_light: float
    """episodes that lost no more than LIGHT"""
    quantiles: dict[str, float]
    opening: list[Turn]
    decoys: list[DecoyUse]
    acts: list[HostActs]
    acts_in_all: HostActs
    losses: list[HostLoss]
    service_loss: float
    targets: list[Target]
    """empty where no episode was B-line's"""
    kinds_by_turn: dict[str, list[float]]
    """share of episodes by kind of action, turn by turn"""
    hosts_by_turn: dict[str, list[float]]
    """share of episodes by host acted upon, turn by turn"""


def explain(red_agent: str, record: Record) -> Explanation:
    """The figures of recorded episodes."""
    turns, episodes = record.actions.shape
    root, restore, service = split_loss(record)
    *acts, acts_in_all = host_acts(record)
    kinds, hosts = by_turn(record)
    return Explanation(
        red_agent=red_agent,
        episodes=episodes,
        horizon=turns,
        mean=float(record.returns.mean()),
        share_light=float((record.returns >= -LIGHT).mean()),
        quantiles=quantiles(record.returns),
        opening=opening(record),
        decoys=decoy_use(record),
        acts=acts,
        acts_in_all=acts_in_all,
        losses=[
            HostLoss(name, float(root[:, h].mean()), float(restore[:, h].mean()))
            for h, name in enumerate(record.hosts)
        ],
        service_loss=float(service.mean()),
        targets=by_target(record),
        kinds_by_turn=kinds,
        hosts_by_turn=hosts,
    )


def opening(record: Record) -> list[Turn]:
    """The two most frequent actions of each of the first turns."""
    told, name = [], record.scenario.action_name
    for turn, played in enumerate(record.actions[:OPENING], 1):
        shares = np.bincount(played, minlength=len(record.scenario.actions)) / len(played)
        often = np.argsort(-shares, kind="stable")[:2].tolist()
        first, second = (Move(name(action), float(shares[action])) for action in often)
        told.append(Turn(turn, first, second if second.share else None))
    return told


def decoy_use(record: Record) -> list[DecoyUse]:
    """Every decoy that was placed in any episode."""
    verb, acted_upon = record.verbs_of(record.actions), record.hosts_of(record.actions)
    used = []
    for host, decoy in product(range(len(record.hosts)), range(NUM_DECOYS)):
        placed = record.placed & (verb == FIRST_DECOY + decoy) & (acted_upon == host)
        ever = placed.any(axis=0)
        if ever.any():
            stands = (record.decoys[:, host] >> decoy & 1).mean()
            first_turn = placed[:, ever].argmax(axis=0).mean() + 1
            names = record.hosts[host], DECOYS[decoy].name
            used.append(DecoyUse(*names, float(ever.mean()), float(stands), float(first_turn)))
    return used


def host_acts(record: Record) -> list[HostActs]:
    """Treatments host by host, and of all hosts in the last row."""
    verb, host = record.verbs_of(record.actions), record.hosts_of(record.actions)
    restored = verb == RESTORE
    is_root, is_there = record.root >> host & 1 != 0, record.sessions >> host & 1 != 0
    of_user, of_nobody = restored & is_there & ~is_root, restored & ~is_there & ~is_root
    counted = (verb == ANALYSE, verb == REMOVE, restored, restored & is_root, of_user, of_nobody)
    size = len(record.hosts)
    counts = np.stack([np.bincount(host[which], minlength=size) for which in counted], axis=1)
    told = []
    for name, row in (*zip(record.hosts, counts, strict=True), ("all", counts.sum(axis=0))):
        per_episode = (row[:3] / len(record.returns)).tolist()
        met: list[float | None] = (row[3:] / row[2]).tolist() if row[2] else [None] * 3
        told.append(HostActs(name, *per_episode, *met))
    return told


def split_loss(record: Record) -> tuple[Floats, Floats, Floats]:
    """Points lost in each episode, by cause; together they are the return, exactly.

    While red is root on a host [N, 13], by Restores of it [N, 13] (and whatever else of blue's
    actions costs something there), and while the operational service stands still [N].
    """
    verb, host = record.verbs_of(record.actions), record.hosts_of(record.actions)
    paid, each = record.world["action_costs"][verb], range(len(record.hosts))
    root = np.stack([(record.scored_root >> h & 1).sum(axis=0) for h in each], axis=1)
    restores = np.stack([(paid * (host == h)).sum(axis=0) for h in each], axis=1)
    stopped = record.service_down.sum(axis=0) * int(record.world["service_down_cost"])
    prices = np.array([one.price for one in record.scenario.hosts])
    return root * prices / 10, restores / 10, stopped / 10


def by_target(record: Record) -> list[Target]:
    """B-line's episodes by the user host that it went for."""
    b_line = record.red == B_LINE
    told = []
    for host in np.unique(record.line_target[b_line]):
        chosen = b_line & (record.line_target == host)
        name = "none yet" if host == NO_HOST else record.hosts[host]
        mean = float(record.returns[chosen].mean())
        told.append(Target(name, float(chosen.sum() / b_line.sum()), mean))
    return told


def by_turn(
    record: Record, turns: int = DRAWN_TURNS
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Shares of episodes by kind of action, and by host acted upon, each turn by turn."""
    actions = record.actions[:turns]
    verb, host = record.verbs_of(actions), record.hosts_of(actions)
    waits = (verb == SLEEP) | (verb == MONITOR)
    played = (verb == ANALYSE, verb == REMOVE, verb == RESTORE, is_decoy(verb), waits)
    kinds = {name: which.mean(axis=1).tolist() for name, which in zip(KINDS, played, strict=True)}
    named = enumerate(record.hosts)
    hosts = {name: (~waits & (host == h)).mean(axis=1).tolist() for h, name in named}
    return kinds, hosts
