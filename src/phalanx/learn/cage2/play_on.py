"""Play on from states in mid-episode, each with a first action that is given: what if?

Thousands of short games begin where a few defenders stand. So what a defender keeps from turn to
turn is not copied for all of them: a thread has a desk of one block of networks, copies onto it
what the block's games begin with, plays them to their end, and takes the next block.

Most actions make little difference: a few turns later all is as it would have been. So games that
begin alike but for their first action lie beside each other, and one that has become the same as
the first of them is not played any further: from there on it brings what the first does.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.belief import Prior, words_in, words_of
from phalanx.cage2.rules.masks import write_effective
from phalanx.cage2.rules.mind import (
    Minds,
    copy_likely_if_any,
    copy_memory_if_any,
    is_same_mind,
    make_minds,
)
from phalanx.cage2.rules.network import network_dtype
from phalanx.cage2.rules.observation import write_truth
from phalanx.cage2.rules.scoring import CONDUCT, NO_ORDERS
from phalanx.cage2.rules.web_decoys import counts_vsftpd
from phalanx.cage2.rules.world import Worlds, host_of, num_hosts_of
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.compiled.bits import number
from phalanx.compiled.rule import kernel, records, rule
from phalanx.compiled.team import Board, ThreadTeam, join, leave, next_piece
from phalanx.learn.cage2.blocks import BLOCK
from phalanx.learn.cage2.choices import outputs_of, write_mask, write_mask_of_host
from phalanx.learn.cage2.games import NO_OWN_RETURNS, Games, play_one, write_input
from phalanx.learn.compiled.distributions import most_likely
from phalanx.learn.compiled.mlp import forward, join_columns
from phalanx.learn.compiled.policy import Networks, Policy

ROWS = 32  # that the networks are asked of at a time

Floats64 = npt.NDArray[np.float64]


class Desks(NamedTuple):
    """Room for one block of networks for each thread, and a word-wise view of them."""

    games: Games
    words: npt.NDArray[np.uint64]


class Starts(NamedTuple):
    """Where R games begin."""

    words: npt.NDArray[np.uint64]  # [R, words] records of networks: the states, with their dice
    families: npt.NDArray[np.int64]  # [R] equal for neighbours that begin alike, dice and all
    owners: npt.NDArray[np.int64]  # [R] the row of `minds` and `told` of the defender who plays it
    actions: npt.NDArray[np.int64]  # [R] its first action
    minds: Minds  # what each defender has kept so far
    told: npt.NDArray[np.float32]  # [defenders, C] put after its observations


class Counted(NamedTuple):
    """What counts of what happens."""

    weights: npt.NDArray[np.float64]  # [turns] of a reward in each turn of an episode; then it ends
    turns: int  # that are played at most
    value_worth: npt.NDArray[np.float64]  # [turns] of what the critic says; none: it is not asked
    least: float = 0.0  # states of a belief that are less likely are left out; 0: none


def make_desks(
    threads: int,
    kind: int,
    actions: npt.NDArray[np.int64],
    useful: npt.NDArray[np.bool_],
    condition_size: int,
    worlds: Worlds = CAGE2_WORLDS,
    features: npt.NDArray[np.float32] | None = None,
    effective: bool = False,
) -> Desks:
    """For observations of a kind, and policies that have outputs for these actions.

    useful: bool [actions], those that may be chosen. effective: see `games_of`. worlds, features:
    as a batch has them.
    """
    size, hosts = threads * BLOCK, num_hosts_of(worlds)
    network = network_dtype(hosts, counts_vsftpd(worlds))
    nets = records(size, network)
    nobody = Prior(records(1, network), np.ones(1))  # episodes begin elsewhere
    games = Games(
        worlds,
        nets,
        make_minds(size, kind, nobody, hosts, features),
        np.zeros(1, np.int64),
        False,
        NO_ORDERS,
        records(1, CONDUCT),
        actions,
        outputs_of(actions, useful),
        effective,
        np.zeros((size, condition_size), np.float32),
        NO_OWN_RETURNS,
    )
    return Desks(games, words_of(nets))


def play_on(
    team: ThreadTeam, desks: Desks, policy: Policy, starts: Starts, counted: Counted
) -> npt.NDArray[np.float64]:
    """What each game brings from its start on, float64 [R]: after its first action, the policy's
    most likely ones.

    A game that is not over after `counted.turns` is closed with the critic's value, if asked for.
    """
    returns = np.zeros(len(starts.actions))
    team.run(play_on_blocks, (desks, policy.networks, starts, counted, returns))
    return returns


@rule
def copy_mind(source: Minds, i: int, target: Minds, j: int, least: float) -> None:
    copy_memory_if_any(source.memories, i, target.memories, j)
    copy_likely_if_any(source.beliefs, i, target.beliefs, j, least)


@rule
def is_same_game(desks: Desks, i: int, j: int) -> bool:
    """Whether two games are the same from here on: state, dice, and what the defender knows."""
    for w in range(words_in(desks.games.nets)):
        if desks.words[i, w] != desks.words[j, w]:
            return False
    return is_same_mind(desks.games.minds, i, j)


@kernel
def play_on_blocks(
    desks: Desks,
    networks: Networks,
    starts: Starts,
    counted: Counted,
    returns: Floats64,
    board: Board,
    task: int,
    thread: int,
) -> bool:
    """Games from where they start to their end, a block of them at a time."""
    if not join(board, task, thread):
        return True
    games, first = desks.games, thread * BLOCK
    actor, critic, _no_deviations = networks
    size, last = len(starts.actions), len(counted.weights)
    extra = critic.sizes[0] - actor.sizes[0]
    work = np.empty(2 * ROWS * (actor.sizes[1:].sum() + critic.sizes[1:].sum()), np.float32)
    columns = np.empty(ROWS * critic.sizes[0], np.float32)
    obs = np.zeros((ROWS, actor.sizes[0]), np.float32)
    truth = np.zeros((ROWS, extra), np.float32)
    masks = np.empty((BLOCK, len(games.actions)), np.bool_)
    playing = np.empty(BLOCK, np.int64)  # games that are played on, as numbers in the block
    chosen = np.empty(BLOCK, np.int64)  # their actions
    leader = np.empty(BLOCK, np.int64)  # the first game of the family
    has_joined = np.empty(BLOCK, np.bool_)  # ... which it has become the same as
    lost = np.empty(BLOCK)  # in tenths; what it has lost more than that by then, if it has joined
    closing = np.empty(BLOCK)  # what is to come, if the game is cut
    blocks = (size + BLOCK - 1) // BLOCK
    block, helped = next_piece(board, blocks, thread, 0)
    while block >= 0:
        start = block * BLOCK
        count = min(BLOCK, size - start)
        for k in range(count):
            owner = starts.owners[start + k]
            desks.words[first + k] = starts.words[start + k]
            copy_mind(starts.minds, owner, games.minds, first + k, counted.least)
            games.condition[first + k] = starts.told[owner]
            net = games.nets[first + k]
            write_mask(games.worlds[net.world], net, games.actions, games.outputs, masks[k])
            is_first = k == 0 or starts.families[start + k] != starts.families[start + k - 1]
            leader[k] = k if is_first else leader[k - 1]
            has_joined[k], lost[k], closing[k] = False, 0.0, 0.0
            playing[k], chosen[k] = k, starts.actions[start + k]
        for t in range(counted.turns):
            if t > 0:
                for begin in range(0, count, ROWS):
                    some = playing[begin : min(begin + ROWS, count)]
                    for r in range(len(some)):
                        k = some[r]
                        write_input(games, games.nets[first + k], first + k, obs[r])
                    logits = forward(actor, obs[: len(some)], work)
                    for r in range(len(some)):
                        mask = masks[some[r]]
                        if games.effective:
                            world = games.worlds[games.nets[first + some[r]].world]
                            write_effective(world, obs[r], games.outputs, mask)
                        best = most_likely(logits[r], mask)
                        chosen[some[r]] = games.actions[best]
            still = 0
            for n in range(count):
                k = playing[n]
                net = games.nets[first + k]
                turn = number(net.turn)
                if turn >= last:
                    continue
                tenths, _no_order, _own = play_one(games, net, first + k, chosen[k])
                net.tenths = 0  # counted here, so that games of unlike pasts can be the same
                if counted.least:
                    beliefs, i = games.minds.beliefs, first + k
                    copy_likely_if_any(beliefs, i, beliefs, i, counted.least)
                world = games.worlds[net.world]
                host = host_of(world, chosen[k])
                write_mask_of_host(world, net, host, games.outputs, masks[k])
                lost[k] += counted.weights[turn] * tenths
                if turn + 1 >= last:
                    continue
                if leader[k] < k and is_same_game(desks, first + leader[k], first + k):
                    has_joined[k] = True
                    lost[k] -= lost[leader[k]]
                else:
                    playing[still] = k
                    still += 1
            count = still
            if count == 0:
                break
        if len(counted.value_worth):
            for begin in range(0, count, ROWS):
                some = playing[begin : min(begin + ROWS, count)]
                for r in range(len(some)):
                    net = games.nets[first + some[r]]
                    write_input(games, net, first + some[r], obs[r])
                    if extra:
                        write_truth(net, extra // 3, truth[r])
                seen = join_columns(obs[: len(some)], truth[: len(some)], columns)
                values = forward(critic, seen, work)
                for r in range(len(some)):
                    turn = number(games.nets[first + some[r]].turn)
                    closing[some[r]] = values[r, 0] * counted.value_worth[turn]
        for k in range(min(BLOCK, size - start)):
            if has_joined[k]:
                lost[k] += lost[leader[k]]
                closing[k] = closing[leader[k]]
            returns[start + k] = closing[k] - lost[k] / 10.0
        block, helped = next_piece(board, blocks, thread, helped)
    return leave(board, task, thread)
