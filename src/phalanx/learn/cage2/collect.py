"""Play CAGE-2 with a policy: whole rollouts in one compiled call, each thread its own networks.

Networks do not depend on each other and the policy does not change within a rollout. So a block
of networks is played from the first turn to the last by one thread, without waiting for anybody;
blocks have a fixed size, and so the numbers do not depend on how many threads there are, nor on how
many networks play side by side.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.batch_turn import begin_anew
from phalanx.cage2.rules.masks import write_effective
from phalanx.cage2.rules.mind import is_surprised_if_any, take_in
from phalanx.cage2.rules.network import Network, policy_die
from phalanx.cage2.rules.observation import write_truth
from phalanx.cage2.rules.scenario import RESTORE
from phalanx.cage2.rules.world import host_of, verb_of
from phalanx.compiled.bits import number
from phalanx.compiled.clock import count_ticks, ticks
from phalanx.compiled.rule import kernel, rule
from phalanx.compiled.team import Board, join, leave, next_piece
from phalanx.learn.cage2.blocks import BLOCK, empty_block, list_block
from phalanx.learn.cage2.choices import write_mask, write_mask_of_host
from phalanx.learn.cage2.foresight import (
    Floats64,
    Foresight,
    critic_of,
    foresee_turn_if_any,
    take_out_luck,
    value_outcomes_if_any,
)
from phalanx.learn.cage2.games import Games, Shaping, begin_following, play_unseen, write_input
from phalanx.learn.compiled.distributions import sample
from phalanx.learn.compiled.policy import Networks
from phalanx.learn.compiled.sparse import copy_first, forward_lists
from phalanx.learn.rollout import Floats, Rollout

SIMULATOR_TICKS, POLICY_TICKS = 0, 1  # of what a thread has spent


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
        write_mask(games.worlds[net.world], net, games.actions, games.outputs, row)
    else:  # only the host that blue has just acted on can be different
        for output in range(len(row)):
            row[output] = rollout.masks[t - 1, i, output]
        world = games.worlds[net.world]
        host = host_of(world, games.actions[rollout.actions[t - 1, i]])
        write_mask_of_host(world, net, host, games.outputs, row)
    if games.effective:
        write_effective(games.worlds[net.world], rollout.obs[t, i], games.outputs, row)
    if rollout.truth.shape[2]:
        write_truth(net, rollout.truth.shape[2] // 3, rollout.truth[t, i])


@rule
def play_stored_action(
    games: Games, net: Network, i: int, shaping: Shaping, rollout: Rollout, t: int
) -> tuple[int, float]:
    """One turn of network i with the action of row t, where its reward is stored.

    Returns the action and its alignment reward. What blue was shown is still to be taken in.
    """
    action, world = number(games.actions[rollout.actions[t, i]]), games.worlds[net.world]
    weight = shaping.weights[net.turn]
    rollout.kinds[t, i] = net.red
    tenths, aligned, own = play_unseen(games, net, i, action)
    reward = np.float32(-tenths) / np.float32(10)
    if world.reward:
        reward = np.float32(own)
        games.own_returns[i] += own
    elif verb_of(world, action) == RESTORE:
        price = number(world.action_costs[RESTORE])
        reward += np.float32(shaping.restore_discount * price / 10)
    rollout.rewards[t, i] = (reward * weight + np.float32(aligned)) * np.float32(shaping.scale)
    return action, aligned


@rule
def next_row(rollout: Rollout, t: int, i: int) -> Floats:
    """Where what network i shows after turn t is stored."""
    return rollout.next_obs[i] if t == rollout.obs.shape[0] - 1 else rollout.obs[t + 1, i]


@rule
def store_what_follows(
    games: Games,
    net: Network,
    i: int,
    shaping: Shaping,
    rollout: Rollout,
    t: int,
    final: Final,
    k: int,
    is_shown: bool,
) -> bool:
    """What the turn of row t has led to; True if network i's episode ended.

    Then the next one has begun, and row k of `final` holds what was seen at its end. is_shown: what
    is seen after the turn is stored already.
    """
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
    if ended or not is_shown:
        write_input(games, net, i, next_row(rollout, t, i))
    return ended


@rule
def count_on_average(
    rollout: Rollout,
    t: int,
    start: int,
    stop: int,
    scale: float,
    means: Floats64,
    aligned: Floats64,
) -> None:
    """Where it is known what turns are worth on average, that stands in place of their rewards."""
    for i in range(start, stop):
        if not np.isnan(means[i - start]):
            rollout.rewards[t, i] = np.float32(means[i - start] + aligned[i - start] * scale)


@kernel
def collect_blocks(
    games: Games,
    shaping: Shaping,
    networks: Networks,
    rollout: Rollout,
    foresight: Foresight | None,
    all_spent: npt.NDArray[np.int64],
    board: Board,
    task: int,
    thread: int,
) -> bool:
    """Fill a rollout.

    foresight: if the luck of the dice is to be taken out of rewards.
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
    foreseer = critic_of(critic, critic_first, lists, work, width)
    means, aligned = np.empty((turns, BLOCK)), np.empty(BLOCK)
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
            any_ended, waiting = False, 0
            for i in range(start, stop):
                net, k, row = games.nets[i], i - start, next_row(rollout, t, i)
                action, aligned[k] = play_stored_action(games, net, i, shaping, rollout, t)
                waiting, is_shown = foresee_turn_if_any(
                    foresight,
                    games,
                    shaping,
                    foreseer,
                    net,
                    i,
                    action,
                    waiting,
                    thread,
                    means[t],
                    k,
                    row,
                )
                if not is_shown:
                    take_in(games.worlds[net.world], games.minds, i, action, net.seen)
                    if is_surprised_if_any(games.minds.beliefs, i):
                        means[t, k] = np.nan
                if store_what_follows(games, net, i, shaping, rollout, t, final, k, is_shown):
                    any_ended = True
            value_outcomes_if_any(foresight, foreseer, waiting, means[t])
            count_on_average(rollout, t, start, stop, shaping.scale, means[t], aligned)
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
        take_out_luck(rollout, means, start, stop)
        since = count_ticks(spent, POLICY_TICKS, since)
        block, helped = next_piece(board, blocks, thread, helped)
    return leave(board, task, thread)
