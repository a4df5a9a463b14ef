"""What the actor's outputs mean, compiled: probabilities of actions, or normal distributions.

The twin of `torch/heads.py`; tests hold both together. Discrete actions are numbers [rows], drawn
by logits; continuous ones are vectors [rows, A] in units of the space's half width around its
middle, drawn around the outputs with deviations of their own.
"""

import math

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array
from phalanx.learn.compiled.mlp import Floats, add_up, exp, fast

Bools = npt.NDArray[np.bool_]
Actions = Array  # numbers [rows], or vectors [rows, A]
GROUP = 16  # actions whose probabilities are added up together
NEVER = np.float32(-1e9)  # added to the logit of an action that is masked out
LEAST = np.float32(-60)  # logits so far below the largest one have a probability of 0
HALF_LOG_2PI = np.float32(math.log(2 * math.pi) / 2)


@fast
def softmax(logits: Floats, mask: Bools, shares: Floats) -> tuple[np.float32, np.float32]:
    """Probabilities, not yet divided by their sum, into `shares`; the largest logit and that sum.

    Logits of actions that are masked out become very small. No probability is so small that its
    gradient could be no normal number: many processors multiply others a hundred times as slowly.
    """
    top = np.float32(-3e38)
    for a in range(len(logits)):
        logits[a] += NEVER * (np.float32(1) - np.float32(mask[a]))
        top = max(top, logits[a])
    for a in range(len(logits)):
        x = logits[a] - top
        shares[a] = exp(x) if x > LEAST else np.float32(0)
    return top, add_up(shares)


@fast
def sample(logits: Floats, mask: Bools, die: int, shares: Floats) -> tuple[int, np.float32]:
    """An action drawn by its probability, and its log-probability. `logits` are used up.

    shares: room for as many numbers.
    """
    top, total = softmax(logits, mask, shares)
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


@fast
def most_likely(logits: Floats, mask: Bools) -> int:
    best, chosen = np.float32(-np.inf), 0
    for action in range(len(logits)):
        if mask[action] and logits[action] > best:
            best, chosen = logits[action], action
    return chosen


# --- how likely a given action is -----------------------------------------------------------------
# Of the branches below, Numba compiles only the one that fits the dimensions of `actions`.


@fast
def evaluate_action(
    outputs: Floats,
    log_std: Floats,
    masks: Bools,
    actions: Actions,
    row: int,
    shares: Floats,
    scratch: Floats,
) -> tuple[np.float32, np.float32]:
    """The log-probability of an action by the actor's outputs, and the entropy: of one row.

    outputs, shares, scratch: [A]; what is left in the first two is for `outputs_gradient`.
    """
    if actions.ndim == 1:
        top, total = softmax(outputs, masks[row], shares)
        for a in range(len(outputs)):
            outputs[a] -= top
            scratch[a] = shares[a] * outputs[a]
        log_total = np.log(total)
        entropy = log_total - add_up(scratch) * (np.float32(1) / total)
        log_prob = outputs[actions[row]] - log_total
    else:
        log_prob = entropy = np.float32(0)
        for a in range(len(outputs)):
            shares[a] = (actions[row, a] - outputs[a]) / np.exp(log_std[a])
            log_prob -= shares[a] * shares[a] / np.float32(2) + log_std[a] + HALF_LOG_2PI
            entropy += log_std[a] + np.float32(0.5) + HALF_LOG_2PI
    return log_prob, entropy


@fast
def outputs_gradient(
    outputs: Floats,
    log_std: Floats,
    actions: Actions,
    row: int,
    shares: Floats,
    entropy: np.float32,
    d_log_prob: np.float32,
    d_entropy: np.float32,
    d_log_std: Floats,
) -> None:
    """After `evaluate_action`: the gradient of the outputs into `shares`, by those of both results.

    d_log_std: to this is added what comes by the log-probability.
    """
    if actions.ndim == 1:
        total = add_up(shares)
        inverse, log_total = np.float32(1) / total, np.log(total)
        for a in range(len(outputs)):
            log_p = max(outputs[a] - log_total, np.float32(-80))
            p = shares[a] * inverse
            shares[a] = p * (-d_entropy * (log_p + entropy) - d_log_prob)
        shares[actions[row]] += d_log_prob
    else:
        for a in range(len(outputs)):
            d_log_std[a] += d_log_prob * (shares[a] * shares[a] - np.float32(1))
            shares[a] = d_log_prob * shares[a] / np.exp(log_std[a])
