"""Play episodes of a Gymnasium environment with a policy that was trained on it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from phalanx.learn.pool_sampler import Scale
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.training.checkpoint import read_facts
from phalanx.training.on_pool import open_pool
from phalanx.training.recipe import Network
from phalanx.training.saved_networks import load_networks, saved_config
from phalanx.trust import check_named

SIDE_BY_SIDE = 16  # environments


def play_env(
    asked: EvaluateConfig,
    name: str,
    network: Network | None,
    played: Callable[[int, float], None],
) -> npt.NDArray[np.float64]:
    """Returns of the episodes, as many in each environment: short ones are not preferred."""
    path, episodes = asked.checkpoints[name], asked.episodes
    facts, _ = read_facts(path)
    trained = saved_config(path, facts)
    check_named(facts["config"], {"env": asked.env, "network": network}, path)
    n_envs = min(SIDE_BY_SIDE, episodes)
    config = replace(
        trained,
        env=asked.env or trained.env,
        num_envs=n_envs,
        num_envs_per_worker=None,
        seed=asked.seed,
        wait_for="all",
        network=None,
    )
    random = np.random.default_rng([asked.seed, 4])
    returns = [list[float]() for _ in range(n_envs)]
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
                count = int(getattr(pool.single_action_space, "n", 0))
                masks = np.ones((n_envs, count), np.bool_)
            if asked.sample:
                actions, _log_probs = actor.draw(outputs, masks, actor.noise(random, n_envs))
            else:
                actions = actor.best(outputs, masks)
            pool.send(scale(actions), arrived.env_ids)
    return np.array([value for own in returns for value in own])
