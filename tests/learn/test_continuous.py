"""Continuous actions, compiled and in torch: the same probabilities, gradients and steps."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from phalanx.compiled.team import ThreadTeam
from phalanx.learn.compiled.actor import CompiledActor
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.impala import Impala, ImpalaSettings
from phalanx.learn.ppo import PPO
from phalanx.learn.rollout import Rollout, empty_rollout
from phalanx.learn.torch.heads import Gaussian
from phalanx.learn.torch.networks import EnvNetwork
from phalanx.learn.torch.stepper import TorchStepper
from tests.learn.tasks import SETTINGS, settings

TURNS, SIZE, SEEN, ACTIONS = 40, 30, 5, 3


def twins() -> tuple[Policy, EnvNetwork]:
    """The same networks twice."""
    policy = Policy(SEEN, ACTIONS, hidden=(16, 8), truth_size=0, seed=1, deviation=0.5)
    policy.theta += np.random.default_rng(0).normal(0, 0.1, len(policy.theta)).astype(np.float32)
    seen, done = spaces.Box(-9, 9, (SEEN,)), spaces.Box(-1, 1, (ACTIONS,))
    module = EnvNetwork(seen, done, (16, 8))
    at = 0
    with torch.no_grad():
        for part in parts_of(module):
            values = policy.theta[at : at + part.numel()].reshape(part.shape[::-1]).T
            part.copy_(torch.from_numpy(values.copy()))
            at += part.numel()
    assert at == len(policy.theta)
    return policy, module


def parts_of(module: EnvNetwork) -> list[Any]:
    """In the order of `theta`."""
    return [*module.actor.parameters(), *module.critic.parameters(), module.log_std]


def theta_of(module: EnvNetwork) -> Any:
    return np.concatenate([part.detach().numpy().T.reshape(-1) for part in parts_of(module)])


def played(policy: Policy) -> Rollout:
    random = np.random.default_rng(2)
    obs = random.normal(size=(TURNS * SIZE, SEEN)).astype(np.float32)
    actor = CompiledActor(policy)
    means, values = actor.forward(obs)
    actions, log_probs = actor.draw(
        means, np.ones((len(obs), 0), np.bool_), actor.noise(random, len(obs))
    )
    first = np.zeros((SIZE, SEEN), np.float32)
    rollout = empty_rollout(TURNS, first, 0, 0, np.zeros(ACTIONS, np.float32))
    shape = (TURNS, SIZE)
    rollout.obs[:], rollout.actions[:] = obs.reshape(*shape, -1), actions.reshape(*shape, -1)
    rollout.values[:] = rollout.next_values[:] = values.reshape(shape)
    rollout.log_probs[:], rollout.discounts[:] = log_probs.reshape(shape) - 0.1, 0.9
    rollout.rewards[:] = random.normal(size=shape)
    return rollout


def test_both_find_points_equally_likely() -> None:
    policy, module = twins()
    rollout = played(policy)
    log_probs, values = CompiledStepper(policy, ThreadTeam(2), 64).evaluate(rollout)
    theirs = TorchStepper(module, Gaussian(ACTIONS), 1).evaluate(rollout)
    np.testing.assert_allclose(log_probs, theirs[0], atol=1e-4)
    np.testing.assert_allclose(values, theirs[1], atol=1e-5)
    np.testing.assert_allclose(log_probs, rollout.log_probs + 0.1, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_both_learn_the_same(threads: int) -> None:
    policy, module = twins()
    rollout = played(policy)
    before = policy.theta.copy()
    compiled = CompiledStepper(policy, ThreadTeam(threads), 700)
    plain = TorchStepper(module, Gaussian(ACTIONS), 1)
    chosen = settings(minibatch_size=700)
    one, other = (PPO(s, chosen, 3).update(rollout, 1e-3, 0.01) for s in (compiled, plain))
    for name, value in one.items():
        assert value == pytest.approx(other[name], abs=1e-4, rel=1e-4), name
    np.testing.assert_allclose(policy.theta, theta_of(module), atol=1e-4)
    assert not np.allclose(policy.theta[-ACTIONS:], before[-ACTIONS:], atol=1e-3)


def test_both_correct_what_older_weights_have_played_alike() -> None:
    policy, module = twins()
    rollout = played(policy)
    chosen = ImpalaSettings(**SETTINGS, rho_bar=1.0, c_bar=1.0, pg_rho_bar=1.0)
    steppers = (
        CompiledStepper(policy, ThreadTeam(1), 700),
        TorchStepper(module, Gaussian(ACTIONS), 1),
    )
    one, other = (Impala(s, chosen, 3).update(rollout, 1e-3, 0.01) for s in steppers)
    for name, value in one.items():
        assert value == pytest.approx(other[name], abs=1e-4, rel=1e-4), name


def test_a_copy_and_shared_weights_are_those_of_the_policy() -> None:
    policy, _ = twins()
    copy = policy.copy()
    assert np.array_equal(copy.theta, policy.theta)
    place = policy.theta.copy()
    policy.move_to(place)
    place[-1] = 7
    assert policy.log_std[-1] == 7
    assert len(policy.log_std) == ACTIONS
