"""Any Gymnasium environment: worker processes, and networks for its spaces."""

import copy
import os
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from gymnasium import spaces

from phalanx.cage2.cyborg import CyborgEnv
from phalanx.compiled.team import ThreadTeam
from phalanx.envs.factories import EnvSpec
from phalanx.envs.layout import AnySpace
from phalanx.envs.making import make_pool
from phalanx.envs.pool import Pool
from phalanx.learn.compiled.actor import CompiledActor, count_outputs, is_image
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.normalise import BOUND, NormalisedActor, NormalisedStepper
from phalanx.learn.pool_sampler import PoolSampler
from phalanx.learn.ppo import Stepper
from phalanx.learn.rollout import Actor
from phalanx.machine import count_cores
from phalanx.training.config import TrainConfig
from phalanx.training.recipe import (
    Network,
    Recipe,
    count_threads,
    game_of,
    import_torch,
    is_ahead,
    plain_is_asked,
    recipe_of,
)

LARGEST_COMPILED = 256  # actions


def on_pool(config: TrainConfig, network: Network | None, _first_index: int = 0) -> Recipe:
    """Compiled networks for vectors; torch for images, and for more actions than those take."""
    pool = open_pool(config)
    try:
        both = pool.single_observation_space, pool.single_action_space
        # What was left to the environment: its kind of task, and how many there are.
        config = replace(config.for_task(kind_of_task(*both)), num_envs=pool.n_envs)
        actor, stepper, device = open_networks(config, *both, network)
        ahead = 2 if is_ahead(config) else 1
        sampler = open_sampler(config, pool, actor, seed=config.seed, num_rollouts=ahead)
        workers = pool.num_workers
        note = f"{pool.n_envs} environments; {pool.reason}{threads_note(workers)}"
        return recipe_of(config, [sampler], stepper, device, note=note, num_workers=workers)
    except BaseException:
        pool.close()
        raise


def open_sampler(config: TrainConfig, pool: Pool, actor: Actor, **others: Any) -> PoolSampler:
    """Who plays in a pool; others: more of what a `PoolSampler` is told."""
    shared = {name: getattr(config, name) for name in ("gamma", "reward_scale", "noise_memory")}
    return PoolSampler(pool, actor, config.update_steps, **shared, **others)


def kind_of_task(obs_space: AnySpace, action_space: AnySpace) -> str:
    """`images`, `continuous` or `discrete`, as defaults have it."""
    if is_image(obs_space.shape or ()):
        return "images"
    return "continuous" if isinstance(action_space, spaces.Box) else "discrete"


def open_networks(
    config: TrainConfig,
    obs_space: AnySpace,
    action_space: AnySpace,
    network: Network | None,
) -> tuple[Actor, Stepper, str]:
    """An actor, a stepper, and the device of both."""
    is_normalised, threads = sees_normalised(config, obs_space), count_threads(config)
    actor: Actor
    stepper: Stepper
    if is_normalised:
        obs_space = spaces.Box(-BOUND, BOUND, obs_space.shape, np.float32)
    shape = obs_space.shape or ()
    if can_be_compiled(obs_space, action_space) and not plain_is_asked(config, network):
        deviation = None if isinstance(action_space, spaces.Discrete) else config.first_deviation
        size, outputs, seed = int(np.prod(shape)), count_outputs(action_space), config.seed
        policy = Policy(
            size, outputs, hidden=config.hidden, truth_size=0, seed=seed, deviation=deviation
        )
        stepper = CompiledStepper(policy, ThreadTeam(threads), config.minibatch_size)
        actor, device = CompiledActor(policy.copy()), "cpu"
    else:
        import_torch(config)
        from torch.nn import Module

        from phalanx.learn.torch.heads import TorchActor, head_for
        from phalanx.learn.torch.networks import EnvNetwork, build_own_network, find_device
        from phalanx.learn.torch.stepper import TorchStepper

        head, place = head_for(action_space), find_device(config.device)
        module: Module
        if network is None:
            module = EnvNetwork(obs_space, action_space, config.hidden, config.first_deviation)
        else:
            obs = np.zeros((2, *shape), obs_space.dtype)
            module = build_own_network(network, obs, 0, count_outputs(action_space))
        module.to(place)
        stepper = TorchStepper(module, head, threads, config.compile)
        actor, device = TorchActor(copy.deepcopy(module), head), place.type
    if is_normalised:
        shape = actor.prepare(np.zeros((1, *shape), np.float32)).shape[1:]
        actor, stepper = NormalisedActor(actor, shape), NormalisedStepper(stepper, shape)
    return actor, stepper, device


def sees_normalised(config: TrainConfig, obs_space: AnySpace) -> bool:
    """Vectors are normalised if that is asked for; images have a known range."""
    return config.normalizes_observation and is_vector(obs_space)


def is_vector(obs_space: AnySpace) -> bool:
    return isinstance(obs_space, spaces.Box) and not is_image(obs_space.shape)


def threads_note(workers: int) -> str:
    """How many threads each worker's libraries may start, and whether something outside differs."""
    if not workers:
        return ""
    wanted, given = max(1, count_cores() // workers), os.environ.get("OMP_NUM_THREADS")
    note = f"; threads per worker: {wanted}"
    if given not in (None, "", str(wanted)):
        note += f" (warning: OMP_NUM_THREADS={given} is set outside; the smaller number counts)"
    return note


def can_be_compiled(obs_space: AnySpace, action_space: AnySpace) -> bool:
    if isinstance(action_space, spaces.Discrete):
        return is_vector(obs_space) and bool(action_space.n <= LARGEST_COMPILED)
    is_point = isinstance(action_space, spaces.Box) and action_space.dtype.kind == "f"
    return is_vector(obs_space) and is_point


def open_pool(config: TrainConfig) -> Pool:
    wait_for = config.wait_for
    if wait_for != "all" and config.num_envs != "auto":
        wait_for = min(int(wait_for), int(config.num_envs))
    return make_pool(
        env_of(config),
        n_envs=config.num_envs,  # type: ignore[arg-type]
        num_workers=config.num_workers,  # type: ignore[arg-type]
        wait_for=wait_for,  # type: ignore[arg-type]
        seed=config.seed,
        infos=False,
        step_timeout=config.step_timeout,
        max_restarts=config.max_restarts,
    )


def env_of(config: TrainConfig) -> EnvSpec:
    """What the pool is to build."""
    if config.env != "cyborg":
        return cast(EnvSpec, config.env)  # what a function builds is tried first
    game = {name: value for name, value in game_of(config).items() if name != "scenario"}
    factory = partial(CyborgEnv, **game)
    factory.__qualname__ = config.env  # type: ignore[attr-defined]
    return factory
