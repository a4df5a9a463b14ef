"""What starts the worker processes of a pool: by forking where that can be done, else by spawning.

Both do as they are asked and tell what has happened since: a process has begun, or has ended.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import cloudpickle

from phalanx.envs.channel import Channel
from phalanx.envs.worker import PoolSetup
from phalanx.errors import ConfigError

DEAF_S = 10  # after which nobody reads what we send
TRY_OUT = -1  # in place of a worker's number
THREAD_SETTINGS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class CannotGo(ConfigError):
    """An environment's factory that only the caller's own process can use."""


@dataclass
class Started:
    """A process has begun; its environments have not been built yet."""

    worker: int
    pid: int
    channel: Channel
    last_words: int | None
    """a file that holds its stack if it crashes, or if it is asked by SIGUSR1"""

    def words(self) -> str:
        if self.last_words is None:
            return ""
        return os.pread(self.last_words, 1 << 16, 0).decode(errors="replace")

    def stack(self) -> str:
        """Where it hangs, as Python sees it; "" if it does not say so at once."""
        if self.last_words is None:
            return ""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)
        for _ in range(20):
            time.sleep(0.005)
            if words := self.words():
                return words
        return ""

    def close(self) -> None:
        """Hang up."""
        self.channel.close()
        if self.last_words is not None:
            os.close(self.last_words)


@dataclass
class Ended:
    """A process is gone."""

    worker: int
    pid: int
    code: int
    """as Python gives it: the number of a signal if negative"""
    memory_mb: float | None


class Starter(Protocol):
    """Starts processes, and tells how they ended."""

    note: str
    """what to say of how processes are started, after why there are so many"""
    gone: bool
    """it has died, with all that it had started: use `again`"""

    def fileno(self) -> int:
        """Readable when there is something to `hear`, or -1: then listen every now and then."""

    def try_out(self, name: str, **how: Any) -> None:
        """Ask for a process that tries one environment; `hear` will tell that it has begun."""

    def set_up(self, setup: PoolSetup) -> None:
        """Say what workers will be."""

    def start(self, worker: int) -> None:
        """Ask for a worker; `hear` will tell that it has begun."""

    def hear(self) -> Iterable[Started | Ended]:
        """What has happened since, one by one: what nobody takes stays unread. Does not wait."""

    def kill(self) -> None:
        """End all that does not answer; `gone` or `hear` will tell."""

    def close(self) -> None:
        """End all that still runs."""

    def again(self) -> "Starter":
        """Another one like this."""


def packed(factory: Any) -> bytes:
    """A factory as bytes, for another process."""
    try:
        return cloudpickle.dumps(factory)
    except Exception as error:
        raise CannotGo(f"the environment's factory cannot go to a worker: {error}") from None


def environment(threads: int) -> dict[str, str]:
    """Our environment variables, with at most `threads` threads for each numerical library."""
    variables = dict(os.environ)
    for name in THREAD_SETTINGS:
        given = variables.get(name, "")
        variables[name] = str(min(threads, int(given)) if given.isdigit() else threads)
    return variables
