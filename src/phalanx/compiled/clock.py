"""A clock that compiled code reads: ticks, at no more than ten nanoseconds a look."""

import platform
import time

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types

from phalanx.compiled.llvm import (
    Builder,
    Context,
    Intrinsic,
    Signature,
    TypingContext,
    Value,
    Values,
    machine_code_of,
)
from phalanx.compiled.rule import kernel, rule

# Counters that every program may read, and that run on at one pace whatever the core does.
X86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")
ARM = platform.machine().lower() in ("aarch64", "arm64")


def ticks() -> int:
    """Now. On processors whose counter we do not know, compiled code always reads 0."""
    return time.perf_counter_ns()


@machine_code_of(ticks)
def _counter(typing_context: TypingContext) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        number = ir.IntType(64)
        counts = ir.FunctionType(number, [])
        if X86:
            read = builder.module.declare_intrinsic("llvm.readcyclecounter", (), counts)
        elif ARM:
            read = ir.InlineAsm(counts, "mrs $0, cntvct_el0", "=r", side_effect=True)
        else:
            return ir.Constant(number, 0)
        return builder.call(read, [])

    return types.int64(), generate


@rule
def count_ticks(spent: npt.NDArray[np.int64], place: int, since: int) -> int:
    """Add the ticks since then to what was spent there; returns now."""
    now = ticks()
    spent[place] += now - since
    return now


@kernel
def _read() -> int:
    return ticks()


class Pace:
    """Seconds of a tick, as they have been since this was made."""

    def __init__(self) -> None:
        self._first, self._began = int(_read()), time.perf_counter()

    def seconds(self) -> float:
        """Of one tick; 0 where none are counted."""
        passed, now = time.perf_counter() - self._began, int(_read())
        return passed / (now - self._first) if now > self._first else 0.0
