"""Whether anything is still being computed: who ends the server does not wait for it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NoReturn

_lock = Lock()
_count = 0


@contextmanager
def busy() -> Iterator[None]:
    """Work that a thread aside does, and that nobody can stop in the middle."""
    global _count
    with _lock:
        _count += 1
    try:
        yield
    finally:
        with _lock:
            _count -= 1


def is_busy() -> bool:
    return _count > 0


def leave_at_once(code: int) -> NoReturn:
    """End the process in the middle of a computation: nothing of it is kept anyway."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
