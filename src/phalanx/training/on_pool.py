"""Any Gymnasium environment: worker processes, and networks for its spaces."""

import copy
import dataclasses
import os
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from phalanx.cage2.cyborg import CyborgEnv
from phalanx.compiled.team import ThreadTeam
from phalanx.envs.making import make_pool
from phalanx.envs.pool import Pool
from phalanx.learn.compiled.actor import CompiledActor, GaussianActor, is_image
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.normalise import BOUND, Intake, NormalisedActor, NormalisedStepper, Running
from phalanx.learn.pool_sampler import PoolSampler
from phalanx.machine import count_cores
from phalanx.training.config import TrainConfig
from phalanx.training.recipe import (
    Network,
    Recipe,
    count_threads,
    import_torch,
    is_ahead,
    open_learner,
    open_source,
    plain_is_asked,
)

LARGEST_COMPILED = 256  # actions


def on_pool(config: TrainConfig, network: Network | None, _first_index: int = 0) -> Recipe:
    """Compiled networks for vectors; torch for images, and for more actions than those take."""
    pool = open_pool(config)
    try:
        config = settled(config, pool)
        actor, stepper, device = open_networks(
            config, pool.single_observation_space, pool.single_action_space, network
        )
        sampler = PoolSampler(
            pool, actor, config.update_steps, gamma=config.gamma,
            reward_scale=config.reward_scale, seed=config.seed,
            num_rollouts=2 if is_ahead(config) else 1, noise_memory=config.noise_memory,
        )  # fmt: skip
        source, learner = open_source(config, [sampler]), open_learner(config, stepper)
    except BaseException:
        pool.close()
        raise
    note = f"{pool.n_envs} environments; {pool.reason}{threads_note(pool.num_workers)}"
    kinds, threads = (config.env_name,), count_threads(config)
    return Recipe(
        source, learner, device, threads, kinds, note, settled=config,
        num_workers=pool.num_workers, intake=open_intake(config, stepper),
    )  # fmt: skip


def settled(config: TrainConfig, pool: Pool) -> TrainConfig:
    """The settings with what was left to the environment: how many there are, its kind of task."""
    kind = kind_of_task(pool.single_observation_space, pool.single_action_space)
    config = config.for_task(kind)
    return dataclasses.replace(config, num_envs=pool.n_envs)


def kind_of_task(obs_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> str:
    """`images`, `continuous` or `discrete`, as defaults have it."""
    if is_image(obs_space.shape or ()):
        return "images"
    return "continuous" if isinstance(action_space, spaces.Box) else "discrete"


def open_intake(config: TrainConfig, stepper: Any) -> Intake | None:
    """What is kept up of observations and rewards, if anything is."""
    seen = stepper.seen if isinstance(stepper, NormalisedStepper) else None
    returns = Running() if config.normalizes_reward else None
    if seen is None and returns is None:
        return None
    in_order = config.runner == "local" and config.wait_for == "all"
    return Intake(seen, returns, config.gamma, in_order)


def open_networks(
    config: TrainConfig,
    obs_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
    network: Network | None,
) -> tuple[Any, Any, str]:
    """An actor, a stepper, and the device of both."""
    if not sees_normalised(config, obs_space):
        return _open_networks(config, obs_space, action_space, network)
    shown = spaces.Box(-BOUND, BOUND, obs_space.shape, np.float32)
    actor, stepper, device = _open_networks(config, shown, action_space, network)
    shape = actor.prepare(np.zeros((1, *shown.shape), shown.dtype)).shape[1:]
    return NormalisedActor(actor, shape), NormalisedStepper(stepper, shape), device


def sees_normalised(config: TrainConfig, obs_space: spaces.Space[Any]) -> bool:
    """Vectors are normalised if that is asked for; images have a known range."""
    return config.normalizes_observation and is_vector(obs_space)


def is_vector(obs_space: spaces.Space[Any]) -> bool:
    return isinstance(obs_space, spaces.Box) and not is_image(obs_space.shape)


def is_compiled(stepper: Any) -> bool:
    return isinstance(getattr(stepper, "inner", stepper), CompiledStepper)


def is_gaussian(stepper: Any) -> bool:
    """Whether a compiled stepper learns continuous actions."""
    return getattr(stepper, "inner", stepper).policy.deviation is not None


def _open_networks(
    config: TrainConfig,
    obs_space: spaces.Space[Any],
    action_space: spaces.Space[Any],
    network: Network | None,
) -> tuple[Any, Any, str]:
    threads = count_threads(config)
    if can_be_compiled(obs_space, action_space) and not plain_is_asked(config, network):
        width, team, rows = (
            int(np.prod(obs_space.shape or ())),
            ThreadTeam(threads),
            config.minibatch_size,
        )
        if isinstance(action_space, spaces.Discrete):
            policy = Policy(
                width, int(action_space.n), hidden=config.hidden, truth_size=0, seed=config.seed
            )
            return CompiledActor(policy.copy()), CompiledStepper(policy, team, rows), "cpu"
        policy = Policy(
            width, int(np.prod(action_space.shape or ())), hidden=config.hidden, truth_size=0,
            seed=config.seed, deviation=config.first_deviation,
        )  # fmt: skip
        return GaussianActor(policy.copy()), CompiledStepper(policy, team, rows), "cpu"
    import_torch(config)
    from phalanx.learn.torch.actor import TorchActor
    from phalanx.learn.torch.networks import EnvNetwork, count_outputs, head_for
    from phalanx.learn.torch.own_network import build_own_network
    from phalanx.learn.torch.stepper import TorchStepper
    from phalanx.learn.torch.weights import find_device

    head, device = head_for(action_space), find_device(config.device)
    module: Any
    if network is None:
        module = EnvNetwork(obs_space, action_space, config.hidden, config.first_deviation)
    else:
        obs = np.zeros((2, *(obs_space.shape or ())), obs_space.dtype)
        module = build_own_network(network, obs, 0, count_outputs(action_space))
    module.to(device)
    actor = TorchActor(copy.deepcopy(module), head)
    return actor, TorchStepper(module, head, threads, config.compile), device.type


def threads_note(workers: int) -> str:
    """How many threads each worker's libraries may start, and whether something outside differs."""
    if not workers:
        return ""
    wanted, given = max(1, count_cores() // workers), os.environ.get("OMP_NUM_THREADS")
    note = f"; threads per worker: {wanted}"
    if given not in (None, "", str(wanted)):
        note += f" (warning: OMP_NUM_THREADS={given} is set outside; the smaller number counts)"
    return note


def can_be_compiled(obs_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> bool:
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


def env_of(config: TrainConfig) -> Any:
    """What the pool is to build."""
    if config.env != "cyborg":
        return config.env
    factory: Any = partial(
        CyborgEnv, red_agent=config.red_agent, horizon=config.horizon, rules=config.rules,
        observation=config.observation,
    )  # fmt: skip
    factory.__qualname__ = config.env
    return factory
