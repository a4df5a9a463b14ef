"""What the actor's outputs mean, compiled: probabilities of actions, or normal distributions.

The twin of `torch/heads.py`; tests hold both together. Discrete actions are numbers [rows], drawn
by logits; continuous ones are vectors [rows, A] in units of the space's half width around its
middle, drawn around the outputs with deviations of their own.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from phalanx.learn.compiled.mlp import Floats, add_up, exp, fast

GROUP = 16  # actions whose probabilities are added up together
NEVER = np.float32(-1e9)  # added to the logit of an action that is masked out
HALF_LOG_2PI = np.float32(math.log(2 * math.pi) / 2)


@fast
def softmax(logits: Any, mask: Any, shares: Any) -> Any:
    """Probabilities times a sum, which is returned, into `shares`; logits less their largest."""
    top = np.float32(-3e38)
    for a in range(len(logits)):
        logits[a] += NEVER * (np.float32(1) - np.float32(mask[a]))
        top = max(top, logits[a])
    for a in range(len(logits)):
        logits[a] -= top
        shares[a] = exp(logits[a])
    return add_up(shares)


@fast
def sample(logits: Any, mask: Any, die: int, shares: Any) -> tuple[int, Any]:
    """An action drawn by its probability, and its log-probability. `logits` are used up.

    shares: room for as many numbers.
    """
    total = softmax(logits, mask, shares)
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
    return chosen, logits[chosen] - np.log(total)


@fast
def most_likely(logits: Any, mask: Any) -> int:
    best, chosen = np.float32(-np.inf), 0
    for action in range(len(logits)):
        if mask[action] and logits[action] > best:
            best, chosen = logits[action], action
    return chosen


# --- how likely given actions are -----------------------------------------------------------------


class Computed(NamedTuple):
    """What is computed on the way to the gradient of n rows; d_ are derivatives of the loss."""

    outputs: Floats  # [n, A] of the actor
    shares: Floats  # [n, A] of probability, or deviations; then the gradient of the outputs
    values: Floats  # [n, 1]
    log_probs: Floats  # [n]
    entropies: Floats  # [n]
    d_log_probs: Floats  # [n]
    d_values: Floats  # [n, 1]


@fast
def computed(outputs: Floats, values: Floats, shares: Floats) -> Computed:
    """Room for the rest."""
    n, empty = len(outputs), np.empty((3, len(outputs)), np.float32)
    d_values = np.empty((n, 1), np.float32)
    return Computed(outputs, shares[:n], values, empty[0], empty[1], empty[2], d_values)


# Of the branches below, Numba compiles only the one that fits the dimensions of `actions`.


@fast
def evaluate_actions(part: Computed, log_std: Floats, masks: Any, actions: Any, rows: Any) -> None:
    """Log-probabilities and entropies of these rows of a rollout, from the actor's outputs."""
    outputs, shares = part.outputs, part.shares
    if actions.ndim == 1:
        weighted = np.empty(outputs.shape[1], np.float32)
        for k in range(len(rows)):
            z = outputs[k]
            total = softmax(z, masks[rows[k]], shares[k])
            for a in range(len(z)):
                weighted[a] = shares[k, a] * z[a]
            log_total = np.log(total)
            part.entropies[k] = log_total - add_up(weighted) * (np.float32(1) / total)
            part.log_probs[k] = z[actions[rows[k]]] - log_total
    else:
        entropy = np.float32(0)
        for a in range(len(log_std)):
            entropy += log_std[a] + np.float32(0.5) + HALF_LOG_2PI
        for k in range(len(rows)):
            log_prob = np.float32(0)
            for a in range(len(log_std)):
                scaled = (actions[rows[k], a] - outputs[k, a]) / np.exp(log_std[a])
                log_prob -= scaled * scaled / np.float32(2) + log_std[a] + HALF_LOG_2PI
                shares[k, a] = scaled
            part.entropies[k] = entropy
            part.log_probs[k] = log_prob


@fast
def outputs_gradient(
    part: Computed, log_std: Floats, actions: Any, rows: Any, d_entropy: Any, d_log_std: Floats
) -> None:
    """After `evaluate_actions`: the gradient of the outputs into `shares`, and that of log_std."""
    shares = part.shares
    if actions.ndim == 1:
        for k in range(len(rows)):
            total = add_up(shares[k])
            inverse, log_total = np.float32(1) / total, np.log(total)
            push, entropy = part.d_log_probs[k], part.entropies[k]
            for a in range(shares.shape[1]):
                log_p = max(part.outputs[k, a] - log_total, np.float32(-80))
                p = shares[k, a] * inverse
                shares[k, a] = p * (-d_entropy * (log_p + entropy) - push)
            shares[k, actions[rows[k]]] += push
    else:
        d_log_std[:] = d_entropy * np.float32(len(rows))
        for k in range(len(rows)):
            push = part.d_log_probs[k]
            for a in range(len(log_std)):
                scaled = shares[k, a]
                d_log_std[a] += push * (scaled * scaled - np.float32(1))
                shares[k, a] = push * scaled / np.exp(log_std[a])
