"""Play CAGE-2 with a policy: whole rollouts in one compiled call, each thread its own networks.

Networks do not depend on each other and the policy does not change within a rollout. So a block
of networks is played from the first turn to the last by one thread, without waiting for anybody;
blocks have a fixed size, and so the numbers do not depend on how many threads there are, nor on how
many networks play side by side.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.batch_turn import begin_anew, write_obs
from phalanx.cage2.rules.blue import placeable
from phalanx.cage2.rules.green import green_host
from phalanx.cage2.rules.mind import Minds, take_in
from phalanx.cage2.rules.network import (
    Network,
    Odds,
    dice,
    high_die,
    low_die,
    policy_die,
    turn_dice,
)
from phalanx.cage2.rules.observation import write_truth
from phalanx.cage2.rules.own_reward import own_reward
from phalanx.cage2.rules.scenario import (
    FIRST_DECOY,
    NUM_DECOYS,
    RESTORE,
)
from phalanx.cage2.rules.scoring import Conduct, Orders, align, begin_conduct
from phalanx.cage2.rules.turn import play_turn
from phalanx.cage2.rules.world import (
    NO_ACTION_OF,
    World,
    Worlds,
    host_of,
    hosts_in,
    is_there,
    verb_of,
)
from phalanx.compiled.bits import number
from phalanx.compiled.clock import count_ticks, ticks
from phalanx.compiled.rule import kernel, rule
from phalanx.compiled.team import Board, join, leave, next_piece
from phalanx.learn.compiled.distributions import Bools, sample
from phalanx.learn.compiled.policy import Networks
from phalanx.learn.compiled.sparse import Lists, copy_first, forward_lists, list_row
from phalanx.learn.rollout import Floats, Rollout

BLOCK = 128  # networks that are played together
NO_OUTPUT = -1
SIMULATOR_TICKS, POLICY_TICKS = 0, 1  # of what a thread has spent


class Games(NamedTuple):
    """Networks of CAGE-2 that play side by side, and what each is to follow and is told."""

    worlds: Worlds  # the plans of their networks
    nets: npt.NDArray[np.void]  # records of networks [N]
    minds: Minds  # what blue keeps from turn to turn
    odds: Odds  # of attackers
    has_orders: bool  # looked at in every turn: the orders themselves would cost time
    orders: Orders  # of repair that are to be followed
    conducts: npt.NDArray[np.void]  # CONDUCT [N]
    actions: npt.NDArray[np.int64]  # [A] of each of the policy's outputs
    outputs: npt.NDArray[np.int64]  # [actions] of each action; NO_OUTPUT: it is never chosen
    condition: npt.NDArray[np.float32]  # [N, C] put after every observation of network i
    own_returns: npt.NDArray[np.float64]  # [N] so far, if there is a reward of the user's own


NO_OWN_RETURNS = np.zeros(0)


def games_of(
    batch: Batch,
    orders: Orders,
    conducts: npt.NDArray[np.void],
    useful: Bools,
    actions: npt.NDArray[np.int64],
    condition: Floats,
    own_returns: npt.NDArray[np.float64] = NO_OWN_RETURNS,
) -> Games:
    """Those of a batch.

    useful: bool [all actions], those that may be chosen. actions: [A] of the policy's outputs.
    """
    return Games(
        batch.worlds,
        batch.nets,
        batch.minds,
        batch.odds,
        len(orders.allowed) > 0,
        orders,
        conducts,
        actions,
        outputs_of(actions, useful),
        condition,
        own_returns,
    )


def outputs_of(actions: npt.NDArray[np.int64], useful: Bools) -> npt.NDArray[np.int64]:
    """[all actions] the policy's output for each, or NO_OUTPUT if it may not be chosen."""
    outputs = np.full(len(useful), NO_OUTPUT)
    outputs[actions] = np.where(useful[actions], np.arange(len(actions)), NO_OUTPUT)
    return outputs


class Shaping(NamedTuple):
    """How the learner's reward differs from the game's. The game itself is never changed."""

    weights: npt.NDArray[np.float32]  # [horizon] of the reward in each turn of an episode
    restore_discount: float  # share of Restore's price that is given back
    scale: float
    gamma: float
    final_gamma: float  # in an episode's last turn: gamma if it was merely cut, 0 if it is over


@rule
def write_mask_of_host(
    world: World, net: Network, host: int, outputs: npt.NDArray[np.int64], row: Bools
) -> None:
    """The decoys that can be placed on a host, as far as they are ever chosen."""
    fits = placeable(world, host, net.decoys[host])
    for decoy in range(NUM_DECOYS):
        action = number(world.action_of[FIRST_DECOY + decoy, host])
        if action != NO_ACTION_OF and outputs[action] != NO_OUTPUT:
            row[outputs[action]] = (fits >> decoy) & 1 != 0


