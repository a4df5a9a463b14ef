"""The part of a recipe that needs torch: networks of your own, GPUs, other environments."""

import copy
from functools import partial
from typing import Any

from phalanx.cage2.cyborg import CyborgEnv
from phalanx.cage2.scenario import NUM_ACTIONS, RED_AGENTS
from phalanx.config import TrainConfig
from phalanx.envs.pool import Pool, make_pool
from phalanx.learn.heads import Categorical
from phalanx.learn.module import ActorCritic
from phalanx.learn.networks import EnvNetwork, head_for
from phalanx.learn.plain import PlainSampler, PlainStepper, find_device
from phalanx.learn.pool_sampler import PoolSampler
from phalanx.recipe import (
    Network,
    Recipe,
    count_threads,
    is_ahead,
    make_policy,
    open_batches,
    open_learner,
    open_source,
    sampler_options,
)


def on_cage2(config: TrainConfig, network: Network | None) -> Recipe:
    """Plain torch on the compiled game."""
    batches = open_batches(config)
    policy = make_policy(config, batches[0])
    device = find_device(config.device)
    shapes = (policy.obs_size, policy.truth_size, NUM_ACTIONS)
    module = (ActorCritic(policy) if network is None else network(*shapes)).to(device)
    samplers = [
        PlainSampler(
            batch, copy.deepcopy(module), config.update_steps, truth_size=policy.truth_size,
            **sampler_options(config, batch),
        )
        for batch in batches
    ]  # fmt: skip
    threads = count_threads(config)
    stepper = PlainStepper(module, Categorical(), threads, config.compile)
    source = open_source(config, samplers)
    return Recipe(source, open_learner(config, stepper), device.type, threads, RED_AGENTS)


def on_pool(config: TrainConfig, network: Network | None) -> Recipe:
    """Any Gymnasium environment, in worker processes."""
    pool = open_pool(config)
    try:
        obs_space, action_space = pool.single_observation_space, pool.single_action_space
        head, device = head_for(action_space), find_device(config.device)
        if network is None:
            module: Any = EnvNetwork(obs_space, action_space, config.hidden)
        else:
            module = network(*env_shapes(obs_space, action_space))
        module.to(device)
        sampler = PoolSampler(
            pool, copy.deepcopy(module), head, config.update_steps, gamma=config.gamma,
            reward_scale=config.reward_scale, seed=config.seed,
            num_rollouts=2 if is_ahead(config) else 1,
        )  # fmt: skip
    except BaseException:
        pool.close()
        raise
    threads = count_threads(config)
    stepper = PlainStepper(module, head, threads, config.compile)
    source = open_source(config, [sampler])
    learner = open_learner(config, stepper)
    return Recipe(source, learner, device.type, threads, (config.env,), note=pool.reason)


def env_shapes(obs_space: Any, action_space: Any) -> tuple[int, int, int]:
    """What a network of the user's own is made for: numbers in, no truth, numbers out."""
    from phalanx.learn.networks import count_outputs

    size = 1
    for length in obs_space.shape:
        size *= length
    return size, 0, count_outputs(action_space)


def open_pool(config: TrainConfig) -> Pool:
    n_envs = DEFAULT_NUM_ENVS if config.num_envs == "auto" else int(config.num_envs)
    return make_pool(
        env_of(config),
        n_envs=n_envs,
        num_workers=config.num_workers,  # type: ignore[arg-type]
        wait_for="all" if config.wait_for == "all" else min(int(config.wait_for), n_envs),
        seed=config.seed,
        infos=False,
        step_timeout=config.step_timeout,
        max_restarts=config.max_restarts,
    )


def env_of(config: TrainConfig) -> Any:
    """What the pool is to build."""
    if config.env != "cyborg":
        return config.env
    return partial(
        CyborgEnv, red_agent=config.red_agent, horizon=config.horizon, rules=config.rules,
        observation=config.observation,
    )  # fmt: skip


DEFAULT_NUM_ENVS = 16
