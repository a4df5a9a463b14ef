"""How far a run is, and what its schedules make of that."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.learn.impala import Impala, ImpalaSettings
from phalanx.learn.ppo import PPO, LossSettings, PPOSettings
from phalanx.training.cage2_extension import (
    Cage2Extension,
    restore_price,
    turn_weights,
    value_worth,
)
from phalanx.training.config import TrainConfig
from phalanx.training.on_cage2 import (
    chosen_actions,
    condition_size,
    open_batches,
    policy_sizes,
    sampler_options,
)
from phalanx.training.recipe import count_threads, is_ahead, open_recipe, settings_of
from phalanx.training.schedules import entropy_weight_at, learning_rate_at, progress_of
from tests.training.inside import inside

OTHER: dict[str, Any] = {"env": "CartPole-v1"}


@pytest.mark.parametrize(
    ("changes", "done", "progress"),
    [
        # of updates, episodes, steps, seconds
        ({"num_envs": 10, "total_steps": 5000, "update_steps": 50}, (3, 0, 0, 0.0), 0.3),
        ({"num_envs": 10, "total_episodes": 50, "update_steps": 100}, (1, 0, 0, 0.0), 0.2),
        ({"num_envs": 10, "total_steps": 900, "update_steps": 50}, (1, 0, 0, 0.0), 0.5),
        ({"algo": "impala", "total_episodes": 10, "horizon": 20}, (0, 0, 100, 0.0), 0.5),
        ({"algo": "impala", "total_steps": 400}, (0, 0, 100, 0.0), 0.25),
        ({**OTHER, "total_steps": 400}, (0, 0, 100, 0.0), 0.25),
        ({**OTHER, "total_episodes": 40}, (7, 10, 1000, 0.0), 0.25),
        ({**OTHER, "total_steps": 400}, (0, 0, 900, 0.0), 1.0),
        ({**OTHER, "total_steps": 400, "duration": 0.5}, (0, 0, 100, 900.0), 0.5),
        ({**OTHER, "total_steps": 400, "duration": 0.5}, (0, 0, 300, 900.0), 0.75),
    ],
)
def test_a_run_is_as_far_as_its_budget_or_its_time(
    changes: dict[str, Any], done: Any, progress: float
) -> None:
    assert progress_of(TrainConfig(**changes), *done) == pytest.approx(progress)


@pytest.mark.parametrize("kind", [PPOSettings, ImpalaSettings])
def test_an_algorithm_and_its_loss_are_set_by_the_names_of_a_runs_settings(kind: Any) -> None:
    config = TrainConfig(
        clip=0.3, value_weight=0.7, max_grad_norm=0.9, k_epochs=3, gae_lambda=0.8, rho_bar=1.5
    )
    settings = settings_of(kind, config)
    assert settings.loss == LossSettings(clip=0.3, value_weight=0.7, max_grad_norm=0.9)
    for field in fields(kind):
        if field.name != "loss":
            assert getattr(settings, field.name) == getattr(config, field.name)


def test_rates_and_weights_go_from_first_to_last_in_a_line() -> None:
    config = TrainConfig(
        learning_rate=0.4, final_learning_rate=0.1, entropy=0.02, final_entropy=0.01
    )
    assert [learning_rate_at(config, f) for f in (0, 0.5, 1)] == pytest.approx([0.4, 0.25, 0.1])
    assert [entropy_weight_at(config, f) for f in (0, 0.5, 1)] == pytest.approx([0.02, 0.015, 0.01])


def test_restore_is_cheap_at_first_and_has_its_price_in_time() -> None:
    config = TrainConfig(restore_curriculum=0.4)
    prices = [restore_price(config, f) for f in (0, 0.1, 0.2, 0.4, 0.41, 1)]
    assert prices == pytest.approx([0.2, 0.4, 0.6, 1, 1, 1])
    assert restore_price(TrainConfig(restore_curriculum=0), 0.0) == 1


def test_rewards_count_once_for_each_horizon_that_they_are_in() -> None:
    weights = turn_weights(TrainConfig())
    assert weights.tolist() == [3.0] * 30 + [2.0] * 20 + [1.0] * 50
    assert turn_weights(TrainConfig(turn_weights="flat", horizon=7)).tolist() == [1.0] * 7


@pytest.mark.parametrize(
    ("changes", "after_the_end"),
    [
        ({}, 0.0),
        ({"horizon": 99}, 0.99),
        ({"turn_weights": "flat"}, 0.99),
        ({"horizon": 200}, 0.0),
    ],
)
def test_nothing_counts_after_the_last_horizon_of_the_leaderboard(
    changes: dict[str, Any], after_the_end: float
) -> None:
    config = TrainConfig(**changes, reward_scale=0.5)
    shaped = Cage2Extension(config).shaping(0.0)
    assert shaped[1:] == pytest.approx((0.8, 0.5, 0.99, after_the_end))


@pytest.mark.parametrize(
    ("changes", "ahead"),
    [
        ({}, False),
        ({"overlap": True}, True),
        ({"algo": "impala"}, True),
        (OTHER, True),
        ({**OTHER, "wait_for": 2}, False),
        ({**OTHER, "algo": "impala", "wait_for": 2}, True),
    ],
)
def test_who_plays_ahead(changes: dict[str, Any], ahead: bool) -> None:
    assert is_ahead(TrainConfig(**changes)) is ahead


def test_networks_of_samplers_are_one_batch_together() -> None:
    config = TrainConfig(algo="impala", num_samplers=3, num_envs=8, num_threads=2)
    batches = open_batches(config, first_index=100)
    assert [batch.num_envs for batch in batches] == [2, 3, 3]
    assert [batch.first_index for batch in batches] == [100, 102, 105]
    assert len(open_batches(TrainConfig(num_envs=8))) == 1
    for batch in batches:
        batch.close()


def test_a_run_plays_the_first_networks_of_its_seed() -> None:
    recipe = open_recipe(TrainConfig(num_envs=4, num_threads=1))
    assert recipe.sampler.batch.first_index == 0
    recipe.close()


@pytest.mark.parametrize(
    ("changes", "kind", "shares_threads"),
    [({}, PPO, True), ({"overlap": True}, PPO, False), ({"algo": "impala"}, Impala, False)],
)
def test_each_algorithm_has_its_learner_and_who_plays_ahead_threads_of_its_own(
    changes: dict[str, Any], kind: type, shares_threads: bool
) -> None:
    recipe = open_recipe(TrainConfig(num_envs=4, num_threads=2, num_samplers=1, **changes))
    learner = recipe.learner
    assert (inside(learner.stepper).team is recipe.sampler.batch.team) == shares_threads
    assert type(learner) is kind
    recipe.close()


def test_sizes_of_networks_follow_what_is_shown() -> None:
    plain = policy_sizes(TrainConfig(observation="bits", critic_truth=False))
    assert (plain["obs_size"], plain["truth_size"], plain["num_actions"]) == (52, 0, 145)
    told = TrainConfig(observation="bits", workflow="all", condition=(1.0, 2.0))
    assert condition_size(told) == 2 + 25
    assert policy_sizes(told)["obs_size"] == 52 + 27
    assert policy_sizes(told)["truth_size"] > 0
    assert not chosen_actions(TrainConfig(actions="useful"), CAGE2_WORLDS).all()
    assert chosen_actions(TrainConfig(actions="all"), CAGE2_WORLDS).all()
    assert count_threads(TrainConfig(num_threads=3)) == 3


def test_a_sampler_that_plays_ahead_has_two_rollouts() -> None:
    for changes, count in (({}, 1), ({"overlap": True}, 2)):
        config = TrainConfig(num_envs=4, condition=(0.5,), **changes)  # type: ignore[arg-type]
        (batch,) = open_batches(config)
        options = sampler_options(config, batch)
        assert options["num_rollouts"] == count
        np.testing.assert_array_equal(options["condition"], np.full((4, 1), 0.5, np.float32))
        batch.close()


def test_a_critics_value_stands_for_the_points_to_come() -> None:
    """Where every turn counts alike and loses alike: what a critic learns, in points again."""
    for gamma, over in ((0.9, False), (1.0, False), (0.9, True)):
        weights = "leaderboard" if over else "flat"
        config = TrainConfig(gamma=gamma, reward_scale=0.5, turn_weights=weights)
        counted = turn_weights(config).astype(float)
        value = 0.0 if over or gamma == 1 else 1 / (1 - gamma)
        worth = value_worth(config)
        for turn in reversed(range(100)):
            value = counted[turn] + gamma * value
            assert 0.5 * value * worth[turn] == pytest.approx(counted[turn:].sum())
