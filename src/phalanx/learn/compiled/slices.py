"""Minibatches cut into slices: each adds its own part to the gradient.

Slices have a fixed size and are the same whoever computes them. What a slice shows lies in arrays,
or in lists of what is not zero (`sparse.py`).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.compiled.rule import kernel
from phalanx.compiled.team import Board, join, leave, next_piece
from phalanx.learn.compiled.distributions import evaluate_action, outputs_gradient
from phalanx.learn.compiled.mlp import Floats, backward, fast, forward, join_columns, work_size
from phalanx.learn.compiled.policy import Networks, Policy
from phalanx.learn.compiled.ppo_loss import NO_SUMS, entropy_gradient, ppo_gradient
from phalanx.learn.compiled.sparse import (
    Ints,
    Lists,
    backward_lists,
    choose_lists,
    copy_first,
    forward_lists,
    list_row,
)
from phalanx.learn.ppo import STATS, LossSettings, Rows

SLICE = 512  # rows of a minibatch that one thread works on at a time


class Room(NamedTuple):
    """Where slices are computed, each thread in its own part: a step allocates little."""

    grads: Floats  # [slices, P]
    stats: npt.NDArray[np.float64]  # [slices, 5] sums of STATS
    actor_work: Floats  # [threads, ...] as `forward` and `backward` take it
    critic_work: Floats
    shares: Floats  # [threads, SLICE, A]
    x: Floats  # [threads, SLICE, D] what the actor sees; none if that is in lists
    y: Floats  # [threads, SLICE * (D + K)] what the critic sees


def make_room(policy: Policy, threads: int, minibatch_size: int, sparse: bool) -> Room:
    def zeros(*shape: int) -> Floats:
        return np.zeros((threads, *shape), np.float32)

    slices = -(-minibatch_size // SLICE)
    actor, critic = policy.actor_sizes, policy.critic_sizes
    shown = 0 if sparse else SLICE
    return Room(
        grads=np.empty((slices, len(policy.theta)), np.float32),
        stats=np.empty((slices, len(STATS)), np.float64),
        actor_work=zeros(work_size(actor, SLICE)),
        critic_work=zeros(work_size(critic, SLICE)),
        shares=zeros(SLICE, int(actor[-1])),
        x=zeros(shown, policy.obs_size),
        y=zeros(shown * int(critic[0])),
    )


@fast
def gather(rows: Rows, chosen: Ints) -> Rows:
    """The chosen rows beside each other, but for what is seen: later none is waited for."""
    n = len(chosen)
    masks, actions = np.empty_like(rows.masks[:n]), np.empty_like(rows.actions[:n])
    log_probs = np.empty(n, np.float32)
    advantages, targets = np.empty(n, np.float32), np.empty(n, np.float32)
    for k in range(n):
        row = chosen[k]
        for a in range(masks.shape[1]):
            masks[k, a] = rows.masks[row, a]
        actions[k] = rows.actions[row]
        log_probs[k] = rows.log_probs[row]
        advantages[k] = rows.advantages[row]
        targets[k] = rows.targets[row]
    return Rows(rows.obs, rows.truth, masks, actions, log_probs, advantages, targets)


@fast
def gather_seen(rows: Rows, chosen: Ints, x: Floats, y: Floats) -> Floats:
    """What the actor sees of the chosen rows into x [rows, D]; returns what the critic sees."""
    truth = np.empty_like(rows.truth[: len(chosen)])
    for k in range(len(chosen)):
        row = chosen[k]
        for c in range(x.shape[1]):
            x[k, c] = rows.obs[row, c]
        for c in range(truth.shape[1]):
            truth[k, c] = rows.truth[row, c]
    return join_columns(x, truth, y)


# Of the branches below, Numba compiles only the one that fits: lists are None or they are not.


@fast
def slice_gradient(
    networks: Networks,
    rows: Rows,
    lists: Lists | None,
    chosen: Ints,
    loss: LossSettings,
    room: Room,
    s: int,
    thread: int,
) -> None:
    """Gradient of slice s of the rows `chosen`, as its share of their mean loss."""
    total, log_std, grad = len(chosen), networks.log_std, room.grads[s]
    n = min(SLICE, total - s * SLICE)
    numbers = chosen[s * SLICE : s * SLICE + n]
    some = gather(rows, numbers)
    actor_work, critic_work = room.actor_work[thread], room.critic_work[thread]
    if lists is None:
        x = room.x[thread][:n]
        y = gather_seen(rows, numbers, x, room.y[thread])
        outputs = forward(networks.actor, x, actor_work)
        values = forward(networks.critic, y, critic_work)
    else:
        seen = choose_lists(lists, numbers)
        first, critic_first = copy_first(networks.actor), copy_first(networks.critic)
        outputs = forward_lists(networks.actor, first, seen, seen.middles, actor_work)
        values = forward_lists(networks.critic, critic_first, seen, seen.ends, critic_work)
    split, end = len(networks.actor.theta), len(grad) - len(log_std)
    shares, scratch = room.shares[thread][:n], np.empty(outputs.shape[1], np.float32)
    d_values, d_log_std = np.empty_like(values), grad[end:]
    d_entropy, sums = entropy_gradient(total, loss), NO_SUMS
    d_log_std[:] = d_entropy * np.float32(n)
    for k in range(n):
        log_prob, entropy = evaluate_action(
            outputs[k], log_std, some.masks, some.actions, k, shares[k], scratch
        )
        d_log_prob, d_values[k, 0], sums = ppo_gradient(
            log_prob, entropy, values[k, 0], some, k, total, loss, sums
        )
        outputs_gradient(
            outputs[k],
            log_std,
            some.actions,
            k,
            shares[k],
            entropy,
            d_log_prob,
            d_entropy,
            d_log_std,
        )
    stats = room.stats[s]
    stats[0], stats[1], stats[2], stats[3], stats[4] = sums
    if lists is None:
        backward(networks.actor, x, actor_work, shares, grad[:split])
        backward(networks.critic, y, critic_work, d_values, grad[split:end])
    else:
        work, ends = actor_work, seen.middles
        backward_lists(networks.actor, first, seen, ends, work, shares, grad[:split])
        work, ends = critic_work, seen.ends
        backward_lists(networks.critic, critic_first, seen, ends, work, d_values, grad[split:end])


@kernel
def minibatch_gradients(
    networks: Networks,
    rows: Rows,
    lists: Lists | None,
    chosen: Ints,
    loss: LossSettings,
    room: Room,
    board: Board,
    task: int,
    thread: int,
) -> bool:
    """Gradients of the slices of a minibatch: the rows `chosen` of a rollout."""
    if not join(board, task, thread):
        return True
    slices = (len(chosen) + SLICE - 1) // SLICE
    s, helped = next_piece(board, slices, thread, 0)
    while s >= 0:
        slice_gradient(networks, rows, lists, chosen, loss, room, s, thread)
        s, helped = next_piece(board, slices, thread, helped)
    return leave(board, task, thread)


@kernel
def list_slices(
    obs: Floats, truth: Floats, lists: Lists, board: Board, task: int, thread: int
) -> bool:
    """What rows show, as lists; those of a slice lie where they have room if nothing is zero."""
    if not join(board, task, thread):
        return True
    inputs = obs.shape[1] + truth.shape[1]
    slices = (len(obs) + SLICE - 1) // SLICE
    s, helped = next_piece(board, slices, thread, 0)
    while s >= 0:
        at = s * SLICE * inputs
        for r in range(s * SLICE, min((s + 1) * SLICE, len(obs))):
            at = list_row(obs[r], truth[r], lists, r, at)
        s, helped = next_piece(board, slices, thread, helped)
    return leave(board, task, thread)


@fast
def forward_slice(
    networks: Networks,
    rows: Rows,
    lists: Lists | None,
    start: int,
    stop: int,
    room: Room,
    thread: int,
) -> tuple[Floats, Floats]:
    """Outputs and values of the rows from `start` to `stop`."""
    actor_work, critic_work = room.actor_work[thread], room.critic_work[thread]
    if lists is None:
        x = rows.obs[start:stop]
        y = join_columns(x, rows.truth[start:stop], room.y[thread])
        outputs = forward(networks.actor, x, actor_work)
        values = forward(networks.critic, y, critic_work)
    else:
        seen = choose_lists(lists, np.arange(start, stop))
        first, critic_first = copy_first(networks.actor), copy_first(networks.critic)
        outputs = forward_lists(networks.actor, first, seen, seen.middles, actor_work)
        values = forward_lists(networks.critic, critic_first, seen, seen.ends, critic_work)
    return outputs, values


@kernel
def evaluate_slices(
    networks: Networks,
    rows: Rows,
    lists: Lists | None,
    room: Room,
    log_probs: Floats,
    values: Floats,
    board: Board,
    task: int,
    thread: int,
) -> bool:
    """Log-probabilities and values of all rows, a slice at a time."""
    if not join(board, task, thread):
        return True
    shares, scratch = room.shares[thread][0], room.shares[thread][1]
    slices = (len(values) + SLICE - 1) // SLICE
    s, helped = next_piece(board, slices, thread, 0)
    while s >= 0:
        start, stop = s * SLICE, min((s + 1) * SLICE, len(values))
        outputs, new_values = forward_slice(networks, rows, lists, start, stop, room, thread)
        for r in range(start, stop):
            log_probs[r], _entropy = evaluate_action(
                outputs[r - start], networks.log_std, rows.masks, rows.actions, r, shares, scratch
            )
            values[r] = new_values[r - start, 0]
        s, helped = next_piece(board, slices, thread, helped)
    return leave(board, task, thread)
