"""Rollouts from a pool: every step is in one column, once, with what it led to."""

import os
import signal
import time
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from phalanx.envs import Fault, make_pool
from phalanx.errors import WorkerError
from phalanx.learn.compiled.actor import CompiledActor
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.pool_sampler import PoolSampler
from tests import odd_envs

GAMMA = 0.9


def sampler(env: Any, n_envs: int, turns: int, first_env: int = 0, **options: Any) -> PoolSampler:
    pool = make_pool(env, n_envs=n_envs, **{"num_workers": 0, **options})
    actor = CompiledActor(Policy(3, 4, hidden=(8,), truth_size=0, seed=1))
    return PoolSampler(
        pool, actor, turns, gamma=GAMMA, reward_scale=1.0, seed=0, first_env=first_env
    )


def test_each_row_holds_an_observation_its_action_and_what_that_led_to() -> None:
    """`Counting` shows the number of steps and pays the number after the step; 5 to an episode."""
    player = sampler(odd_envs.Counting, n_envs=3, turns=12)
    for first in (0, 12):
        r = player.collect()
        counts = (np.arange(first, first + 12) % 5)[:, None]
        assert np.array_equal(r.obs[:, :, 1], np.broadcast_to(counts, (12, 3)))
        assert np.array_equal(r.rewards, np.broadcast_to(counts + 1, (12, 3)))
        assert np.array_equal(r.ended, np.broadcast_to(counts == 4, (12, 3)))
        assert np.array_equal(r.discounts == 0, r.ended)  # terminated: nothing follows
        assert (r.returns[r.counted] == 15).all()
        assert (r.lengths[r.counted] == 5).all()
        goes_on = ~r.ended[:-1]
        assert np.array_equal(r.next_values[:-1][goes_on], r.values[1:][goes_on])
        values = player.actor.forward(r.obs.reshape(36, 3))[1].reshape(12, 3)
        assert np.allclose(r.values, values, atol=1e-6)
    player.close()


class CutShort(odd_envs.Counting):
    """Episodes that a time limit cuts after three steps."""

    def step(self, action: Any) -> Any:
        obs, reward, _, _, info = super().step(action)
        return obs, reward, False, self.count >= 3, info


def test_an_episode_that_was_cut_goes_on_in_value_from_its_last_observation() -> None:
    player = sampler(CutShort, n_envs=2, turns=6)
    r = player.collect()
    assert (r.discounts == np.float32(GAMMA)).all()
    assert np.array_equal(r.ended[:, 0], [False, False, True] * 2)
    last = r.obs[2].copy()
    last[:, 1] = 3
    assert np.allclose(r.next_values[2], player.actor.forward(last)[1], atol=1e-6)
    player.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_out_of_step_no_step_is_lost_or_counted_twice(workers: int) -> None:
    player = sampler(odd_envs.Counting, n_envs=6, turns=7, num_workers=workers, wait_for=2)
    steps: list[tuple[float, float]] = []
    for _ in range(6):
        r = player.collect()
        assert r.rewards.shape[1] >= 6
        for column in range(r.rewards.shape[1]):
            counts = r.obs[:, column, 1]
            assert np.array_equal(r.rewards[:, column], counts + 1)
            assert np.array_equal(counts[1:], (counts[:-1] + 1) % 5)  # one environment, in order
        steps += [tuple(row) for row in r.obs[:, :, :2].reshape(-1, 2).tolist()]
    assert len(set(steps)) == len(steps)  # (dice of the episode, turn) is unique
    player.close()


def test_weights_of_another_version_are_noted_with_the_columns() -> None:
    player = sampler(odd_envs.Counting, n_envs=4, turns=3, wait_for=4)
    assert (player.collect().versions == 0).all()
    player.set_weights(player.actor.policy.theta.copy(), version=5)  # type: ignore[attr-defined]
    assert (player.collect().versions == 5).all()
    player.close()


def test_an_environment_that_fails_costs_its_episode_and_nothing_else() -> None:
    player = sampler(odd_envs.Raises, n_envs=4, turns=30, max_restarts=1000)
    r = player.collect()
    assert len(player.pool.faults) > 3  # one action in four lets it raise
    for column in range(4):
        counts, ended = r.obs[:, column, 1], r.ended[:, column]
        assert np.array_equal(r.rewards[:, column], counts + 1)
        # A new episode begins after an end, whether it was counted or lost, and only there.
        assert np.array_equal(counts[1:] == 0, ended[:-1])
    assert (r.actions != odd_envs.ACT_UP).all()  # what was not played is not learnt from
    assert r.counted.sum() < r.ended.sum()
    assert (r.returns[r.counted] == 15).all()
    player.close()


