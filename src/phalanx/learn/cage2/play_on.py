"""Play on from states in mid-episode, each with a first action that is given: what if?

Thousands of short games begin where a few defenders stand. So what a defender keeps from turn to
turn is not copied for all of them: a thread has a desk of one block of networks, copies onto it
what the block's games begin with, plays them to their end, and takes the next block.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.belief import Prior, words_of
from phalanx.cage2.rules.mind import Minds, copy_likely_if_any, make_minds
from phalanx.cage2.rules.network import NETWORK
from phalanx.cage2.rules.observation import write_truth
from phalanx.cage2.rules.scenario import HOST_OF_ACTION
from phalanx.cage2.rules.scoring import CONDUCT, NO_ORDERS
from phalanx.compiled.bits import number
from phalanx.compiled.rule import kernel, records, rule
from phalanx.compiled.team import ThreadTeam, join, leave, next_piece
from phalanx.learn.cage2.collect import (
    BLOCK,
    Games,
    outputs_of,
    play_one,
    write_input,
    write_mask,
    write_mask_of_host,
)
from phalanx.learn.compiled.distributions import most_likely
from phalanx.learn.compiled.mlp import forward, join_columns
from phalanx.learn.compiled.policy import Networks, Policy


class Desks(NamedTuple):
    """Room for one block of networks for each thread, and a word-wise view of them."""

    games: Games
    words: npt.NDArray[np.uint64]


class Starts(NamedTuple):
    """Where R games begin."""

    words: npt.NDArray[np.uint64]  # [R, words] records of NETWORK: the states, with their dice
    owners: npt.NDArray[np.int64]  # [R] the row of `minds` and `told` of the defender who plays it
    actions: npt.NDArray[np.int64]  # [R] its first action
    minds: Minds  # what each defender has kept so far
    told: npt.NDArray[np.float32]  # [defenders, C] put after its observations


class Counted(NamedTuple):
    """What counts of what happens."""

    weights: npt.NDArray[np.float64]  # [turns] of a reward in each turn of an episode; then it ends
    turns: int  # that are played at most
    value_scale: float  # what the critic says is so many times a return; 0: it is not asked
    least: float = 0.0  # states of a belief that are less likely are left out; 0: none


def make_desks(
    threads: int,
    kind: int,
    actions: npt.NDArray[np.int64],
    useful: npt.NDArray[np.bool_],
    condition_size: int,
) -> Desks:
    """For observations of a kind, and policies that have outputs for these actions.

    useful: bool [145], actions that may be chosen.
    """
    size = threads * BLOCK
    nets = records(size, NETWORK)
    nobody = Prior(records(1, NETWORK), np.ones(1))  # episodes begin elsewhere
    games = Games(
        nets, make_minds(size, kind, nobody), np.zeros(1, np.int64), False, NO_ORDERS,
        records(1, CONDUCT), actions, outputs_of(actions, useful),
        np.zeros((size, condition_size), np.float32),
    )  # fmt: skip
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
    if source.kind:
        target.memories[j] = source.memories[i]
    copy_likely_if_any(source.beliefs, i, target.beliefs, j, least)


@kernel
def play_on_blocks(
    desks: Desks, networks: Networks, starts: Starts, counted: Counted, returns: Any,
    board: Any, task: int, thread: int,
) -> bool:  # fmt: skip
    """Games from where they start to their end, a block of them at a time."""
    if not join(board, task, thread):
        return True
    games, first = desks.games, thread * BLOCK
    actor, critic, _no_deviations = networks
    size, last = len(starts.actions), len(counted.weights)
    extra = critic.sizes[0] - actor.sizes[0]
    work = np.empty(2 * BLOCK * (actor.sizes[1:].sum() + critic.sizes[1:].sum()), np.float32)
    columns = np.empty(BLOCK * critic.sizes[0], np.float32)
    obs = np.zeros((BLOCK, actor.sizes[0]), np.float32)
    truth = np.zeros((BLOCK, extra), np.float32)
    masks = np.empty((BLOCK, len(games.actions)), np.bool_)
    blocks = (size + BLOCK - 1) // BLOCK
    block, helped = next_piece(board, blocks, thread, 0)
    while block >= 0:
        start = block * BLOCK
        rows = min(BLOCK, size - start)
        for k in range(rows):
            owner = starts.owners[start + k]
            desks.words[first + k] = starts.words[start + k]
            copy_mind(starts.minds, owner, games.minds, first + k, counted.least)
            games.condition[first + k] = starts.told[owner]
            write_mask(games, games.nets[first + k], masks[k])
        playing = rows
        for t in range(counted.turns):
            logits = obs  # until there are some
            if t > 0:
                for k in range(rows):
                    write_input(games, games.nets[first + k], first + k, obs[k])
                logits = forward(actor, obs, work)
            playing = 0
            for k in range(rows):
                net = games.nets[first + k]
                turn = number(net.turn)
                if turn >= last:
                    continue
                action = number(starts.actions[start + k])
                if t > 0:
                    action = number(games.actions[most_likely(logits[k], masks[k])])
                tenths, _no_order = play_one(games, net, first + k, action)
                if counted.least:
                    beliefs, i = games.minds.beliefs, first + k
                    copy_likely_if_any(beliefs, i, beliefs, i, counted.least)
                write_mask_of_host(net, number(HOST_OF_ACTION[action]), games.outputs, masks[k])
                returns[start + k] -= counted.weights[turn] * tenths / 10.0
                if turn + 1 < last:
                    playing += 1
            if playing == 0:
                break
        if playing and counted.value_scale:
            for k in range(rows):
                net = games.nets[first + k]
                write_input(games, net, first + k, obs[k])
                if extra:
                    write_truth(net, truth[k])
            values = forward(critic, join_columns(obs, truth, columns), work)
            for k in range(rows):
                if games.nets[first + k].turn < last:
                    returns[start + k] += values[k, 0] / counted.value_scale
        block, helped = next_piece(board, blocks, thread, helped)
    return leave(board, task, thread)
