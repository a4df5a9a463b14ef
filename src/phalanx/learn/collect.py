"""Play the game with a policy: whole rollouts in one compiled call, each thread its own networks.

Networks do not depend on each other and the policy does not change within a rollout. So a block
of networks is played from the first turn to the last by one thread, without waiting for anybody;
blocks have a fixed size, and so the numbers do not depend on how many threads there are.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.bits import number
from phalanx.cage2.crew import count_threads, join, leave, shard_start, take_chunk
from phalanx.cage2.kernel import begin_anew, play_turn, write_obs
from phalanx.cage2.network import dice, high_die, low_die
from phalanx.cage2.observation import remember
from phalanx.cage2.rule import kernel, rule
from phalanx.cage2.scenario import (
    FIRST_DECOY,
    HOST_OF_ACTION,
    NUM_ACTIONS,
    NUM_HOSTS,
    PLACEABLE,
    RESTORE,
    RESTORE_COST,
    VERB_OF_ACTION,
)
from phalanx.learn.mlp import exp, forward

BLOCK = 128  # networks that are played together
TRUTH_SIZE = 3 * NUM_HOSTS  # what only the critic may see: known, scanned, access
NEVER = np.float32(-1e9)  # added to the logit of an action that is masked out


class Rollout(NamedTuple):
    """T turns in N networks."""

    obs: npt.NDArray[np.float32]  # [T, N, D]
    truth: npt.NDArray[np.float32]  # [T, N, TRUTH_SIZE], or [T, N, 0] if the critic does not see it
    masks: npt.NDArray[np.bool_]  # [T, N, 145]
    actions: npt.NDArray[np.uint8]  # [T, N]
    log_probs: npt.NDArray[np.float32]  # [T, N]
    values: npt.NDArray[np.float32]  # [T, N] of the state in which the action was chosen
    next_values: npt.NDArray[np.float32]  # [T, N] of the state after it; the last one of an episode
    rewards: npt.NDArray[
        np.float32
    ]  # [T, N] as the learner sees them: weighted, with the curriculum
    ended: npt.NDArray[np.bool_]  # [T, N] the episode was cut after this turn
    returns: npt.NDArray[np.float32]  # [T, N] true return of the episode that ended there
    red: npt.NDArray[np.uint8]  # [T, N] who attacked in this turn
    next_obs: npt.NDArray[np.float32]  # [N, D] where the next rollout begins


def empty_rollout(turns: int, batch: Batch, truth_size: int) -> Rollout:
    """Arrays for so many turns of a batch, to begin where it is; unwritten numbers are NaN."""
    size, width = batch.shown.obs.shape

    def unwritten(*shape: int) -> npt.NDArray[np.float32]:
        return np.full((turns, size, *shape), np.nan, np.float32)

    return Rollout(
        obs=unwritten(width),
        truth=unwritten(truth_size),
        masks=np.zeros((turns, size, NUM_ACTIONS), np.bool_),
        actions=np.zeros((turns, size), np.uint8),
        log_probs=unwritten(),
        values=unwritten(),
        next_values=unwritten(),
        rewards=unwritten(),
        ended=np.zeros((turns, size), np.bool_),
        returns=unwritten(),
        red=np.zeros((turns, size), np.uint8),
        next_obs=batch.shown.obs.astype(np.float32),
    )


class Shaping(NamedTuple):
    """How the learner's reward differs from the game's. The game itself is never changed."""

    weights: npt.NDArray[np.float32]  # [horizon] of the reward in each turn of an episode
    restore_discount: float  # share of Restore's price that is given back
    scale: float


@rule
def write_mask(net: Any, useful: Any, row: Any) -> None:
    """Actions worth thinking about: the useful ones, less decoys that cannot be placed."""
    for action in range(NUM_ACTIONS):
        verb, host = number(VERB_OF_ACTION[action]), number(HOST_OF_ACTION[action])
        possible = True
        if FIRST_DECOY <= verb < RESTORE:
            possible = (number(PLACEABLE[host, net.decoys[host]]) >> (verb - FIRST_DECOY)) & 1 != 0
        row[action] = useful[action] and possible


@rule
def write_truth(net: Any, row: Any) -> None:
    for host in range(NUM_HOSTS):
        row[host] = (net.known >> host) & 1
        row[NUM_HOSTS + host] = (net.scanned >> host) & 1
        row[2 * NUM_HOSTS + host] = (
            np.float32(((net.sessions >> host) & 1) + ((net.root >> host) & 1)) / 2
        )


@rule
def sample(logits: Any, mask: Any, die: int) -> tuple[int, Any]:
    """An action drawn by its probability, and its log-probability. `logits` are used up."""
    top = np.float32(-3e38)
    for a in range(len(logits)):
        logits[a] += NEVER * (np.float32(1) - np.float32(mask[a]))
        top = max(top, logits[a])
    total = np.float32(0)
    for a in range(len(logits)):
        logits[a] -= top
        total += exp(logits[a])
    left = np.float32(die) * np.float32(2.0**-32) * total
    chosen = -1
    last = 0
    for a in range(len(logits)):
        if mask[a]:
            last = a
            left -= exp(logits[a])
            if left < 0:
                chosen = a
                break
    if chosen < 0:  # rounding: the draw was at the very end
        chosen = last
    return chosen, logits[chosen] - np.log(total)


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


@kernel
def collect_blocks(
    nets: Any, memories: Any, history: bool, odds: Any, useful: Any, shaping: Shaping,
    actor: Any, actor_sizes: Any, critic: Any, critic_sizes: Any, rollout: Rollout,
    board: Any, task: int, thread: int,
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
    final_obs = np.zeros((BLOCK, width), np.float32)
    final_truth = np.zeros((BLOCK, extra), np.float32)
    blocks, threads = (size + BLOCK - 1) // BLOCK, count_threads(board)
    for others in range(threads):
        shard = (thread + others) % threads
        low, high = shard_start(blocks, shard, threads), shard_start(blocks, shard + 1, threads)
        block = low + take_chunk(board, shard, 1)
        while block < high:
            start, stop = block * BLOCK, min((block + 1) * BLOCK, size)
            rollout.obs[0, start:stop] = rollout.next_obs[start:stop]
            for t in range(turns):
                last = t == turns - 1
                for i in range(start, stop):
                    write_mask(nets[i], useful, rollout.masks[t, i])
                    if extra:
                        write_truth(nets[i], rollout.truth[t, i])
                obs = rollout.obs[t, start:stop]
                logits = forward(actor, actor_sizes, obs, work)
                any_ended = False
                for i in range(start, stop):
                    net, memory = nets[i], memories[i if history else 0]
                    first, second = dice(net, 2 * net.turn + 1), dice(net, 2 * net.turn + 2)
                    mask = rollout.masks[t, i]
                    action, log_prob = sample(logits[i - start], mask, high_die(second))
                    weight = shaping.weights[net.turn]
                    rollout.red[t, i] = net.red
                    tenths, _held, _decoy, _move, _target, _chosen = play_turn(
                        net, action, low_die(first), high_die(first), low_die(second)
                    )
                    if history:
                        remember(memory, action, net.seen)
                    rollout.actions[t, i] = action
                    rollout.log_probs[t, i] = log_prob
                    reward = np.float32(-tenths) / np.float32(10)
                    if VERB_OF_ACTION[action] == RESTORE:
                        reward += np.float32(shaping.restore_discount * RESTORE_COST / 10)
                    rollout.rewards[t, i] = reward * weight * np.float32(shaping.scale)
                    ended = net.turn >= net.horizon
                    rollout.ended[t, i] = ended
                    if ended:
                        any_ended = True
                        rollout.returns[t, i] = np.float32(net.tenths) / np.float32(10)
                        write_obs(net, memory, history, final_obs[i - start])
                        if extra:
                            write_truth(net, final_truth[i - start])
                        begin_anew(net, memory, history, odds)
                    if last:
                        write_obs(net, memory, history, rollout.next_obs[i])
                    else:
                        write_obs(net, memory, history, rollout.obs[t + 1, i])
                x = join_columns(obs, rollout.truth[t, start:stop], columns)
                values = forward(critic, critic_sizes, x, work)
                for i in range(start, stop):
                    rollout.values[t, i] = values[i - start, 0]
                    if t > 0 and not rollout.ended[t - 1, i]:
                        rollout.next_values[t - 1, i] = values[i - start, 0]
                if any_ended:
                    n = stop - start
                    x = join_columns(final_obs[:n], final_truth[:n], columns)
                    values = forward(critic, critic_sizes, x, work)
                    for i in range(start, stop):
                        if rollout.ended[t, i]:
                            rollout.next_values[t, i] = values[i - start, 0]
            for i in range(start, stop):
                if extra:
                    write_truth(nets[i], final_truth[i - start])
            n = stop - start
            x = join_columns(rollout.next_obs[start:stop], final_truth[:n], columns)
            values = forward(critic, critic_sizes, x, work)
            for i in range(start, stop):
                if not rollout.ended[turns - 1, i]:
                    rollout.next_values[turns - 1, i] = values[i - start, 0]
            block = low + take_chunk(board, shard, 1)
    return leave(board, task, thread)
