"""Play whole episodes with a compiled policy and nothing learnt: for measuring it, in seconds."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.scenario import HOST_OF_ACTION, NUM_ACTIONS
from phalanx.cage2.rules.scoring import CONDUCT, Orders
from phalanx.compiled.bits import number
from phalanx.compiled.rule import kernel, records
from phalanx.compiled.team import join, leave, next_piece
from phalanx.learn.cage2.collect import (
    BLOCK,
    take_turn,
    write_input,
    write_mask,
    write_mask_of_host,
)
from phalanx.learn.compiled.mlp import fast, forward
from phalanx.learn.compiled.policy import Policy


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
    order_numbers: npt.NDArray[np.integer[Any]],
    horizons: tuple[int, ...],
) -> Played:
    """Play episodes that have just begun, always the most likely action.

    condition: float32 [N, C], after every observation. order_numbers: [N], the order by which each
    network is judged, if `orders` has any. horizons: ascending.
    """
    conducts = records(batch.num_envs, CONDUCT)
    conducts["order"] = order_numbers
    played = nothing_played(batch.num_envs, len(horizons))
    batch.team.run(
        play_blocks,
        (
            batch.nets, batch.memories, batch.kind, orders, conducts, useful,
            np.ascontiguousarray(condition, np.float32), batch.shown.obs.shape[1], policy.actor,
            policy.actor_sizes, np.array(horizons, np.int64), played,
        ),
    )  # fmt: skip
    return played


@fast
def most_likely(logits: Any, mask: Any) -> int:
    best, chosen = np.float32(-np.inf), 0
    for action in range(len(logits)):
        if mask[action] and logits[action] > best:
            best, chosen = logits[action], action
    return chosen


@kernel
def play_blocks(
    nets: Any, memories: Any, kind: int, orders: Orders, conducts: Any, useful: Any,
    condition: Any, obs_size: int, actor: Any, actor_sizes: Any, horizons: Any, played: Played,
    board: Any, task: int, thread: int,
) -> bool:  # fmt: skip
    """Episodes from their first turn to the last horizon, a block of networks at a time."""
    if not join(board, task, thread):
        return True
    hidden = 0
    for layer in range(1, len(actor_sizes)):
        hidden += actor_sizes[layer]
    work = np.empty(2 * BLOCK * hidden, np.float32)
    obs = np.zeros((BLOCK, obs_size + condition.shape[1]), np.float32)
    masks = np.empty((BLOCK, NUM_ACTIONS), np.bool_)
    size = len(nets)
    blocks = (size + BLOCK - 1) // BLOCK
    block, helped = next_piece(board, blocks, thread, 0)
    while block >= 0:
        start, stop = block * BLOCK, min((block + 1) * BLOCK, size)
        for i in range(start, stop):
            write_mask(nets[i], useful, masks[i - start])
        for t in range(horizons[-1]):
            for i in range(start, stop):
                memory = memories[i if kind else 0]
                write_input(nets[i], memory, kind, condition[i], obs[i - start])
            logits = forward(actor, actor_sizes, obs, work)
            for i in range(start, stop):
                net, memory, conduct = nets[i], memories[i if kind else 0], conducts[i]
                mask = masks[i - start]
                action = most_likely(logits[i - start], mask)
                take_turn(net, memory, kind, orders, conduct, action)
                write_mask_of_host(net, number(HOST_OF_ACTION[action]), useful, mask)
                for k in range(len(horizons)):
                    if t + 1 == horizons[k]:
                        played.returns[i, k] = net.tenths / 10.0
                        played.fixes[i, k] = conduct.fixes
                        played.compliant[i, k] = conduct.compliant
        block, helped = next_piece(board, blocks, thread, helped)
    return leave(board, task, thread)
