"""What a defender does and where its loss comes from: from recorded episodes to figures."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import (
    ANALYSE,
    B_LINE,
    DECOYS,
    FIRST_DECOY,
    HOST_OF_ACTION,
    HOSTS,
    NO_HOST,
    NUM_ACTIONS,
    NUM_DECOYS,
    NUM_HOSTS,
    REMOVE,
    RESTORE,
    RESTORE_COST,
    ROOT_COST,
    SERVICE_DOWN_COST,
    VERB_OF_ACTION,
    action_name,
)

OPENING = 10  # turns that are told one by one
DRAWN_TURNS = 30  # turns of the heat maps
LIGHT = 5.0  # points that an episode may lose and still count as light
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
KINDS = ("analyse", "remove", "restore", "decoy", "wait")
ANALYSED, REMOVED, RESTORED, DECOYED, WAITED = range(len(KINDS))

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Sets = npt.NDArray[np.uint16]  # of hosts, one bit each
Flags = npt.NDArray[np.bool_]


# --- episodes as they were played -----------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """N episodes of T turns, and how they ended."""

    actions: npt.NDArray[np.uint8]  # [T, N]
    sessions: Sets  # [T, N] hosts that red held just before blue's action
    root: Sets  # [T, N] ... as root
    scored_root: Sets  # [T, N] hosts that red held as root when the turn was scored
    service_down: Flags  # [T, N] the operational service stood still when the turn was scored
    placed: Flags  # [T, N] the action placed a decoy
    decoys: npt.NDArray[np.uint8]  # [N, 13] decoys that stand at the end, one bit each
    red: npt.NDArray[np.uint8]  # [N] who attacked
    line_target: npt.NDArray[np.int8]  # [N] the user host that B-line went for, or NO_HOST
    returns: Floats  # [N] as the simulator counted them


def blank_record(turns: int, episodes: int) -> Record:
    """Room for episodes that are about to be played."""
    each = (turns, episodes)
    return Record(
        actions=np.zeros(each, np.uint8),
        sessions=np.zeros(each, np.uint16),
        root=np.zeros(each, np.uint16),
        scored_root=np.zeros(each, np.uint16),
        service_down=np.zeros(each, np.bool_),
        placed=np.zeros(each, np.bool_),
        decoys=np.zeros((episodes, NUM_HOSTS), np.uint8),
        red=np.full(episodes, B_LINE, np.uint8),
        line_target=np.full(episodes, NO_HOST, np.int8),
        returns=np.full(episodes, np.nan),
    )


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
    losses = split_loss(record)
    acts = host_acts(record)
    kinds, hosts = by_turn(record.actions[:DRAWN_TURNS])
    return Explanation(
        red_agent=red_agent,
        episodes=episodes,
        horizon=turns,
        mean=float(record.returns.mean()),
        share_light=float((record.returns >= -LIGHT).mean()),
        quantiles={str(q): float(np.quantile(record.returns, q)) for q in QUANTILES},
        opening=opening(record.actions),
        decoys=decoy_use(record),
        acts=acts[:-1],
        acts_in_all=acts[-1],
        losses=[
            HostLoss(name, float(losses.root[:, h].mean()), float(losses.restore[:, h].mean()))
            for h, name in enumerate(HOSTS)
        ],
        service_loss=float(losses.service.mean()),
        targets=by_target(record),
        kinds_by_turn={name: kinds[k].tolist() for k, name in enumerate(KINDS)},
        hosts_by_turn={name: hosts[h].tolist() for h, name in enumerate(HOSTS)},
    )


def opening(actions: npt.NDArray[np.uint8]) -> list[Turn]:
    """The two most frequent actions of each of the first turns."""
    told = []
    for turn, played in enumerate(actions[:OPENING], 1):
        counts = np.bincount(played, minlength=NUM_ACTIONS)
        first, second = np.argsort(-counts, kind="stable")[:2]
        shares = counts / len(played)
        runner_up = Move(action_name(int(second)), float(shares[second]))
        told.append(
            Turn(
                turn,
                Move(action_name(int(first)), float(shares[first])),
                runner_up if counts[second] else None,
            )
        )
    return told


def decoy_use(record: Record) -> list[DecoyUse]:
    """Every decoy that was placed in any episode."""
    used = []
    for host in range(NUM_HOSTS):
        for decoy in range(NUM_DECOYS):
            placed = record.placed & (record.actions == number_of(FIRST_DECOY + decoy, host))
            ever = placed.any(axis=0)
            if ever.any():
                stands = (record.decoys[:, host] >> decoy & 1).mean()
                first_turn = placed[:, ever].argmax(axis=0).mean() + 1
                names = HOSTS[host], DECOYS[decoy].name
                used.append(DecoyUse(*names, float(ever.mean()), float(stands), float(first_turn)))
    return used


def host_acts(record: Record) -> list[HostActs]:
    """Treatments host by host, and of all hosts in the last row."""
    counts = np.zeros((NUM_HOSTS, 5), np.int64)  # Analyse, Remove, Restore; of root, of a user
    for h in range(NUM_HOSTS):
        restored = record.actions == number_of(RESTORE, h)
        is_root, is_there = record.root >> h & 1 != 0, record.sessions >> h & 1 != 0
        counts[h] = [
            (record.actions == number_of(ANALYSE, h)).sum(),
            (record.actions == number_of(REMOVE, h)).sum(),
            restored.sum(),
            (restored & is_root).sum(),
            (restored & is_there & ~is_root).sum(),
        ]
    rows = [*zip(HOSTS, counts, strict=True), ("all", counts.sum(axis=0))]
    return [_acts(name, row, len(record.returns)) for name, row in rows]


def _acts(name: str, counts: Numbers, episodes: int) -> HostActs:
    analyse, remove, restore, of_root, of_user = (int(n) for n in counts)
    met = (of_root, of_user, restore - of_root - of_user)
    of_root_share, of_user_share, wasted = (n / restore if restore else None for n in met)
    return HostActs(
        host=name,
        analyse=analyse / episodes,
        remove=remove / episodes,
        restore=restore / episodes,
        restore_of_root=of_root_share,
        restore_of_user=of_user_share,
        wasted=wasted,
    )


@dataclass(frozen=True)
class Losses:
    """Points lost in each episode, by cause; together they are the return, exactly."""

    root: Floats  # [N, 13] while red is root on the host
    restore: Floats  # [N, 13] Restores of the host
    service: Floats  # [N] while the operational service stands still

    @property
    def total(self) -> Floats:
        return self.root.sum(axis=1) + self.restore.sum(axis=1) + self.service


def split_loss(record: Record) -> Losses:
    root = np.stack([(record.scored_root >> h & 1).sum(axis=0) for h in range(NUM_HOSTS)], axis=1)
    restores = np.stack(
        [(record.actions == number_of(RESTORE, h)).sum(axis=0) for h in range(NUM_HOSTS)], axis=1
    )
    stopped = record.service_down.sum(axis=0)
    return Losses(
        root * ROOT_COST / 10, restores * RESTORE_COST / 10, stopped * SERVICE_DOWN_COST / 10
    )


def by_target(record: Record) -> list[Target]:
    """B-line's episodes by the user host that it went for."""
    b_line = record.red == B_LINE
    told = []
    for host in np.unique(record.line_target[b_line]):
        chosen = b_line & (record.line_target == host)
        name = "none yet" if host == NO_HOST else HOSTS[host]
        mean = float(record.returns[chosen].mean())
        told.append(Target(name, float(chosen.sum() / b_line.sum()), mean))
    return told


def by_turn(actions: npt.NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """Shares of episodes by kind of action, [5, T], and by host acted upon, [13, T]."""
    kind = KIND_OF_ACTION[actions]
    host = np.where(kind == WAITED, NUM_HOSTS, HOST_OF_ACTION[actions])
    kinds = np.stack([(kind == k).mean(axis=1) for k in range(len(KINDS))])
    hosts = np.stack([(host == h).mean(axis=1) for h in range(NUM_HOSTS)])
    return kinds, hosts


def number_of(verb: int, host: int) -> int:
    """The number of an action on a host."""
    return 2 + NUM_HOSTS * verb + host


def _kind(verb: int) -> int:
    """Sleep and Monitor are to wait."""
    treatments = {ANALYSE: ANALYSED, REMOVE: REMOVED, RESTORE: RESTORED}
    return treatments.get(verb, DECOYED if FIRST_DECOY <= verb < RESTORE else WAITED)


KIND_OF_ACTION = np.array([_kind(int(verb)) for verb in VERB_OF_ACTION], np.uint8)
