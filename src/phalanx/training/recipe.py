"""From settings to who plays, who learns, and where: one builder for each way of running."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from phalanx.compiled.team import ThreadTeam
from phalanx.errors import ConfigError, MissingError
from phalanx.importing import find_named
from phalanx.learn.compiled.actor import CompiledActor
from phalanx.learn.compiled.mlp import use_one_thread_per_product
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.impala import Impala, ImpalaSettings
from phalanx.learn.normalise import Intake, NormalisedStepper, Running
from phalanx.learn.ppo import PPO, Learner, LossSettings, PPOSettings, Stepper
from phalanx.learn.rollout import Rollout, Sampler, columns_of, empty_rollout
from phalanx.machine import count_cores
from phalanx.training.config import TrainConfig
from phalanx.training.extension import Extension
from phalanx.training.scenario_config import HOSTS
from phalanx.training.sources import Ahead, InStep, Source, Workers

if TYPE_CHECKING:
    import torch.nn

Settings = TypeVar("Settings", PPOSettings, ImpalaSettings)
Network = Callable[[int, int, int], "torch.nn.Module"]  # of obs_size, truth_size, num_actions

# Each takes (config, network, first_index) and is imported when it is needed: Ray may be missing.
BUILDERS = {
    "cage2": "phalanx.training.on_cage2:on_cage2",
    "pool": "phalanx.training.on_pool:on_pool",
    "a3c": "phalanx.training.a3c_workers:on_shared_weights",
    "ray": "phalanx.cluster.samplers:on_ray",
}
SIZES = (256, 512, 1024, 2048, 4096)  # that `--n-envs auto` chooses from
NEAR = 0.97  # of the best speed: then the smaller one, which learns more often from as much
TRIAL_STEPS = 16
FEW = 2  # of anything that is compiled for; with one, an array's layout would be another kind


@dataclass(frozen=True)
class Recipe:
    """Who plays, who learns, and where they compute."""

    config: TrainConfig
    """the settings, with what was left to the environment"""
    source: Source
    """where rollouts come from: in step or ahead"""
    learner: Learner
    device: str
    threads: int
    note: str = ""
    """what was measured and chosen at the start"""
    leave: Callable[[], None] = lambda: None
    """what is to be done after the samplers are closed"""
    num_workers: int | None = None
    """processes that step environments, where there are such"""
    workers: Workers | None = None
    """the source again, if it learns by itself"""

    @property
    def sampler(self) -> Any:
        """The first, or only one: a `Sampler`, and whatever else one of its kind has."""
        return self.source.samplers[0]

    @cached_property
    def extension(self) -> Extension:
        """What the game adds."""
        if self.config.env != "cage2":
            return Extension(self.config)
        from phalanx.training.cage2_extension import Cage2Extension

        return Cage2Extension(self.config)

    @cached_property
    def intake(self) -> Intake:
        """Statistics of what is seen and rewarded, where that is normalised."""
        c, stepper = self.config, self.learner.stepper
        seen = stepper.seen if isinstance(stepper, NormalisedStepper) else None
        returns = Running() if c.normalizes_reward else None
        return Intake(seen, returns, c.gamma, c.runner == "local" and c.wait_for == "all")

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
    way = "cage2" if config.env == "cage2" else "a3c" if config.algo == "a3c" else "pool"
    module, _, build = BUILDERS["ray" if config.runner == "ray" else way].partition(":")
    return getattr(import_module(module), build)(config, network, first_index)


def choose_num_envs(
    config: TrainConfig, network: Network | None = None
) -> tuple[int, dict[int, float]]:
    """The smallest of a few sizes that is about as fast as the fastest, and turns/s of each."""
    speeds = {size: 0.0 for size in SIZES}
    recipes = {
        size: open_recipe(replace(config, num_envs=size, update_steps=TRIAL_STEPS), network)
        for size in SIZES
    }
    for attempt in range(3):  # the first compiles, the others are measured in turn
        for size, recipe in recipes.items():
            began = time.perf_counter()
            taken = recipe.learner.stepper.weights
            rollout = recipe.source.next(taken, attempt, recipe.extension.shaping(1.0))
            recipe.learner.update(rollout, config.learning_rate, config.entropy)
            speed = size * TRIAL_STEPS / (time.perf_counter() - began)
            speeds[size] = max(speeds[size], speed) if attempt else 0.0
    for recipe in recipes.values():
        recipe.close()
    best = max(speeds.values())
    return next(size for size in SIZES if speeds[size] >= NEAR * best), speeds


# --- compile all that a run will call before its clock starts, and while Ctrl-C ends it at once --
# Kernels are compiled when they are first called, so a few turns are played and learnt from, by
# other networks than the run's: none of its dice is thrown, none of its weights moves.


def compile_cage2(config: TrainConfig, network: Network | None) -> None:
    """Compile what a run on the compiled game calls in this process."""
    plain = plain_is_asked(config, network or find_network(config.network))
    if plain and config.learner == "compiled":
        return  # it will be refused
    few = replace(
        config,
        num_envs=FEW,
        num_envs_per_worker=None,
        num_samplers=1,
        update_steps=FEW,
        k_epochs=1,
        hidden=(FEW,),
        network=None,
        learner="torch" if plain else "compiled",
        compile=False,
    )
    recipe = open_recipe(few)
    try:
        recipe.sampler.set_weights(recipe.learner.stepper.weights(), 0)
        rollout = recipe.sampler.collect(recipe.extension.shaping(0.0))
        _learn(recipe.learner, rollout)
        if config.teacher is not None:
            recipe.learner.stepper.evaluate(rollout)
    finally:
        recipe.close()


def compile_networks(config: TrainConfig, stepper: Stepper) -> None:
    """Compile what acts in a pool and learns, if the run has compiled networks."""
    stepper = getattr(stepper, "inner", stepper)
    if not isinstance(stepper, CompiledStepper):
        return
    is_point, obs = stepper.policy.deviation is not None, np.zeros((FEW, FEW), np.float32)
    policy = Policy(
        FEW, FEW, hidden=(FEW,), truth_size=0, seed=0, deviation=1.0 if is_point else None
    )
    rollout = empty_rollout(FEW, obs, 0, 0 if is_point else FEW, obs[0] if is_point else None)
    for array in rollout:
        array[...] = np.ones((), array.dtype)
    actor = CompiledActor(policy)
    outputs, _values = actor.forward(obs)
    actor.draw(outputs, rollout.masks[0], actor.noise(np.random.default_rng(0), FEW))
    tried = CompiledStepper(policy, ThreadTeam(1), config.minibatch_size)
    _learn(open_learner(config, tried), rollout)


def _learn(learner: Learner, rollout: Rollout) -> None:
    """Also from chosen columns, whose arrays have another layout."""
    for one in (rollout, columns_of(rollout, np.arange(FEW))):
        learner.update(one, 0.0, 0.0)


# --- what builders share --------------------------------------------------------------------------


def plain_is_asked(config: TrainConfig, network: Network | None) -> bool:
    """Whether something needs plain torch instead of the compiled networks."""
    asked = config.learner == "torch" or config.compile or config.device == "cuda"
    return asked or network is not None or config.network == HOSTS


def import_torch(config: TrainConfig) -> None:
    """Make torch ready: one thread per operation, since slices go to threads of our own."""
    try:
        import torch
    except ImportError:
        raise MissingError("this needs torch: pip install 'phalanx[torch]'") from None
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)


def game_of(config: TrainConfig) -> dict[str, Any]:
    """The game that a run on CAGE-2 plays, as keyword arguments for whoever opens it."""
    names = ("red_agent", "horizon", "rules", "observation", "prior", "green", "scenario")
    return {name: getattr(config, name) for name in names}


def count_threads(config: TrainConfig) -> int:
    return count_cores() if config.num_threads == "auto" else int(config.num_threads)


def is_ahead(config: TrainConfig) -> bool:
    # Rows that are not waited for are an update old already: overlapping would make them too old.
    return config.algo == "impala" or (config.overlap and config.wait_for == "all")


def recipe_of(
    config: TrainConfig, samplers: Sequence[Sampler], stepper: Stepper, device: str, **others: Any
) -> Recipe:
    """Samplers that are asked for rollouts, in step or ahead, and a learner that takes them."""
    often = config.sync_every
    source = Ahead(samplers, often) if is_ahead(config) else InStep(samplers[0], often)
    learner, threads = open_learner(config, stepper), count_threads(config)
    return Recipe(config, source, learner, device, threads, **others)


def open_learner(config: TrainConfig, stepper: Stepper) -> PPO | Impala:
    if config.algo == "impala":
        return Impala(stepper, settings_of(ImpalaSettings, config), config.seed)
    return PPO(stepper, settings_of(PPOSettings, config), config.seed)


def find_network(name: str | None) -> Network | None:
    """`module:factory`, where factory(obs_size, truth_size, num_actions) makes a torch module."""
    return None if name in (None, HOSTS) else find_named("--network", str(name))


def settings_of(kind: type[Settings], config: TrainConfig) -> Settings:
    """The settings of an algorithm and of its loss, all by the names that they have in a run's."""
    loss = {name: getattr(config, name) for name in LossSettings._fields if hasattr(config, name)}
    own = {f.name: getattr(config, f.name) for f in fields(kind) if f.name != "loss"}
    return kind(**own, loss=LossSettings(**loss))
