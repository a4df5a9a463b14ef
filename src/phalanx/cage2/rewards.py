"""Rewards of one's own: a function of the turn, compiled, in place of what the scenario pays.

    from phalanx.cage2.rewards import count, has, reward

    @reward
    def few_sessions(turn):
        return turn.reward - 0.1 * count(turn.held)

`Cage2VectorEnv(64, reward=few_sessions)`, `phalanx train --reward my_file.py:few_sessions`. What a
turn tells is in `Turn`. The scenario's own score goes on being counted: returns are always its.
"""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

import numba
from numba.core.errors import NumbaError

from phalanx.cage2.rules.own_reward import NUM_WHOLE, UNCOMPILED, Turn
from phalanx.compiled.bits import count, has
from phalanx.compiled.rule import COMPILED
from phalanx.errors import ConfigError
from phalanx.importing import find_named

if TYPE_CHECKING:
    from phalanx.cage2.attack.attacker import Callback

__all__ = ["OwnReward", "Turn", "count", "has", "reward", "reward_of"]


class OwnReward:
    """A function of `Turn`, ready to be compiled; it can be called, too."""

    def __init__(self, function: Callable[[Turn], float]) -> None:
        self.function, self.name = function, getattr(function, "__name__", repr(function))
        self._compiled: Callback | None = None

    def __call__(self, turn: Turn) -> float:
        return float(self.function(turn))

    def address(self) -> int:
        """Where its code is, compiled at the first call."""
        if not COMPILED:
            UNCOMPILED[id(self)] = self.function
            return id(self)
        if self._compiled is None:
            inner = numba.njit(self.function, error_model="numpy", nogil=True)
            numbers = [numba.types.int64] * NUM_WHOLE
            kind = numba.types.float64(numba.types.float64, *numbers)
            try:
                self._compiled = numba.cfunc(kind)(_of_numbers(inner))
            except NumbaError as error:
                raise ConfigError(f"reward {self.name} cannot be compiled: {_why(error)}") from None
        return int(self._compiled.address)


def _of_numbers(of_turn: Callable[[Turn], float]) -> Callable[..., float]:
    """The same as a function of plain numbers, which code of another language can call."""

    def of_numbers(  # type: ignore[no-untyped-def]
        paid, turn, horizon, verb, host, before, held, root, known, scanned, down, red, at, ok
    ):
        told = (turn, horizon, verb, host, before, held, root, known, scanned, down, red, at, ok)
        return float(of_turn(Turn(paid, *told)))

    return of_numbers


def _why(error: Exception) -> str:
    """What the compiler says, in one line; the last that names a place in the user's file."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    places = [line for line in lines if line.startswith("File ") and "rewards.py" not in line]
    said = next((line for line in lines if not line.startswith(("Failed", "During", "-"))), "")
    return f"{said} {places[-1] if places else ''}".strip()[:300]


def reward(function: Callable[[Turn], float]) -> OwnReward:
    """Mark a function of the turn as a reward."""
    if not callable(function) or len(inspect.signature(function).parameters) != 1:
        raise ConfigError(f"a reward is a function of one turn, got {function!r:.80}")
    return OwnReward(function)


def reward_of(given: object) -> OwnReward | None:
    """A reward, or the module:function that the user names."""
    if given is None or isinstance(given, OwnReward):
        return given
    found = find_named("--reward", given) if isinstance(given, str) else given
    if isinstance(found, OwnReward):
        return found
    if not callable(found):
        raise ConfigError(f"reward {given!r:.80} is no function; mark it with @reward")
    return reward(found)
