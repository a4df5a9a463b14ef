"""Rollouts: every turn is stored as it was played."""

from typing import Any

import numpy as np
import pytest

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.observation import TRUTH_SIZE
from phalanx.cage2.rules.scenario import NUM_ACTIONS, action_index, useful_actions
from phalanx.learn.cage2.games import Shaping
from phalanx.learn.cage2.sampler import CompiledSampler
from phalanx.learn.compiled.mlp import forward, work_size
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.rollout import Rollout

HORIZON, TURNS, SIZE = 30, 50, 200
GAMMA, FINAL_GAMMA = 0.9, 0.5


def collect(
    threads: int = 1, observation: str = "bits", size: int = SIZE, restore_discount: float = 0.0
) -> tuple[Rollout, Policy, Batch]:
    settings: dict[str, Any] = {"red_agent": "meander", "horizon": HORIZON, "seed": 4}
    batch = Batch(size, observation=observation, num_threads=threads, **settings)
    policy = Policy(batch.shown.obs.shape[1], 145, hidden=(8, 8), truth_size=TRUTH_SIZE, seed=1)
    policy.theta += np.random.default_rng(2).normal(size=len(policy.theta)).astype(np.float32) / 10
    useful = np.ones(NUM_ACTIONS, np.bool_)
    useful[1] = False
    condition = np.zeros((size, 0), np.float32)
    sampler = CompiledSampler(batch, policy, TURNS, useful=useful, condition=condition)
    rollout = sampler.collect(
        Shaping(np.ones(HORIZON, np.float32), restore_discount, 1.0, GAMMA, FINAL_GAMMA)
    )
    return rollout, policy, batch


@pytest.mark.parametrize("observation", ["bits", "history"])
def test_each_observation_is_stored_with_its_own_action_and_reward(observation: str) -> None:
    """The stored actions, played in a batch of the same seed, give the stored rows one by one."""
    rollout, policy, _ = collect(observation=observation)
    batch = Batch(SIZE, red_agent="meander", horizon=HORIZON, seed=4, observation=observation)
    for t in range(TURNS):
        assert np.array_equal(rollout.obs[t], batch.shown.obs)
        truth = np.hstack([batch.shown.known, batch.shown.scanned, batch.shown.access / 2])
        assert np.array_equal(rollout.truth[t], truth)
        allowed = batch.action_masks()
        allowed[:, 1] = False
        assert np.array_equal(rollout.masks[t], allowed)
        shown = batch.play(rollout.actions[t].astype(np.int64))
        wanted_rewards = shown.rewards.astype(np.float32)
        assert np.array_equal(rollout.rewards[t], wanted_rewards)  # nothing extra: to the bit
        assert np.array_equal(rollout.ended[t], shown.truncated)
        wanted = np.where(shown.truncated, np.float32(FINAL_GAMMA), np.float32(GAMMA))
        assert np.array_equal(rollout.discounts[t], wanted)
        ended = rollout.ended[t]
        assert np.allclose(rollout.returns[t, ended], shown.returns[ended])
    assert np.array_equal(rollout.next_obs, batch.shown.obs)
    assert rollout.ended[HORIZON - 1].all()
    assert policy.truth_size == TRUTH_SIZE


def test_log_probs_are_those_of_the_policy() -> None:
    rollout, policy, _ = collect()
    for t in (0, 17, TURNS - 1):
        logits = np.where(rollout.masks[t], policy.logits(rollout.obs[t]), -np.inf)
        log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        chosen = log_probs[np.arange(SIZE), rollout.actions[t]]
        assert np.allclose(rollout.log_probs[t], chosen, atol=1e-5)


def test_values_are_those_of_the_state_before_and_after_each_turn() -> None:
    rollout, policy, _ = collect()

    def value(obs: Any, truth: Any) -> Any:
        x = np.hstack([obs, truth]).astype(np.float32)
        work = np.empty(work_size(policy.critic_sizes, len(x)), np.float32)
        return forward(policy.networks.critic, x, work)[:, 0].copy()

    for t in (0, 5, HORIZON - 2, HORIZON, TURNS - 2):
        assert np.allclose(rollout.values[t], value(rollout.obs[t], rollout.truth[t]), atol=1e-5)
        assert np.array_equal(rollout.next_values[t], rollout.values[t + 1])
    # Where an episode was cut, the value is that of its own last state, not of the next's first.
    cut = rollout.next_values[HORIZON - 1]
    assert not np.allclose(cut, rollout.values[HORIZON])
    assert np.isfinite(rollout.next_values).all()


