"""Play whole episodes with a compiled policy and nothing learnt: for measuring it, in seconds."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.masks import write_effective
from phalanx.cage2.rules.scoring import CONDUCT, Orders
from phalanx.cage2.rules.world import host_of
from phalanx.compiled.bits import number
from phalanx.compiled.rule import kernel, records
from phalanx.compiled.team import Board, join, leave, next_piece
from phalanx.learn.cage2.blocks import BLOCK, empty_block, list_block
from phalanx.learn.cage2.choices import write_mask, write_mask_of_host
from phalanx.learn.cage2.games import Games, games_of, play_one, write_input
from phalanx.learn.compiled.distributions import most_likely
from phalanx.learn.compiled.policy import Networks, Policy
from phalanx.learn.compiled.sparse import copy_first, forward_lists


class Played(NamedTuple):
    """What episodes had brought by each of H horizons."""

    returns: npt.NDArray[np.float64]  # [N, H]
    fixes: npt.NDArray[np.int64]  # [N, H]
    compliant: npt.NDArray[np.int64]  # [N, H] fixes that followed the episode's order


def nothing_played(episodes: int, horizons: int) -> Played:
    shape = (episodes, horizons)
    return Played(np.full(shape, np.nan), np.zeros(shape, np.int64), np.zeros(shape, np.int64))


def play_out(
    batch: Batch,
    policy: Policy,
    useful: npt.NDArray[np.bool_],
    condition: npt.NDArray[np.float32],
    orders: Orders,
    order_numbers: npt.NDArray[np.integer],
    horizons: tuple[int, ...],
    effective: bool = False,
) -> Played:
    """Play episodes that have just begun, always the most likely action.

    condition: float32 [N, C], after every observation. order_numbers: [N], the order by which each
    network is judged, if `orders` has any. horizons: ascending. effective: see `games_of`.
    """
    conducts = records(batch.num_envs, CONDUCT)
    conducts["order"] = order_numbers
    played = nothing_played(batch.num_envs, len(horizons))
    told = np.ascontiguousarray(condition, np.float32)
    games = games_of(batch, orders, conducts, useful, policy.actions, told, effective=effective)
    batch.team.run(play_blocks, (games, policy.networks, np.array(horizons, np.int64), played))
    return played


@kernel
def play_blocks(
    games: Games,
    networks: Networks,
    horizons: npt.NDArray[np.int64],
    played: Played,
    board: Board,
    task: int,
    thread: int,
) -> bool:
    """Episodes from their first turn to the last horizon, a block of networks at a time."""
    if not join(board, task, thread):
        return True
    actor, size = networks.actor, len(games.nets)
    work = np.empty(2 * BLOCK * actor.sizes[1:].sum(), np.float32)
    obs = np.zeros((BLOCK, actor.sizes[0]), np.float32)
    nothing = np.zeros((BLOCK, 0), np.float32)
    first, lists = copy_first(actor), empty_block(actor.sizes[0])
    masks = np.empty((BLOCK, len(games.actions)), np.bool_)
    blocks = (size + BLOCK - 1) // BLOCK
    block, helped = next_piece(board, blocks, thread, 0)
    while block >= 0:
        start, stop = block * BLOCK, min((block + 1) * BLOCK, size)
        for i in range(start, stop):
            net = games.nets[i]
            write_mask(games.worlds[net.world], net, games.actions, games.outputs, masks[i - start])
        for t in range(horizons[-1]):
            for i in range(start, stop):
                write_input(games, games.nets[i], i, obs[i - start])
            list_block(obs[: stop - start], nothing[: stop - start], lists)
            logits = forward_lists(actor, first, lists, lists.ends, work)
            for i in range(start, stop):
                net, conduct, mask = games.nets[i], games.conducts[i], masks[i - start]
                if games.effective:
                    world = games.worlds[net.world]
                    write_effective(world, obs[i - start], games.outputs, mask)
                action = number(games.actions[most_likely(logits[i - start], mask)])
                play_one(games, net, i, action)
                world = games.worlds[net.world]
                write_mask_of_host(world, net, host_of(world, action), games.outputs, mask)
                for k in range(len(horizons)):
                    if t + 1 == horizons[k]:
                        played.returns[i, k] = net.tenths / 10.0
                        played.fixes[i, k] = conduct.fixes
                        played.compliant[i, k] = conduct.compliant
        block, helped = next_piece(board, blocks, thread, helped)
    return leave(board, task, thread)
