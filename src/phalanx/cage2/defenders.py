"""Scripted defenders: sleep, random, react-remove, react-restore.

The two that react are those of the challenge's own repository. They look at the raw reports of
blue's sensors, which name the process behind a new shell; the 52 bits do not.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import (
    ACTION_MONITOR,
    ACTION_SLEEP,
    NO_HOST,
    NUM_ACTIONS,
    NUM_HOSTS,
    REMOVE,
    RESTORE,
    USER0,
    action_index,
)
from phalanx.cage2.workflow import NUM_TYPES, POSITIONS, TYPE_OF_HOST
from phalanx.errors import ConfigError, choices

Actions = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


class Defender(Protocol):
    """Chooses actions for N networks, turn by turn, from the start of their episodes to the end."""

    observation: str = "bits"
    """what `act` is to be shown: bits, history or memory"""

    def act(self, obs: Array, alerts: Array, masks: Array) -> Actions:
        """Actions [N].

        obs: shown last, [N, D]. alerts: host of a reported shell, or NO_HOST, [N]. masks: False for
        decoys that cannot be placed, [N, 145].
        """


class Sleeper(Defender):
    """Never does anything."""

    def act(self, obs: Array, alerts: Array, masks: Array) -> Actions:
        return np.full(len(obs), ACTION_SLEEP, np.int64)


class RandomDefender(Defender):
    """Any of the 145 actions, each as likely as the others.

    It draws for `width` networks and plays the first of them, so that network i is treated the same
    however many there are.
    """

    def __init__(self, seed: int | Sequence[int] = 0, width: int = 1) -> None:
        self._random, self._width = np.random.default_rng(seed), width

    def act(self, obs: Array, alerts: Array, masks: Array) -> Actions:
        size = len(obs)
        return self._random.integers(NUM_ACTIONS, size=max(size, self._width))[:size]


class Reactor(Defender):
    """Monitors; when the sensors report a shell, treats that host in the next turn.

    What is reported during the treatment goes unnoticed, and so does everything on User0.
    """

    def __init__(self, verb: str) -> None:
        self._treat_first_host = action_index(verb, "Defender")
        self._watching: npt.NDArray[np.bool_] | None = None

    def reset(self) -> None:
        """New episodes begin."""
        self._watching = None

    def act(self, obs: Array, alerts: Array, masks: Array) -> Actions:
        watched = np.zeros(len(obs), np.bool_) if self._watching is None else self._watching
        treat = watched & (alerts != NO_HOST) & (alerts != USER0)
        self._watching = ~treat
        return np.where(treat, self._treat_first_host + alerts.astype(np.int64), ACTION_MONITOR)


class Greedy:
    """Repairs by the true state, in the order of its workflow; otherwise it sleeps.

    No defender can play it, since none sees the true state: it shows how well an order can be
    followed. Under the `host` rule each of its fixes is compliant.
    """

    def __init__(self, orders: npt.NDArray[np.integer[Any]]) -> None:
        self._ranks = POSITIONS[np.asarray(orders)[:, None], TYPE_OF_HOST].astype(np.int64)
        self._ranks[:, USER0] = NUM_TYPES  # red's foothold cannot be evicted

    def act_on_truth(self, nets: npt.NDArray[np.void]) -> Actions:
        """Remove where that works, since it is free; else Restore."""
        infected, removable = _members(nets["sessions"]), _members(nets["removable"])
        ranks = np.where(infected, self._ranks, NUM_TYPES)
        target = ranks.argmin(axis=1)
        each = np.arange(len(nets))
        fix = np.where(removable[each, target], REMOVE, RESTORE)
        nothing = ranks[each, target] == NUM_TYPES
        return np.where(nothing, ACTION_SLEEP, 2 + NUM_HOSTS * fix + target)


def _members(sets: npt.NDArray[np.uint16]) -> npt.NDArray[np.bool_]:
    """Sets of hosts as rows of truth values, [N, 13]."""
    return (sets[:, None] >> np.arange(NUM_HOSTS) & 1) != 0


_MAKERS: dict[str, Callable[[int | Sequence[int], int], Defender]] = {
    "sleep": lambda seed, width: Sleeper(),
    "random": RandomDefender,
    "react-remove": lambda seed, width: Reactor("Remove"),
    "react-restore": lambda seed, width: Reactor("Restore"),
}
DEFENDERS = tuple(_MAKERS)
GREEDY = "greedy"  # the one that needs an order


def make_defender(name: str, seed: int | Sequence[int] = 0, width: int = 1) -> Defender:
    """A scripted defender by name, at the start of its episodes; the rest is for `random`."""
    maker = _MAKERS.get(name.lower().replace("_", "-"))
    if maker is None:
        raise ConfigError(choices("policy", name, (*DEFENDERS, GREEDY)))
    return maker(seed, width)
