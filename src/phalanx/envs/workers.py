"""Worker processes with a block of environments each, seen from the caller's process.

Every wait ends: a worker that died is noticed at once, one that hangs is killed at its deadline,
and both are replaced. Each environment of the lost block then gives one row that says so.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from multiprocessing import TimeoutError as GymnasiumTimeout

import numpy as np

from phalanx.envs.block import Info
from phalanx.envs.channel import Message
from phalanx.envs.layout import Objects, Value
from phalanx.envs.processes import TICK_S, OnFault, Processes
from phalanx.envs.shared_memory import (
    CALL,
    RECOVER,
    WITH_OPTIONS,
    Board,
    Ints,
    Options,
    PoolSetup,
    numbers,
)
from phalanx.envs.starter import Starter
from phalanx.envs.waiting import Patience, fence
from phalanx.envs.worker import between
from phalanx.errors import PhalanxError, WorkerError
from phalanx.machine import count_cores
from phalanx.system import AnyBell, AnyMemory, new_bell, new_memory


class Late(PhalanxError, TimeoutError, GymnasiumTimeout):
    """Rows that did not arrive in the time that the caller gave them; they may still."""


class Workers(Processes):
    """The workers of a pool, seen on the board. Requests in, numbers of written rows out."""

    def __init__(
        self,
        setup: PoolSetup,
        board: Board,
        starter: Starter,
        memory: AnyMemory,
        bells: Sequence[AnyBell],
        on_fault: OnFault,
    ) -> None:
        super().__init__(setup, board, starter, memory, bells, on_fault)
        self._sizes = [len(block) for block in self._blocks]
        self._all_workers = range(self.num_workers)
        self._owner = np.repeat(self._all_workers, self._sizes)
        self.everybody = board.everybody
        self._requests = [numbers(board.requests[b.start : b.stop]) for b in self._blocks]
        self._finished = [numbers(board.finished[b.start : b.stop]) for b in self._blocks]
        self._goal = numbers(board.goal)
        self._in_rings: Ints | None = None  # `everybody`, if that is what was last asked for
        self._taken = [0] * self.num_workers  # finished rows that were fetched from each ring
        self._target = 0  # finished rows, of all workers together, that we wait for
        self._ready: deque[int] = deque()  # fetched, and not yet handed to the caller
        self._broken: set[int] = set()  # in a lost block, and the caller was not told yet
        self._infos: dict[int, Info] = {}
        self._replies: deque[tuple[bool, Value]] = deque()
        self._patience = Patience(self.num_workers / count_cores())

    def submit(self, requests: Ints, ids: Ints) -> None:
        """Ask for the rows of `ids`: a request is the number, or ~number to follow an order."""
        if self._broken:
            requests = self._with_losses_told(requests, ids)
        if isinstance(self.board.action_layout, Objects):
            for i in requests[requests >= 0].tolist():
                self._post("action", i, self.board.actions[i])
        by_worker: dict[int, list[int]]
        asked: Iterable[int]
        if ids is self.everybody:
            asked = self._all_workers
            if requests is not self._in_rings:
                for worker, block in enumerate(self._blocks):
                    self._write(worker, requests[block.start : block.stop].tolist())
                if requests is self.everybody:
                    self._in_rings = requests
            fence()
            for worker in asked:
                self._sent[worker] += self._sizes[worker]
        else:
            asked = by_worker = {}
            for worker, request in zip(self._owner[ids].tolist(), requests.tolist(), strict=True):
                by_worker.setdefault(worker, []).append(request)
            for worker, some in by_worker.items():
                self._write(worker, some)
            fence()
            for worker, some in by_worker.items():
                self._sent[worker] += len(some)
        fence()
        for worker in asked:
            if self._asleep[worker]:
                self._bells[worker].ring()

    def _write(self, worker: int, requests: list[int]) -> None:
        self._in_rings = None
        ring, size, sent = self._requests[worker], self._sizes[worker], self._sent[worker]
        for k, request in enumerate(requests, sent):
            ring[k % size] = request

    def collect(self, need: int, timeout_s: float | None = None) -> Ints:
        """Wait for `need` rows, in the order in which they became ready; returns their numbers."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if time.monotonic() - self._attended_at > TICK_S:
            self.attend()  # others may have rows ready all the time
        while not self.enough(need):
            if self._patience.look(self._there):
                continue
            left_s = TICK_S if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                raise Late(f"rows did not arrive within the timeout of {timeout_s:g} s")
            self._patience.sleeps()
            self._sleep_until_something_happens(min(left_s, TICK_S))
            self._patience.wakes()
        fence()
        if need == len(self.everybody) and not self._ready:
            self._taken = self._done.tolist()
            return self.everybody
        for worker in self._all_workers:
            if self._done[worker] != self._taken[worker]:
                self._fetch_from(worker)
        return np.array([self._ready.popleft() for _ in range(need)], np.int64)

    def enough(self, need: int) -> bool:
        """Whether `collect` would not have to wait."""
        self._target = sum(self._taken) + need - len(self._ready)
        return self._there()

    def _there(self) -> bool:
        return sum(self._done) >= self._target

    def arm(self) -> None:
        """Let workers ring when there is enough; then `fileno` can be waited for."""
        self._goal[0] = self._target
        self._asleep[self.num_workers] = 1
        fence()

    def _sleep_until_something_happens(self, timeout_s: float) -> None:
        self.arm()
        self.attend(0.0 if self._target and self._there() else timeout_s)

    def _fetch_from(self, worker: int) -> None:
        done = self._done[worker]
        fence()
        rings = self._finished if self._setup.each_row else self._requests
        for request in between(rings[worker], self._taken[worker], done):
            self._ready.append(request if request >= 0 else ~request)
        self._taken[worker] = done

    def info(self, i: int) -> Info:
        """What environment i told in the row that is being handed over."""
        if i not in self._infos:
            self._read(int(self._owner[i]))
        return self._infos.pop(i)

    def read_messages(self, ids: Ints) -> None:
        """Take what was said of rows that are written, before they are handed over."""
        for worker in sorted(set(self._owner[ids].tolist())):
            self._read(worker)

    def _take(self, kind: str, content: list[Message]) -> None:
        if kind == "infos":
            self._infos.update(content[0])
        elif kind == "values":
            self.board.obs.update(content[0])
            self.board.final_obs.update(content[1])
        else:
            assert kind == "reply"
            self._replies.append((content[0], content[1]))

    def begin_with(self, options: Options, i: int) -> None:
        """The options of the reset of environment i that is asked for next."""
        self._post("options", i, options)

    def _post(self, kind: str, i: int, content: object) -> None:
        """Send what environment i is to be given when its row is asked for."""
        owner = int(self._owner[i])
        while not self._is_ready(owner):
            self._sleep_until_something_happens(TICK_S)
        try:
            self._running[owner].channel.send((kind, i, content))
        except (BlockingIOError, TimeoutError):
            self._running[owner].end(f"did not read a message ({kind}) in time")
        except ConnectionError:
            pass  # a dead worker answers through its fault

    def call(self, i: int, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> Value:
        """Use an attribute or a method of environment i, in its worker. Nothing may be pending."""
        owner = int(self._owner[i])
        self._post("call", i, (name, args, kwargs))
        self.board.orders[i] = CALL
        ids = np.array([i], np.int64)
        self.submit(~ids, ids)
        while not self._replies:
            if self._done[owner] != self._taken[owner]:
                self._read(owner)
            else:
                self._sleep_until_something_happens(TICK_S)
        while self._done[owner] == self._taken[owner] and self._sent[owner] != self._done[owner]:
            self._sleep_until_something_happens(0.001)
        self._taken[owner] = self._done[owner]
        went_well, value = self._replies.popleft()
        if not went_well:
            raise value
        return value

    # --- after a death ----------------------------------------------------------------------------

    def _ask_again(self, worker: int) -> None:
        """Keep the rows that a dead worker has given; its successor will give the others."""
        self._fetch_from(worker)
        sent, done = self._sent[worker], self._done[worker]
        unanswered = between(self._requests[worker], done, sent)
        self._sent[worker] = done
        self._in_rings = None
        self._asleep[worker] = 0
        self._broken.update(self._blocks[worker])
        again = []
        for request in unanswered:
            i = request if request >= 0 else ~request
            if request < 0 and self.board.orders[i] == CALL:
                lost = WorkerError(f"worker {worker} died in a call of environment {i}")
                self._replies.append((False, lost))
                continue
            if request >= 0 or self.board.orders[i] & WITH_OPTIONS:
                self.board.orders[i] = RECOVER
            self._broken.discard(i)
            again.append(~i)
        if again:
            self._write(worker, again)
            fence()
            self._sent[worker] += len(again)

    def _with_losses_told(self, requests: Ints, ids: Ints) -> Ints:
        """Environments whose episode is gone are not stepped: their next row says so."""
        requests = requests.copy()
        for row, i in enumerate(ids.tolist()):
            is_call = requests[row] < 0 and self.board.orders[i] == CALL
            if i in self._broken and not is_call:
                self._broken.discard(i)
                if requests[row] >= 0:
                    self.board.orders[i] = RECOVER
                    requests[row] = ~i
        return requests


def open_workers(setup: PoolSetup, starter: Starter, on_fault: OnFault) -> Workers:
    """Memory for all rows, and workers that fill it; or nothing that is left open."""
    with ExitStack() as files:
        files.callback(starter.close)
        try:
            memory, bells = new_memory(), []
            files.callback(memory.close)
            for _ in range(setup.num_workers + 1):
                bells.append(new_bell())
                files.callback(bells[-1].close)
            board = Board(setup, memory.map)
            workers = Workers(setup, board, starter, memory, bells, on_fault)
            workers.begin()
        except OSError as error:
            raise WorkerError(
                f"cannot start {setup.num_workers} workers: {error.strerror}; ask for fewer, or "
                "raise the limit (`ulimit -n` for files)"
            ) from error
        workers.files = files.pop_all()
    return workers
