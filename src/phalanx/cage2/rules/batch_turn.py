"""A turn in many networks at once, and what it shows."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.mind import Minds, begin_mind, take_in, tell_truth, write_mind
from phalanx.cage2.rules.network import (
    Network,
    Networks,
    begin_episode,
    high_die,
    low_die,
    turn_dice,
)
from phalanx.cage2.rules.observation import TRUE
from phalanx.cage2.rules.scenario import NUM_HOSTS
from phalanx.cage2.rules.turn import play_turn
from phalanx.cage2.rules.world import World, Worlds, set_dtype
from phalanx.compiled.bits import number
from phalanx.compiled.rule import kernel, rule
from phalanx.compiled.team import count_threads, join, leave, shard_start, take_chunk

CHUNK = 128  # networks that a thread takes at a time


class Shown(NamedTuple):
    """All that a turn writes, one row per network."""

    obs: npt.NDArray[Any]  # uint8 or float32 [N, 52], or float32 [N, OBS_SIZES[...]]
    final_obs: npt.NDArray[Any]  # the same for the last turn of an episode; other rows are old
    rewards: npt.NDArray[np.float64]  # [N]
    truncated: npt.NDArray[np.bool_]  # [N]
    truth: npt.NDArray[np.uint64]  # [N, words]: known, scanned, access, a byte per host
    infected_before: npt.NDArray[Any]  # [N] sets of hosts that red held before blue's move
    infected_after: npt.NDArray[Any]  # [N] ... and after it, before red's
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


def allocate(size: int, width: int, dtype: Any, num_hosts: int = NUM_HOSTS) -> Shown:
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
AS_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
AS_WORD = np.ascontiguousarray(AS_BYTES).view(np.uint64)[:, 0]


@rule
def write_obs(world: World, net: Network, minds: Minds, i: int, row: Any) -> None:
    if minds.kind == TRUE:
        tell_truth(minds, i, net)
    write_mind(world, minds, i, net.seen, net.horizon, row)


@rule
def write_truth_bytes(net: Network, row: Any) -> None:
    """Red's true standing on each host: address known, ports known, no access, user or root."""
    words = (len(net.decoys) + 7) // 8
    known, scanned = number(net.known), number(net.scanned)
    sessions, root = number(net.sessions), number(net.root)
    for w in range(words):
        row[w] = AS_WORD[(known >> 8 * w) & 255]
        row[words + w] = AS_WORD[(scanned >> 8 * w) & 255]
        user = AS_WORD[(sessions >> 8 * w) & 255]
        row[2 * words + w] = user + AS_WORD[(root >> 8 * w) & 255]


@rule
def begin_anew(world: World, net: Network, minds: Minds, i: int, odds: Any) -> None:
    net.episode += 1
    begin_episode(world, net, odds)
    begin_mind(minds, i)


@rule
def play_shard(
    worlds: Worlds,
    nets: Networks,
    minds: Minds,
    actions: Any,
    odds: Any,
    same_step: bool,
    shown: Shown,
    start: int,
    stop: int,
) -> None:
    """One turn in networks start..stop; episodes that are over begin anew, now or in the next."""
    for i in range(start, stop):
        net = nets[i]
        world = worlds[net.world]
        shown.infected_before[i] = net.sessions
        if net.turn >= net.horizon:
            begin_anew(world, net, minds, i, odds)
            shown.infected_before[i] = shown.infected_after[i] = net.sessions
            shown.rewards[i] = 0
            shown.truncated[i] = False
        else:
            action = number(actions[i])
            first, second = turn_dice(net)
            tenths, infected, _new_decoy, _move, _target, _chosen = play_turn(
                world, net, action, low_die(first), high_die(first), low_die(second)
            )
            take_in(world, minds, i, action, net.seen)
            shown.infected_after[i] = infected
            shown.rewards[i] = (0 - tenths) / 10.0  # no minus zero
            shown.truncated[i] = net.turn >= net.horizon
            if net.turn >= net.horizon:
                shown.returns[i] = net.tenths / 10.0
                if same_step:
                    write_obs(world, net, minds, i, shown.final_obs[i])
                    begin_anew(world, net, minds, i, odds)
        write_obs(world, net, minds, i, shown.obs[i])
        write_truth_bytes(net, shown.truth[i])


@kernel
def play_turns(
    worlds: Worlds,
    nets: Networks,
    minds: Minds,
    actions: Any,
    odds: Any,
    same_step: bool,
    shown: Shown,
    board: Any,
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
    worlds: Worlds, nets: Networks, minds: Minds, chosen: Any, odds: Any, shown: Shown
) -> None:
    """Begin anew in the chosen networks, and show all."""
    for i in range(len(nets)):
        net = nets[i]
        world = worlds[net.world]
        if chosen[i]:
            begin_anew(world, net, minds, i, odds)
            shown.infected_before[i] = shown.infected_after[i] = net.sessions
        write_obs(world, net, minds, i, shown.obs[i])
        write_truth_bytes(net, shown.truth[i])


LOG = np.dtype(
    [
        ("cost", np.int32),
        ("decoy", np.int8),  # host on which blue's decoy was placed, or NO_HOST
        ("red", np.int8),
        ("target", np.int8),
        ("exploit", np.int8),
    ]
)


@kernel
def replay_turn(
    worlds: Worlds, nets: Networks, playing: Any, actions: Any, loaded: Any, log: Any
) -> None:
    """One turn where `playing`, with dice from outside: int64 [N, 3], for target, exploit and
    detection.
    """
    for i in range(len(nets)):
        if playing[i]:
            tenths, _infected, new_decoy, move, target, chosen = play_turn(
                worlds[nets[i].world],
                nets[i],
                number(actions[i]),
                loaded[i, 0],
                loaded[i, 1],
                loaded[i, 2],
            )
            log[i].cost = tenths
            log[i].decoy = new_decoy
            log[i].red = move
            log[i].target = target
            log[i].exploit = chosen
