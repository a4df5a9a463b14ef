"""CAGE-2 with plain torch: for GPUs, torch.compile and networks of your own."""

import copy

import numpy as np
from torch import nn

from phalanx.cage2.rules.scenario import NUM_ACTIONS
from phalanx.cage2.settings import kinds_of_episodes
from phalanx.learn.cage2.torch_sampler import TorchSampler
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.torch.heads import Categorical
from phalanx.learn.torch.module import ActorCritic
from phalanx.learn.torch.own_network import build_own_network
from phalanx.learn.torch.stepper import TorchStepper
from phalanx.learn.torch.weights import find_device
from phalanx.training.cage2_extension import Cage2Extension
from phalanx.training.config import TrainConfig
from phalanx.training.on_cage2 import make_policy, open_batches, sampler_options
from phalanx.training.recipe import (
    Network,
    Recipe,
    count_threads,
    import_torch,
    open_learner,
    open_source,
)


def on_torch(config: TrainConfig, network: Network | None, first_index: int = 0) -> Recipe:
    """Plain torch on the compiled game."""
    batches = open_batches(config, first_index)
    policy = make_policy(config)
    stepper, device = open_module_stepper(config, policy, network)
    samplers = [
        TorchSampler(
            batch, copy.deepcopy(stepper.module), config.update_steps, truth_size=policy.truth_size,
            **sampler_options(config, batch),
        )
        for batch in batches
    ]  # fmt: skip
    source, learner = open_source(config, samplers), open_learner(config, stepper)
    kinds = kinds_of_episodes(config.red_agent)
    extension = Cage2Extension(config)
    return Recipe(source, learner, device, count_threads(config), kinds, extension=extension)


def open_module_stepper(
    config: TrainConfig, policy: Policy, network: Network | None
) -> tuple[TorchStepper, str]:
    """The built-in networks as a torch module, or one of the user's own; and its device."""
    import_torch(config)
    device = find_device(config.device)
    module: nn.Module = ActorCritic(policy)
    if network is not None:
        obs = np.zeros((2, policy.obs_size), np.float32)
        module = build_own_network(network, obs, policy.truth_size, NUM_ACTIONS)
    module.to(device)
    stepper = TorchStepper(module, Categorical(), count_threads(config), config.compile)
    return stepper, device.type
