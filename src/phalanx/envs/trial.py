"""The first environment: built and tried in this process before anything is started.

What cannot work is refused here, in one line. How long a step takes, and how much of that it
computes rather than waits, decides how many workers are worth having.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Env

from phalanx.envs.block import Factory
from phalanx.envs.layout import Layout
from phalanx.envs.places import GIVEN, import_from_here
from phalanx.errors import ConfigError

EnvSpec = str | Callable[[], Env[Any, Any]]

TRY_S = 0.2
MOST_STEPS = 2000


@dataclass(frozen=True)
class FromGymnasium:
    """gymnasium.make, without the checks of every step: the pool has its own."""

    name: str

    def __call__(self) -> Env[Any, Any]:
        return gymnasium.make(self.name, disable_env_checker=True)


@dataclass(frozen=True)
class FromModule:
    """A factory or class by its place, "module:factory"."""

    module: str
    name: str

    def __call__(self) -> Env[Any, Any]:
        env: Env[Any, Any] = getattr(import_from_here(self.module), self.name)()
        return env

    def prepare(self) -> None:
        """Import what building takes, before workers are forked."""
        import_from_here(self.module)


def factory_of(env: EnvSpec) -> tuple[Factory, str]:
    """What builds the environment, and what to call it in messages."""
    if not isinstance(env, str):
        if not callable(env):
            raise ConfigError(
                f"env is {env!r:.60}: give a Gymnasium id, 'module:factory', or a function that "
                "builds one environment and takes no arguments"
            )
        return env, getattr(env, "__qualname__", type(env).__qualname__)
    if env.startswith(GIVEN):
        raise ConfigError(
            f"the environment was given from Python ({env}) and cannot be found by its name; give "
            "it again: phalanx.train(TrainConfig(env=..., resume=...))"
        )
    module, colon, name = env.partition(":")
    if colon:
        try:
            found = hasattr(import_from_here(module), name)
        except ImportError as error:
            raise ConfigError(f"env {env!r}: cannot import {module}: {error}") from error
        if found:
            return FromModule(module, name), env
        if name not in gymnasium.registry:  # importing the module may have registered it
            raise ConfigError(
                f"env {env!r}: {module} has no {name}, and Gymnasium knows no such environment"
            )
    return FromGymnasium(env), env


@dataclass(frozen=True)
class Trial:
    """What the first environment showed."""

    observations: Layout
    actions: Layout
    num_masked: int
    step_s: float
    """wall time of a step; 0 if it was not measured"""
    cpu_share: float
    """the part of it that the environment computed; the rest it waited"""
    metadata: dict[str, Any]


def try_out(factory: Factory, name: str, *, seed: int, measure: bool) -> Trial:
    """Build one environment, begin an episode, take a step; many, if it is to be measured."""
    doing = "building it"
    try:
        env = factory()
        if not isinstance(env, Env):
            raise TypeError(f"got {type(env).__name__}, not a gymnasium.Env")
        try:
            observations = Layout(env.observation_space, "observation")
            actions = Layout(env.action_space, "action")
            scratch = observations.rows(lambda leaf: np.zeros((1, *leaf.shape), leaf.dtype))
            write = observations.writer(scratch)
            doing = "reset(seed=…)"
            obs, info = _pair(env.reset(seed=seed))
            write(0, obs)
            doing = "its first step"
            env.action_space.seed(seed)
            write(0, _checked_step(env)[0])
            doing = "its first steps"
            step_s, cpu_share = _measure(env) if measure else (0.0, 1.0)
            mask = info.get("action_mask")
            num_masked = 0 if mask is None else len(np.ravel(mask))
            return Trial(observations, actions, num_masked, step_s, cpu_share, dict(env.metadata))
        finally:
            env.close()
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"environment {name} cannot be used: {doing} gave {type(error).__name__}: {error}"
        ) from error


def _pair(answer: Any) -> tuple[Any, dict[str, Any]]:
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], dict):
        raise TypeError("not (observation, info); environments of old gym need a wrapper")
    return answer


def _checked_step(env: Env[Any, Any]) -> Any:
    answer = env.step(env.action_space.sample())
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise TypeError("not (observation, reward, terminated, truncated, info)")
    reward = answer[1]
    if not np.isfinite(float(reward)):
        raise ValueError(f"reward is {reward}, not a finite number")
    return answer


def _measure(env: Env[Any, Any]) -> tuple[float, float]:
    """Seconds of a step, and the share of them that was computing. Resets count too."""
    steps, ended = 0, True
    began, began_cpu = time.perf_counter(), time.process_time()
    while (steps < MOST_STEPS and (passed := time.perf_counter() - began) < TRY_S) or steps < 2:
        if ended:
            env.reset()
        _obs, _reward, terminated, truncated, _info = env.step(env.action_space.sample())
        ended = bool(terminated or truncated)
        steps += 1
    passed = max(time.perf_counter() - began, 1e-9)
    sampling = _sampling_s(env) * steps
    cpu = time.process_time() - began_cpu
    return max(passed - sampling, 1e-9) / steps, min(cpu / passed, 1.0)


def _sampling_s(env: Env[Any, Any]) -> float:
    """What drawing a random action takes, which is no part of a step."""
    began = time.perf_counter()
    for _ in range(20):
        env.action_space.sample()
    return (time.perf_counter() - began) / 20
