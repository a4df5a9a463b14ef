"""Play CAGE-2 with a policy: whole rollouts in one compiled call, each thread its own networks.

Networks do not depend on each other and the policy does not change within a rollout. So a block
of networks is played from the first turn to the last by one thread, without waiting for anybody;
blocks have a fixed size, and so the numbers do not depend on how many threads there are, nor on how
many networks play side by side.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.network import dice, high_die, low_die
from phalanx.cage2.rules.observation import remember, write_truth
from phalanx.cage2.rules.scenario import (
    FIRST_DECOY,
    HOST_OF_ACTION,
    NUM_DECOYS,
    NUM_HOSTS,
    PLACEABLE,
    RESTORE,
    RESTORE_COST,
    VERB_OF_ACTION,
)
from phalanx.cage2.rules.scoring import Orders, align, begin_conduct
from phalanx.cage2.rules.turn import begin_anew, play_turn, write_obs
from phalanx.compiled.bits import number
from phalanx.compiled.rule import kernel, rule
from phalanx.compiled.team import join, leave, next_piece
from phalanx.learn.compiled.mlp import add_up, exp, fast, forward
from phalanx.learn.rollout import Rollout

BLOCK = 128  # networks that are played together
GROUP = 16  # actions whose probabilities are added up together
NEVER = np.float32(-1e9)  # added to the logit of an action that is masked out


class Shaping(NamedTuple):
    """How the learner's reward differs from the game's. The game itself is never changed."""

    weights: npt.NDArray[np.float32]  # [horizon] of the reward in each turn of an episode
    restore_discount: float  # share of Restore's price that is given back
    scale: float
    gamma: float
    final_gamma: float  # in an episode's last turn: gamma if it was merely cut, 0 if it is over


@rule
def write_mask_of_host(net: Any, host: int, useful: Any, row: Any) -> None:
    """The decoys that can be placed on a host, as far as they are useful."""
    placeable = number(PLACEABLE[host, net.decoys[host]])
    for decoy in range(NUM_DECOYS):
        action = 2 + NUM_HOSTS * (FIRST_DECOY + decoy) + host
        row[action] = useful[action] and (placeable >> decoy) & 1 != 0


@rule
def write_mask(net: Any, useful: Any, row: Any) -> None:
    """Actions worth thinking about: the useful ones, less decoys that cannot be placed."""
    row[:] = useful
    for host in range(NUM_HOSTS):
        write_mask_of_host(net, host, useful, row)


@rule
def begin_following(net: Any, conduct: Any, orders: Orders, told: Any) -> None:
    """Draw the order of a new episode, and tell the policy (in the last columns of `told`)."""
    begin_conduct(conduct, orders, high_die(dice(net, 0)))
    first = len(told) - orders.codes.shape[1]
    for c in range(orders.codes.shape[1]):
        told[first + c] = orders.codes[conduct.order, c]


@kernel
def begin_following_everywhere(nets: Any, conducts: Any, orders: Orders, condition: Any) -> None:
    for i in range(len(nets)):
        begin_following(nets[i], conducts[i], orders, condition[i])


@rule
def write_input(net: Any, memory: Any, kind: int, condition: Any, row: Any) -> None:
    """What the actor sees: the observation, and after it what this network was told."""
    write_obs(net, memory, kind, row)
    first = len(row) - len(condition)
    for c in range(len(condition)):
        row[first + c] = condition[c]


@fast
def sample(logits: Any, mask: Any, die: int, shares: Any) -> tuple[int, Any]:
    """An action drawn by its probability, and its log-probability. `logits` are used up.

    shares: room for as many numbers.
    """
    top = np.float32(-3e38)
    for a in range(len(logits)):
        logits[a] += NEVER * (np.float32(1) - np.float32(mask[a]))
        top = max(top, logits[a])
    for a in range(len(logits)):
        shares[a] = exp(logits[a] - top) * np.float32(mask[a])
    total = add_up(shares)
    left = np.float32(die) * np.float32(2.0**-32) * total
    first = 0  # skip whole groups, then look at each
    while first + GROUP <= len(logits):
        group = add_up(shares[first : first + GROUP])
        if group > left:
            break
        left -= group
        first += GROUP
    chosen = -1
    for a in range(first, len(logits)):
        left -= shares[a]
        if left < 0 and mask[a]:
            chosen = a
            break
    if chosen < 0:  # rounding: the draw was at the very end
        for a in range(len(logits)):
            if mask[a]:
                chosen = a
    return chosen, logits[chosen] - top - np.log(total)


@rule
def join_columns(obs: Any, truth: Any, out: Any) -> Any:
    """[rows, D] and [rows, K] beside each other; the first alone if there is no truth."""
    rows, d, k = obs.shape[0], obs.shape[1], truth.shape[1]
    x = out[: rows * (d + k)].reshape(rows, d + k)
    for r in range(rows):
        for c in range(d):
            x[r, c] = obs[r, c]
        for c in range(k):
            x[r, d + c] = truth[r, c]
    return x


@rule
def fill_up(rows: Any, room: Any) -> Any:
    """A whole block: what a matrix product gives for a row depends on how many rows there are."""
    if rows.shape[0] == BLOCK:
        return rows
    room[: rows.shape[0]] = rows
    return room


@rule
def look_around(net: Any, useful: Any, rollout: Rollout, t: int, i: int) -> None:
    """Store what may be done in this turn, and what only the critic sees."""
    row = rollout.masks[t, i]
    if t == 0 or rollout.ended[t - 1, i]:
        write_mask(net, useful, row)
    else:  # only the host that blue has just acted on can be different
        row[:] = rollout.masks[t - 1, i]
        write_mask_of_host(net, number(HOST_OF_ACTION[rollout.actions[t - 1, i]]), useful, row)
    if rollout.truth.shape[2]:
        write_truth(net, rollout.truth[t, i])


@rule
def take_turn(
    net: Any, memory: Any, kind: int, orders: Orders, conduct: Any, action: int
) -> tuple[int, float]:
    """One turn with the network's own dice; what it cost (tenths), and its alignment reward."""
    infected = number(net.sessions)
    first, second = dice(net, 2 * net.turn + 1), dice(net, 2 * net.turn + 2)
    tenths, left, _decoy, _move, _target, _chosen = play_turn(
        net, action, low_die(first), high_die(first), low_die(second)
    )
    aligned = 0.0
    if len(orders.allowed):
        verb, host = number(VERB_OF_ACTION[action]), number(HOST_OF_ACTION[action])
        aligned = align(conduct, orders, infected, left, verb, host)
    if kind:
        remember(memory, action, net.seen)
    return tenths, aligned


