"""The compiled CAGE-2: its networks, its orders, and the policies that play it."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.observation import OBS_SIZES, TRUTH_SIZE
from phalanx.cage2.rules.scenario import NUM_ACTIONS, useful_actions
from phalanx.cage2.rules.scoring import NO_ORDERS, Orders, make_orders
from phalanx.cage2.settings import kinds_of_episodes
from phalanx.cage2.workflow import NUM_ORDERS, parse_order
from phalanx.compiled.team import ThreadTeam
from phalanx.errors import ConfigError
from phalanx.learn.cage2.sampler import CompiledSampler
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.machine import total_memory
from phalanx.training.cage2_extension import Cage2Extension
from phalanx.training.config import TrainConfig
from phalanx.training.recipe import (
    Network,
    Recipe,
    count_threads,
    is_ahead,
    open_learner,
    open_source,
)

BESIDES = 10  # numbers of a step beside what is observed: action, reward, value, ...


def on_cage2(config: TrainConfig, _network: Network | None, first_index: int = 0) -> Recipe:
    """Fused kernels on the CPU, for the built-in networks."""
    batches = open_batches(config, first_index)
    policy = make_policy(config)
    samplers = [
        CompiledSampler(batch, policy.copy(), config.update_steps, **sampler_options(config, batch))
        for batch in batches
    ]
    threads = count_threads(config)
    team = batches[0].team if len(batches) == 1 and not is_ahead(config) else ThreadTeam(threads)
    stepper = CompiledStepper(policy, team, config.minibatch_size)
    source = open_source(config, samplers)
    kinds = kinds_of_episodes(config.red_agent)
    extension = Cage2Extension(config)
    return Recipe(source, open_learner(config, stepper), "cpu", threads, kinds, extension=extension)


def check_memory(config: TrainConfig) -> None:
    """Refuse rollouts that this machine cannot hold, before minutes are spent on trying."""
    width = OBS_SIZES[config.observation] + condition_size(config)
    width += (TRUTH_SIZE if config.critic_truth else 0) + BESIDES
    needed = int(config.num_envs) * config.update_steps * width * 4 * (1 + is_ahead(config))
    if needed > total_memory():
        raise ConfigError(
            f"{config.num_envs} networks and {config.update_steps} steps take {needed / 1e9:,.0f} "
            f"GB, this machine has {total_memory() / 1e9:,.0f}; give fewer --n-envs or "
            "--update-steps"
        )


def open_batches(config: TrainConfig, first_index: int = 0) -> list[Batch]:
    """The networks of each sampler, all of them together as if they were one batch."""
    check_memory(config)
    threads, size = count_threads(config), int(config.num_envs)
    samplers = min(config.num_samplers, size) if config.algo == "impala" else 1
    edges = [size * k // samplers for k in range(samplers + 1)]
    return [
        Batch(
            high - low,
            red_agent=config.red_agent,
            horizon=config.horizon,
            rules=config.rules,
            observation=config.observation,
            seed=config.seed,
            first_index=first_index + low,
            num_threads=threads if samplers == 1 else 1,
        )
        for low, high in pairwise(edges)
    ]


def make_policy(config: TrainConfig) -> Policy:
    """Networks of the sizes that a run on CAGE-2 has."""
    return Policy(**policy_sizes(config), seed=config.seed)


def policy_sizes(config: TrainConfig) -> dict[str, Any]:
    return {
        "obs_size": OBS_SIZES[config.observation] + condition_size(config),
        "num_actions": NUM_ACTIONS,
        "hidden": config.hidden,
        "truth_size": TRUTH_SIZE if config.critic_truth else 0,
    }


def orders_of(config: TrainConfig) -> Orders:
    """The orders of repair that the run's episodes follow."""
    if config.workflow is None:
        return NO_ORDERS
    allowed = range(NUM_ORDERS) if config.workflow == "all" else [parse_order(config.workflow)]
    return make_orders(allowed, config.compliance_rule, config.alignment, config.alignment_lambda)


def condition_size(config: TrainConfig) -> int:
    """Numbers after every observation: those of the user, and the code of an order."""
    return len(config.condition) + orders_of(config).codes.shape[1]


def sampler_options(config: TrainConfig, batch: Batch) -> dict[str, Any]:
    return {
        "useful": chosen_actions(config.actions),
        "condition": np.tile(np.array(config.condition, np.float32), (batch.num_envs, 1)),
        "orders": orders_of(config),
        "num_rollouts": 2 if is_ahead(config) else 1,
    }


def chosen_actions(name: str) -> npt.NDArray[np.bool_]:
    return useful_actions() if name == "useful" else np.ones(NUM_ACTIONS, np.bool_)
