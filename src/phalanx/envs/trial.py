"""The first environment: built and tried before any other.

What cannot work is refused here, in one line. How long a step takes, and how much of that it
computes rather than waits, decides how many workers are worth having.
"""

import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Env, Space

from phalanx.envs.answers import checked_reset, checked_step
from phalanx.envs.channel import Channel
from phalanx.envs.closing import close_in_time
from phalanx.envs.factories import Factory, OneEach
from phalanx.envs.layout import Layout
from phalanx.envs.objects import Objects, layout_of
from phalanx.envs.thread_time import Account, quiet_mean
from phalanx.errors import ConfigError
from phalanx.importing import GIVEN, import_from

EnvSpec = str | Callable[[], Env[Any, Any]] | Sequence[Callable[[], Env[Any, Any]]]

TRY_S = 0.2
MOST_STEPS = 6000
BEAT_S = 0.02  # a step that takes longer is told of
BUILDING = "building it"


@dataclass(frozen=True)
class FromGymnasium:
    """gymnasium.make, without the checks of every step: the pool has its own."""

    name: str
    spec: gymnasium.envs.registration.EnvSpec | None
    """as it is registered here: workers may not have what has registered it"""

    def __call__(self) -> Env[Any, Any]:
        return gymnasium.make(self.spec or self.name, disable_env_checker=True)


@dataclass(frozen=True)
class FromModule:
    """A factory or class by its place, "module:factory"; or an id that the module registers."""

    module: str
    name: str
    folder: str
    """where the module may be, besides all that is installed"""

    def __call__(self) -> Env[Any, Any]:
        module, place = self.prepare(), f"{self.module}:{self.name}"
        if hasattr(module, self.name):
            env: Env[Any, Any] = getattr(module, self.name)()
        elif self.name in gymnasium.registry:  # importing the module may have registered it
            env = FromGymnasium(place, None)()
        else:
            raise ConfigError(
                f"env {place!r}: {self.module} has no {self.name}, and Gymnasium knows no such "
                "environment"
            )
        return env

    def prepare(self) -> ModuleType:
        """Import what building takes, before workers are forked."""
        try:
            return import_from(self.folder, self.module)
        except ImportError as error:
            place = f"{self.module}:{self.name}"
            raise ConfigError(f"env {place!r}: cannot import {self.module}: {error}") from error


def factory_of(env: EnvSpec) -> tuple[Factory, str]:
    """What builds the environment, and what to call it in messages."""
    if isinstance(env, list | tuple):
        if not env or not all(callable(one) for one in env):
            raise ConfigError(
                f"env is {env!r:.60}: a list must have a function for each environment, that "
                "builds it and takes no arguments"
            )
        return OneEach(tuple(env)), factory_of(env[0])[1]
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
            "it again, as TrainConfig(env=...), or from a module as module:function"
        )
    module, colon, name = env.partition(":")
    words = module.split(".") if colon else ["id"]
    if not env.isprintable() or not all(word.isidentifier() for word in words) or not (name or env):
        raise ConfigError(f"env is {env!r:.60}: give a Gymnasium id, or 'module:factory'")
    if colon:
        return FromModule(module, name, os.getcwd()), env
    return FromGymnasium(env, gymnasium.registry.get(env)), env


@dataclass(frozen=True)
class EnvTraits:
    """What the first environment showed."""

    observations: Layout | Objects
    actions: Layout | Objects
    num_masked: int
    step_s: float
    """of a step, on a machine that has nothing else to do; 0 if it was not measured"""
    cpu_share: float
    """the part of it that the environment computed; the rest it waited"""
    metadata: dict[str, Any]
    render_mode: str | None
    mask_dtype: np.dtype[Any] = field(default=np.dtype(np.bool_))
    """of the masks that the environment gives"""


@contextmanager
def tried(
    factory: Factory,
    name: str,
    *,
    seed: int,
    measure: bool,
    alike: bool = False,
    only_build: bool = False,
    keep_dice: bool = False,
    tell: Callable[[str], None] = lambda doing: None,
) -> Iterator[tuple[EnvTraits, Env[Any, Any]]]:
    """Build one environment, begin an episode, take a step; many, if it is to be measured.

    only_build: do not reset or step it.
    keep_dice: do not seed it; the factory may give the same one again, with dice of its own.
    tell: is called with what is done next, and at least once for every few steps.
    """
    doing = BUILDING
    try:
        tell(doing)
        env = factory()
        if not isinstance(env, Env):
            raise TypeError(f"got {type(env).__name__}, not a gymnasium.Env")
        try:
            observations = layout_of(env.observation_space, bounded=not alike)
            actions = layout_of(env.action_space)
            traits = EnvTraits(
                observations, actions, 0, 0.0, 1.0, dict(env.metadata), env.render_mode
            )
            if not only_build:
                scratch = observations.rows(lambda leaf: np.zeros((1, *leaf.shape), leaf.dtype))
                write = observations.writer(scratch)
                tell(doing := "reset(seed=…)")
                obs, info = checked_reset(env.reset(seed=None if keep_dice else seed))
                write(0, obs)
                tell(doing := "its first step")
                possible = deepcopy(env.action_space)
                possible.seed(seed)
                write(0, checked_step(env.step(possible.sample()))[0])
                tell(doing := "its first steps")
                step_s, cpu_share = (
                    _measure(env, possible, lambda: tell(doing)) if measure else (0.0, 1.0)
                )
                mask = np.ravel(info.get("action_mask", ()))
                traits = replace(
                    traits, num_masked=len(mask), mask_dtype=mask.dtype, step_s=step_s,
                    cpu_share=cpu_share,
                )  # fmt: skip
            yield traits, env
        except BaseException:
            close_in_time([env])
            raise
    except ConfigError:
        raise
    except Exception as error:
        if keep_dice and isinstance(factory, OneEach):
            raise  # as Gymnasium and Stable-Baselines3 would let it through
        raise ConfigError(
            f"environment {name} cannot be used: {doing} gave {type(error).__name__}: {error}"
        ) from error


def report_trial(channel: Channel, factory: Factory, **settings: Any) -> int:
    """Try an environment out for whoever listens; returns the exit code of the process."""

    def tell(doing: str) -> None:
        channel.send(("doing", doing))

    try:
        with tried(factory, **settings, tell=tell) as (traits, env):
            channel.send(("traits", traits))
            close_in_time([env])
    except ConfigError as error:
        trace = "".join(traceback.format_exception(error.__cause__ or error))
        channel.send(("refused", str(error), trace))
        return 1
    return 0


def _measure(
    env: Env[Any, Any], possible: Space[Any], tell: Callable[[], None]
) -> tuple[float, float]:
    """Seconds of a step, and the share of them that was computing. Resets count too.

    They are those of a quiet machine: time in which others had the core does not count.
    """
    costs: list[float] = []
    ended, told = True, 0.0
    began, before = time.perf_counter(), Account.now()
    while ((passed := time.perf_counter() - began) < TRY_S and len(costs) < MOST_STEPS) or len(
        costs
    ) < 2:
        if passed - told > BEAT_S:
            tell()
            told = passed
        action, cpu_s = possible.sample(), time.thread_time()
        if ended:
            env.reset()
        _obs, _reward, terminated, truncated, _info = env.step(action)
        ended = bool(terminated or truncated)
        costs.append(time.thread_time() - cpu_s)
    spent = Account.now().since(before)
    computed_s = quiet_mean(costs) + spent.helped_s / len(costs)
    step_s = max(computed_s + spent.waited_s / len(costs), 1e-9)
    return step_s, min(computed_s / step_s, 1.0)
