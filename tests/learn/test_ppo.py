"""PPO's update: its gradient, its determinism, and that it learns."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from phalanx.compiled.team import ThreadTeam
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.slices import SLICE, make_room, slice_gradient
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.ppo import PPO, STATS, LossSettings, Rows, ppo_loss
from phalanx.learn.returns import gae
from phalanx.learn.rollout import Rollout, empty_rollout
from tests import naive
from tests.learn.tasks import Player, make_vector, probabilities, settings
from tests.learn.test_mlp import torch_forward, torch_layers

CLIP, ENTROPY, VALUE = 0.2, 0.01, 0.5


def test_the_compiled_loss_and_gradient_are_those_of_the_plain_one() -> None:
    random = np.random.default_rng(0)
    rows = 200
    policy = Policy(30, 145, hidden=(16, 16), truth_size=5, seed=1)
    policy.theta += random.normal(size=len(policy.theta)).astype(np.float32) * np.float32(0.1)
    obs, truth = (random.random((rows, n)).astype(np.float32) for n in (30, 5))
    masks = random.random((rows, 145)) < 0.6
    actions = np.array([random.choice(np.flatnonzero(mask)) for mask in masks])
    old, advantages, targets = random.normal(size=(3, rows)).astype(np.float32)
    old = old * np.float32(0.3) - np.float32(4.5)
    room = make_room(policy, 1, rows, sparse=False)
    loss = LossSettings(CLIP, VALUE, max_grad_norm=1.0, entropy_weight=ENTROPY)
    given = Rows(obs, truth, masks, actions, old, advantages, targets)
    slice_gradient(policy.networks, given, None, np.arange(rows), loss, room, 0, 0)

    def double(array: Any) -> torch.Tensor:
        return torch.tensor(array, dtype=torch.float64)

    actor = torch_layers(policy.actor, tuple(policy.actor_sizes.tolist()))
    critic = torch_layers(policy.critic, tuple(policy.critic_sizes.tolist()))
    logits = torch_forward(actor, double(obs)).masked_fill(~torch.tensor(masks), -1e9)
    distribution: Any = torch.distributions.Categorical(logits=logits)
    values = torch_forward(critic, double(np.hstack([obs, truth])))[:, 0]
    losses, wanted_stats = ppo_loss(
        distribution.log_prob(torch.tensor(actions)),
        distribution.entropy(),
        values,
        double(old),
        double(advantages),
        double(targets),
        loss,
    )
    mean: Any = losses.mean()
    mean.backward()
    wanted = np.concatenate([part.grad.numpy().ravel() for part in (*actor, *critic)])  # type: ignore[union-attr]
    assert np.allclose(room.grads[0], wanted, atol=1e-5)
    assert np.allclose(
        room.stats[0] / rows, [part.mean().item() for part in wanted_stats], atol=1e-5
    )


def test_gradients_are_zero_or_numbers_that_all_processors_multiply_quickly() -> None:
    random = np.random.default_rng(0)
    rows = 50
    policy = Policy(4, 145, hidden=(8,), truth_size=0, seed=1)
    policy.theta *= np.float32(100)  # some that are allowed are hardly ever chosen, too
    obs, truth = random.random((rows, 4)).astype(np.float32), np.zeros((rows, 0), np.float32)
    masks = random.random((rows, 145)) < 0.6
    actions = masks.argmax(axis=1)
    old, advantages, targets = random.normal(size=(3, rows)).astype(np.float32)
    room = make_room(policy, 1, rows, sparse=False)
    given = Rows(obs, truth, masks, actions, old, advantages, targets)
    loss = LossSettings(CLIP, VALUE, max_grad_norm=1.0, entropy_weight=ENTROPY)
    slice_gradient(policy.networks, given, None, np.arange(rows), loss, room, 0, 0)
    by_logit = room.shares[0][:rows]
    assert (by_logit[masks] != 0).any()
    assert (by_logit[~masks] == 0).all()
    for numbers in (by_logit, room.grads[0]):
        assert np.abs(numbers[numbers != 0]).min() >= np.finfo(np.float32).tiny


def test_the_plain_loss_is_its_equation() -> None:
    """In numpy, row by row: the gain of a ratio that is not clipped, of a clipped one, ..."""
    random = np.random.default_rng(1)
    log_probs, old, values, advantages, targets = random.normal(size=(5, 300))
    entropies = random.random(300)
    loss = LossSettings(CLIP, VALUE, max_grad_norm=1.0, entropy_weight=ENTROPY)
    parts: Any = map(torch.tensor, (log_probs, entropies, values, old, advantages, targets))
    losses, stats = ppo_loss(*parts, loss)  # type: ignore[call-arg]
    ratio = np.exp(log_probs - old)
    gain = np.minimum(ratio * advantages, np.clip(ratio, 0.8, 1.2) * advantages)
    error = (values - targets) ** 2 / 2
    assert np.allclose(losses, -gain - ENTROPY * entropies + VALUE * error)
    outside = (ratio < 0.8) | (ratio > 1.2)
    assert 0.2 < outside.mean() < 0.98
    wanted = (-gain, error, entropies, ratio - 1 - np.log(ratio), outside)
    for name, given, known in zip(STATS, stats, wanted, strict=True):
        assert np.allclose(given, known), name


@pytest.mark.parametrize("bootstrap", [True, False])
def test_gae_agrees_with_its_definition(bootstrap: bool) -> None:
    random = np.random.default_rng(3)
    rewards, values, next_values = random.normal(size=(3, 40, 5)).astype(np.float32)
    ended = random.random((40, 5)) < 0.1
    discounts = np.where(ended & (not bootstrap), 0, 0.97).astype(np.float32)
    advantages = np.empty_like(rewards)
    gae(rewards, values, next_values, ended, discounts, 0.9, advantages)
    for i in range(5):
        r, v, w, e, d = (a[:, i] for a in (rewards, values, next_values, ended, discounts))
        assert np.allclose(advantages[:, i], naive.gae(r, v, w, e, d, 0.9), atol=1e-4)


def test_no_return_crosses_the_end_of_an_episode() -> None:
    rewards = np.zeros((6, 1), np.float32)
    rewards[4] = -100
    ended = np.array([[0], [0], [1], [0], [0], [1]], np.bool_)
    zeros, discounts = np.zeros((6, 1), np.float32), np.full((6, 1), 0.9, np.float32)
    advantages = np.empty_like(rewards)
    gae(rewards, zeros, zeros, ended, discounts, 0.95, advantages)
    assert not advantages[:3].any()
    assert advantages[3] < -80


def test_short_rollouts_have_the_value_targets_of_whole_episodes() -> None:
    """A walk of 24 turns whose values are known: however it is cut, targets average to them."""
    random, gamma, turns, size = np.random.default_rng(8), 0.9, 24, 4000
    rewards = random.normal(loc=-1.0, size=(turns, size)).astype(np.float32)
    known = np.array([-(1 - gamma**left) / (1 - gamma) for left in range(turns, -1, -1)])
    values = np.tile(known[:, None], (1, size)).astype(np.float32)
    ended = np.zeros((turns, size), np.bool_)
    ended[-1] = True
    discounts = np.where(ended, 0, gamma).astype(np.float32)
    for length in (24, 8, 3, 1):
        targets = np.empty_like(rewards)
        for first in range(0, turns, length):
            piece = slice(first, first + length)
            advantages = np.empty((length, size), np.float32)
            arrays = (rewards[piece], values[:-1][piece], values[1:][piece], ended[piece])
            gae(*arrays, discounts[piece], 0.95, advantages)
            targets[piece] = advantages + values[:-1][piece]
        error = targets.std(axis=1) / size**0.5
        assert (abs(targets.mean(axis=1) - known[:-1]) < 4.5 * error).all(), length


# --- whole updates --------------------------------------------------------------------------------


def bandit(policy: Policy, rows: int, random: np.random.Generator, best: int) -> Rollout:
    """One-turn episodes: the action `best` pays 1, all others nothing."""
    obs = random.random((rows, policy.obs_size)).astype(np.float32)
    shares = probabilities(policy, obs)
    actions = np.array([random.choice(len(p), p=p) for p in shares])
    rollout = empty_rollout(1, obs, 0, shares.shape[1])
    rollout.obs[0] = obs
    rollout.actions[0] = actions
    rollout.log_probs[0] = np.log(shares[np.arange(rows), actions])
    rollout.values[0] = rollout.next_values[0] = rollout.discounts[0] = 0
    rollout.rewards[0] = actions == best
    rollout.ended[0] = True
    return rollout


def train_on_bandit(threads: int, updates: int, rows: int = 1300) -> Policy:
    random = np.random.default_rng(5)
    policy = Policy(4, 10, hidden=(16,), truth_size=0, seed=2)
    learner = PPO(CompiledStepper(policy, ThreadTeam(threads), 600), settings(), seed=3)
    for _ in range(updates):
        learner.update(bandit(policy, rows, random, best=7), 1e-2, 0.0)
    return policy


def test_ppo_solves_a_bandit() -> None:
    policy = train_on_bandit(threads=1, updates=15)
    logits = policy.logits(np.random.default_rng(9).random((50, 4)))
    assert (logits.argmax(axis=1) == 7).all()
    assert (np.exp(logits[:, 7]) / np.exp(logits).sum(axis=1) > 0.9).all()


def train_on(env: str, size: int, turns: int, updates: int, good: float) -> float:
    """Mean return of the last hundred episodes, when it is good enough or the updates are spent."""
    space = make_vector(env, 1)
    width = int(np.prod(space.single_observation_space.shape))
    policy = Policy(width, space.single_action_space.n, hidden=(64, 64), truth_size=0, seed=2)
    player = Player(env, size, turns, policy, gamma=0.99)
    chosen = settings(k_epochs=8, minibatch_size=256)
    learner = PPO(CompiledStepper(policy, ThreadTeam(1), 256), chosen, seed=3)
    for k in range(updates):
        learner.update(player.collect(), 2.5e-3 * (1 - k / updates), 0.005)
        if len(player.returns) > 100 and np.mean(player.returns[-100:]) >= good:
            break
    return float(np.mean(player.returns[-100:]))


def test_ppo_finds_the_way_through_a_corridor() -> None:
    """By chance it is found about once in 19,683 tries; an episode has 50 turns."""
    assert train_on("Corridor", 32, 50, updates=60, good=0.99) >= 0.99


def test_ppo_balances_the_pole_to_475() -> None:
    assert train_on("CartPole-v1", 16, 64, updates=150, good=475) >= 475


def test_equal_seeds_give_equal_weights_for_any_number_of_threads() -> None:
    assert 600 % SLICE  # slices of unequal size are among them
    weights = [train_on_bandit(threads, updates=3).theta for threads in (1, 1, 2, 5)]
    assert all(np.array_equal(weights[0], other) for other in weights[1:])


def test_weights_are_the_same_when_all_is_compiled_anew(tmp_path: Path) -> None:
    """The compiler's own order of things, which changes from process to process, is not seen."""
    program = (
        "from tests.learn.test_ppo import train_on_bandit\n"
        "print(train_on_bandit(threads=1, updates=2).theta.tobytes().hex())"
    )
    fresh = {"PHALANX_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": "12345"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **fresh},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    weights = train_on_bandit(threads=1, updates=2).theta.tobytes().hex()
    assert ran.stdout.split()[-1] == weights