def test_actions_follow_their_probabilities() -> None:
    """In the first turn all networks look the same, so the actions are draws from one row."""
    rollout, policy, _ = collect(size=4096)
    logits = np.where(rollout.masks[0, 0], policy.logits(rollout.obs[0, :1])[0], -np.inf)
    shares = np.exp(logits) / np.exp(logits).sum()
    counts = np.bincount(rollout.actions[0], minlength=NUM_ACTIONS)
    errors = np.sqrt(4096 * shares * (1 - shares))
    assert (np.abs(counts - 4096 * shares) <= 4.5 * errors + 1e-9).all()
    assert counts[1] == 0  # not useful


def test_every_network_has_noise_of_its_own() -> None:
    rollout, _, _ = collect()
    assert len({tuple(column) for column in rollout.actions.T.tolist()}) == SIZE


@pytest.mark.parametrize("threads", [2, 3])
def test_rollouts_do_not_depend_on_threads(threads: int) -> None:
    one, _, first = collect(threads=1, size=300)
    several, _, second = collect(threads=threads, size=300)
    for name in Rollout._fields:
        assert getattr(one, name).tobytes() == getattr(several, name).tobytes(), name
    assert np.array_equal(first.nets, second.nets)


def test_the_price_of_restore_can_be_given_back_to_the_learner_only() -> None:
    full, _, _ = collect()
    cheap, _, _ = collect(restore_discount=0.8)
    restores = full.actions >= action_index("Restore", "Defender")
    assert restores.any()
    assert np.allclose(cheap.rewards - full.rewards, 0.8 * restores, atol=1e-5)
    assert np.array_equal(full.returns, cheap.returns, equal_nan=True)


@pytest.mark.parametrize("sizes", [(20,), (5, 5, 5, 5), (1, 19), (13, 7)])
def test_rollouts_do_not_depend_on_how_many_networks_play_side_by_side(
    sizes: tuple[int, ...],
) -> None:
    """Parts of a batch, each played by itself, are the whole batch to the bit."""
    whole, policy, _ = collect(size=300)
    first = 0
    for size in sizes:
        batch = Batch(
            size, red_agent="meander", horizon=HORIZON, seed=4, first_index=first, num_threads=1
        )
        options: dict[str, Any] = {"useful": np.arange(NUM_ACTIONS) != 1}
        options["condition"] = np.zeros((size, 0), np.float32)
        part = CompiledSampler(batch, policy.copy(), TURNS, **options).collect(
            Shaping(np.ones(HORIZON, np.float32), 0.0, 1.0, GAMMA, FINAL_GAMMA)
        )
        for name in ("obs", "actions", "log_probs", "values", "next_values", "rewards"):
            wanted = getattr(whole, name)[:, first : first + size]
            assert np.array_equal(getattr(part, name), wanted), name
        first += size


def test_outputs_of_some_actions_play_the_games_that_all_outputs_play() -> None:
    """What may not be chosen makes no difference, whether it has an output or not."""
    useful = useful_actions()
    rollouts = {}
    for choices in (None, np.flatnonzero(useful)):
        batch = Batch(SIZE, red_agent="meander", horizon=HORIZON, seed=3, num_threads=1)
        policy = Policy(52, 145, hidden=(8, 8), truth_size=TRUTH_SIZE, seed=1, choices=choices)
        condition = np.zeros((SIZE, 0), np.float32)
        sampler = CompiledSampler(batch, policy, TURNS, useful=useful, condition=condition)
        rollout = sampler.collect(
            Shaping(np.ones(HORIZON, np.float32), 0.0, 1.0, GAMMA, FINAL_GAMMA)
        )
        rollouts[policy.actor_sizes[-1]] = rollout._replace(actions=policy.actions[rollout.actions])
        assert useful[rollouts[policy.actor_sizes[-1]].actions].all()
        assert np.take_along_axis(rollout.masks, rollout.actions[..., None], axis=2).all()
    all_outputs, some = rollouts[145], rollouts[useful.sum()]
    # A draw at the very border of two actions may fall to either side; from there games differ.
    same = (all_outputs.actions == some.actions).all(axis=0)
    assert same.mean() > 0.97
    assert np.array_equal(all_outputs.masks[:, same][..., useful], some.masks[:, same])
    assert not all_outputs.masks[..., ~useful].any()
    for name in ("obs", "rewards", "ended"):
        wanted = getattr(all_outputs, name)[:, same]
        assert np.array_equal(getattr(some, name)[:, same], wanted), name
