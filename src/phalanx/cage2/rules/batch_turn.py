"""A turn in many networks at once, and what it shows."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.green import green_host, green_host_as_told
from phalanx.cage2.rules.mind import (
    Minds,
    begin_mind,
    take_in,
    tell_truth,
    write_features_if_any,
    write_mind,
)
from phalanx.cage2.rules.network import (
    Network,
    Networks,
    Odds,
    begin_episode,
    draw_world,
    high_die,
    low_die,
    turn_dice,
)
from phalanx.cage2.rules.observation import TRUE
from phalanx.cage2.rules.own_reward import own_reward
from phalanx.cage2.rules.scenario import NO_HOST, NUM_HOSTS
from phalanx.cage2.rules.sessions import built_in_red, oldest_roots, own_red
from phalanx.cage2.rules.turn import play_turn
from phalanx.cage2.rules.world import World, Worlds, set_dtype
from phalanx.compiled.bits import number
from phalanx.compiled.near import bring_near
from phalanx.compiled.rule import kernel, rule
from phalanx.compiled.spread import BytesOrFloats
from phalanx.compiled.team import Board, count_threads, join, leave, shard_start, take_chunk

CHUNK = 128  # networks that a thread takes at a time
AHEAD = 4  # networks whose plans are asked for meanwhile


class Shown(NamedTuple):
    """All that a turn writes, one row per network."""

    obs: npt.NDArray[Any]  # uint8 or float32 [N, 52], or float32 [N, OBS_SIZES[...]]
    final_obs: npt.NDArray[Any]  # the same for the last turn of an episode; other rows are old
    rewards: npt.NDArray[np.float64]  # [N]
    truncated: npt.NDArray[np.bool_]  # [N]
    truth: npt.NDArray[np.uint64]  # [N, words]: known, scanned, access, a byte per host
    infected_before: npt.NDArray[np.integer]  # [N] sets of hosts that red held before blue's move
    infected_after: npt.NDArray[np.integer]  # [N] ... and after it, before red's
    returns: npt.NDArray[np.float64]  # [N] of the episodes that just ended; other rows are old
    num_hosts: npt.NDArray[np.uint8]  # [N] of each network's record, the same for all

    @property
    def known(self) -> npt.NDArray[np.uint8]:
        """Whose address red knows: uint8 [N, hosts], a view."""
        return self._part(0)

    @property
    def scanned(self) -> npt.NDArray[np.uint8]:
        """Whose ports red knows: uint8 [N, hosts], a view."""
        return self._part(1)

    @property
    def access(self) -> npt.NDArray[np.uint8]:
        """How far red has come: uint8 [N, hosts], 0 none, 1 user, 2 root; a view."""
        return self._part(2)

    def _part(self, number: int) -> npt.NDArray[np.uint8]:
        parts = self.truth.view(np.uint8).reshape(len(self.truth), 3, -1)
        return parts[:, number, : self.num_hosts[0]]


def allocate(size: int, width: int, dtype: npt.DTypeLike, num_hosts: int = NUM_HOSTS) -> Shown:
    """Arrays for `size` networks with observations of `width` numbers."""
    sets, words = set_dtype(num_hosts), -(-num_hosts // 8)
    return Shown(
        obs=np.zeros((size, width), dtype),
        final_obs=np.zeros((size, width), dtype),
        rewards=np.zeros(size, np.float64),
        truncated=np.zeros(size, np.bool_),
        truth=np.zeros((size, 3 * words), np.uint64),
        infected_before=np.zeros(size, sets),
        infected_after=np.zeros(size, sets),
        returns=np.zeros(size, np.float64),
        num_hosts=np.full(size, num_hosts, np.uint8),
    )


# [8 bits]: each as a byte of its own, so that a set of hosts is written as a few words
AS_WORD = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").view(
    np.uint64
)[:, 0]


@rule
def write_obs(world: World, net: Network, minds: Minds, i: int, row: BytesOrFloats) -> None:
    if minds.kind == TRUE:
        tell_truth_if_any(built_in_red(net), minds, i)
    write_mind(world, minds, i, net.seen, net.horizon, row)
    write_features_if_any(minds.features, world, number(net.world), minds.kind, row)


@rule
def tell_truth_if_any(net: Network | None, minds: Minds, i: int) -> None:
    """What comes next is known of built-in attackers only."""
    if net is not None:
        tell_truth(minds, i, net)


@rule
def write_truth_bytes(net: Network, row: npt.NDArray[np.uint64]) -> None:
    """Red's true standing on each host: address known, ports known, no access, user or root."""
    words = (len(net.decoys) + 7) // 8
    known, scanned = number(net.known), number(net.scanned)
    sessions, root = number(net.sessions), oldest_roots(own_red(net), net.root)
    for w in range(words):
        row[w] = AS_WORD[(known >> 8 * w) & 255]
        row[words + w] = AS_WORD[(scanned >> 8 * w) & 255]
        user = AS_WORD[(sessions >> 8 * w) & 255]
        row[2 * words + w] = user + AS_WORD[(root >> 8 * w) & 255]


