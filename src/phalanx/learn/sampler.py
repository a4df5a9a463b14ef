"""Whoever fills rollouts: with compiled networks, with torch, from a pool, or on a cluster."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from phalanx.learn.returns import Floats
from phalanx.learn.rollout import Arrays, Rollout


class Stopped(Exception):
    """The run is to end: what was being collected is not needed any more."""


class Sampler(Protocol):
    """Fills a rollout: give it the newest weights, then let it collect.

    A sampler that may take long looks at `stop` and raises `Stopped` when it is true.
    """

    stop: Callable[[], bool]

    def listen(self, hook: Callable[[Any], None]) -> None: ...

    def set_weights(self, weights: Any, version: int) -> None: ...

    def collect(self, shaping: Any) -> Rollout: ...

    def save(self) -> Arrays: ...

    def load(self, arrays: Arrays) -> None: ...

    def close(self) -> None: ...


class Actor(Protocol):
    """Computes outputs for observations and draws actions by them."""

    def set_weights(self, weights: Any) -> None:
        """Act by these weights from now on."""

    def prepare(self, obs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Observations as they are to be stored and shown to the network."""
        ...

    def forward(self, obs: npt.NDArray[Any]) -> tuple[Any, Floats]:
        """The network's outputs for prepared observations, and values [rows]."""
        ...

    def noise(self, random: np.random.Generator, rows: int) -> npt.NDArray[Any]:
        """The chance that `draw` turns into actions."""
        ...

    def draw(
        self, outputs: Any, masks: npt.NDArray[np.bool_], noise: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[Any], Floats]:
        """Actions and their log-probabilities."""
        ...

    def best(self, outputs: Any, masks: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """The most likely actions."""
        ...
