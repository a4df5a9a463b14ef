"""Play episodes of a Gymnasium environment with a policy that was trained on it."""

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.checkpoint import last_checkpoint, load_checkpoint
from phalanx.config import TrainConfig
from phalanx.errors import CheckpointError
from phalanx.learn.compiled import CompiledStepper
from phalanx.pool_recipe import open_networks, open_pool
from phalanx.recipe import Network

SIDE_BY_SIDE = 16  # environments


def trained_on(path: Path) -> TrainConfig:
    """The settings that a checkpoint was trained with."""
    _, facts = load_checkpoint(last_checkpoint(path))
    known = {item.name for item in fields(TrainConfig)}
    try:
        given = {name: value for name, value in facts["config"].items() if name in known}
        for name in ("hidden", "condition"):
            given[name] = tuple(given.get(name, ()))
        return TrainConfig(**given)
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is no checkpoint of a training run ({error})") from None


def play_env(
    path: Path,
    episodes: int,
    seed: int,
    sample: bool,
    network: Network | None,
    played: Callable[[int, float], None],
) -> npt.NDArray[np.float64]:
    """Returns of so many episodes, as many in each environment: short ones are not preferred."""
    arrays, _ = load_checkpoint(last_checkpoint(path))
    n_envs = min(SIDE_BY_SIDE, episodes)
    config = replace(trained_on(path), num_envs=n_envs, seed=seed, wait_for="all", network=None)
    random, returns = np.random.default_rng([seed, 4]), [list[float]() for _ in range(n_envs)]
    wanted = [len(range(i, episodes, n_envs)) for i in range(n_envs)]
    with open_pool(config) as pool:
        actor, stepper, _ = open_networks(
            config, pool.single_observation_space, pool.single_action_space, network
        )
        if isinstance(stepper, CompiledStepper):
            if "theta" not in arrays:
                raise CheckpointError(
                    f"{path} holds a network of your own; say which: --network module:factory"
                )
            if arrays["theta"].shape != stepper.policy.theta.shape:
                raise CheckpointError(f"{path}: the weights do not fit the environment")
            stepper.policy.theta[:] = arrays["theta"]
        else:
            from phalanx.learn.plain import set_weights

            set_weights(stepper.module, arrays)
        actor.take(stepper.weights())
        pool.reset()
        while any(len(own) < count for own, count in zip(returns, wanted, strict=True)):
            arrived = pool.recv()
            for i in np.flatnonzero(arrived.terminated | arrived.truncated):
                if not arrived.lost[i] and len(returns[i]) < wanted[i]:
                    returns[i].append(float(arrived.episode_returns[i]))
                    played(1, float(np.mean([value for own in returns for value in own])))
            outputs, _values = actor.see(actor.prepare(arrived.obs))
            masks = arrived.action_masks
            if masks is None:
                masks = np.ones((n_envs, _count(pool.single_action_space)), np.bool_)
            draw = actor.draw if sample else actor.best
            pool.send(scaled(pool, draw(outputs, masks, random)), arrived.env_ids)
    return np.array([value for own in returns for value in own])


def _count(space: Any) -> int:
    return int(getattr(space, "n", 0))


def scaled(pool: Any, drawn: Any) -> Any:
    """Drawn actions as the environment takes them."""
    from phalanx.learn.pool_sampler import Scale

    actions = drawn[0] if isinstance(drawn, tuple) else drawn
    return Scale(pool.single_action_space)(actions)
