"""`@attacker`: a function of the user's own becomes an attacker, compiled by itself."""

import dis
import inspect
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypeVar, overload

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.core.errors import NumbaError

from phalanx.cage2.attack.knowledge import View, view_dtype
from phalanx.cage2.attack.refusal import refusal, turn_of
from phalanx.cage2.rules.own_attackers import UNCOMPILED
from phalanx.cage2.rules.red_actions import RAISED
from phalanx.cage2.scenario.plan import Scenario
from phalanx.compiled.rule import COMPILED
from phalanx.errors import ConfigError, choices

Memory = npt.NDArray[np.int64]  # that it can write
Function = Callable[[View, Memory, int], int]
Helper = TypeVar("Helper", bound=Callable[..., object])
PARAMETERS = ("net", "memory", "die")
IMPOSSIBLE = ("stop", "sleep")
TELLING = (
    "Unknown attribute",
    "NameError",
    "Untyped global name",
    "No implementation of",
    "Cannot unify",
    "No conversion",
    "not supported",
    "Invalid use",
)
"""parts of the sentences by which Numba says what is wrong, the clearest first"""


class Callback(Protocol):
    """A function that Numba has compiled for others to call."""

    address: int


class Attacker:
    """A function `attack(net, memory, die) -> move`, asked in each turn of each network.

    impossible: what a move does that red cannot make, "stop" the game or count as "sleep".
    """

    can_be_saved = True

    def __init__(self, function: Function, impossible: str = "stop") -> None:
        if impossible not in IMPOSSIBLE:
            raise ConfigError(choices("impossible", impossible, IMPOSSIBLE))
        self.function, self.impossible = function, impossible
        self.name = getattr(function, "__name__", "attacker")
        self.__doc__, self.__wrapped__ = function.__doc__, function
        self.__module__ = function.__module__
        self.__qualname__ = function.__qualname__
        parameters = tuple(inspect.signature(function).parameters)
        if len(parameters) != len(PARAMETERS):
            raise ConfigError(
                f"{self.place}: the attacker {self.name} takes ({', '.join(parameters)}); "
                f"it must take ({', '.join(PARAMETERS)})"
            )
        self._compiled: dict[np.dtype[np.void], Callback] = {}

    def __call__(self, net: View, memory: Memory, die: int) -> int:
        """The move, by plain Python: to try it out."""
        return self.function(net, memory, die)

    def __reduce__(self) -> tuple[Callable[[str, str], object], tuple[str, str]]:
        """By its name, as functions are: compiled code does not travel."""
        return _found_again, (self.function.__module__, self.function.__qualname__)

    @property
    def file(self) -> str:
        return Path(self.function.__code__.co_filename).name

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.function.__code__.co_firstlineno}"

    def address(self, network: np.dtype[np.void], _scenarios: Sequence[Scenario] = ()) -> int:
        """Where its code is, in this process, for networks with such records."""
        if not COMPILED:
            UNCOMPILED[id(self)] = self._asked_uncompiled
            return id(self)
        if network not in self._compiled:
            self._compiled[network] = self._compile(network)
        return int(self._compiled[network].address)

    def _compile(self, network: np.dtype[np.void]) -> Callback:
        view = numba.from_dtype(view_dtype(network))
        attack = numba.njit(self.function, error_model="python", boundscheck=True)

        def asked(pointer, die):  # type: ignore[no-untyped-def]
            net = numba.carray(pointer, 1)[0]
            try:
                return attack(net, net.memory, die)
            except Exception:
                return RAISED

        try:
            compiled = numba.cfunc(types.int64(types.CPointer(view), types.int64))(asked)
        except NumbaError as error:
            raise ConfigError(self._in_one_line(error)) from None
        except KeyError as error:  # how Numba says that a record has no such field
            raise ConfigError(
                f"{self.file}, line {self._line_of(error.args[0])}: the attacker {self.name} asks "
                f"for net.{error.args[0]}, which red does not know; see docs/attackers.md for what "
                "it can ask"
            ) from None
        returned = attack.nopython_signatures[0].return_type
        if not isinstance(returned, types.Integer):
            raise ConfigError(
                f"{self.place}: the attacker {self.name} returns {returned}; it must always return "
                "a move, such as scan(host) or sleep()"
            )
        return compiled

    def _in_one_line(self, error: NumbaError) -> str:
        """What the compiler says, with the user's line."""
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        lines = re.findall(rf'File "[^"]*{re.escape(self.file)}", line (\d+)', text)
        line = lines[-1] if lines else self.function.__code__.co_firstlineno
        unknown = re.search(r"NameError: name '(\w+)'", text)
        if unknown:
            line = self._line_of(unknown[1])
        why = _what_is_wrong(text)
        return f"{self.file}, line {line}: the attacker {self.name} cannot be compiled: {why}"

    def _line_of(self, name: str) -> int:
        """The first line of the function that uses a name."""
        line = self.function.__code__.co_firstlineno
        for step in dis.get_instructions(self.function):
            line = step.starts_line or line
            if step.argval == name:
                return line
        return self.function.__code__.co_firstlineno

    def _asked_uncompiled(self, net: View, memory: Memory, die: int) -> int:
        try:
            return int(self.function(net, memory, die))
        except Exception:
            return RAISED

    # --- what it did wrong ------------------------------------------------------------------------

    def refusal(self, net: np.void, scenario: Scenario) -> str:
        """One line on an impossible move of a network: attacker, turn, move, why."""
        is_error = int(net["refused_move"]) == RAISED
        error = self._error(net) if is_error else ""
        return refusal(f"{self.name} ({self.file})", net, scenario, error)

    def _error(self, net: np.void) -> str:
        """The error that the function stops with, and its line, as far as it can be repeated."""
        view = np.array([net]).view(view_dtype(net.dtype)).view(np.recarray)
        view["turn"] = turn_of(net) - 1  # where the function is asked again
        for die in (0, 1 << 62):
            try:
                with np.errstate(all="raise"):
                    self.function(view[0], view[0].memory, die)
            except Exception as error:
                trace, line = error.__traceback__, 0
                while trace is not None:
                    if trace.tb_frame.f_code.co_filename == self.function.__code__.co_filename:
                        line = trace.tb_lineno
                    trace = trace.tb_next
                why = " ".join(f"{type(error).__name__}: {error}".split())
                return f"{why[:200]} (line {line})"
        return "an error"


@overload
def attacker(function: Function, /) -> Attacker: ...
@overload
def attacker(*, impossible: str = "stop") -> Callable[[Function], Attacker]: ...
def attacker(
    function: Function | None = None, /, *, impossible: str = "stop"
) -> Attacker | Callable[[Function], Attacker]:
    """`@attacker` or `@attacker(impossible="sleep")` above a function of (net, memory, die)."""
    if function is not None:
        return Attacker(function)
    return lambda given: Attacker(given, impossible)


def helper(function: Helper) -> Helper:
    """`@helper` above a function that attackers call."""
    return numba.njit(function, error_model="python", boundscheck=True)


def _found_again(module: str, name: str) -> object:
    return getattr(import_module(module), name)


def _what_is_wrong(text: str) -> str:
    """The sentence of a compiler's message that says it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    untyped = re.search(r"Untyped global name '(\w+)'.*\n?.*<class 'function'>", text)
    if untyped:
        return f"it calls {untyped[1]}, which must be decorated with @helper"
    for sign in TELLING:
        for line in lines:
            if sign in line:
                return line[:200]
    return (lines[1] if len(lines) > 1 else lines[0] if lines else "no reason given")[:200]
