"""The environments of a pool in the caller's own process: to debug, or where that is fastest."""

from collections import deque
from copy import deepcopy

import numpy as np

from phalanx.envs.block import Block, Info
from phalanx.envs.factories import Factory
from phalanx.envs.faults import Fault, PoolClosed
from phalanx.envs.layout import Value
from phalanx.envs.processes import OnFault
from phalanx.envs.shared_memory import Board, Ints, Options, PoolSetup
from phalanx.envs.worker import use


class Serial(Block):
    """Like `Workers`, but rows are made when they are asked for."""

    num_workers = 0
    pids: tuple[int, ...] = ()

    def __init__(self, setup: PoolSetup, factory: Factory, on_fault: OnFault) -> None:
        super().__init__(setup, factory, Board(setup))
        self._on_fault, self._left = on_fault, False
        self._options: dict[int, Options] = {}
        self._waiting: deque[int] = deque()

    def _report(self, fault: Fault) -> None:
        self._on_fault(fault)
        if self._left:  # who is told may have closed us
            raise PoolClosed("the pool was closed")

    def _options_for(self, i: int) -> Options:
        return self._options[i]

    def submit(self, requests: Ints, ids: Ints) -> None:
        self._waiting.extend(requests.tolist())

    def collect(self, need: int, timeout_s: float | None = None) -> Ints:
        """Step them here and now: nobody can interrupt that, so `timeout_s` is of no effect."""
        if need == len(self._waiting) == len(self.board.everybody):
            requests = sorted(self._waiting, key=lambda i: i if i >= 0 else ~i)
            self._waiting.clear()
            self.play(requests)
            return self.board.everybody
        requests = [self._waiting.popleft() for _ in range(need)]
        self.play(requests)
        return np.array([i if i >= 0 else ~i for i in requests], np.int64)

    def info(self, i: int) -> Info:
        return self.infos.pop(i)

    def begin_with(self, options: Options, i: int) -> None:
        """The options of the reset of environment i that is asked for next."""
        self._options[i] = deepcopy(options)

    def read_messages(self, ids: Ints) -> None:
        """Values are on the board already, and faults were told when they happened."""

    def call(self, i: int, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Value:
        return use(self.envs[i], name, args, kwargs)

    def leave(self) -> None:
        """Nobody waits for us in another thread but an environment."""
        self._left = True
