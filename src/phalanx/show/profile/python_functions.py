"""Which Python functions the time goes into: calls are counted in the threads that ask for it."""

import cProfile
import pstats
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import phalanx

ONE_THREAD_EACH = sys.version_info < (3, 12)  # later, cProfile mixes up what threads call
OURS = Path(phalanx.__file__).parent.parent


class Function(NamedTuple):
    """What one function took in one thread."""

    thread: str
    name: str
    place: str
    calls: int
    own_s: float
    total_s: float
    """with all that it called"""


class CallTimes:
    """What cProfile does, for one thread whatever others do; without builtins, and slower."""

    def __init__(self) -> None:
        self.stats: dict[CodeType, list[float]] = {}  # calls, own and total seconds, now on the way
        self._stack: list[tuple[CodeType, float, list[float]]] = []

    def enable(self) -> None:
        self._stack.clear()
        sys.setprofile(self._hear)

    def disable(self) -> None:
        sys.setprofile(None)

    def _hear(self, frame: FrameType, event: str, _arg: object) -> None:
        if event == "call":
            known = self.stats.setdefault(frame.f_code, [0, 0.0, 0.0, 0])
            known[3] += 1
            self._stack.append((frame.f_code, time.perf_counter(), [0.0]))
        elif event == "return" and self._stack and self._stack[-1][0] is frame.f_code:
            code, began, (inside,) = self._stack.pop()
            spent, known = time.perf_counter() - began, self.stats[code]
            known[0] += 1
            known[1] += spent - inside
            known[3] -= 1
            if not known[3]:  # of a function that calls itself only the outermost call counts
                known[2] += spent
            if self._stack:
                self._stack[-1][2][0] += spent


Counter = cProfile.Profile | CallTimes  # of the thread that switches it on and off


def new_counter() -> Counter:
    return cProfile.Profile() if ONE_THREAD_EACH else CallTimes()


def functions_of(thread: str, counter: Counter) -> list[Function]:
    """All that were called, in no order."""
    if isinstance(counter, CallTimes):
        found = [
            ((code.co_filename, code.co_firstlineno, code.co_qualname), int(calls), own, total)
            for code, (calls, own, total, _open) in counter.stats.items()
        ]
    else:
        stats = pstats.Stats(counter).stats  # type: ignore[attr-defined]
        found = [(where, *numbers[1:4]) for where, numbers in stats.items()]
    return [
        Function(thread, name, place_of(file, line), calls, own, total)
        for (file, line, name), calls, own, total in found
    ]


def most_expensive(functions: Iterable[Function], count: int, but: str) -> list[Function]:
    """By all that they took together with what they called.

    but: of a file whose functions are left out: those that look on.
    """
    kept = [one for one in functions if but not in one.place and "_lsprof" not in one.name]
    return sorted(kept, key=lambda one: -one.total_s)[:count]


def place_of(file: str, line: int) -> str:
    """`phalanx/training/run.py:160`, and for other packages from their own folder on."""
    if not line or file.startswith(("~", "<")):
        return "built in"
    path = Path(file)
    if path.is_relative_to(OURS):
        return f"{path.relative_to(OURS)}:{line}"
    parts = path.parts
    for folder in ("site-packages", f"python{sys.version_info.major}.{sys.version_info.minor}"):
        if folder in parts:
            return f"{'/'.join(parts[parts.index(folder) + 1 :])}:{line}"
    return f"{path.name}:{line}"
