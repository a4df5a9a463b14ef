"""The processes of a pool: started, listened to, ended at their deadline, and replaced."""

import contextlib
import os
import select
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from phalanx.envs.faults import Fault, PoolClosed, dead_worker
from phalanx.envs.shared_memory import IDLE, Board, PoolSetup, block_of, numbers
from phalanx.envs.starter import Ended, Started, Starter
from phalanx.envs.worker import STOP, work
from phalanx.errors import ConfigError, WorkerError
from phalanx.system import READABLE, AnyBell, AnyMemory, kill, new_poll

TICK_S = 0.1  # how often deadlines are looked at while waiting
CLOSE_S = 1.0  # how long environments may take to close
DEAF_S = 10.0  # in which the starter has told of a worker's end
NOT_BUILT = "could not build"

OnFault = Callable[[Fault], None]


class Processes(ABC):
    """A process for each worker, as long as the pool is open. What they write is in `Workers`."""

    def __init__(
        self,
        setup: PoolSetup,
        board: Board,
        starter: Starter,
        memory: AnyMemory,
        bells: Sequence[AnyBell],
        on_fault: OnFault,
    ) -> None:
        """bells: one for each worker, and the last for the caller."""
        count = self.num_workers = setup.num_workers
        self._setup, self.board, self._starter, self._on_fault = setup, board, starter, on_fault
        self._memory, self._bells = memory, bells
        self._blocks = [block_of(worker, setup.n_envs, count) for worker in range(count)]
        self._sent, self._done = numbers(board.sent), numbers(board.done)
        self._asleep = numbers(board.asleep)
        self._running: dict[int, Started] = {}
        self._refusal = ConfigError  # what to raise if not all can begin
        self._attended_at = self._watched_at = 0.0
        self._starting, self._pid = True, os.getpid()
        self._left = self._closed = False
        self.files = ExitStack()  # what is to be closed with us
        self._poll = new_poll()

    @abstractmethod
    def _take(self, kind: str, content: list[object]) -> None:
        """A message that a worker has sent."""

    @abstractmethod
    def _ask_again(self, worker: int) -> None:
        """What a dead worker was asked for and did not give: its successor will."""

    def begin(self) -> None:
        """Start all of them; returns when their environments are built."""
        try:
            self._poll.register(self._bells[-1].fd, READABLE)
            self._start_all()
            while not all(map(self._is_ready, range(self.num_workers))):
                self.attend(TICK_S)
        except BaseException:
            self.close()
            raise
        self._starting = False

    @property
    def pids(self) -> list[int]:
        """The processes of the workers that run."""
        return [started.pid for _worker, started in sorted(self._running.items())]

    def _is_ready(self, worker: int) -> bool:
        return worker in self._running and self._running[worker].ready

    # --- what may happen while we wait ------------------------------------------------------------

    def fileno(self) -> int:
        """Readable when `attend` has something to do; -1 where only asking tells."""
        return self._poll.fileno()

    def attend(self, timeout_s: float = 0.0) -> None:
        """Deal with all that has happened: bells, messages, deaths, deadlines."""
        self._stay()
        events = self._poll.poll(timeout_s)
        self._asleep[self.num_workers] = 0
        self._stay()
        self._attended_at = time.monotonic()
        others = [fd for fd, _event in events if fd != self._bells[-1].fd]
        if len(others) < len(events):
            self._bells[-1].hush()
        if others:
            channels = {started.channel.fileno(): w for w, started in self._running.items()}
            for fd in others:
                if fd in channels:
                    self._read(channels[fd])
        if self._starter.fileno() in (*others, -1) or self._starter.unheard:
            self._hear()
        if self._attended_at - self._watched_at > TICK_S / 2:
            self._watch()

    def leave(self) -> None:
        """Let whoever waits in another thread wait no longer; `close` comes next."""
        self._left = True
        self._bells[-1].ring()

    def _stay(self) -> None:
        if self._left:
            raise PoolClosed("the pool was closed while rows were waited for")

    def _tell(self, fault: Fault) -> None:
        self._on_fault(fault)
        self._stay()  # who is told may have closed us

    def _read(self, worker: int) -> None:
        """Take the messages of a worker."""
        if worker not in self._running:
            return
        started = self._running[worker]
        was_closed = started.channel.closed
        for kind, *content in started.channel.receive():
            if kind == "ready":
                started.ready, started.since = True, time.monotonic()
            elif kind == "failed":
                what, trace, self._refusal = content
                how = f"{NOT_BUILT} environment {self._env_at(worker)}: {what}"
                started.verdict = how, trace
            elif kind == "fault":
                self._tell(content[0])
            else:
                self._take(kind, content)
        if started.channel.closed and not was_closed:
            self._poll.unregister(started.channel.fileno())
            started.owed_since = min(started.owed_since, time.monotonic())

    def _watch(self) -> None:
        """End workers that are past their deadline."""
        now = self._watched_at = time.monotonic()
        start_s, step_s = self._setup.start_timeout_s, self._setup.step_timeout_s
        for worker, started in self._running.items():
            if now - started.owed_since > DEAF_S:
                self._starter.kill()
            elif started.verdict is not None:
                continue
            elif not started.ready:
                if now - started.since > start_s:
                    limit = f"start_timeout of {start_s:g} s"
                    started.end(f"took longer than the {limit} to build its environments")
            elif self._sent[worker] != self._done[worker]:
                seen = self._sent[worker], self._done[worker], int(self.board.now[worker])
                if seen != started.seen:
                    started.seen, started.since = seen, now
                elif now - started.since > step_s:
                    started.end(f"hung for longer than the step_timeout of {step_s:g} s")

    # --- beginnings and ends ----------------------------------------------------------------------

    def _start_all(self) -> None:
        if self._starter.fileno() >= 0:
            self._poll.register(self._starter.fileno(), READABLE)
        for worker in range(self.num_workers):
            self._start(worker)

    def _start(self, worker: int) -> None:
        task, bells = partial(work, self._setup, worker), (self._bells[worker], self._bells[-1])
        started = self._starter.start(worker, task, self._memory, *bells)
        if started is not None:
            self._running[worker] = started
            self._poll.register(started.channel.fileno(), READABLE)

    def _hear(self) -> None:
        for ended in self._starter.hear():
            if ended.worker not in self._running:  # it only tried an environment
                continue
            fault = self._ended(ended)
            if self._starting:
                raise self._refusal(str(fault))
            self._tell(fault)
            self._start(ended.worker)
        if self._starter.gone and not self._closed:
            self._start_all_again()

    def _ended(self, ended: Ended) -> Fault:
        """Keep what a worker had finished, ask again for what it had not, say what is known."""
        worker, block = ended.worker, self._blocks[ended.worker]
        self._read(worker)
        started = self._running.pop(worker)
        words = started.words()
        self._let_go(started)
        at, env_id, doing = int(self.board.now[worker]), self._env_at(worker), ""
        if started.verdict is None or not started.verdict[0].startswith(NOT_BUILT):
            if at == IDLE:
                doing = " when idle"
            elif env_id is not None:
                doing = f" in environment {env_id}"
        action = None
        if at >= 0 and started.ready:
            action = self.board.action_layout.reader(self.board.actions)(at)
        self._ask_again(worker)
        known = {"env_id": env_id, "lost": tuple(block), "memory_mb": ended.memory_mb}
        return dead_worker(
            worker, ended.code, started.verdict, words, doing, last_action=action, **known
        )

    def _env_at(self, worker: int) -> int | None:
        """The environment that a worker is at, if it is at one of its own."""
        at = int(self.board.now[worker])
        return next((i for i in self._blocks[worker] if at in (i, ~i)), None)

    def _start_all_again(self) -> None:
        """The fork server was killed: begin with a new one, and new workers."""
        self._poll.unregister(self._starter.fileno())
        for started in self._running.values():
            kill(started.pid)
            with contextlib.suppress(OSError):  # wait until it cannot write any more
                select.select([started.channel], [], [], 1.0)
        self._starter.close()
        for worker, started in list(self._running.items()):
            self._ended(Ended(worker, started.pid, -signal.SIGKILL, 0.0))
        if self._starting:
            raise WorkerError("the process that starts workers ended before it had started all")
        what = "the process that starts workers was killed, and its workers with it"
        self._tell(Fault(what=what, lost=tuple(range(self._setup.n_envs))))
        self._starter = self._starter.again()
        self._start_all()

    def _let_go(self, started: Started) -> None:
        if not started.channel.closed:
            self._poll.unregister(started.channel.fileno())
        started.close()

    def close(self) -> None:
        """Stop all workers; those that do not within a second are killed."""
        if self._closed or os.getpid() != self._pid:  # a forked copy of us owns nothing
            return
        self._left = self._closed = True
        with contextlib.suppress(OSError):  # what they still have to say comes too late
            self._stop()
        self._starter.close()
        for started in self._running.values():
            self._let_go(started)
        self._running.clear()
        self._poll.close()
        self.files.close()

    def _stop(self) -> None:
        for worker in range(self.num_workers):
            self._sent[worker] = STOP
            self._bells[worker].ring()
        deadline = time.monotonic() + CLOSE_S
        while self._running and not self._starter.gone and time.monotonic() < deadline:
            if self._starter.fileno() >= 0:
                select.select([self._starter], [], [], 0.05)
            else:
                time.sleep(0.01)
            for started in self._running.values():
                with contextlib.suppress(Exception):  # what it still has to say comes too late
                    started.channel.receive()
            for ended in self._starter.hear():
                if ended.worker in self._running:
                    self._let_go(self._running.pop(ended.worker))
        for started in self._running.values():
            kill(started.pid)
