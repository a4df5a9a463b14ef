"""EnvWorker processes with a block of environments each, seen from the caller's process.

Every wait ends: a worker that died is noticed at once, one that hangs is killed at its deadline,
and both are replaced. Each environment of the lost block then gives one row that says so.
"""

import os
import time
from collections.abc import Iterable
from contextlib import ExitStack
from multiprocessing import TimeoutError as GymnasiumTimeout
from typing import Any

import numpy as np

from phalanx.envs.block import Info
from phalanx.envs.fork_client import ForkStarter
from phalanx.envs.objects import Objects
from phalanx.envs.processes import TICK_S, Staff
from phalanx.envs.settings import Rules
from phalanx.envs.shared_memory import CALL, RECOVER, WITH_OPTIONS, Board, Ints, Shape
from phalanx.envs.trial import EnvTraits
from phalanx.envs.waiting import Bell, fence
from phalanx.envs.worker import PoolSetup, between
from phalanx.errors import PhalanxError, WorkerError


class Late(PhalanxError, TimeoutError, GymnasiumTimeout):
    """Rows that did not arrive in the time that the caller gave them; they may still."""


class Workers(Staff):
    """The processes of a pool. Requests in, numbers of written rows out."""

    def submit(self, requests: Ints, ids: Ints) -> None:
        """Ask for the rows of `ids`: a request is the number, or ~number to follow an order."""
        if self._broken:
            requests = self._with_losses_told(requests, ids)
        if isinstance(self._board.action_layout, Objects):
            for i in requests[requests >= 0].tolist():
                self._post("action", i, self._board.actions[i])
        now = time.monotonic()
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
                self._count(worker, self._sizes[worker], now)
        else:
            asked = by_worker = {}
            for worker, request in zip(self._owner[ids].tolist(), requests.tolist(), strict=True):
                by_worker.setdefault(worker, []).append(request)
            for worker, some in by_worker.items():
                self._write(worker, some)
            fence()
            for worker, some in by_worker.items():
                self._count(worker, len(some), now)
        fence()
        for worker in asked:
            if self._asleep[worker]:
                self._bells[worker].ring()

    def _write(self, worker: int, requests: list[int]) -> None:
        self._in_rings = None
        ring, size, sent = self._requests[worker], self._sizes[worker], self._sent[worker]
        for k, request in enumerate(requests, sent):
            ring[k % size] = request

    def _count(self, worker: int, more: int, now: float) -> None:
        sent = self._sent[worker]
        if sent == self._done[worker]:
            self._since[worker] = now
        self._sent[worker] = sent + more

    def collect(self, need: int, timeout_s: float | None = None) -> Ints:
        """Wait for `need` rows, in the order in which they became ready; returns their numbers."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if time.monotonic() - self._attended_at > TICK_S:  # others may have rows ready all the time
            self.attend()
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
        self._fetch()
        return np.array([self._ready.popleft() for _ in range(need)], np.int64)

    def enough(self, need: int) -> bool:
        """Whether `collect` would not have to wait."""
        self._target = sum(self._taken) + need - len(self._ready)
        return self._there()

    def _fetch(self) -> None:
        for worker, (done, taken) in enumerate(zip(self._done, self._taken, strict=True)):
            if done != taken:
                self._fetch_from(worker)

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

    def fetch_values(self, ids: Ints) -> None:
        """Read the observations of rows that are written, if they come by message."""
        for worker in set(self._owner[ids].tolist()):
            self._read(worker)

    def begin_with(self, options: dict[str, Any], i: int) -> None:
        """The options of the reset of environment i that is asked for next."""
        self._post("options", i, options)

    def _post(self, kind: str, i: int, content: Any) -> None:
        """Send what environment i is to be given when its row is asked for."""
        owner = int(self._owner[i])
        while not self._up[owner]:
            self._sleep_until_something_happens(TICK_S)
        try:
            self._running[owner].channel.send((kind, i, content))
        except BlockingIOError:
            self._end(owner, f"did not read a message ({kind}) in time")
        except ConnectionError:
            pass  # a dead worker answers through its fault

    def hear_of(self, lost: list[int]) -> None:
        """Read what was said of environments that failed, before their rows are handed over."""
        for worker in sorted({int(self._owner[i]) for i in lost}):
            self._read(worker)

    def call(self, i: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Use an attribute or a method of environment i, in its worker. Nothing may be pending."""
        owner = int(self._owner[i])
        self._post("call", i, (name, args, kwargs))
        self._board.orders[i] = CALL
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
        """What a dead worker was asked for and did not give: its successor will."""
        sent, done = self._sent[worker], self._done[worker]
        unanswered = between(self._requests[worker], done, sent)
        self._sent[worker] = done
        self._in_rings = None
        self._asleep[worker] = 0
        self._broken.update(self._blocks[worker])
        again = []
        for request in unanswered:
            i = request if request >= 0 else ~request
            if request < 0 and self._board.orders[i] == CALL:
                lost = WorkerError(f"worker {worker} died in a call of environment {i}")
                self._replies.append((False, lost))
                continue
            if request >= 0 or self._board.orders[i] & WITH_OPTIONS:
                self._board.orders[i] = RECOVER
            self._broken.discard(i)
            again.append(~i)
        if again:
            self._write(worker, again)
            fence()
            self._count(worker, len(again), time.monotonic())

    def _with_losses_told(self, requests: Ints, ids: Ints) -> Ints:
        """Environments whose episode is gone are not stepped: their next row says so."""
        requests = requests.copy()
        for row, i in enumerate(ids.tolist()):
            is_call = requests[row] < 0 and self._board.orders[i] == CALL
            if i in self._broken and not is_call:
                self._broken.discard(i)
                if requests[row] >= 0:
                    self._board.orders[i] = RECOVER
                    requests[row] = ~i
        return requests


def open_workers(
    traits: EnvTraits,
    starter: ForkStarter,
    shape: Shape,
    *,
    seed: int,
    infos: bool,
    rules: Rules,
    each_row: bool,
    **deal: Any,
) -> tuple[Board, Workers]:
    """Memory for all rows, and workers that fill it; or nothing that is left open."""
    with ExitStack() as files:
        files.callback(starter.close)
        try:
            memory_fd = os.memfd_create("phalanx-pool")
            files.callback(os.close, memory_fd)
            bells = []
            for _ in range(shape.num_workers + 1):
                bells.append(Bell.new())
                files.callback(bells[-1].close)
            board = Board(shape, traits.observations, traits.actions, memory_fd)
            setup = PoolSetup(
                observation_space=traits.observations.space,
                action_space=traits.actions.space,
                shape=shape,
                seed=seed,
                infos=infos,
                rules=rules,
                each_row=each_row,
                memory_fd=memory_fd,
                bell_fds=[bell.fd for bell in bells],
            )
            workers = Workers(setup, board, bells, starter, **deal)
        except OSError as error:
            raise WorkerError(
                f"cannot start {shape.num_workers} workers: {error.strerror}; ask for fewer, or "
                "raise the limit (`ulimit -n` for files)"
            ) from error
        workers.files = files.pop_all()
    return board, workers
