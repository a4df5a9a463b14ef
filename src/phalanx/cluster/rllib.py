"""The game's names in Ray RLlib."""

import inspect
from collections.abc import Mapping
from typing import Any

from gymnasium.vector import AutoresetMode

from phalanx.cage2.env import Cage2Env
from phalanx.cage2.registration import ENV_ID
from phalanx.cage2.vector import Cage2VectorEnv
from phalanx.errors import ConfigError, MissingError, choices

NAMES = ("CAGE2", ENV_ID)
SETTINGS = tuple(name for name in inspect.signature(Cage2Env).parameters if name != "seed")


def register() -> None:
    """Let RLlib find the game, in all of its processes.

    phalanx.cluster.rllib.register()
    PPOConfig().environment("CAGE2", env_config={"red_agent": "meander", "horizon": 30})

    env_config: the settings of `Cage2Env`. With env_runners(gym_env_vectorize_mode=
        "vector_entry_point") the environments of a runner are one compiled batch.
    """
    try:
        from ray.tune.registry import register_env
    except ImportError as error:
        raise MissingError(f"no RLlib here ({error}): pip install 'phalanx[ray]'") from None
    for name in NAMES:
        register_env(name, make_env)


def make_env(env_config: Mapping[str, Any]) -> Cage2Env | Cage2VectorEnv:
    """What RLlib asks for: one network, or a batch if it says how many."""
    settings = dict(env_config)
    num_envs = settings.pop("num_envs", None)
    for name in settings:
        if name == "seed":
            raise ConfigError(
                "a seed in env_config would give all environments the same dice; leave it out and "
                "give config.debugging(seed=...)"
            )
        if name not in SETTINGS:
            raise ConfigError(choices("setting in env_config", name, SETTINGS))
    if num_envs is None:
        return Cage2Env(**settings)
    return Cage2VectorEnv(
        num_envs, autoreset_mode=AutoresetMode.NEXT_STEP, num_threads=1, **settings
    )
