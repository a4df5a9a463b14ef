"""Scripted defenders: sleep, random, react-remove, react-restore.

The two that react are those of the challenge's own repository. They look at the raw reports of
blue's sensors, which name the process behind a new shell; the 52 bits do not.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array
from phalanx.cage2.rules.scenario import (
    ACTION_SLEEP,
    MONITOR,
    NO_HOST,
    NUM_HOSTS,
    REMOVE,
    RESTORE,
    SLEEP,
    USER0,
    VERBS,
)
from phalanx.cage2.workflow import NUM_TYPES, POSITIONS, TYPE_OF_HOST
from phalanx.errors import ConfigError, choices

Actions = npt.NDArray[np.int64]


class Defender(Protocol):
    """Chooses actions for N networks, turn by turn, from the start of their episodes to the end."""

    observation: str = "bits"
    """what `act` is to be shown: bits, history or memory"""

    def act(self, obs: Array, alerts: Array, masks: Array) -> Actions:
        """Actions [N].

        obs: shown last, [N, D]. alerts: host of a reported shell, or NO_HOST, [N]. masks: False for
        decoys that cannot be placed, and for hosts that are not there, [N, actions].
        """


def _or_cage2(worlds: Array | None) -> Array:
    """Records of the networks that are defended: CAGE-2 if nothing is said."""
    if worlds is None:
        from phalanx.cage2.scenario.read import CAGE2_WORLDS  # compiled: not for settings alone

        return CAGE2_WORLDS
    return worlds


class Sleeper(Defender):
    """Never does anything."""

    def __init__(self, worlds: Array | None = None) -> None:
        self._sleep = int(_or_cage2(worlds)["action_of"][0, SLEEP, 0])

    def act(self, obs: Array, alerts: Array, masks: Array) -> Actions:
        return np.full(len(obs), self._sleep, np.int64)


class RandomDefender(Defender):
    """Any of the actions, each as likely as the others.

    It draws for `width` networks and plays the first of them, so that network i is treated the same
    however many there are.
    """

    def __init__(
        self, seed: int | Sequence[int] = 0, width: int = 1, worlds: Array | None = None
    ) -> None:
        self._random, self._width = np.random.default_rng(seed), width
        self._actions = int(_or_cage2(worlds)["num_actions"][0])

    def act(self, obs: Array, alerts: Array, masks: Array) -> Actions:
        size = len(obs)
        return self._random.integers(self._actions, size=max(size, self._width))[:size]


class Reactor(Defender):
    """Monitors; when the sensors report a shell, treats that host in the next turn.

    What is reported during the treatment goes unnoticed, and so does everything on User0.

    spared: the host where red begins, or that of each network.
    """

    def __init__(self, verb: str, worlds: Array | None = None) -> None:
        worlds = _or_cage2(worlds)
        self._treat = worlds["action_of"][0, VERBS.index(verb)].astype(np.int64)
        self._monitor = int(worlds["action_of"][0, MONITOR, 0])
        if min(self._monitor, *self._treat) < 0:
            raise ConfigError(f"react-{verb.lower()} needs Monitor and {verb}; blue has not both")
        self.spared: int | npt.NDArray[np.int64] = int(worlds["start"][0])
        self._watching: npt.NDArray[np.bool_] | None = None

    def reset(self) -> None:
        """New episodes begin."""
        self._watching = None

    def act(self, obs: Array, alerts: Array, masks: Array) -> Actions:
        watched = np.zeros(len(obs), np.bool_) if self._watching is None else self._watching
        treat = watched & (alerts != NO_HOST) & (alerts != self.spared)
        self._watching = ~treat
        return np.where(treat, self._treat[alerts.astype(np.int64)], self._monitor)


class Greedy:
    """Repairs by the true state, in the order of its workflow; otherwise it sleeps.

    No defender can play it, since none sees the true state: it shows how well an order can be
    followed. Under the `host` rule each of its fixes is compliant.
    """

    def __init__(self, orders: npt.NDArray[np.integer]) -> None:
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


_MAKERS: dict[str, Callable[[int | Sequence[int], int, Array | None], Defender]] = {
    "sleep": lambda seed, width, worlds: Sleeper(worlds),
    "random": RandomDefender,
    "react-remove": lambda seed, width, worlds: Reactor("Remove", worlds),
    "react-restore": lambda seed, width, worlds: Reactor("Restore", worlds),
}
DEFENDERS = tuple(_MAKERS)
GREEDY = "greedy"  # the one that needs an order


def make_defender(
    name: str, seed: int | Sequence[int] = 0, width: int = 1, worlds: Array | None = None
) -> Defender:
    """A scripted defender by name, at the start of its episodes; seed and width are for `random`.

    worlds: the networks that it defends.
    """
    maker = _MAKERS.get(name.lower().replace("_", "-"))
    if maker is None:
        raise ConfigError(choices("policy", name, (*DEFENDERS, GREEDY)))
    return maker(seed, width, worlds)
