"""Play a policy with many orders of repair on the same dice: what they have in common, once.

A policy that is told which order to follow mostly does the same whatever it is told. So the games
of all orders begin as one. Where orders lead to different actions a game is split, and where two
games have become the same again they are joined. Each order is judged by itself. What comes out is
what `greedy.play_out` gives for every order alone.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.batch_turn import write_obs
from phalanx.cage2.rules.belief import words_of
from phalanx.cage2.rules.masks import write_effective
from phalanx.cage2.rules.mind import Minds
from phalanx.cage2.rules.scenario import REMOVE, RESTORE
from phalanx.cage2.rules.world import host_of, verb_of
from phalanx.compiled.bits import number
from phalanx.compiled.rule import kernel, rule
from phalanx.compiled.team import Board, join, leave, next_piece
from phalanx.learn.cage2.blocks import BLOCK, empty_block, list_block
from phalanx.learn.cage2.choices import write_mask, write_mask_of_host
from phalanx.learn.cage2.games import play_one
from phalanx.learn.cage2.play_on import Desks, copy_mind, is_same_game, make_desks
from phalanx.learn.compiled.distributions import Bools, most_likely
from phalanx.learn.compiled.lanes import add_up_rows
from phalanx.learn.compiled.mlp import Floats, fast, first_layer, forward_from
from phalanx.learn.compiled.policy import Networks, Policy
from phalanx.learn.compiled.sparse import Lists, copy_first

Numbers = npt.NDArray[np.int64]
NOBODY = -1


class PlayedOrders(NamedTuple):
    """What N episodes brought with each of M orders, judged in J ways."""

    returns: npt.NDArray[np.float64]  # [N, M]
    fixes: Numbers  # [N, M]
    compliant: Numbers  # [J, N, M] fixes that followed the order


class Begun(NamedTuple):
    """N episodes that have just begun."""

    words: npt.NDArray[np.uint64]  # [N, words] records of networks
    minds: Minds


def play_all_orders(
    batch: Batch,
    policy: Policy,
    useful: Bools,
    told: Floats,
    judged: npt.NDArray[np.uint16],
    horizon: int,
    effective: bool = False,
) -> PlayedOrders:
    """Play the episodes of a batch, which have just begun, with each order.

    told: float32 [M, C], M <= BLOCK: what comes after every observation for each order.
    judged: [J, M, 13, 2], tables as `cage2.workflow.JUDGED` has them. effective: see `games_of`.
    """
    assert len(told) <= BLOCK
    shape = (batch.num_envs, len(told))
    played = PlayedOrders(
        np.full(shape, np.nan), np.zeros(shape, np.int64), np.zeros((len(judged), *shape), np.int64)
    )
    desks = make_desks(
        batch.team.num_threads,
        batch.kind,
        policy.actions,
        useful,
        0,
        batch.worlds,
        batch.minds.features,
        effective,
    )
    begun = Begun(words_of(batch.nets), batch.minds)
    told = np.ascontiguousarray(told, np.float32)
    batch.team.run(play_orders, (desks, begun, policy.networks, told, judged, horizon, played))
    return played


class Split(NamedTuple):
    """Which orders play the same game."""

    game: Numbers  # [M] that each order plays
    leader: Numbers  # [BLOCK] the first order that plays each game
    parent: Numbers  # [BLOCK] the game that each was split from in this turn
    action: Numbers  # [BLOCK] what is played there
    infected: Numbers  # [BLOCK] hosts that red held before
    tenths: Numbers  # [BLOCK] what it cost


@rule
def split_games(
    desks: Desks, split: Split, chosen: Numbers, masks: Bools, begin: int, count: int
) -> int:
    """Give orders that choose another action than the first of their game does a new one, which
    those share that choose the same; how many games there are then.

    chosen: [M] actions. begin: where this thread's games lie.
    """
    before = count
    for g in range(count):
        split.leader[g] = NOBODY
    for m in range(len(chosen)):
        g = split.game[m]
        if split.leader[g] == NOBODY:
            split.leader[g], split.action[g] = m, chosen[m]
        elif chosen[m] != split.action[g]:
            other = before
            while other < count and (split.parent[other] != g or split.action[other] != chosen[m]):
                other += 1
            if other == count:
                split.leader[other], split.parent[other] = m, g
                split.action[other] = chosen[m]
                copy_game(desks, begin + g, begin + other)
                for output in range(masks.shape[1]):
                    masks[other, output] = masks[g, output]
                count += 1
            split.game[m] = other
    return count


@rule
def copy_game(desks: Desks, i: int, j: int) -> None:
    for w in range(desks.words.shape[1]):
        desks.words[j, w] = desks.words[i, w]
    copy_mind(desks.games.minds, i, desks.games.minds, j, 0.0)


@rule
def join_games(desks: Desks, split: Split, masks: Bools, begin: int, count: int) -> int:
    """Let orders whose games have become the same play one of them; how many games are left."""
    g = 1
    while g < count:
        same = 0
        while same < g and not is_same_game(desks, begin + same, begin + g):
            same += 1
        if same == g:
            g += 1
            continue
        last = count - 1
        for m in range(len(split.game)):
            if split.game[m] == g:
                split.game[m] = same
            elif split.game[m] == last:
                split.game[m] = g
        if last > g:
            copy_game(desks, begin + last, begin + g)
            for output in range(masks.shape[1]):
                masks[g, output] = masks[last, output]
        count = last
    return count


@fast
def add_told(first: Floats, sums: Floats, told: Floats, split: Split, seen: int, y: Floats) -> None:
    """The first layer's product for each order: what its game shows, and then what it is told.

    sums: [games, h1] of what is shown, `seen` numbers.
    """
    for m in range(told.shape[0]):
        for c in range(y.shape[1]):
            y[m, c] = sums[split.game[m], c]
        for k in range(told.shape[1]):
            if told[m, k] != 0:
                for c in range(y.shape[1]):
                    y[m, c] += told[m, k] * first[seen + k, c]
    for m in range(told.shape[0], y.shape[0]):
        for c in range(y.shape[1]):
            y[m, c] = 0


@fast
def sum_shown(first: Floats, lists: Lists, count: int, sums: Floats) -> None:
    for g in range(count):
        add_up_rows(first, lists.columns, lists.values, lists.starts[g], lists.ends[g], sums[g])


@kernel
def play_orders(
    desks: Desks,
    begun: Begun,
    networks: Networks,
    told: Floats,
    judged: npt.NDArray[np.uint16],
    horizon: int,
    played: PlayedOrders,
    board: Board,
    task: int,
    thread: int,
) -> bool:
    """Episode by episode, from the first turn to the last."""
    if not join(board, task, thread):
        return True
    actor, games, begin = networks.actor, desks.games, thread * BLOCK
    orders, seen = len(told), actor.sizes[0] - told.shape[1]
    work = np.empty(2 * BLOCK * actor.sizes[1:].sum(), np.float32)
    _weights, y = first_layer(actor, BLOCK, work)
    sums = np.empty((BLOCK, actor.sizes[1]), np.float32)
    obs, nothing = np.zeros((BLOCK, seen), np.float32), np.zeros((BLOCK, 0), np.float32)
    first, lists = copy_first(actor), empty_block(seen)
    masks = np.empty((BLOCK, len(games.actions)), np.bool_)
    chosen, lost = np.empty(orders, np.int64), np.empty(orders, np.int64)
    room = np.empty((5, BLOCK), np.int64)
    split = Split(np.empty(orders, np.int64), room[0], room[1], room[2], room[3], room[4])
    i, helped = next_piece(board, len(begun.words), thread, 0)
    while i >= 0:
        for w in range(desks.words.shape[1]):
            desks.words[begin, w] = begun.words[i, w]
        copy_mind(begun.minds, i, games.minds, begin, 0.0)
        net = games.nets[begin]
        write_mask(games.worlds[net.world], net, games.actions, games.outputs, masks[0])
        split.game[:] = 0
        lost[:] = 0
        count = 1
        for _turn in range(horizon):
            for g in range(count):
                net = games.nets[begin + g]
                world = games.worlds[net.world]
                write_obs(world, net, games.minds, begin + g, obs[g])
                if games.effective:
                    write_effective(world, obs[g], games.outputs, masks[g])
            list_block(obs[:count], nothing[:count], lists)
            sum_shown(first, lists, count, sums)
            add_told(first, sums, told, split, seen, y)
            logits = forward_from(actor, y, work)
            for m in range(orders):
                chosen[m] = games.actions[most_likely(logits[m], masks[split.game[m]])]
            count = split_games(desks, split, chosen, masks, begin, count)
            for g in range(count):
                net = games.nets[begin + g]
                split.infected[g] = number(net.sessions)
                split.tenths[g], _no_order, _own = play_one(
                    games, net, begin + g, number(split.action[g])
                )
                net.tenths = 0  # counted here, so that games of unlike pasts can be the same
                world = games.worlds[net.world]
                host = host_of(world, split.action[g])
                write_mask_of_host(world, net, host, games.outputs, masks[g])
            for m in range(orders):
                g = split.game[m]
                lost[m] += split.tenths[g]
                world = games.worlds[games.nets[begin + g].world]
                verb, host = verb_of(world, split.action[g]), host_of(world, split.action[g])
                if verb in (REMOVE, RESTORE):
                    played.fixes[i, m] += 1
                    for j in range(len(judged)):
                        own, better = judged[j, m, host, 0], judged[j, m, host, 1]
                        if split.infected[g] & own != 0 and split.infected[g] & better == 0:
                            played.compliant[j, i, m] += 1
            count = join_games(desks, split, masks, begin, count)
        for m in range(orders):
            played.returns[i, m] = (0 - lost[m]) / 10.0
        i, helped = next_piece(board, len(begun.words), thread, helped)
    return leave(board, task, thread)
