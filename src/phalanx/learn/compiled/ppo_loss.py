"""PPO's loss and its gradient, row by row: the compiled twin of `ppo.ppo_loss`."""

from typing import Any

import numpy as np

from phalanx.learn.compiled.distributions import Computed
from phalanx.learn.compiled.mlp import fast
from phalanx.learn.ppo import LossSettings, Rows


@fast
def ppo_gradient(
    part: Computed, rows: Rows, chosen: Any, rows_in_batch: int, loss: LossSettings, stats: Any
) -> np.float32:
    """How the mean loss of a minibatch changes with what was computed for some of its rows.

    Derivatives by log-probabilities and values go into `part`, that by each entropy is returned.
    stats: [5] sums of STATS over these rows.
    """
    share = np.float32(1) / np.float32(rows_in_batch)
    value_weight = np.float32(loss.value_weight)
    low, high = np.float32(1) - np.float32(loss.clip), np.float32(1) + np.float32(loss.clip)
    policy_loss = value_loss = entropy = kl = clipped = np.float32(0)
    for k in range(len(chosen)):
        advantage = rows.advantages[chosen[k]]
        log_ratio = part.log_probs[k] - rows.log_probs[chosen[k]]
        ratio = np.exp(log_ratio)
        gain, bounded = ratio * advantage, min(max(ratio, low), high) * advantage
        # The clipped branch has no gradient.
        part.d_log_probs[k] = -ratio * advantage * share if gain <= bounded else np.float32(0)
        error = part.values[k, 0] - rows.targets[chosen[k]]
        part.d_values[k, 0] = value_weight * share * error
        policy_loss -= min(gain, bounded)
        value_loss += error * error / 2
        entropy += part.entropies[k]
        kl += ratio - 1 - log_ratio
        if ratio < low or ratio > high:
            clipped += 1
    stats[0] = policy_loss
    stats[1] = value_loss
    stats[2] = entropy
    stats[3] = kl
    stats[4] = clipped
    return -np.float32(loss.entropy_weight) * share
