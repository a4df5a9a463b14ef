"""PPO's loss and gradient for a slice of a minibatch, in one compiled call."""

from typing import Any

import numpy as np

from phalanx.learn.compiled.mlp import Floats, Sizes, add_up, backward, exp, fast, forward

# Columns of a slice's sums.
STATS = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")
NEVER = np.float32(-1e9)  # the logit of an action that is masked out


@fast
def ppo_slice(
    actor: Floats, actor_sizes: Sizes, critic: Floats, critic_sizes: Sizes,
    x_actor: Floats, x_critic: Floats, masks: Any, actions: Any, old_log_probs: Floats,
    advantages: Floats, targets: Floats, rows_in_batch: int,
    clip: np.float32, entropy_weight: np.float32, value_weight: np.float32,
    actor_work: Floats, critic_work: Floats, d_logits: Floats, d_values: Floats,
    actor_grad: Floats, critic_grad: Floats, stats: Any,
) -> None:  # fmt: skip
    """Gradients of a slice, as its share of the minibatch's mean loss.

    L = -mean(min(r A, clip(r) A)) - entropy_weight mean(H) + value_weight mean((v - target)²) / 2
    """
    rows, width = x_actor.shape[0], actor_sizes[-1]
    logits = forward(actor, actor_sizes, x_actor, actor_work)
    values = forward(critic, critic_sizes, x_critic, critic_work)
    share = np.float32(1) / np.float32(rows_in_batch)
    weights = np.empty(width, np.float32)
    policy_loss = value_loss = entropies = kls = clipped = np.float32(0)
    for r in range(rows):
        top = np.float32(-3e38)
        for a in range(width):
            logits[r, a] += NEVER * (np.float32(1) - np.float32(masks[r, a]))
            top = max(top, logits[r, a])
        for a in range(width):
            z = logits[r, a] - top
            p = exp(z)
            d_logits[r, a] = p
            weights[a] = p * z
        total, weighted = add_up(d_logits[r]), add_up(weights)
        log_total = np.log(total)
        inverse = np.float32(1) / total
        entropy = log_total - weighted * inverse
        chosen = actions[r]
        log_prob = logits[r, chosen] - top - log_total
        difference = log_prob - old_log_probs[r]
        ratio = np.exp(difference)
        advantage = advantages[r]
        low, high = np.float32(1) - clip, np.float32(1) + clip
        plain, bounded = ratio * advantage, min(max(ratio, low), high) * advantage
        # The clipped branch has no gradient.
        push = -ratio * advantage if plain <= bounded else np.float32(0)
        push *= share
        spread = entropy_weight * share
        for a in range(width):
            z = logits[r, a] - top
            p = d_logits[r, a] * inverse
            log_p = max(z - log_total, np.float32(-80))
            d_logits[r, a] = p * (spread * (log_p + entropy) - push)
        d_logits[r, chosen] += push
        error = values[r, 0] - targets[r]
        d_values[r, 0] = value_weight * share * error
        policy_loss -= min(plain, bounded)
        value_loss += error * error / 2
        entropies += entropy
        kls += ratio - 1 - difference
        if ratio < low or ratio > high:
            clipped += 1
    backward(actor, actor_sizes, x_actor, actor_work, d_logits, actor_grad)
    backward(critic, critic_sizes, x_critic, critic_work, d_values, critic_grad)
    stats[0] = policy_loss
    stats[1] = value_loss
    stats[2] = entropies
    stats[3] = kls
    stats[4] = clipped
