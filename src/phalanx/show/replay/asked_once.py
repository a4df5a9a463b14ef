"""An attacker in plain Python is asked once in each turn, though its game is told by a copy."""

import ctypes
from collections.abc import Sequence

import numpy as np

from phalanx.cage2.attack.own_red import OwnRed
from phalanx.cage2.attack.python_red import CALLBACK, PythonAttacker
from phalanx.cage2.scenario.plan import Scenario

Game = tuple[int, int]  # its dice: stream and episode


class AskedOnce(PythonAttacker):
    """The same class of the user's, whose moves are kept: a copy of a game gets that of the game.

    Its memory and its dice are its own, so asking it again would be another game.
    """

    def address(self, network: np.dtype[np.void], scenarios: Sequence[Scenario]) -> int:
        ask = CALLBACK(super().address(network, scenarios))
        last: dict[Game, tuple[int, int]] = {}  # the turn, and the move in it

        def asked(place: int, die: int) -> int:
            net = np.frombuffer(ctypes.string_at(place, network.itemsize), network)[0]
            game, turn = (int(net["stream"]), int(net["episode"])), int(net["turn"])
            if last.get(game, (-1, 0))[0] != turn:
                last[game] = turn, ask(place, die)
            return last[game][1]

        callback = CALLBACK(asked)
        self._callbacks[id(callback)] = callback
        where = ctypes.cast(callback, ctypes.c_void_p).value
        assert where is not None
        return where


def ask_once(red: OwnRed) -> None:
    """Let the classes among these attackers be asked once in a turn, from now on."""
    red.attackers = [
        AskedOnce(one.make) if isinstance(one, PythonAttacker) else one for one in red.attackers
    ]
    red.tell()
