"""V-trace and IMPALA: against the definition, on policy, and off it."""

from typing import Any

import numpy as np
import pytest

from phalanx.compiled.team import ThreadTeam
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.impala import Impala, ImpalaSettings
from phalanx.learn.ppo import PPO
from phalanx.learn.returns import gae, vtrace
from phalanx.learn.rollout import columns_of
from tests import naive
from tests.learn.tasks import LOSS, Player

TURNS, SIZE, GAMMA = 30, 6, 0.95


def some_turns(seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    rewards, values, next_values = random.normal(size=(3, TURNS, SIZE)).astype(np.float32)
    ended = random.random((TURNS, SIZE)) < 0.1
    over = ended & (random.random((TURNS, SIZE)) < 0.5)
    discounts = np.where(over, 0, GAMMA).astype(np.float32)
    np.copyto(next_values[:-1], values[1:], where=~ended[:-1])
    return {
        "rewards": rewards,
        "values": values,
        "next_values": next_values,
        "ended": ended,
        "discounts": discounts,
    }


def corrected(log_ratios: Any, turns: dict[str, Any], bars: tuple[float, ...]) -> Any:
    targets, advantages = np.empty_like(log_ratios), np.empty_like(log_ratios)
    parts: list[Any] = [log_ratios, *turns.values(), *bars]
    vtrace(*parts, targets, advantages)  # type: ignore[call-arg]
    return targets, advantages


@pytest.mark.parametrize("bars", [(1.0, 1.0, 1.0), (0.9, 2.0, 0.7)])
def test_vtrace_agrees_with_its_definition(bars: tuple[float, ...]) -> None:
    turns = some_turns(1)
    log_ratios = np.random.default_rng(2).normal(size=(TURNS, SIZE)).astype(np.float32) / 2
    targets, advantages = corrected(log_ratios, turns, bars)
    for i in range(SIZE):
        column = [array[:, i].astype(np.float64) for array in turns.values()]
        ratios = np.exp(log_ratios[:, i].astype(np.float64))
        wanted = naive.vtrace(ratios, *column, *bars)
        assert np.allclose(targets[:, i], wanted[0], atol=1e-4)
        assert np.allclose(advantages[:, i], wanted[1], atol=1e-4)


def test_on_policy_vtrace_is_gae_without_decay() -> None:
    turns = some_turns(3)
    targets, advantages = corrected(np.zeros((TURNS, SIZE), np.float32), turns, (1.0, 1.0, 1.0))
    wanted = np.empty((TURNS, SIZE), np.float32)
    gae(*turns.values(), 1.0, wanted)  # type: ignore[call-arg]
    assert np.allclose(advantages, wanted, atol=1e-4)
    assert np.allclose(targets, turns["values"] + wanted, atol=1e-4)


def test_advantages_look_at_v_of_the_next_state_not_at_its_value() -> None:
    """A reward two turns later must reach the advantage of the first turn."""
    turns = {name: np.zeros((3, 1), np.float32) for name in ("rewards", "values", "next_values")}
    turns["ended"] = np.array([[False], [False], [True]])
    turns["discounts"] = np.array([[0.9], [0.9], [0.0]], np.float32)
    turns["rewards"][2] = 1
    _, advantages = corrected(np.zeros((3, 1), np.float32), turns, (1.0, 1.0, 1.0))
    assert advantages[0, 0] == pytest.approx(0.81)


def test_what_followed_actions_that_the_new_policy_would_not_take_is_no_news_of_values() -> None:
    turns = some_turns(4)
    log_ratios = np.full((TURNS, SIZE), -30, np.float32)
    targets, _ = corrected(log_ratios, turns, (1.0, 1.0, 1.0))
    assert np.allclose(targets, turns["values"], atol=1e-6)


def impala(policy: Policy, minibatch_size: int, pg_rho_bar: float = 1.0) -> Impala:
    settings = ImpalaSettings(
        k_epochs=1,
        minibatch_size=minibatch_size,
        gae_lambda=1.0,
        rho_bar=1.0,
        c_bar=1.0,
        pg_rho_bar=pg_rho_bar,
        target_kl=None,
        loss=LOSS,
    )
    return Impala(CompiledStepper(policy, ThreadTeam(1), minibatch_size), settings, seed=0)


def test_look_gives_what_the_acting_policy_stored() -> None:
    policy = Policy(4, 2, hidden=(16, 16), truth_size=0, seed=1)
    rollout = Player("CartPole-v1", 4, 20, policy, 0.99).collect()
    log_probs, values = impala(policy, 80).stepper.evaluate(rollout)
    assert np.allclose(log_probs, rollout.log_probs, atol=1e-5)
    assert np.allclose(values, rollout.values, atol=1e-5)
    some = columns_of(rollout, slice(1, 3))
    assert np.allclose(impala(policy, 80).stepper.evaluate(some)[1], values[:, 1:3], atol=1e-5)


@pytest.mark.parametrize("bar", [1.0, 1.5])
def test_the_ratio_of_the_policies_begins_below_its_bar(bar: float) -> None:
    policy = Policy(4, 2, hidden=(16, 16), truth_size=0, seed=1)
    rollout = Player("CartPole-v1", 4, 50, policy, 0.99).collect()
    rollout.log_probs[:] += np.random.default_rng(0).normal(size=rollout.log_probs.shape)
    learner = impala(policy, 80, pg_rho_bar=bar)
    rows, _ = learner.estimate(rollout)
    log_probs, _ = learner.stepper.evaluate(rollout)
    ratios = np.exp(log_probs - rollout.log_probs)
    assert ratios.max() > bar
    begun = np.exp(log_probs.reshape(-1) - rows.log_probs)
    assert np.allclose(begun, np.minimum(bar, ratios).reshape(-1), rtol=1e-4)


def test_on_policy_an_update_is_that_of_ppo() -> None:
    ours, theirs = (Policy(4, 2, hidden=(16, 16), truth_size=0, seed=1) for _ in range(2))
    rollout = Player("CartPole-v1", 8, 50, ours, 0.99).collect()
    learner = impala(ours, 100)
    other = PPO(CompiledStepper(theirs, ThreadTeam(1), 100), learner.settings, seed=0)
    said = [one.update(rollout, 1e-3, 0.01) for one in (learner, other)]
    assert np.allclose(ours.theta, theirs.theta, atol=1e-6)
    assert said[0]["policy_loss"] == pytest.approx(said[1]["policy_loss"], abs=1e-4)
    assert not np.allclose(ours.theta, Policy(4, 2, hidden=(16, 16), truth_size=0, seed=1).theta)


@pytest.mark.parametrize("lag", [0, 3])
def test_impala_balances_the_pole_with_rollouts_of_older_weights(lag: int) -> None:
    policy = Policy(4, 2, hidden=(64, 64), truth_size=0, seed=2)
    acting = policy.copy()
    player = Player("CartPole-v1", 16, 32, acting, gamma=0.99)
    learner, past = impala(policy, 512), [policy.theta.copy()]
    for k in range(500):
        acting.theta[:] = past[0]
        rollout = player.collect()
        rollout.rewards[:] *= 0.1
        learner.update(rollout, 2e-3 * (1 - k / 500), 0.01)
        past = [*past, policy.theta.copy()][-lag - 1 :]
        if np.mean(player.returns[-50:]) > 400:
            break
    assert np.mean(player.returns[-50:]) > 400