@rule
def write_mask(games: Games, net: Network, row: Bools) -> None:
    """Outputs worth thinking about: those of useful actions, less decoys that cannot be placed."""
    world = games.worlds[net.world]
    for output in range(len(row)):
        action = number(games.actions[output])
        row[output] = games.outputs[action] != NO_OUTPUT and is_there(world, action)
    for host in range(hosts_in(world)):
        write_mask_of_host(world, net, host, games.outputs, row)


@rule
def begin_following(net: Network, conduct: Conduct, orders: Orders, told: Floats) -> None:
    """Draw the order of a new episode, and tell the policy (in the last columns of `told`)."""
    begin_conduct(conduct, orders, high_die(dice(net, 0)))
    first = len(told) - orders.codes.shape[1]
    for c in range(orders.codes.shape[1]):
        told[first + c] = orders.codes[conduct.order, c]


@kernel
def begin_following_everywhere(games: Games) -> None:
    for i in range(len(games.nets)):
        begin_following(games.nets[i], games.conducts[i], games.orders, games.condition[i])


@rule
def write_input(games: Games, net: Network, i: int, row: Floats) -> None:
    """What the actor sees of network i: the observation, and after it what it was told."""
    told = games.condition[i]
    write_obs(games.worlds[net.world], net, games.minds, i, row)
    first = len(row) - len(told)
    for c in range(len(told)):
        row[first + c] = told[c]


@rule
def empty_block(inputs: int) -> Lists:
    """Room for what the networks of a block show."""
    none, numbers = np.zeros(BLOCK, np.int64), BLOCK * inputs
    columns, values = np.empty(numbers, np.int32), np.empty(numbers, np.float32)
    return Lists(none, none.copy(), none.copy(), columns, values)


@rule
def list_block(obs: Floats, truth: Floats, lists: Lists) -> None:
    """What rows show. Rows that are missing show nothing: all blocks have the same size, for what a
    matrix product gives for a row depends on how many there are.
    """
    at = 0
    for k in range(len(obs)):
        at = list_row(obs[k], truth[k], lists, k, at)
    for k in range(len(obs), BLOCK):
        lists.starts[k] = lists.middles[k] = lists.ends[k] = 0


@rule
def copy_rows(rows: Floats, into: Floats) -> None:
    """A plain loop: an assignment that checks shapes takes long to compile."""
    for r in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            into[r, c] = rows[r, c]


class Final(NamedTuple):
    """What is seen when an episode ends: its last observation is not in the rollout."""

    obs: npt.NDArray[np.float32]  # [rows, D]
    truth: npt.NDArray[np.float32]  # [rows, K]


