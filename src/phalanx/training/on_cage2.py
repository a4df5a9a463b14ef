"""The compiled CAGE-2: its networks, its orders, and the policies that play it."""

import copy
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.belief import BYTES_OF_BELIEF
from phalanx.cage2.rules.masks import useful_actions_in
from phalanx.cage2.rules.observation import observation_kind
from phalanx.cage2.rules.scoring import NO_ORDERS, Orders, make_orders
from phalanx.cage2.rules.sizes import observation_size
from phalanx.cage2.rules.world import Worlds, num_hosts_of
from phalanx.cage2.scenario.attackers import spec_there
from phalanx.cage2.scenario.names import CAGE2_NAME
from phalanx.cage2.scenario.several import open_scenarios
from phalanx.cage2.settings import DEFAULT_RED_AGENTS
from phalanx.cage2.workflow import NUM_ORDERS, parse_order
from phalanx.compiled.team import ThreadTeam
from phalanx.errors import ConfigError
from phalanx.learn.cage2.sampler import CompiledSampler
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.machine import total_memory
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
from phalanx.training.scenario_config import HOSTS

if TYPE_CHECKING:
    from phalanx.learn.cage2.torch_sampler import TorchSampler
    from phalanx.learn.torch.hosts import HostsNetwork
    from phalanx.learn.torch.stepper import TorchStepper

BESIDES = 10  # numbers of a step beside what is observed: action, reward, value, ...


def on_cage2(config: TrainConfig, network: Network | None, first_index: int = 0) -> Recipe:
    """Fused kernels on the CPU for the built-in networks; for others, and on GPUs, plain torch."""
    batches = open_batches(config, first_index)
    if batches[0].own_red is not None:
        batches[0].own_red.check_saved()
    is_alone = len(batches) == 1 and not is_ahead(config)
    stepper, device = open_stepper(config, network, batches[0].team if is_alone else None)
    samplers = [open_sampler(config, batch, stepper) for batch in batches]
    return recipe_of(config, samplers, stepper, device)


def open_stepper(
    config: TrainConfig, network: Network | None, team: ThreadTeam | None = None
) -> tuple["CompiledStepper | TorchStepper", str]:
    """Who computes steps: compiled, with torch, or of the user's own; and on what device.

    team: threads that nobody else uses meanwhile.
    """
    policy, threads = make_policy(config), count_threads(config)
    if not plain_is_asked(config, network):
        team = team or ThreadTeam(threads)
        return CompiledStepper(policy, team, config.minibatch_size, sparse=True), "cpu"
    import_torch(config)
    from torch.nn import Module

    from phalanx.learn.torch.heads import Categorical
    from phalanx.learn.torch.networks import ActorCritic, build_own_network, find_device
    from phalanx.learn.torch.stepper import TorchStepper

    device = find_device(config.device)
    module: Module = ActorCritic(policy.wide())
    if config.network == HOSTS:
        module = hosts_network(config, worlds_of_run(config))
    elif network is not None:
        obs = np.zeros((2, policy.obs_size), np.float32)
        module = build_own_network(network, obs, policy.truth_size, policy.num_actions)
    module.to(device)
    return TorchStepper(module, Categorical(), threads, config.compile), device.type


def open_sampler(
    config: TrainConfig, batch: Batch, stepper: "CompiledStepper | TorchStepper"
) -> "CompiledSampler | TorchSampler":
    """Who plays, with a copy of the stepper's networks."""
    turns, options = config.update_steps, sampler_options(config, batch)
    if isinstance(stepper, CompiledStepper):
        foresight = bool(config.foresight)
        return CompiledSampler(batch, stepper.policy.copy(), turns, foresight=foresight, **options)
    from phalanx.learn.cage2.torch_sampler import TorchSampler

    truth_size = policy_sizes(config)["truth_size"]
    return TorchSampler(
        batch, copy.deepcopy(stepper.module), turns, truth_size=truth_size, **options
    )


def check_memory(config: TrainConfig) -> None:
    """Refuse rollouts that this machine cannot hold, before minutes are spent on trying."""
    sizes = policy_sizes(config)
    width = sizes["obs_size"] + sizes["truth_size"] + BESIDES
    each = config.update_steps * width * 4 * (1 + is_ahead(config))
    if config.observation in ("belief", "truth"):
        each += BYTES_OF_BELIEF
    needed = int(config.num_envs) * each
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
            **game_of(config),
            reward=config.reward,
            by_host=by_host(config),
            seed=config.seed,
            first_index=first_index + low,
            num_threads=threads if samplers == 1 else 1,
        )
        for low, high in pairwise(edges)
    ]


def make_policy(config: TrainConfig) -> Policy:
    """Networks of the sizes that a run on CAGE-2 has, with outputs for what can be chosen only."""
    choices = np.flatnonzero(chosen_actions(config, worlds_of_run(config)))
    return Policy(**policy_sizes(config), choices=choices, seed=config.seed)


def by_host(config: TrainConfig) -> bool | None:
    """Whether observations have as many numbers for each host; None: as usual (see Batch)."""
    return True if config.network == HOSTS else None


def with_attackers(config: TrainConfig) -> TrainConfig:
    """Of the usual attackers, those that find their way on the run's networks."""
    if config.env != "cage2" or config.scenario == CAGE2_NAME:
        return config
    members = open_scenarios(config.scenario).members
    if config.red_agent != DEFAULT_RED_AGENTS:
        return config
    return replace(config, red_agent=spec_there(config.red_agent, members))


def worlds_of_run(config: TrainConfig) -> Worlds:
    """The networks that a run plays on."""
    return open_scenarios(config.scenario).worlds(by_host(config))


class Sizes(TypedDict):
    """Of a policy's networks."""

    obs_size: int
    num_actions: int
    hidden: tuple[int, ...]
    truth_size: int


def policy_sizes(config: TrainConfig) -> Sizes:
    """Those that its files have, with an output for each action."""
    worlds = worlds_of_run(config)
    shown = observation_size(observation_kind(config.observation), worlds)
    return {
        "obs_size": shown + condition_size(config),
        "num_actions": int(worlds["num_actions"][0]),
        "hidden": config.hidden,
        "truth_size": 3 * num_hosts_of(worlds) if config.critic_truth else 0,
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


def sampler_options(config: TrainConfig, batch: Batch) -> dict[str, object]:
    return {
        "useful": chosen_actions(config, batch.worlds),
        "effective": leaves_out_vain(config),
        "condition": np.tile(np.array(config.condition, np.float32), (batch.num_envs, 1)),
        "orders": orders_of(config),
        "num_rollouts": 2 if is_ahead(config) else 1,
    }


def chosen_actions(config: TrainConfig, worlds: Worlds) -> npt.NDArray[np.bool_]:
    """bool [actions]: those that a policy may play on these networks."""
    if config.actions == "all":
        return np.ones(int(worlds["num_actions"][0]), np.bool_)
    return useful_actions_in(worlds)


def leaves_out_vain(config: TrainConfig) -> bool:
    """Whether a policy never plays what its belief says is in vain."""
    return config.actions == "effective" and config.observation in ("belief", "truth")


def hosts_network(config: TrainConfig, worlds: Worlds) -> "HostsNetwork":
    """The network that shares weights over hosts, for these networks."""
    from phalanx.learn.torch.hosts import HostsNetwork

    sizes = {"truth_size": policy_sizes(config)["truth_size"], "told": condition_size(config)}
    kind = observation_kind(config.observation)
    return HostsNetwork(kind, worlds, config.hidden, **sizes)
