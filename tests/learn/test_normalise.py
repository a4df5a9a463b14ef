"""What was seen so far, as numpy finds it; and what networks and learners are given instead."""

from typing import Any

import numpy as np
import pytest

from phalanx.errors import CheckpointError
from phalanx.learn.compiled.actor import CompiledActor
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.normalise import BOUND, Intake, NormalisedActor, Running, normalised
from phalanx.learn.rollout import Rollout, empty_rollout


def test_statistics_are_those_of_numpy_over_all_that_was_seen() -> None:
    random = np.random.default_rng(0)
    parts = [random.normal([5, -300], [2, 70], (n, 2)).astype(np.float32) for n in (7, 1, 400)]
    running = Running((2,))
    for part in parts:
        running.add(part)
    whole = np.concatenate(parts).astype(np.float64)
    assert running.count == len(whole)
    np.testing.assert_allclose(running.mean, whole.mean(axis=0))
    np.testing.assert_allclose(running.var, whole.var(axis=0))


def test_what_networks_see_has_mean_0_and_deviation_1_and_is_bounded() -> None:
    rows = np.random.default_rng(0).normal([5, -300], [2, 70], (400, 2))
    running = Running((2,))
    running.add(rows)
    seen = normalised(rows, running.mean.astype(np.float32), running.factor)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(seen.std(axis=0), 1, rtol=1e-5)
    far = normalised(rows + 1e6, running.mean.astype(np.float32), running.factor)
    assert (far == BOUND).all()
    assert seen.dtype == far.dtype == np.float32


def test_nothing_is_changed_as_long_as_nothing_was_seen() -> None:
    class Shown(CompiledActor):
        def forward(self, obs: Any) -> Any:
            return obs, np.zeros(len(obs))

    inner = Shown(Policy(3, 2, hidden=(2,), truth_size=0, seed=0))
    actor = NormalisedActor(inner, (3,))
    obs = np.array([[1, -2, 3]], np.float32)
    np.testing.assert_array_equal(actor.forward(obs)[0], obs)


def rollout_of(rewards: Any, ended: Any) -> Rollout:
    rollout = empty_rollout(len(rewards), np.zeros((len(rewards[0]), 1), np.float32), 0, 2)
    rollout.rewards[:], rollout.ended[:] = rewards, ended
    return rollout


@pytest.mark.parametrize("in_order", [True, False])
def test_rewards_are_divided_by_the_deviation_of_discounted_returns(in_order: bool) -> None:
    first = rollout_of([[1, 2], [3, 4]], [[False, True], [False, False]])
    second = rollout_of([[5, 0.5]], [[False, False]])
    returns = Running()
    intake = Intake(None, returns, gamma=0.5, in_order=in_order)
    intake(first)
    given = intake(second)
    carried = [0.5 * (3 + 0.5), 0.5 * 4] if in_order else [0.0, 0.0]
    known = [1, 2, 3 + 0.5, 4, 5 + carried[0], 0.5 + carried[1]]
    assert returns.var == pytest.approx(np.var(known))
    np.testing.assert_allclose(given.rewards, second.rewards / np.std(known), rtol=1e-6)
    assert second.rewards[0, 0] == 5  # the sampler's own are as they were


@pytest.mark.parametrize(
    "wrong",
    [
        {"obs_var": -1.0},
        {"obs_count": -1.0},
        {"obs_mean": np.nan},
        {"obs_mean": -1e39},
        {"obs_var": 1e300},
        {"obs_count": 1e300},  # more than numbers seen can give
    ],
)
def test_statistics_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    running = Running()
    arrays = running.save("obs") | {name: np.array(value) for name, value in wrong.items()}
    with pytest.raises(CheckpointError, match="no such statistic"):
        running.load("obs", arrays)