@rule
def begin_anew(worlds: Worlds, net: Network, minds: Minds, i: int, odds: Odds) -> None:
    """The next episode, on a network of its own if there are several."""
    net.episode += 1
    draw_world(worlds, net)
    begin_episode(worlds[net.world], net, odds)
    begin_mind(minds, i, number(net.world))


@rule
def play_shard(
    worlds: Worlds,
    nets: Networks,
    minds: Minds,
    actions: npt.NDArray[np.int64],
    odds: Odds,
    same_step: bool,
    shown: Shown,
    start: int,
    stop: int,
) -> None:
    """One turn in networks start..stop; episodes that are over begin anew, now or in the next."""
    for i in range(start, stop):
        net = nets[i]
        world = worlds[net.world]
        if len(worlds) > 1:
            bring_near(worlds[nets[min(i + AHEAD, stop - 1)].world])
        shown.infected_before[i] = net.sessions
        if net.turn >= net.horizon:
            begin_anew(worlds, net, minds, i, odds)
            shown.infected_before[i] = shown.infected_after[i] = net.sessions
            shown.rewards[i] = 0
            shown.truncated[i] = False
        else:
            action = number(actions[i])
            first, second = turn_dice(net)
            green = green_host(world, net)
            before = number(net.sessions)
            tenths, infected, _new_decoy, move, target, _chosen = play_turn(
                world, net, action, low_die(first), high_die(first), low_die(second), green
            )
            take_in(world, minds, i, action, net.seen)
            shown.infected_after[i] = infected
            shown.rewards[i] = (0 - tenths) / 10.0  # no minus zero
            if world.reward:
                told = (tenths, action, before, move, target)
                shown.rewards[i] = own_reward(world, net, *told)
            shown.truncated[i] = net.turn >= net.horizon
            if net.turn >= net.horizon:
                shown.returns[i] = net.tenths / 10.0
                if same_step:
                    write_obs(world, net, minds, i, shown.final_obs[i])
                    begin_anew(worlds, net, minds, i, odds)
        write_obs(worlds[net.world], net, minds, i, shown.obs[i])  # another one, if it is new
        write_truth_bytes(net, shown.truth[i])


@kernel
def play_turns(
    worlds: Worlds,
    nets: Networks,
    minds: Minds,
    actions: npt.NDArray[np.int64],
    odds: Odds,
    same_step: bool,
    shown: Shown,
    board: Board,
    task: int,
    thread: int,
) -> bool:
    """One turn everywhere, played by several threads: each its own shard, then what is left."""
    if not join(board, task, thread):
        return True
    size, threads = len(nets), count_threads(board)
    for others in range(threads):
        shard = (thread + others) % threads
        low, high = shard_start(size, shard, threads), shard_start(size, shard + 1, threads)
        start = low + take_chunk(board, shard, CHUNK)
        while start < high:
            stop = min(start + CHUNK, high)
            play_shard(worlds, nets, minds, actions, odds, same_step, shown, start, stop)
            start = low + take_chunk(board, shard, CHUNK)
    return leave(board, task, thread)


@kernel
def begin_episodes(
    worlds: Worlds,
    nets: Networks,
    minds: Minds,
    chosen: npt.NDArray[np.bool_],
    odds: Odds,
    shown: Shown,
) -> None:
    """Begin anew in the chosen networks, and show all."""
    for i in range(len(nets)):
        net = nets[i]
        if chosen[i]:
            begin_anew(worlds, net, minds, i, odds)
            shown.infected_before[i] = shown.infected_after[i] = net.sessions
        write_obs(worlds[net.world], net, minds, i, shown.obs[i])
        write_truth_bytes(net, shown.truth[i])


LOG = np.dtype(
    [
        ("cost", np.int32),
        ("decoy", np.int8),  # host on which blue's decoy was placed, or NO_HOST
        ("red", np.int8),
        ("target", np.int8),
        ("exploit", np.int8),
        ("green", np.int8),  # host that green scanned, or NO_HOST
    ]
)


@kernel
def replay_turn(
    worlds: Worlds,
    nets: Networks,
    playing: npt.NDArray[np.bool_],
    actions: npt.NDArray[np.integer],
    loaded: npt.NDArray[np.int64],
    log: npt.NDArray[np.void],
) -> None:
    """One turn where `playing`, with dice from outside: int64 [N, 3], for target, exploit and
    detection, or [N, 4] with the host that green scans.
    """
    for i in range(len(nets)):
        if playing[i]:
            green = number(NO_HOST)
            if loaded.shape[1] > 3:
                green = green_host_as_told(worlds[nets[i].world], loaded[i, 3])
            tenths, _infected, new_decoy, move, target, chosen = play_turn(
                worlds[nets[i].world],
                nets[i],
                number(actions[i]),
                loaded[i, 0],
                loaded[i, 1],
                loaded[i, 2],
                green,
            )
            log[i].cost = tenths
            log[i].decoy = new_decoy
            log[i].red = move
            log[i].target = target
            log[i].exploit = chosen
            log[i].green = green
