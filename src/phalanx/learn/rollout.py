"""The arrays of T turns in N environments: who fills them, and what learners read."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array, Arrays
from phalanx.envs.faults import Fault
from phalanx.stopwatch import Stopwatch

PER_COLUMN = ("versions", "next_obs")  # all others are [T, N, ...]
Weights = Any  # of a learner, as its samplers take them: an array, or tensors by name
Outputs = Any  # of a network, as the actor that computed them takes them again
Shaped = Any  # how the learner's rewards differ from the game's, as its own extension has it
Floats = npt.NDArray[np.float32]


class Rollout(NamedTuple):
    """T turns in N environments; row t holds an observation and what was done on seeing it."""

    obs: Array  # [T, N, ...]
    truth: npt.NDArray[np.float32]  # [T, N, K] what only the critic sees; K may be 0
    masks: npt.NDArray[np.bool_]  # [T, N, A] actions that may be chosen
    actions: Array  # [T, N]
    log_probs: npt.NDArray[np.float32]  # [T, N]
    values: npt.NDArray[np.float32]  # [T, N] of the state in which the action was chosen
    next_values: npt.NDArray[np.float32]  # [T, N] of the state after it; the last one of an episode
    rewards: npt.NDArray[np.float32]  # [T, N] as the learner sees them
    discounts: npt.NDArray[np.float32]  # [T, N] gamma, or 0 where nothing follows
    ended: npt.NDArray[np.bool_]  # [T, N] the episode ended or was cut after this turn
    returns: npt.NDArray[np.float32]  # [T, N] true return of the episode that ended there
    lengths: npt.NDArray[np.int32]  # [T, N] and its turns
    own_returns: npt.NDArray[np.float32]  # [T, N, 1] under a reward of the user's own, or [T, N, 0]
    counted: npt.NDArray[np.bool_]  # [T, N] an episode ended there, and its return is to be counted
    kinds: npt.NDArray[np.uint8]  # [T, N] what kind of episode: who attacks
    notes: Array  # [T, N] the game's own record of it, or [T, N, 0]: most keep none
    versions: npt.NDArray[np.int64]  # [N] of the weights with which the column was begun
    next_obs: Array  # [N, ...] where the next rollout begins


def empty_rollout(
    turns: int,
    next_obs: Array,
    truth_size: int,
    num_actions: int,
    action: Array | None = None,
    notes: Array | None = None,
    has_own_returns: bool = False,
) -> Rollout:
    """Arrays for so many turns that begin with these observations; unwritten numbers are NaN.

    action: an example of one, if actions are not numbers below 256.
    notes: room [T, N] for the game's own records of episodes.
    has_own_returns: whether there is a reward of the user's own.
    """
    size = len(next_obs)
    action = np.zeros((), np.uint8) if action is None else action

    def unwritten(*shape: int) -> npt.NDArray[np.float32]:
        return np.full((turns, size, *shape), np.nan, np.float32)

    return Rollout(
        obs=np.zeros((turns, *next_obs.shape), next_obs.dtype),
        truth=unwritten(truth_size),
        masks=np.ones((turns, size, num_actions), np.bool_),
        actions=np.zeros((turns, size, *action.shape), action.dtype),
        log_probs=unwritten(),
        values=unwritten(),
        next_values=unwritten(),
        rewards=unwritten(),
        discounts=unwritten(),
        ended=np.zeros((turns, size), np.bool_),
        returns=unwritten(),
        lengths=np.zeros((turns, size), np.int32),
        own_returns=unwritten(int(has_own_returns)),
        counted=np.zeros((turns, size), np.bool_),
        kinds=np.zeros((turns, size), np.uint8),
        notes=unwritten(0) if notes is None else notes,
        versions=np.zeros(size, np.int64),
        next_obs=next_obs.copy(),
    )


def flat(array: Array) -> Array:
    """[T, N, ...] as [T * N, ...]."""
    return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])


def columns_of(rollout: Rollout, chosen: Array | slice) -> Rollout:
    """Some columns of a rollout: those of a slice as views, of an array of numbers as copies."""
    return Rollout(
        **{
            name: array[chosen] if name in PER_COLUMN else array[:, chosen]
            for name, array in rollout._asdict().items()
        }
    )


def side_by_side(rollouts: Sequence[Rollout]) -> Rollout:
    """The columns of several rollouts as one."""
    if len(rollouts) == 1:
        return rollouts[0]
    return Rollout(
        **{
            name: np.concatenate(
                [getattr(one, name) for one in rollouts], axis=0 if name in PER_COLUMN else 1
            )
            for name in Rollout._fields
        }
    )


# --- who fills them: with compiled networks, with torch, from a pool, or on a cluster -------------


class Stopped(Exception):
    """The run is to end: what was being collected is not needed any more."""


class Sampler(Protocol):
    """Fills a rollout: give it the newest weights, then let it collect.

    A sampler that may take long looks at `stop` and raises `Stopped` when it is true.
    """

    stop: Callable[[], bool]
    watch: Stopwatch
    """that of the thread in which it plays"""

    def listen(self, hook: Callable[[Fault], None]) -> None: ...

    def set_weights(self, weights: Weights, version: int) -> None: ...

    def collect(self, shaping: Shaped) -> Rollout: ...

    def save(self) -> Arrays: ...

    def load(self, arrays: Arrays) -> None: ...

    def close(self) -> None: ...


class Actor(Protocol):
    """Computes outputs for observations and draws actions by them."""

    def set_weights(self, weights: Weights) -> None:
        """Act by these weights from now on."""

    def prepare(self, obs: Array) -> Array:
        """Observations as they are to be stored and shown to the network."""
        ...

    def forward(self, obs: Array) -> tuple[Outputs, Floats]:
        """The network's outputs for prepared observations, and values [rows]."""
        ...

    def noise(self, random: np.random.Generator, rows: int) -> Array:
        """The chance that `draw` turns into actions."""
        ...

    def draw(
        self, outputs: Outputs, masks: npt.NDArray[np.bool_], noise: Array
    ) -> tuple[Array, Floats]:
        """Actions and their log-probabilities."""
        ...

    def best(self, outputs: Outputs, masks: npt.NDArray[np.bool_]) -> Array:
        """The most likely actions."""
        ...
