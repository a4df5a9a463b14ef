"""What builds the environments of a pool, one function for all or one for each; and closes them."""

import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

import gymnasium
from gymnasium import Env, Wrapper

from phalanx.errors import ConfigError
from phalanx.importing import GIVEN, import_from
from phalanx.system import UNIX

AnyEnv = Env[Any, Any]  # the user's: its spaces are its own
Factory = Callable[[], AnyEnv]
EnvSpec = str | Factory | Sequence[Factory]

CLOSE_S = 60.0  # for all environments of a process together


@dataclass(frozen=True)
class OneEach:
    """A factory for each environment, as Gymnasium and Stable-Baselines3 take them."""

    factories: tuple[Factory, ...]

    def __call__(self) -> AnyEnv:
        return self.factories[0]()


@dataclass(frozen=True)
class FromGymnasium:
    """gymnasium.make, without the checks of every step: the pool has its own."""

    name: str
    spec: gymnasium.envs.registration.EnvSpec | None
    """as it is registered here: workers may not have what has registered it"""

    def __call__(self) -> AnyEnv:
        return gymnasium.make(self.spec or self.name, disable_env_checker=True)


@dataclass(frozen=True)
class FromModule:
    """A factory or class by its place, "module:factory"; or an id that the module registers."""

    module: str
    name: str
    folder: str
    """where the module may be, besides all that is installed"""

    def __call__(self) -> AnyEnv:
        module, place = self.prepare(), f"{self.module}:{self.name}"
        if hasattr(module, self.name):
            env: AnyEnv = getattr(module, self.name)()
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


def build(factory: Factory, i: int) -> AnyEnv:
    """Environment i: by its own factory, if there is one for each."""
    return factory.factories[i]() if isinstance(factory, OneEach) else factory()


def is_wrapped(env: object, wrapper_class: type) -> bool:
    """Whether an environment, or one inside it, is of this class."""
    while not isinstance(env, wrapper_class):
        if not isinstance(env, Wrapper):
            return False
        env = env.env
    return True


def close_in_time(envs: Iterable[AnyEnv]) -> None:
    """Close all of them. What they raise is dropped: nobody can do anything about it any more."""
    deadline = time.monotonic() + CLOSE_S
    for env in envs:
        left_s = max(deadline - time.monotonic(), 0.1)
        with contextlib.suppress(Exception):
            try:
                with _at_most(left_s):
                    env.close()
            except _Late:
                warnings.warn(
                    f"an environment did not close within {left_s:.1f} s, and was left as it is",
                    RuntimeWarning,
                    stacklevel=2,
                )


class _Late(BaseException):
    """It takes too long."""


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Interrupt Python code that takes longer: in the main thread, if nobody else sets alarms."""
    usable = (
        UNIX
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    )
    if not usable:
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise _Late

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
