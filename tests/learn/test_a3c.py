"""Weights in shared memory: whoever steps, all see it, and the step is the same as without."""

import os
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from phalanx.compiled.team import ThreadTeam
from phalanx.learn.a3c import A3C, UPDATES, Shared, count_up
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.ppo import advantage_rows
from phalanx.learn.rollout import Rollout, empty_rollout
from phalanx.learn.torch.heads import Categorical
from phalanx.learn.torch.networks import EnvNetwork
from phalanx.learn.torch.stepper import TorchStepper
from tests.learn.tasks import LOSS, settings


def compiled(seed: int) -> Any:
    policy = Policy(3, 2, hidden=(8,), truth_size=0, seed=seed)
    return CompiledStepper(policy, ThreadTeam(1), 40)


def plain(seed: int) -> Any:
    network = EnvNetwork(spaces.Box(-1, 1, (3,)), spaces.Discrete(2), (8,))
    return TorchStepper(network, Categorical(), 1)


def some_rollout(seed: int = 0) -> Rollout:
    random = np.random.default_rng(seed)
    rollout = empty_rollout(5, random.normal(size=(8, 3)).astype(np.float32), 0, 2)
    rollout.obs[:] = random.normal(size=rollout.obs.shape)
    rollout.actions[:] = random.integers(2, size=rollout.actions.shape)
    rollout.log_probs[:] = np.log(0.5)
    for part in (rollout.values, rollout.next_values, rollout.rewards):
        part[:] = random.normal(size=part.shape)
    rollout.discounts[:] = 0.99
    return rollout


def shared_by(make: Any, workers: int) -> tuple[Shared, list[A3C]]:
    fd = os.memfd_create("test")
    steppers = [make(seed) for seed in range(workers)]
    shared = Shared(fd, steppers[0].size, workers)
    os.close(fd)
    return shared, [A3C(s, settings(), shared, bring=k == 0) for k, s in enumerate(steppers)]


def flat(stepper: Any) -> Any:
    weights = stepper.weights()
    if isinstance(weights, dict):
        return np.concatenate([part.numpy().reshape(-1) for part in weights.values()])
    return weights


@pytest.mark.parametrize("make", [compiled, plain])
def test_a_step_of_one_moves_the_weights_of_all(make: Any) -> None:
    shared, (one, other) = shared_by(make, 2)
    before = flat(one.stepper)
    assert np.array_equal(flat(other.stepper), before)
    other.update(some_rollout(), 1e-2, 0.01)
    after = flat(one.stepper)
    assert not np.array_equal(after, before)
    assert np.array_equal(flat(other.stepper), after)
    assert shared.updates == 1
    assert np.abs(shared.mean).max() > 0
    assert shared.square.max() > 0


@pytest.mark.parametrize("make", [compiled, plain])
def test_two_in_turns_do_what_one_would(make: Any) -> None:
    _, (one, other) = shared_by(make, 2)
    _, (alone,) = shared_by(make, 1)
    alone.load(*one.save())
    for k in range(6):
        (one, other)[k % 2].update(some_rollout(k), 1e-2, 0.01)
        alone.update(some_rollout(k), 1e-2, 0.01)
    assert np.array_equal(flat(one.stepper), flat(alone.stepper))
    assert alone.shared.updates == 6


@pytest.mark.parametrize("make", [compiled, plain])
def test_what_is_saved_goes_on_as_if_it_had_not_been(make: Any) -> None:
    _, (one,) = shared_by(make, 1)
    for k in range(3):
        one.update(some_rollout(k), 1e-2, 0.01)
    arrays, facts = one.save()
    assert facts["adam_steps"] == 3
    _, (later,) = shared_by(make, 1)
    later.load({name: array.copy() for name, array in arrays.items()}, facts)
    one.update(some_rollout(9), 1e-2, 0.01)
    later.update(some_rollout(9), 1e-2, 0.01)
    assert np.array_equal(flat(one.stepper), flat(later.stepper))


def test_a_shared_step_is_a_step_of_the_stepper_alone() -> None:
    _, (shared_one,) = shared_by(compiled, 1)
    alone, rollout = compiled(0), some_rollout()
    shared_one.update(rollout, 1e-2, 0.01)
    alone.load_rows(advantage_rows(rollout, 0.95, normalised=False)[0])
    alone.step(np.arange(40), LOSS._replace(rate=1e-2, entropy_weight=0.01))
    assert np.array_equal(flat(alone), flat(shared_one.stepper))


def test_updates_are_counted_by_all_without_loss() -> None:
    shared, _ = shared_by(compiled, 1)
    assert [count_up(shared.counters, UPDATES, 1) for _ in range(3)] == [0, 1, 2]
    assert shared.updates == 3
