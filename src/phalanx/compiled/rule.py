"""`@rule` and `@kernel`: compile the game, say so, and keep what was compiled."""

import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba.core import config as numba_config
from numba.core.compiler_lock import global_compiler_lock

from phalanx.compiled.aside import aside
from phalanx.compiled.cache import KeptKernel, say, taking_turns
from phalanx.compiled.llvm import Types
from phalanx.compiled.part import as_part

Function = TypeVar("Function", bound=Callable[..., object])
CompileNow = Callable[[Types], object]  # gives the machine code

COMPILED = not numba_config.DISABLE_JIT
STILL_S = 10.0
HOW_LONG = {  # by folder
    "bound": "what explores the relaxed game, once; this takes half a minute",
    "cage2": "the simulator, once; this takes ten to twenty seconds",
    "learn": "what plays and learns, once; this takes half a minute, or more on a busy machine",
}


def rule(function: Function) -> Function:
    """A small function of one network, compiled into whoever calls it."""
    return as_part(function, forceinline=True)


def large_rule(function: Function) -> Function:
    """A rule that is called, since compiling it into each of its callers would take long."""
    return as_part(function)


def kernel(function: Function) -> Function:
    """A loop over networks: compiled, free of the interpreter lock, and kept on disk."""
    compiled = numba.njit(
        function, nogil=True, error_model="numpy", boundscheck=False, no_cfunc_wrapper=True
    )
    if COMPILED:
        # Numba's own cache looks only at the kernel's own file: after an edit of blue.py it would
        # go on playing the old rule. It also loads what others wrote, and trips over damage.
        compiled._cache = KeptKernel(function)
        compiled.compile = partial(_compile, compiled, compiled.compile)
    return compiled


def _compile(kernel: Any, compile_now: CompileNow, types: Types) -> object:
    """Compile for arguments of these types, or read that from disk."""
    if global_compiler_lock.is_locked():  # for another function, which this thread compiles
        return compile_now(types)
    goes_on = partial(_say_that_it_goes_on, since=time.monotonic() - _compile_s)
    return aside(_compile_in_turn, kernel, compile_now, types, meanwhile=goes_on)


def _compile_in_turn(kernel: Any, compile_now: CompileNow, types: Types) -> object:
    def is_there() -> bool:
        return types in kernel.overloads or kernel._cache.is_kept(types, kernel.targetctx)

    global _compile_s
    with global_compiler_lock, contextlib.ExitStack() as until_kept:
        if is_there():
            return compile_now(types)
        began = time.perf_counter()
        _announce(kernel.__module__)
        lock = kernel._cache.lock(types, kernel.targetctx)
        until_kept.enter_context(taking_turns(lock, is_there))
        compiled = compile_now(types)
        _compile_s += time.perf_counter() - began
        return compiled


def _announce(module: str) -> None:
    """Say once that compiling takes a while."""
    for folder, line in HOW_LONG.items():
        if module.startswith(f"phalanx.{folder}.") and folder not in _announced:
            _announced.add(folder)
            _said["at"] = time.monotonic()
            say(f"compiling {line}")


def _say_that_it_goes_on(since: float) -> None:
    """A line every ten seconds, so that nobody takes it for dead.

    since: when it would have begun, had there been nothing but compiling.
    """
    now = time.monotonic()
    if _announced and now - _said["at"] >= STILL_S:
        _said["at"] = now
        say(f"still compiling, {now - since:.0f} s so far")


def compile_s() -> float:
    """Seconds that this process has spent on compiling so far."""
    return _compile_s


class Record(Protocol):
    """One of a batch of records, inside a rule: its fields are attributes."""

    def __getattr__(self, field: str) -> Any: ...

    def __setattr__(self, field: str, value: Any) -> None: ...


def records(shape: int | tuple[int, ...], dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """A batch of zeroed records that rules can take: as numpy's own class where not compiled."""
    batch = np.zeros(shape, dtype)
    return batch if COMPILED else batch.view(np.recarray)


_announced: set[str] = set()  # folders
_said = {"at": 0.0}
_compile_s = 0.0

if not COMPILED:
    np.seterr(over="ignore")  # the dice wrap around, and plain numpy would warn
