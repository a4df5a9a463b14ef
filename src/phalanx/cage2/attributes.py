"""What each network of a batch has by name, as if it were an environment of its own."""

import inspect
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from phalanx.errors import ConfigError

if TYPE_CHECKING:
    from phalanx.cage2.vector import Cage2VectorEnv

BY_NETWORK = (
    "known", "scanned", "access", "infected_before", "infected_after", "np_random",
    "np_random_seed",
)  # fmt: skip
"""attributes of the batch that have a row for each network"""
SINGLE = {"observation_space": "single_observation_space", "action_space": "single_action_space"}
METHODS = ("action_masks", "render")
"""methods that give each network its own row, and change nothing"""
WRAPPER_METHODS = ("has_wrapper_attr", "get_wrapper_attr", "set_wrapper_attr")


class Attributes:
    """Attributes of networks that lie in one batch; users may add their own, one value for each.

    attributes.get("access", [0, 2])        # two rows
    attributes.set("label", ["a", "b"], [0, 2])
    attributes.call("action_masks", [1])
    """

    def __init__(self, envs: "Cage2VectorEnv") -> None:
        self._envs = envs
        self._own: dict[str, dict[int, Any]] = {}

    def get(self, name: str, chosen: Sequence[int]) -> list[Any]:
        """The attribute of each chosen network; what is the same for all is repeated."""
        if name in self._own:
            return [self._own_value(name, i) for i in chosen]
        if name in (*METHODS, *WRAPPER_METHODS):
            return [partial(self._call_one, name, i) for i in chosen]
        value = getattr(self._envs, SINGLE.get(name, name))
        if name in BY_NETWORK:
            rows = value.copy() if isinstance(value, np.ndarray) else value
            return [rows[i] for i in chosen]
        return [value] * len(chosen)

    def set(self, name: str, values: Sequence[Any], chosen: Sequence[int]) -> None:
        """Give each chosen network its value of an attribute that the game does not have."""
        for_all = {*chosen} == {*range(self._envs.num_envs)}
        if name == "render_mode" and for_all and len({*values}) == 1:
            self._envs.render_mode = checked_render_mode(values[0])
            return
        if name not in self._own and self._is_ours(name):
            raise ConfigError(
                f"{name} cannot be set network by network: the networks are one batch, and what "
                "they play is decided when it is made; make another batch"
            )
        self._own.setdefault(name, {}).update(zip(chosen, values, strict=True))

    def call(self, name: str, chosen: Sequence[int], *args: Any, **kwargs: Any) -> list[Any]:
        """What a method gives for each chosen network."""
        if name in METHODS:
            rows = getattr(self._envs, name)(*args, **kwargs)
            return [None if rows is None else rows[i] for i in chosen]
        if name in WRAPPER_METHODS:
            return [self._wrapper_call(name, i, *args, **kwargs) for i in chosen]
        methods = self.get(name, chosen)
        if name not in self._own and callable(getattr(self._envs, name)):
            raise ConfigError(
                f"{name} plays all networks at once and cannot be called for each; call it of the "
                f"batch, or one of {', '.join(METHODS)} here"
            )
        return [method(*args, **kwargs) for method in methods]

    def call_or_get(
        self, name: str, chosen: Sequence[int], *args: Any, **kwargs: Any
    ) -> tuple[Any, ...]:
        """As Gymnasium's `call`: of an attribute that is no method, its value."""
        if name in (*METHODS, *WRAPPER_METHODS):
            return tuple(self.call(name, chosen, *args, **kwargs))
        values = self.get(name, chosen)
        is_method = bool(values) and callable(values[0])
        return tuple(self.call(name, chosen, *args, **kwargs) if is_method else values)

    def _call_one(self, name: str, i: int, *args: Any, **kwargs: Any) -> Any:
        return self.call(name, [i], *args, **kwargs)[0]

    def _wrapper_call(self, method: str, i: int, name: str, *value: Any, **_kwargs: Any) -> Any:
        """As Gymnasium's wrappers answer; nothing is wrapped around a network."""
        if method == "set_wrapper_attr":
            self.set(name, value, [i])
            return True
        if method == "get_wrapper_attr":
            return self.get(name, [i])[0]
        return i in self._own.get(name, {}) or self._is_ours(name)

    def _own_value(self, name: str, i: int) -> Any:
        if i not in self._own[name]:
            raise AttributeError(f"network {i} has no attribute {name!r}: it was set for others")
        return self._own[name][i]

    def _is_ours(self, name: str) -> bool:
        """Whether the game has it: as an attribute, or as a setting that was given to it."""
        settings = inspect.signature(type(self._envs)).parameters
        return name in settings or hasattr(self._envs, name)


def checked_render_mode(mode: str | None) -> str | None:
    if mode not in (None, "ansi"):
        raise ConfigError(f"render_mode of a batch must be 'ansi' (text) or left out, got {mode!r}")
    return mode
