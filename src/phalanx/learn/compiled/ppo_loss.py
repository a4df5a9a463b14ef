"""PPO's loss and its gradient, row by row: the compiled twin of `ppo.ppo_loss`."""

import numpy as np

from phalanx.learn.compiled.mlp import fast
from phalanx.learn.ppo import LossSettings, Rows

Sums = tuple[np.float32, float, np.float32, float, float]  # of STATS
NO_SUMS = (np.float32(0), 0.0, np.float32(0), 0.0, 0.0)


@fast
def ppo_gradient(
    log_prob: np.float32,
    entropy: np.float32,
    value: np.float32,
    rows: Rows,
    row: int,
    rows_in_batch: int,
    loss: LossSettings,
    sums: Sums,
) -> tuple[np.float32, np.float32, Sums]:
    """How a minibatch's mean loss changes with what was computed for one of its rows.

    Returns the derivatives by its log-probability and its value, and sums of STATS with this row.
    """
    share = np.float32(1) / np.float32(rows_in_batch)
    low, high = np.float32(1) - np.float32(loss.clip), np.float32(1) + np.float32(loss.clip)
    advantage = rows.advantages[row]
    log_ratio = log_prob - rows.log_probs[row]
    ratio = np.exp(log_ratio)
    gain, bounded = ratio * advantage, min(max(ratio, low), high) * advantage
    # The clipped branch has no gradient.
    d_log_prob = -ratio * advantage * share if gain <= bounded else np.float32(0)
    error = value - rows.targets[row]
    d_value = np.float32(loss.value_weight) * share * error
    policy_loss, value_loss, entropies, kl, clipped = sums
    policy_loss -= min(gain, bounded)
    value_loss += error * error / 2
    kl += ratio - 1 - log_ratio
    if ratio < low or ratio > high:
        clipped += 1
    return d_log_prob, d_value, (policy_loss, value_loss, entropies + entropy, kl, clipped)


@fast
def entropy_gradient(rows_in_batch: int, loss: LossSettings) -> np.float32:
    """The derivative by the entropy of any row."""
    return -np.float32(loss.entropy_weight) * (np.float32(1) / np.float32(rows_in_batch))
