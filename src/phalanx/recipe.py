"""From settings to a sampler and a learner: which networks, on what device, with what rewards."""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.scenario import HORIZONS, NUM_ACTIONS, useful_actions
from phalanx.cage2.settings import count_cores
from phalanx.config import TrainConfig
from phalanx.errors import ConfigError, MissingError
from phalanx.learn.blas import use_one_thread_per_product
from phalanx.learn.collect import TRUTH_SIZE, Shaping
from phalanx.learn.policy import Policy
from phalanx.learn.ppo import CompiledPPO, PPOSettings
from phalanx.learn.sampler import CompiledSampler

Network = Callable[[int, int, int], Any]  # (obs_size, truth_size, num_actions) -> torch module
SIZES = (256, 512, 1024, 2048, 4096)  # that `--n-envs auto` chooses from
NEAR = 0.97  # of the best speed: then the smaller one, which learns more often from as much


@dataclass(frozen=True)
class Recipe:
    """A sampler and a learner that share their weights, and where they compute."""

    sampler: Any
    learner: Any
    device: str


def open_recipe(config: TrainConfig, network: Network | None = None) -> Recipe:
    """The compiled pair, or the plain torch one for CUDA, `--compile` and networks of your own."""
    use_one_thread_per_product()
    threads = count_cores() if config.num_threads == "auto" else int(config.num_threads)
    batch = Batch(
        int(config.num_envs),
        red_agent=config.red_agent,
        horizon=config.horizon,
        rules=config.rules,
        observation=config.observation,
        seed=config.seed,
        num_threads=threads,
    )
    truth_size = TRUTH_SIZE if config.critic_truth else 0
    obs_size = batch.shown.obs.shape[1] + len(config.condition)
    policy = Policy(
        obs_size, NUM_ACTIONS, hidden=config.hidden, truth_size=truth_size, seed=config.seed
    )
    options: dict[str, Any] = {
        "useful": chosen_actions(config.actions),
        "condition": np.tile(np.array(config.condition, np.float32), (batch.num_envs, 1)),
    }
    settings = ppo_settings(config)
    network = network or find_network(config.network)
    plain_asked = network or config.compile or config.device == "cuda"
    if config.learner == "compiled" and plain_asked:
        raise ConfigError(
            "--learner compiled plays the built-in networks on the CPU; leave out --network, "
            "--compile and --device cuda, or give --learner torch"
        )
    if not plain_asked and config.learner != "torch":
        sampler = CompiledSampler(batch, policy, config.update_steps, **options)
        return Recipe(sampler, CompiledPPO(policy, settings, batch.crew, config.seed), "cpu")
    try:
        import torch

        from phalanx.learn import module, plain
    except ImportError:
        raise MissingError("this needs torch: pip install 'phalanx[torch]'") from None
    device = plain.find_device(config.device)
    torch.set_num_threads(1)  # slices go to threads of our own
    torch.manual_seed(config.seed)
    net = module.ActorCritic(policy) if network is None else network(*_shapes(policy))
    net.to(device)
    return Recipe(
        plain.PlainSampler(batch, net, config.update_steps, truth_size=truth_size, **options),
        plain.PlainPPO(net, settings, config.seed, threads, config.compile),
        device.type,
    )


def _shapes(policy: Policy) -> tuple[int, int, int]:
    return policy.obs_size, policy.truth_size, NUM_ACTIONS


def find_network(name: str | None) -> Network | None:
    """`module:factory`, where factory(obs_size, truth_size, num_actions) makes a torch module."""
    if name is None:
        return None
    place, _, factory = name.partition(":")
    try:
        return getattr(importlib.import_module(place), factory)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"cannot find --network {name} ({error}); give module:factory, importable from here"
        ) from None


def chosen_actions(name: str) -> npt.NDArray[np.bool_]:
    return useful_actions() if name == "useful" else np.ones(NUM_ACTIONS, np.bool_)


# --- rewards and schedules ------------------------------------------------------------------------


def turn_weights(config: TrainConfig) -> npt.NDArray[np.float32]:
    """What a reward counts in each turn: for the leaderboard, once per horizon that includes it."""
    turns = np.arange(config.horizon)
    if config.turn_weights == "leaderboard":
        return np.sum([turns < horizon for horizon in HORIZONS], axis=0).astype(np.float32)
    return np.ones(config.horizon, np.float32)


def restore_price(config: TrainConfig, progress: float) -> float:
    """Restore is cheap at first, so that the learner tries it; its true price comes in time."""
    if progress >= config.restore_curriculum:
        return 1.0
    return 0.2 + 0.8 * progress / config.restore_curriculum


def shaping(config: TrainConfig, weights: npt.NDArray[np.float32], progress: float) -> Shaping:
    """The learner's rewards at this point of the run."""
    # Under the leaderboard's weights nothing counts after the last horizon: there it is over.
    over = config.turn_weights == "leaderboard" and config.horizon >= max(HORIZONS)
    return Shaping(
        weights,
        1 - restore_price(config, progress),
        config.reward_scale,
        config.gamma,
        0.0 if over else config.gamma,
    )


def ppo_settings(config: TrainConfig) -> PPOSettings:
    return PPOSettings(
        epochs=config.k_epochs,
        minibatch_size=config.minibatch_size,
        gae_lambda=config.gae_lambda,
        clip=config.clip,
        value_weight=config.value_weight,
        max_grad_norm=config.max_grad_norm,
        target_kl=config.target_kl,
    )


# --- how many networks ----------------------------------------------------------------------------


def choose_num_envs(
    config: TrainConfig, network: Network | None = None
) -> tuple[int, dict[int, float]]:
    """The smallest of a few sizes that is about as fast as the fastest, and turns/s of each."""
    speeds = {size: 0.0 for size in SIZES}
    recipes = {
        size: open_recipe(replace(config, num_envs=size, update_steps=TRIAL_STEPS), network)
        for size in SIZES
    }
    weights = turn_weights(config)
    for attempt in range(3):  # the first compiles, the others are measured in turn
        for size, recipe in recipes.items():
            began = time.perf_counter()
            rollout = recipe.sampler.collect(shaping(config, weights, 1.0))
            recipe.learner.update(rollout, config.learning_rate, config.entropy)
            speed = size * TRIAL_STEPS / (time.perf_counter() - began)
            speeds[size] = max(speeds[size], speed) if attempt else 0.0
    for recipe in recipes.values():
        recipe.sampler.batch.close()
    best = max(speeds.values())
    return next(size for size in SIZES if speeds[size] >= NEAR * best), speeds


TRIAL_STEPS = 16
