"""Play episodes of a Gymnasium environment with a policy that was trained on it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.learn.pool_sampler import Scale
from phalanx.training.checkpoint import last_checkpoint, read_facts
from phalanx.training.on_pool import open_pool
from phalanx.training.recipe import Network
from phalanx.training.saved_networks import load_networks, saved_config
from phalanx.trust import check_named

SIDE_BY_SIDE = 16  # environments


def play_env(
    path: Path,
    env: str | Callable[[], Any] | None,
    episodes: int,
    seed: int,
    sample: bool,
    network: Network | None,
    played: Callable[[int, float], None],
) -> npt.NDArray[np.float64]:
    """Returns of so many episodes, as many in each environment: short ones are not preferred.

    env: the environment, if it is code of the user's, which a file cannot name.
    """
    path = last_checkpoint(path)
    facts, _ = read_facts(path)
    trained = saved_config(path, facts)
    check_named(facts["config"], {"env": env, "network": network}, path)
    n_envs = min(SIDE_BY_SIDE, episodes)
    config = replace(
        trained, env=env or trained.env, num_envs=n_envs, num_envs_per_worker=None,
        seed=seed, wait_for="all", network=None,
    )  # fmt: skip
    random, returns = np.random.default_rng([seed, 4]), [list[float]() for _ in range(n_envs)]
    wanted = [len(range(i, episodes, n_envs)) for i in range(n_envs)]
    with open_pool(config) as pool:
        spaces = pool.single_observation_space, pool.single_action_space
        actor, _ = load_networks(path, config, *spaces, network)
        scale = Scale(pool.single_action_space)
        pool.reset()
        while any(len(own) < count for own, count in zip(returns, wanted, strict=True)):
            arrived = pool.recv()
            for i in np.flatnonzero(arrived.terminated | arrived.truncated):
                if not arrived.lost[i] and len(returns[i]) < wanted[i]:
                    returns[i].append(float(arrived.episode_returns[i]))
                    played(1, float(np.mean([value for own in returns for value in own])))
            outputs, _values = actor.forward(actor.prepare(arrived.obs))
            masks = arrived.action_masks
            if masks is None:
                masks = np.ones((n_envs, _count(pool.single_action_space)), np.bool_)
            if sample:
                actions, _log_probs = actor.draw(outputs, masks, actor.noise(random, n_envs))
            else:
                actions = actor.best(outputs, masks)
            pool.send(scale(actions), arrived.env_ids)
    return np.array([value for own in returns for value in own])


def _count(space: Any) -> int:
    return int(getattr(space, "n", 0))
