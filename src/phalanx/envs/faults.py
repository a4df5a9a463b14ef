"""What is known of an environment or a worker that failed."""

import signal
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gymnasium.error import ClosedEnvironmentError

from phalanx.errors import PhalanxError, WorkerError
from phalanx.system import peak_memory_mb


class PoolClosed(PhalanxError, ClosedEnvironmentError):
    """A pool that was used after its end."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One failure, and what it cost: the partial episodes of `lost` are gone."""

    what: str
    """one line: what happened, in which environment and worker"""
    env_id: int | None = None
    """the environment that was being stepped or built, if one was"""
    worker: int | None = None
    """None: the environments of this process"""
    lost: tuple[int, ...]
    """environments whose partial episode is lost"""
    traceback: str = ""
    exit_code: int | None = None
    signal: str | None = None
    memory_mb: float | None = None
    """the most memory that the process had"""
    last_action: object = None

    def __str__(self) -> str:
        lines = [self.what]
        if self.memory_mb is not None:
            lines[0] += f" (peak memory {self.memory_mb:.0f} MB)"
        if self.last_action is not None:
            lines.append(f"last action: {self.last_action!r:.200}")
        if self.traceback:
            lines.append(self.traceback.rstrip())
        return "\n".join(lines)


def failed_env(worker: int | None, env_id: int, error: Exception, action: object) -> Fault:
    """An environment of this process that raised, or gave what its space does not allow."""
    where = "" if worker is None else f" in worker {worker}"
    what = f"{type(error).__name__}: {error}".strip().removesuffix(":")
    return Fault(
        what=f"environment {env_id}{where} failed: {what}",
        env_id=env_id,
        worker=worker,
        lost=(env_id,),
        traceback="".join(traceback.format_exception(error)),
        memory_mb=peak_memory_mb(),
        last_action=action,
    )


class FaultLog:
    """Keeps the faults of a pool, tells of each, and raises when there have been too many."""

    def __init__(self, max_restarts: int, hook: Callable[[Fault], None] | None) -> None:
        self.faults: list[Fault] = []
        self._max_restarts = max_restarts
        self._hooks = [] if hook is None else [hook]
        self._lock = threading.RLock()  # several threads may have something to tell

    def listen(self, hook: Callable[[Fault], None]) -> None:
        """Tell `hook` too: of all that was, and of all that comes."""
        with self._lock:
            for fault in self.faults:
                hook(fault)
            self._hooks.append(hook)

    def __call__(self, fault: Fault) -> None:
        with self._lock:
            self.faults.append(fault)
            for hook in self._hooks:
                hook(fault)
        if len(self.faults) > self._max_restarts:
            raise WorkerError(
                f"{len(self.faults)} failures, and max_restarts is {self._max_restarts}; the last: "
                f"{fault}",
                fault,
            )


def dead_worker(
    worker: int, code: int, said: tuple[str, str] | None, words: str, doing: str = "", **known: Any
) -> Fault:
    """A worker that ended.

    code: as Python gives it, the number of a signal if negative.
    said: how, and its traceback, if more is known than the code and its last words tell.
    """
    how, exit_code, signal_name = how_it_ended(code)
    how, trace = said or (how, words)
    return Fault(
        what=f"worker {worker} {how}{doing}",
        worker=worker,
        traceback=trace,
        exit_code=exit_code,
        signal=signal_name,
        **known,
    )


def how_it_ended(code: int) -> tuple[str, int | None, str | None]:
    """How a process ended in words, as an exit code and as a signal's name."""
    if code >= 0:
        return f"exited with code {code}", code, None
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; the system may have been out of memory" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}", None, name
