"""Judge fixes outside the compiled step: for any simulator, and with a true state that costs."""

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import HOST_OF_ACTION, REMOVE, RESTORE, VERB_OF_ACTION
from phalanx.cage2.workflow import judge
from phalanx.errors import ConfigError

Sets = npt.NDArray[np.uint16]  # of hosts that red holds, one per network
Fetch = Callable[[], Sets]
NEVER = -(2**31)


def parse_true_state(mode: str) -> str | int:
    """`episode_end`, `off`, or after how many turns the state is fetched again: `exact` is 1."""
    if mode in ("episode_end", "off"):
        return mode
    if mode == "exact":
        return 1
    kind, _, turns = mode.partition(":")
    if kind == "every" and turns.isdecimal() and int(turns) > 0:
        return int(turns)
    raise ConfigError(
        f"true state {mode!r} is unknown: choose exact, every:K (such as every:5), episode_end, off"
    )


def is_fix(actions: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Remove or Restore."""
    verbs = VERB_OF_ACTION[actions]
    return (verbs == REMOVE) | (verbs == RESTORE)


class Referee:
    """Counts the fixes of N episodes, and those that followed their orders.

    referee = Referee(orders, "host", "every:5")
    referee.before(actions, fetch)      # each turn, before blue's actions are played
    referee.end(fetch)                  # after the last one
    referee.fixes, referee.compliant    # [N]

    fetch() gives the hosts that red holds now. It is called only when a fix has to be judged and
    what was fetched last is too old; `seconds`, `fetches` and `age` say what that costs.
    """

    def __init__(
        self, orders: npt.NDArray[np.integer], rule: str, true_state: str = "exact"
    ) -> None:
        self._orders, self._rule = np.asarray(orders, np.int64), rule
        self._mode = parse_true_state(true_state)
        self.fixes = np.zeros(len(self._orders), np.int64)
        self.compliant = np.zeros(len(self._orders), np.int64)
        self.turn, self.fetches, self.seconds = 0, 0, 0.0
        self.age = 0  # turns between a fix and the state by which it was judged, in all
        self._state = np.zeros(len(self._orders), np.uint16)
        self._fetched_at = np.full(len(self._orders), NEVER)
        self._unjudged: list[tuple[int, npt.NDArray[np.int64]]] = []

    def before(self, actions: npt.NDArray[np.int64], fetch: Fetch) -> None:
        fixing = is_fix(actions)
        self.fixes += fixing
        if fixing.any():
            if isinstance(self._mode, int):
                self._fetch(fetch, fixing & (self.turn - self._fetched_at >= self._mode))
                self._judge(self.turn, actions)
            elif self._mode == "episode_end":
                self._unjudged.append((self.turn, actions.copy()))
        self.turn += 1

    def end(self, fetch: Fetch) -> None:
        if self._unjudged:
            self._fetch(fetch, self.fixes > 0)
        for turn, actions in self._unjudged:
            self._judge(turn, actions)
        self._unjudged.clear()

    def _fetch(self, fetch: Fetch, needed: npt.NDArray[np.bool_]) -> None:
        if needed.any():
            began = time.perf_counter()
            self._state[needed] = fetch()[needed]
            self.seconds += time.perf_counter() - began
            self._fetched_at[needed] = self.turn
            self.fetches += int(needed.sum())

    def _judge(self, turn: int, actions: npt.NDArray[np.int64]) -> None:
        fixing = is_fix(actions)
        followed = judge(self._rule, self._orders, HOST_OF_ACTION[actions], self._state)
        self.compliant += fixing & followed
        self.age += int(np.abs(self._fetched_at - turn)[fixing].sum())