@rule
def look_around(games: Games, net: Network, i: int, rollout: Rollout, t: int) -> None:
    """Store what network i may do in this turn, and what only the critic sees."""
    row = rollout.masks[t, i]
    if t == 0 or rollout.ended[t - 1, i]:
        write_mask(games, net, row)
    else:  # only the host that blue has just acted on can be different
        for output in range(len(row)):
            row[output] = rollout.masks[t - 1, i, output]
        world = games.worlds[net.world]
        host = host_of(world, games.actions[rollout.actions[t - 1, i]])
        write_mask_of_host(world, net, host, games.outputs, row)
    if rollout.truth.shape[2]:
        write_truth(net, rollout.truth.shape[2] // 3, rollout.truth[t, i])


@rule
def play_one(games: Games, net: Network, i: int, action: int) -> tuple[int, float, float]:
    """One turn of network i with its own dice: what it cost (tenths), its alignment reward, and
    what the user's own reward gives, if there is one.
    """
    world, infected = games.worlds[net.world], number(net.sessions)
    first, second = turn_dice(net)
    target_die, exploit_die, detection_die = low_die(first), high_die(first), low_die(second)
    green = green_host(world, net)
    tenths, left, _decoy, move, target, _chosen = play_turn(
        world, net, action, target_die, exploit_die, detection_die, green
    )
    aligned = 0.0
    if games.has_orders:
        verb, host = verb_of(world, action), host_of(world, action)
        aligned = align(games.conducts[i], games.orders, infected, left, verb, host)
    take_in(world, games.minds, i, action, net.seen)
    own = 0.0
    if world.reward:
        own = own_reward(world, net, tenths, action, infected, move, target)
    return tenths, aligned, own


@rule
def play_and_store(
    games: Games,
    net: Network,
    i: int,
    shaping: Shaping,
    rollout: Rollout,
    t: int,
    final: Final,
    k: int,
) -> bool:
    """One turn of network i into row t, where its action is; True if its episode ended.

    Then the next one has begun, and row k of `final` holds what was seen at its end.
    """
    action = number(games.actions[rollout.actions[t, i]])
    weight = shaping.weights[net.turn]
    rollout.kinds[t, i] = net.red
    tenths, aligned, own = play_one(games, net, i, action)
    reward = np.float32(-tenths) / np.float32(10)
    if games.worlds[net.world].reward:
        reward = np.float32(own)
        games.own_returns[i] += own
    elif verb_of(games.worlds[net.world], action) == RESTORE:
        price = number(games.worlds[net.world].action_costs[RESTORE])
        reward += np.float32(shaping.restore_discount * price / 10)
    rollout.rewards[t, i] = (reward * weight + np.float32(aligned)) * np.float32(shaping.scale)
    ended = net.turn >= net.horizon
    rollout.ended[t, i] = rollout.counted[t, i] = ended
    rollout.discounts[t, i] = shaping.final_gamma if ended else shaping.gamma
    if ended:
        rollout.returns[t, i] = np.float32(net.tenths) / np.float32(10)
        rollout.lengths[t, i] = net.turn
        if rollout.own_returns.shape[2]:
            rollout.own_returns[t, i, 0] = games.own_returns[i]
            games.own_returns[i] = 0.0
        write_input(games, net, i, final.obs[k])
        if final.truth.shape[1]:
            write_truth(net, final.truth.shape[1] // 3, final.truth[k])
        begin_anew(games.worlds, net, games.minds, i, games.odds)
        if games.has_orders:
            rollout.notes[t, i] = games.conducts[i]
            begin_following(net, games.conducts[i], games.orders, games.condition[i])
    last = t == rollout.obs.shape[0] - 1
    write_input(games, net, i, rollout.next_obs[i] if last else rollout.obs[t + 1, i])
    return ended


@kernel
def collect_blocks(
    games: Games,
    shaping: Shaping,
    networks: Networks,
    rollout: Rollout,
    all_spent: npt.NDArray[np.int64],
    board: Board,
    task: int,
    thread: int,
) -> bool:
    """Fill a rollout.

    all_spent: int64 [threads, 8], to which each thread adds its ticks, by what it did.
    """
    if not join(board, task, thread):
        return True
    since, spent = ticks(), all_spent[thread]
    actor, critic, _no_deviations = networks
    turns, size, width = rollout.obs.shape
    extra = rollout.truth.shape[2]
    hidden = actor.sizes[1:].sum() + critic.sizes[1:].sum()
    work = np.empty(2 * BLOCK * hidden, np.float32)
    shares = np.empty(actor.sizes[-1], np.float32)
    final = Final(np.zeros((BLOCK, width), np.float32), np.zeros((BLOCK, extra), np.float32))
    first, critic_first, lists = copy_first(actor), copy_first(critic), empty_block(width + extra)
    blocks = (size + BLOCK - 1) // BLOCK
    block, helped = next_piece(board, blocks, thread, 0)
    while block >= 0:
        start, stop = block * BLOCK, min((block + 1) * BLOCK, size)
        copy_rows(rollout.next_obs[start:stop], rollout.obs[0, start:stop])
        for t in range(turns):
            for i in range(start, stop):
                look_around(games, games.nets[i], i, rollout, t)
            since = count_ticks(spent, SIMULATOR_TICKS, since)
            list_block(rollout.obs[t, start:stop], rollout.truth[t, start:stop], lists)
            values = forward_lists(critic, critic_first, lists, lists.ends, work)
            for i in range(start, stop):
                rollout.values[t, i] = values[i - start, 0]
                if t > 0 and not rollout.ended[t - 1, i]:
                    rollout.next_values[t - 1, i] = values[i - start, 0]
            logits = forward_lists(actor, first, lists, lists.middles, work)
            for i in range(start, stop):
                die = policy_die(games.nets[i])
                output, log_prob = sample(logits[i - start], rollout.masks[t, i], die, shares)
                rollout.actions[t, i] = output
                rollout.log_probs[t, i] = log_prob
            since = count_ticks(spent, POLICY_TICKS, since)
            any_ended = False
            for i in range(start, stop):
                net, k = games.nets[i], i - start
                if play_and_store(games, net, i, shaping, rollout, t, final, k):
                    any_ended = True
            since = count_ticks(spent, SIMULATOR_TICKS, since)
            if any_ended:
                list_block(final.obs, final.truth, lists)
                values = forward_lists(critic, critic_first, lists, lists.ends, work)
                for i in range(start, stop):
                    if rollout.ended[t, i]:
                        rollout.next_values[t, i] = values[i - start, 0]
        if not rollout.ended[turns - 1, start:stop].all():
            if extra:
                for i in range(start, stop):
                    write_truth(games.nets[i], extra // 3, final.truth[i - start])
            list_block(rollout.next_obs[start:stop], final.truth[: stop - start], lists)
            values = forward_lists(critic, critic_first, lists, lists.ends, work)
            for i in range(start, stop):
                if not rollout.ended[turns - 1, i]:
                    rollout.next_values[turns - 1, i] = values[i - start, 0]
        since = count_ticks(spent, POLICY_TICKS, since)
        block, helped = next_piece(board, blocks, thread, helped)
    return leave(board, task, thread)
