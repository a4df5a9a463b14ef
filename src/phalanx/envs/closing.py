"""Closing environments that may not want to."""

import contextlib
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from gymnasium import Env

from phalanx.system import UNIX

CLOSE_S = 60.0  # for all environments of a process together


def close_in_time(envs: Iterable[Env[Any, Any]]) -> None:
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