@rule
def play_and_store(
    net: Any, memory: Any, kind: int, odds: Any, orders: Orders, conduct: Any, told: Any,
    action: int, log_prob: Any, shaping: Shaping, rollout: Rollout, t: int, i: int,
    final_obs: Any, final_truth: Any,
) -> bool:  # fmt: skip
    """One turn of network i into row t; True if its episode ended, and the next one has begun."""
    weight = shaping.weights[net.turn]
    rollout.kinds[t, i] = net.red
    tenths, aligned = take_turn(net, memory, kind, orders, conduct, action)
    rollout.actions[t, i] = action
    rollout.log_probs[t, i] = log_prob
    reward = np.float32(-tenths) / np.float32(10)
    if VERB_OF_ACTION[action] == RESTORE:
        reward += np.float32(shaping.restore_discount * RESTORE_COST / 10)
    rollout.rewards[t, i] = (reward * weight + np.float32(aligned)) * np.float32(shaping.scale)
    ended = net.turn >= net.horizon
    rollout.ended[t, i] = rollout.counted[t, i] = ended
    rollout.discounts[t, i] = shaping.final_gamma if ended else shaping.gamma
    if ended:
        rollout.returns[t, i] = np.float32(net.tenths) / np.float32(10)
        rollout.lengths[t, i] = net.turn
        write_input(net, memory, kind, told, final_obs)
        if len(final_truth):
            write_truth(net, final_truth)
        begin_anew(net, memory, kind, odds)
        if len(orders.allowed):
            rollout.conducts[t, i] = conduct
            begin_following(net, conduct, orders, told)
    if t == rollout.obs.shape[0] - 1:
        write_input(net, memory, kind, told, rollout.next_obs[i])
    else:
        write_input(net, memory, kind, told, rollout.obs[t + 1, i])
    return ended


