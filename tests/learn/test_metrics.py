"""What an update reports, and when it ends: by a stepper whose answers are known."""

from itertools import chain
from typing import Any

import numpy as np
import pytest

from phalanx.compiled.team import ThreadTeam
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.ppo import PPO, STATS, advantage_rows, explained_variance, normalise
from phalanx.learn.rollout import Rollout, empty_rollout
from tests.learn.tasks import Player, settings
from tests.learn.test_impala import impala

KL = STATS.index("kl")


def test_the_kl_that_impala_reports_is_that_of_the_acting_policy_and_the_new_one() -> None:
    """E[r - 1 - log r], r = π/μ: never negative, and 0 only if they are the same."""
    policy = Policy(4, 2, hidden=(16, 16), truth_size=0, seed=1)
    rollout = Player("CartPole-v1", 4, 50, policy, 0.99).collect()
    learner = impala(policy, 80)
    assert learner.estimate(rollout)[1]["kl"] == pytest.approx(0, abs=1e-6)
    moved = np.random.default_rng(0).normal(size=rollout.log_probs.shape) / 2
    rollout.log_probs[:] += moved
    wanted = np.mean(np.exp(-moved) - 1 + moved)
    assert wanted > 0.1
    assert learner.estimate(rollout)[1]["kl"] == pytest.approx(wanted, rel=1e-3)
    assert learner.update(rollout, 1e-3, 0.0)["kl"] == pytest.approx(wanted, rel=1e-3)


def test_a_critic_explains_all_some_or_none_of_the_variance() -> None:
    targets = np.array([1.0, -1.0, 3.0, -3.0])
    assert explained_variance(targets, targets) == pytest.approx(1)
    assert explained_variance(targets, np.full(4, 7.0)) == pytest.approx(0, abs=1e-6)
    assert explained_variance(targets, targets / 2) == pytest.approx(0.75)
    assert explained_variance(targets, -targets) == pytest.approx(-3)
    assert explained_variance(np.ones(4), targets) < -1000  # nothing to explain, and wrong


def test_normal_advantages_have_mean_0_and_deviation_1() -> None:
    advantages = normalise(np.array([[1.0, 2.0], [3.0, 10.0]], np.float32))
    assert advantages.mean() == pytest.approx(0, abs=1e-6)
    assert advantages.std() == pytest.approx(1)
    assert (normalise(np.full((2, 2), 5, np.float32)) == 0).all()


def some_rollout() -> Rollout:
    rollout = empty_rollout(2, np.zeros((5, 3), np.float32), 0, 4)
    random = np.random.default_rng(0)
    for array in (rollout.rewards, rollout.values, rollout.next_values, rollout.log_probs):
        array[:] = random.normal(size=array.shape)
    rollout.discounts[:] = 0.9
    return rollout


def test_value_targets_are_values_and_advantages_before_these_are_made_normal() -> None:
    rollout = some_rollout()
    plain, explained = advantage_rows(rollout, 0.8, normalised=False)
    rows, same = advantage_rows(rollout, 0.8)
    assert np.allclose(plain.targets, plain.advantages + rollout.values.reshape(-1))
    assert np.array_equal(plain.targets, rows.targets)
    assert explained == same == explained_variance(plain.targets, rollout.values.reshape(-1))
    assert np.allclose(rows.advantages, normalise(plain.advantages), atol=1e-6)
    assert not np.allclose(rows.advantages, plain.advantages)


class Told:
    """A stepper that notes which rows it is given, and answers as it is told."""

    def __init__(self, kl_of_a_row: float) -> None:
        self.chosen: list[list[int]] = []
        self.kl_of_a_row = kl_of_a_row

    def load_rows(self, rows: Any) -> None:
        self.rows = rows

    def step(self, chosen: Any, _loss: Any) -> tuple[Any, float]:
        self.chosen.append(chosen.tolist())
        stats = np.full(len(STATS), 2.0 * len(chosen))
        stats[KL] = self.kl_of_a_row * len(chosen)
        return stats, float(len(self.chosen))


def told_update(kl_of_a_row: float, **changes: Any) -> tuple[Told, dict[str, float]]:
    stepper = Told(kl_of_a_row)
    learner: Any = PPO(stepper, settings(minibatch_size=4, k_epochs=3, **changes), seed=0)  # type: ignore[arg-type]
    return stepper, learner.update(some_rollout(), 1e-3, 0.01)


def test_an_epoch_takes_every_row_once_in_an_order_of_its_own() -> None:
    stepper, metrics = told_update(0.0)
    assert [len(rows) for rows in stepper.chosen] == [4, 4, 2] * 3
    epochs = [list(chain(*stepper.chosen[first : first + 3])) for first in (0, 3, 6)]
    assert all(sorted(rows) == list(range(10)) for rows in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert metrics["policy_loss"] == metrics["entropy"] == 2.0  # means over rows, not over steps
    assert metrics["grad_norm"] == np.mean(np.arange(1, 10))
    assert metrics["epochs"] == 3


@pytest.mark.parametrize(("kl", "epochs"), [(0.5, 3), (0.51, 1), (0.0, 3)])
def test_an_update_ends_when_the_policy_has_moved_further_than_its_target(
    kl: float, epochs: int
) -> None:
    _, metrics = told_update(kl, target_kl=0.5)
    assert metrics["epochs"] == epochs
    assert metrics["kl"] == pytest.approx(kl)


def test_a_saved_learner_shuffles_on_where_it_was() -> None:
    policy = Policy(3, 4, hidden=(4,), truth_size=0, seed=0)
    steppers = [CompiledStepper(policy, ThreadTeam(1), 4) for _ in range(2)]
    ours, other = (PPO(one, settings(), seed) for one, seed in zip(steppers, (0, 9), strict=True))
    ours.shuffle.permutation(10)
    other.load(*ours.save())
    assert np.array_equal(other.shuffle.permutation(50), ours.shuffle.permutation(50))