class Broken(odd_envs.Counting):
    def see(self) -> Any:
        seen = super().see()
        seen[2] = np.nan if self.count == 3 else 0
        return seen


def test_an_observation_that_is_no_number_is_told_with_its_environment() -> None:
    player = sampler(Broken, n_envs=2, turns=6)
    told = "environment 0 gave an observation that is no number .* at step 3 of an episode"
    with pytest.raises(WorkerError, match=told):
        player.collect()
    player.close()


class EndsBroken(odd_envs.Truncates):
    def see(self) -> Any:
        seen = super().see()
        seen[2] = np.inf if self.count == self.length else 0
        return seen


def test_the_last_observation_of_an_episode_is_looked_at_too() -> None:
    player = sampler(EndsBroken, n_envs=2, turns=6, first_env=10)
    with pytest.raises(WorkerError, match=r"environment 10 .* at step 5 of an episode"):
        player.collect()
    player.close()


def test_a_worker_that_dies_while_nobody_waits_is_told_of_and_replaced() -> None:
    player = sampler(odd_envs.Counting, n_envs=2, turns=3, num_workers=2)
    player.collect()
    told: list[Fault] = []
    player.listen(told.append)
    os.kill(player.pool.worker_pids[1], signal.SIGKILL)
    deadline = time.monotonic() + 30
    while not told and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "worker 1 was killed by SIGKILL" in told[0].what
    assert player.collect().rewards.shape == (3, 2)
    player.close()


def test_a_slow_environment_is_in_fewer_columns() -> None:
    player = sampler(SomeAreSlow, n_envs=8, turns=5, num_workers=8, wait_for=1)
    slow = np.concatenate([player.collect().obs[0, :, 2] for _ in range(12)])
    of_all = player._obs[:, 2].mean()
    assert 0 < of_all < 1
    assert slow.mean() < of_all / 2
    player.close()


class SomeAreSlow(odd_envs.Counting):
    """Some, by their first throw, sleep; the last number says so."""

    slow: bool | None = None

    def reset(self, **options: Any) -> Any:
        _, info = super().reset(**options)
        if self.slow is None:
            self.slow = self.dice > 0.6
        return self.see(), info

    def see(self) -> Any:
        return np.array([self.dice, self.count, bool(self.slow)], np.float32)

    def step(self, action: Any) -> Any:
        time.sleep(0.2 if self.slow else 0)
        return super().step(action)


class Pushed(odd_envs.Counting):
    """Takes a point instead of a number."""

    action_space = spaces.Box(-9, 9, (1,), np.float32)
    length = 10**6

    def step(self, action: Any) -> Any:
        return super().step(0)


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_noise_lasts_for_as_long_as_it_is_told_to(memory: float) -> None:
    pool = make_pool(Pushed, n_envs=50, num_workers=0)
    actor = CompiledActor(Policy(3, 1, hidden=(8,), truth_size=0, seed=1, deviation=1.0))
    settings: dict[str, Any] = {"gamma": GAMMA, "reward_scale": 1.0, "seed": 0}
    player = PoolSampler(pool, actor, 100, noise_memory=memory, **settings)
    player.collect()
    r = player.collect()
    means = actor.forward(r.obs.reshape(-1, 3))[0].reshape(100, 50)
    noise = r.actions[..., 0] - means
    assert noise.std() == pytest.approx(1, abs=0.08)
    assert np.mean(noise[1:] * noise[:-1]) == pytest.approx(memory, abs=0.1)
    player.close()


def test_chance_is_a_number_of_32_bits_for_each_row() -> None:
    actor = CompiledActor(Policy(3, 4, hidden=(8,), truth_size=0, seed=1))
    noise = actor.noise(np.random.default_rng(0), 1000)
    assert noise.shape == (1000,)
    assert 0 <= noise.min() < 2**24
    assert 2**32 - 2**24 < noise.max() < 2**32


def test_the_first_noise_of_those_who_remember_is_a_part_of_what_it_would_be() -> None:
    noises = []
    for memory in (0.0, 0.6):
        pool = make_pool(Pushed, n_envs=5, num_workers=0)
        actor = CompiledActor(Policy(3, 1, hidden=(8,), truth_size=0, seed=1, deviation=1.0))
        settings: dict[str, Any] = {"gamma": GAMMA, "reward_scale": 1.0, "seed": 0}
        player = PoolSampler(pool, actor, 1, noise_memory=memory, **settings)
        rollout = player.collect()
        noises.append(rollout.actions[0] - actor.forward(rollout.obs[0])[0])
        player.close()
    assert np.allclose(noises[1], 0.8 * noises[0], atol=1e-5)