@kernel
def collect_blocks(
    nets: Any, memories: Any, kind: int, odds: Any, orders: Orders, conducts: Any, useful: Any,
    condition: Any, shaping: Shaping, actor: Any, actor_sizes: Any, critic: Any, critic_sizes: Any,
    rollout: Rollout, board: Any, task: int, thread: int,
) -> bool:  # fmt: skip
    """Fill a rollout."""
    if not join(board, task, thread):
        return True
    turns, size = rollout.obs.shape[0], rollout.obs.shape[1]
    width, extra = rollout.obs.shape[2], rollout.truth.shape[2]
    hidden = 0
    for layer in range(1, len(actor_sizes)):
        hidden += actor_sizes[layer]
    for layer in range(1, len(critic_sizes)):
        hidden += critic_sizes[layer]
    work = np.empty(2 * BLOCK * hidden, np.float32)
    columns = np.empty(BLOCK * (width + extra), np.float32)
    shares = np.empty(actor_sizes[-1], np.float32)
    final_obs = np.zeros((BLOCK, width), np.float32)
    final_truth = np.zeros((BLOCK, extra), np.float32)
    whole_obs, whole_truth = np.zeros_like(final_obs), np.zeros_like(final_truth)
    blocks = (size + BLOCK - 1) // BLOCK
    block, helped = next_piece(board, blocks, thread, 0)
    while block >= 0:
        start, stop = block * BLOCK, min((block + 1) * BLOCK, size)
        rollout.obs[0, start:stop] = rollout.next_obs[start:stop]
        for t in range(turns):
            obs = fill_up(rollout.obs[t, start:stop], whole_obs)
            logits = forward(actor, actor_sizes, obs, work)
            any_ended = False
            for i in range(start, stop):
                net, memory = nets[i], memories[i if kind else 0]
                conduct = conducts[i]
                look_around(net, useful, rollout, t, i)
                die = high_die(dice(net, 2 * net.turn + 2))
                action, log_prob = sample(logits[i - start], rollout.masks[t, i], die, shares)
                if play_and_store(
                    net, memory, kind, odds, orders, conduct, condition[i], action, log_prob,
                    shaping, rollout, t, i, final_obs[i - start], final_truth[i - start],
                ):  # fmt: skip
                    any_ended = True
            x = join_columns(obs, fill_up(rollout.truth[t, start:stop], whole_truth), columns)
            values = forward(critic, critic_sizes, x, work)
            for i in range(start, stop):
                rollout.values[t, i] = values[i - start, 0]
                if t > 0 and not rollout.ended[t - 1, i]:
                    rollout.next_values[t - 1, i] = values[i - start, 0]
            if any_ended:
                x = join_columns(final_obs, final_truth, columns)
                values = forward(critic, critic_sizes, x, work)
                for i in range(start, stop):
                    if rollout.ended[t, i]:
                        rollout.next_values[t, i] = values[i - start, 0]
        for i in range(start, stop):
            if extra:
                write_truth(nets[i], final_truth[i - start])
        x = join_columns(fill_up(rollout.next_obs[start:stop], whole_obs), final_truth, columns)
        values = forward(critic, critic_sizes, x, work)
        for i in range(start, stop):
            if not rollout.ended[turns - 1, i]:
                rollout.next_values[turns - 1, i] = values[i - start, 0]
        block, helped = next_piece(board, blocks, thread, helped)
    return leave(board, task, thread)
