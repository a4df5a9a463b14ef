"""CAGE-2 with plain torch: for GPUs, torch.compile and networks of your own."""

import copy

from phalanx.cage2.scenario import NUM_ACTIONS, RED_AGENTS
from phalanx.config import TrainConfig
from phalanx.learn.heads import Categorical
from phalanx.learn.module import ActorCritic
from phalanx.learn.plain import PlainSampler, PlainStepper, find_device
from phalanx.recipe import (
    Network,
    Recipe,
    count_threads,
    make_policy,
    open_batches,
    open_learner,
    open_source,
    sampler_options,
)


def on_cage2(config: TrainConfig, network: Network | None) -> Recipe:
    """Plain torch on the compiled game."""
    batches = open_batches(config)
    policy = make_policy(config, batches[0].shown.obs.shape[1])
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
