"""From settings to a sampler and a learner: which networks, on what device, with what rewards."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.observation import OBS_SIZES, TRUTH_SIZE
from phalanx.cage2.rules.scenario import HORIZONS, NUM_ACTIONS, useful_actions
from phalanx.cage2.rules.scoring import FIXES, NO_ORDERS, Orders, make_orders
from phalanx.cage2.settings import kinds_of_episodes
from phalanx.cage2.workflow import NUM_ORDERS, parse_order
from phalanx.compiled.team import ThreadTeam
from phalanx.errors import ConfigError, MissingError
from phalanx.importing import import_from_here
from phalanx.learn.compiled.blas import use_one_thread_per_product
from phalanx.learn.compiled.collect import Shaping
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.gate import Gate
from phalanx.learn.impala import Impala, ImpalaSettings
from phalanx.learn.normalise import Intake
from phalanx.learn.ppo import PPO, PPOSettings
from phalanx.learn.sampler import CompiledSampler
from phalanx.learn.stepper import Stepper
from phalanx.machine import count_cores, total_memory
from phalanx.training.config import TrainConfig
from phalanx.training.sources import Ahead, InStep

Network = Callable[[int, int, int], Any]  # (obs_size, truth_size, num_actions) -> torch module
SIZES = (256, 512, 1024, 2048, 4096)  # that `--n-envs auto` chooses from
FIRST_PRICE = 0.1  # `--alignment gate` begins with so much of lambda / 20
NEAR = 0.97  # of the best speed: then the smaller one, which learns more often from as much


@dataclass(frozen=True)
class Recipe:
    """Who plays, who learns, and where they compute."""

    source: Any
    """where rollouts come from: in step or ahead"""
    learner: Any
    device: str
    threads: int
    kinds: tuple[str, ...]
    """of episodes, that are reported apart: the attackers of CAGE-2"""
    note: str = ""
    """what was measured and chosen at the start"""
    leave: Callable[[], None] = lambda: None
    """what is to be done after the samplers are closed"""
    settled: TrainConfig | None = None
    """the settings, where some were left to the environment"""
    num_workers: int | None = None
    """processes that step them, where there are such"""
    intake: Intake | None = None
    """statistics of what is seen and rewarded, where that is normalised"""

    @property
    def sampler(self) -> Any:
        return self.source.samplers[0]

    def close(self) -> None:
        try:
            self.source.close()
        finally:
            self.leave()


def open_recipe(
    config: TrainConfig, network: Network | None = None, first_index: int = 0
) -> Recipe:
    """All that a run needs to play and learn.

    first_index: of its networks, if they are part of a larger batch.
    """
    use_one_thread_per_product()
    network = network or find_network(config.network)
    if config.learner == "compiled" and plain_is_asked(config, network):
        raise ConfigError(
            "--learner compiled has the built-in networks on the CPU only; leave out --network, "
            "--compile and --device cuda, or give --learner torch"
        )
    if config.runner == "ray":
        from phalanx.cluster.samplers import on_ray

        return on_ray(config, network)
    if config.env != "cage2":
        if config.algo == "a3c":
            from phalanx.training.a3c_workers import on_shared_weights

            return on_shared_weights(config, network)
        from phalanx.training.on_pool import on_pool

        return on_pool(config, network)
    if not plain_is_asked(config, network):
        return _compiled(config, first_index)
    import_torch(config)
    from phalanx.training.on_torch import on_cage2

    return on_cage2(config, network, first_index)


def plain_is_asked(config: TrainConfig, network: Network | None) -> bool:
    """Whether something needs plain torch instead of the compiled networks."""
    asked = config.learner == "torch" or config.compile or config.device == "cuda"
    return asked or network is not None


def import_torch(config: TrainConfig) -> None:
    """Make torch ready: one thread per operation, since slices go to threads of our own."""
    try:
        import torch
    except ImportError:
        raise MissingError("this needs torch: pip install 'phalanx[torch]'") from None
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)


def count_threads(config: TrainConfig) -> int:
    return count_cores() if config.num_threads == "auto" else int(config.num_threads)


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


def open_gate(config: TrainConfig) -> Gate | None:
    if config.workflow is None or config.alignment != "gate":
        return None
    first_price = FIRST_PRICE * config.alignment_lambda / FIXES
    return Gate(config.compliance_threshold, first_price, config.gate_start)


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


def is_ahead(config: TrainConfig) -> bool:
    # Rows that are not waited for are an update old already: overlapping would make them too old.
    return config.algo == "impala" or (config.overlap and config.wait_for == "all")


def open_source(config: TrainConfig, samplers: list[Any]) -> InStep | Ahead:
    if is_ahead(config):
        return Ahead(samplers, config.sync_every)
    return InStep(samplers[0], config.sync_every)


def open_learner(config: TrainConfig, stepper: Stepper) -> PPO | Impala:
    if config.algo == "impala":
        return Impala(stepper, impala_settings(config), config.seed)
    return PPO(stepper, ppo_settings(config), config.seed)


def _compiled(config: TrainConfig, first_index: int) -> Recipe:
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
    return Recipe(source, open_learner(config, stepper), "cpu", threads, kinds)


def find_network(name: str | None) -> Network | None:
    """`module:factory`, where factory(obs_size, truth_size, num_actions) makes a torch module."""
    if name is None:
        return None
    place, _, factory = name.partition(":")
    try:
        return getattr(import_from_here(place), factory)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"cannot find --network {name} ({error}); give module:factory, importable from here"
        ) from None


def chosen_actions(name: str) -> npt.NDArray[np.bool_]:
    return useful_actions() if name == "useful" else np.ones(NUM_ACTIONS, np.bool_)


# --- rewards and schedules ------------------------------------------------------------------------


def progress_of(
    config: TrainConfig, updates: int, episodes: int, steps: int, elapsed_s: float
) -> float:
    """How much of a run is done, 0 to 1: of its budget or of its time, whichever ends it first."""
    if config.env == "cage2" and config.algo == "ppo":
        done = updates / config.total_updates
    elif config.total_steps is not None:
        done = steps / config.total_steps
    elif config.env == "cage2":
        done = steps / (int(config.total_episodes or 1) * config.horizon)
    else:
        done = episodes / int(config.total_episodes or 1)
    if config.duration is not None:
        done = max(done, elapsed_s / (3600 * config.duration))
    return min(1.0, done)


def learning_rate_at(config: TrainConfig, progress: float) -> float:
    return config.learning_rate + (config.final_learning_rate - config.learning_rate) * progress


def entropy_weight_at(config: TrainConfig, progress: float) -> float:
    return config.entropy + (config.final_entropy - config.entropy) * progress


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
    return PPOSettings(**_pass_settings(config))


def impala_settings(config: TrainConfig) -> ImpalaSettings:
    return ImpalaSettings(
        **_pass_settings(config),
        rho_bar=config.rho_bar,
        c_bar=config.c_bar,
        pg_rho_bar=config.pg_rho_bar,
    )


def _pass_settings(config: TrainConfig) -> dict[str, Any]:
    names = (
        "minibatch_size", "gae_lambda", "clip", "value_weight", "max_grad_norm", "target_kl",
    )  # fmt: skip
    return {"epochs": config.k_epochs, **{name: getattr(config, name) for name in names}}


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
            taken = recipe.learner.stepper.weights
            rollout = recipe.source.next(taken, attempt, shaping(config, weights, 1.0))
            recipe.learner.update(rollout, config.learning_rate, config.entropy)
            speed = size * TRIAL_STEPS / (time.perf_counter() - began)
            speeds[size] = max(speeds[size], speed) if attempt else 0.0
    for recipe in recipes.values():
        recipe.close()
    best = max(speeds.values())
    return next(size for size in SIZES if speeds[size] >= NEAR * best), speeds


TRIAL_STEPS = 16
BESIDES = 10  # numbers of a step beside what is observed: action, reward, value, ...
