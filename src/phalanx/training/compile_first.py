"""Compile all that a run will call before its clock starts, and while Ctrl-C ends it at once.

Kernels are compiled when they are first called, so a few turns are played and learnt from, by other
networks than the run's: none of its dice is thrown, none of its weights moves.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from phalanx.compiled.team import ThreadTeam
from phalanx.learn.compiled.actor import CompiledActor, GaussianActor
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.learn.rollout import Rollout, columns_of, empty_rollout
from phalanx.training.builders import open_recipe
from phalanx.training.config import TrainConfig
from phalanx.training.recipe import Network, find_network, open_learner, plain_is_asked

FEW = 2  # of anything; with one, an array's layout would be another kind


def compile_cage2(config: TrainConfig, network: Network | None) -> None:
    """What a run on the compiled game calls in this process."""
    plain = plain_is_asked(config, network or find_network(config.network))
    if plain and config.learner == "compiled":
        return  # it will be refused
    few = replace(
        config, num_envs=FEW, num_envs_per_worker=None, update_steps=FEW, num_samplers=1,
        hidden=(FEW,), k_epochs=1, network=None, learner="torch" if plain else "compiled",
        compile=False,
    )  # fmt: skip
    recipe = open_recipe(few)
    try:
        recipe.sampler.set_weights(recipe.learner.stepper.weights(), 0)
        rollout = recipe.sampler.collect(recipe.extension.shaping(0.0))
        _learn(recipe.learner, rollout)
    finally:
        recipe.close()


def compile_networks(config: TrainConfig, points: bool = False) -> None:
    """What plays in a pool, and learns, with compiled networks of any size.

    points: with continuous actions.
    """
    obs, rows = np.zeros((FEW, FEW), np.float32), config.minibatch_size
    deviation = 1.0 if points else None
    policy = Policy(FEW, FEW, hidden=(FEW,), truth_size=0, seed=0, deviation=deviation)
    actor = GaussianActor(policy) if points else CompiledActor(policy)
    stepper = CompiledStepper(policy, ThreadTeam(1), rows)
    rollout = empty_rollout(FEW, obs, 0, 0 if points else FEW, obs[0] if points else None)
    for array in rollout:
        array[...] = np.ones((), array.dtype)
    seen, _values = actor.forward(obs)
    actor.draw(seen, rollout.masks[0], actor.noise(np.random.default_rng(0), FEW))
    _learn(open_learner(config, stepper), rollout)


def _learn(learner: Any, rollout: Rollout) -> None:
    """Also from chosen columns, whose arrays have another layout."""
    for one in (rollout, columns_of(rollout, np.arange(FEW))):
        learner.update(one, 0.0, 0.0)
