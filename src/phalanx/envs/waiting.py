"""Waiting for another process: look for a short while, then sleep in the kernel.

Waking a sleeper takes some 30 µs, longer than a cheap environment takes for a whole block; looking
takes nothing, unless the one that is waited for needs the core. So every look gives the core away
(`give_way`), there are few of them, and who has slept long is sparing with looks afterwards.
"""

import threading
import time
from collections.abc import Callable

from phalanx.system import give_way

LOOKS = 120  # some 80 µs, if nobody else wants the core
FEW_LOOKS = 3
CROWD = 4  # processes for each core: so many leave no core free to look from
SHORT_S = 120e-6  # a sleep so short that looking would have been better

_lock = threading.Lock()
_lock.acquire()


def fence() -> None:
    """Let others see all that was written before, and see all that they have written.

    The interpreter has no memory barrier of its own; giving back and taking a lock is one. (Two
    threads may do so at once: who finds it given back already has the barrier in the attempt.)
    """
    try:
        _lock.release()
    except RuntimeError:
        return
    _lock.acquire(False)


class Patience:
    """How long to look before sleeping, learned from how long the last waits took."""

    def __init__(self, processes_per_core: float) -> None:
        self._most = LOOKS if processes_per_core < CROWD else FEW_LOOKS
        self._looks = self._most
        self._asleep_since = 0.0

    def look(self, is_there: Callable[[], bool]) -> bool:
        """Look a while; True as soon as it is there."""
        for _ in range(self._looks):
            if is_there():
                return True
            give_way()
        return is_there()

    def sleeps(self) -> None:
        self._asleep_since = time.monotonic()

    def wakes(self) -> None:
        short = time.monotonic() - self._asleep_since < SHORT_S
        self._looks = self._most if short else FEW_LOOKS
