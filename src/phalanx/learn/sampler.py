"""Whoever fills rollouts: with compiled networks, with torch, from a pool, or on a cluster."""

from collections.abc import Callable
from typing import Any, Protocol

from phalanx.learn.rollout import Arrays, Rollout


class Stopped(Exception):
    """The run is to end: what was being collected is not needed any more."""


class Sampler(Protocol):
    """Whoever can fill a rollout: take the newest weights, then collect.

    A sampler that may take long looks at `stop` and raises `Stopped` when it is true.
    """

    stop: Callable[[], bool]

    def listen(self, hook: Callable[[Any], None]) -> None: ...

    def set_weights(self, weights: Any, version: int) -> None: ...

    def collect(self, shaping: Any) -> Rollout: ...

    def save(self) -> Arrays: ...

    def load(self, arrays: Arrays) -> None: ...

    def close(self) -> None: ...
