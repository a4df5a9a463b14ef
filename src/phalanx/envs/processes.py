"""The processes of a pool: started, listened to, ended at their deadline, and replaced."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Protocol

from phalanx.envs.faults import Fault, PoolClosed, failed_env, how_it_ended
from phalanx.envs.shared_memory import IDLE, Board, block_of, numbers
from phalanx.envs.starter import Ended, Started, Starter
from phalanx.envs.worker import STOP, PoolSetup
from phalanx.errors import ConfigError, WorkerError
from phalanx.system import READABLE, kill, new_poll

TICK_S = 0.1  # how often deadlines are looked at while waiting
CLOSE_S = 1.0  # how long environments may take to close
DEAF_S = 10.0  # in which the starter has started a worker, or told of its end

OnFault = Callable[[Fault], None]


class Asker(Protocol):
    """Who asks the processes for rows."""

    def take(self, kind: str, content: list[Any]) -> None:
        """A message that a worker has sent."""

    def ask_again(self, worker: int) -> None:
        """What a dead worker was asked for and did not give: its successor will."""


class Processes:
    """A process for each worker, as long as the pool is open. What they write is in `Workers`."""

    def __init__(self, setup: PoolSetup, board: Board, starter: Starter, on_fault: OnFault) -> None:
        count, n = setup.shape.num_workers, setup.shape.n_envs
        self._setup, self._board, self._bells = setup, board, setup.bells
        self._starter, self._on_fault = starter, on_fault
        self.blocks = [block_of(worker, n, count) for worker in range(count)]
        self._sent, self._done = numbers(board.sent), numbers(board.done)
        self.running: dict[int, Started] = {}
        self.up = [False] * count  # its environments are built
        self._seen = [(0, 0)] * count  # how far each worker was when we last looked
        self.since = [time.monotonic()] * count  # and since when it is there
        self._verdicts: dict[int, tuple[str, str]] = {}  # why we had to end it, and its stack
        self._failures: dict[int, tuple[str, str, type[ConfigError]]] = {}  # why it could not begin
        self._owed: dict[int, float] = {}  # workers that the starter has to tell of, since when
        self.attended_at = self._watched_at = 0.0
        self._starting, self._pid = True, os.getpid()
        self._left = self._closed = False
        self.files = ExitStack()  # what is to be closed with us
        self._poll = new_poll()

    def begin(self, asker: Asker) -> None:
        """Start all of them; returns when their environments are built."""
        self._asker = asker
        try:
            self._poll.register(self._bells[len(self.blocks)].fd, READABLE)
            self._start_all(self._starter)
            while not all(self.up):
                self.attend(TICK_S)
        except BaseException:
            self.close()
            raise
        self._starting = False

    # --- what may happen while we wait ------------------------------------------------------------

    def fileno(self) -> int:
        """Readable when `attend` has something to do; -1 where only asking tells."""
        return self._poll.fileno()

    def attend(self, timeout_s: float = 0.0) -> None:
        """Deal with all that has happened: bells, messages, deaths, deadlines."""
        self._stay()
        events = self._poll.poll(timeout_s)
        self._stay()
        self.attended_at = time.monotonic()
        bell = self._bells[len(self.blocks)]
        others = [fd for fd, _event in events if fd != bell.fd]
        if len(others) < len(events):
            bell.hush()
        if others:
            channels = {started.channel.fileno(): w for w, started in self.running.items()}
            for fd in others:
                if fd in channels:
                    self.read(channels[fd])
        if self._starter.fileno() in (*others, -1):
            self._hear()
        if self.attended_at - self._watched_at > TICK_S / 2:
            self._watch()

    def leave(self) -> None:
        """Let whoever waits in another thread wait no longer; `close` comes next."""
        self._left = True
        self._bells[len(self.blocks)].ring()

    def _stay(self) -> None:
        if self._left:
            raise PoolClosed("the pool was closed while rows were waited for")

    def _tell(self, fault: Fault) -> None:
        self._on_fault(fault)
        self._stay()  # who is told may have closed us

    def read(self, worker: int) -> None:
        """Take the messages of a worker."""
        if worker not in self.running:
            return
        channel = self.running[worker].channel
        was_closed = channel.closed
        for kind, *content in channel.receive():
            if kind == "ready":
                self.up[worker], self.since[worker] = True, time.monotonic()
            elif kind == "failed":
                self._failures[worker] = (content[0], content[1], content[2])
            elif kind == "fault":
                self._tell(failed_env(worker, *content))
            else:
                self._asker.take(kind, content)
        if channel.closed and not was_closed:
            self._poll.unregister(channel.fileno())
            self._owed.setdefault(worker, time.monotonic())

    def _watch(self) -> None:
        """End workers that are past their deadline."""
        now = self._watched_at = time.monotonic()
        if self._owed and now - min(self._owed.values()) > DEAF_S:
            self._starter.kill()
            self._owed.clear()
        for worker in range(len(self.blocks)):
            if worker in self._verdicts:
                continue
            if not self.up[worker]:
                if now - self.since[worker] > self._setup.start_timeout_s:
                    limit = f"start_timeout of {self._setup.start_timeout_s:g} s"
                    self.end(worker, f"took longer than the {limit} to build its environments")
            elif self._sent[worker] != self._done[worker]:
                seen = self._done[worker], int(self._board.now[worker])
                if seen != self._seen[worker]:
                    self._seen[worker], self.since[worker] = seen, now
                elif now - self.since[worker] > self._setup.step_timeout_s:
                    limit = f"step_timeout of {self._setup.step_timeout_s:g} s"
                    self.end(worker, f"hung for longer than the {limit}")

    def end(self, worker: int, verdict: str) -> None:
        """Kill a worker, and say why; another takes its place."""
        started = self.running.get(worker)
        if started is None:
            raise WorkerError(f"worker {worker} could not be started within its deadline")
        self._verdicts[worker] = verdict, started.stack()
        kill(started.pid)
        self._owed[worker] = time.monotonic()

    # --- beginnings and ends ----------------------------------------------------------------------

    def _start_all(self, starter: Starter) -> None:
        self._starter = starter
        if starter.fileno() >= 0:
            self._poll.register(starter.fileno(), READABLE)
        starter.set_up(self._setup)
        self._owed.clear()
        for worker in range(len(self.blocks)):
            self._start(worker)

    def _start(self, worker: int) -> None:
        self.since[worker] = self._owed[worker] = time.monotonic()
        self._starter.start(worker)

    def _hear(self) -> None:
        for news in self._starter.hear():
            if isinstance(news, Started):
                self._begun(news)
            elif news.worker in self.running and self.running[news.worker].pid == news.pid:
                self.read(news.worker)
                *_what, refusal = self._failures.get(news.worker, ("", "", ConfigError))
                fault = self._ended(news)
                if self._starting:
                    raise refusal(str(fault))
                self._tell(fault)
                self._start(news.worker)
        if self._starter.gone and not self._closed:
            self._start_all_again()

    def _begun(self, started: Started) -> None:
        self.running[started.worker] = started
        self.since[started.worker] = time.monotonic()
        self._owed.pop(started.worker, None)
        self._poll.register(started.channel.fileno(), READABLE)

    def _ended(self, ended: Ended) -> Fault:
        """Keep what a worker had finished, ask again for what it had not, say what is known."""
        worker, block = ended.worker, self.blocks[ended.worker]
        self.read(worker)
        started = self.running.pop(worker)
        words = started.words()
        self._let_go(started)
        at = int(self._board.now[worker])
        how, exit_code, signal_name = how_it_ended(ended.code)
        if worker in self._verdicts:
            how, words = self._verdicts.pop(worker)
        env_id: int | None = None
        if at != IDLE and at in (*block, *(~i for i in block)):
            env_id = at if at >= 0 else ~at
        if worker in self._failures:
            what, words, _refusal = self._failures.pop(worker)
            how = f"could not build environment {env_id}: {what}"
        doing = " when idle" if at == IDLE else f" in environment {env_id}"
        doing = "" if how.startswith("could not") or (env_id is None and at != IDLE) else doing
        action = None
        if at >= 0 and self.up[worker]:
            action = self._board.action_layout.reader(self._board.actions)(at)
        self.up[worker] = False
        self._asker.ask_again(worker)
        return Fault(
            what=f"worker {worker} {how}{doing}",
            env_id=env_id,
            worker=worker,
            lost=tuple(block),
            traceback=words,
            exit_code=exit_code,
            signal=signal_name,
            memory_mb=ended.memory_mb,
            last_action=action,
        )

    def _start_all_again(self) -> None:
        """The fork server was killed: begin with a new one, and new workers."""
        self._poll.unregister(self._starter.fileno())
        for started in self.running.values():
            kill(started.pid)
            with contextlib.suppress(OSError):  # wait until it cannot write any more
                select.select([started.channel], [], [], 1.0)
        self._starter.close()
        for worker, started in list(self.running.items()):
            self._ended(Ended(worker, started.pid, -signal.SIGKILL, 0.0))
        if self._starting:
            raise WorkerError("the process that starts workers ended before it had started all")
        self._tell(
            Fault(
                what="the process that starts workers was killed, and its workers with it",
                env_id=None,
                worker=None,
                lost=tuple(range(self._setup.shape.n_envs)),
            )
        )
        self.up = [False] * len(self.blocks)
        self._verdicts.clear()
        self._start_all(self._starter.again())

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
        for started in self.running.values():
            self._let_go(started)
        self.running.clear()
        self._poll.close()
        self.files.close()
        del self._asker  # which refers to us: the memory is given back at once

    def _stop(self) -> None:
        for worker in range(len(self.blocks)):
            self._sent[worker] = STOP
            self._bells[worker].ring()
        deadline = time.monotonic() + CLOSE_S
        alive = {started.pid for started in self.running.values()}
        while alive and not self._starter.gone and time.monotonic() < deadline:
            if self._starter.fileno() >= 0:
                select.select([self._starter], [], [], 0.05)
            else:
                time.sleep(0.01)
            for started in list(self.running.values()):
                with contextlib.suppress(Exception):  # what it still has to say comes too late
                    started.channel.receive()
            for news in self._starter.hear():
                if isinstance(news, Ended):
                    alive.discard(news.pid)
                else:
                    self._begun(news)
                    alive.add(news.pid)
        for pid in alive:
            kill(pid)
