"""From settings to a recipe: one builder for each way of running."""

import time
from dataclasses import replace
from importlib import import_module

from phalanx.errors import ConfigError
from phalanx.learn.compiled.blas import use_one_thread_per_product
from phalanx.training.config import TrainConfig
from phalanx.training.recipe import Network, Recipe, find_network, import_torch, plain_is_asked

# Each takes (config, network, first_index) and is imported when it is needed: torch and Ray may be
# missing.
BUILDERS = {
    "cage2": "phalanx.training.on_cage2:on_cage2",
    "torch": "phalanx.training.on_torch:on_torch",
    "pool": "phalanx.training.on_pool:on_pool",
    "a3c": "phalanx.training.a3c_workers:on_shared_weights",
    "ray": "phalanx.cluster.samplers:on_ray",
}
SIZES = (256, 512, 1024, 2048, 4096)  # that `--n-envs auto` chooses from
NEAR = 0.97  # of the best speed: then the smaller one, which learns more often from as much
TRIAL_STEPS = 16


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
    way = way_of_running(config, network)
    if way == "torch":
        import_torch(config)
    module, _, build = BUILDERS[way].partition(":")
    return getattr(import_module(module), build)(config, network, first_index)


def way_of_running(config: TrainConfig, network: Network | None) -> str:
    if config.runner == "ray":
        return "ray"
    if config.env != "cage2":
        return "a3c" if config.algo == "a3c" else "pool"
    return "torch" if plain_is_asked(config, network) else "cage2"


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
