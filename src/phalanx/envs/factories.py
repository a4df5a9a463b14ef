"""What builds the environments of a pool: one function for all, or one for each."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from gymnasium import Env, Wrapper

Factory = Callable[[], Env[Any, Any]]


@dataclass(frozen=True)
class OneEach:
    """A factory for each environment, as Gymnasium and Stable-Baselines3 take them."""

    factories: tuple[Factory, ...]

    def __call__(self) -> Env[Any, Any]:
        return self.factories[0]()


@dataclass(frozen=True)
class WithOptions:
    """Environments whose resets get these options, unless they are given others."""

    factory: Factory
    options: dict[str, Any]

    def __call__(self) -> Env[Any, Any]:
        return Optioned(self.factory(), self.options)

    def prepare(self) -> None:
        """Import what building takes, before workers are forked."""
        if hasattr(self.factory, "prepare"):
            self.factory.prepare()


class Optioned(Wrapper[Any, Any, Any, Any]):
    """Resets that are given no options get these."""

    def __init__(self, env: Env[Any, Any], options: dict[str, Any]) -> None:
        super().__init__(env)
        self._options = options

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        chosen = deepcopy(self._options) if options is None else options
        return self.env.reset(seed=seed, options=chosen)


def is_wrapped(env: Any, wrapper_class: type) -> bool:
    """Whether an environment, or one inside it, is of this class."""
    while not isinstance(env, wrapper_class):
        if not isinstance(env, Wrapper):
            return False
        env = env.env
    return True


def build(factory: Factory, i: int) -> Env[Any, Any]:
    """Environment i: by its own factory, if there is one for each."""
    if isinstance(factory, WithOptions) and isinstance(factory.factory, OneEach):
        return Optioned(build(factory.factory, i), factory.options)
    return factory.factories[i]() if isinstance(factory, OneEach) else factory()
