"""The processes of a pool: started, listened to, ended at their deadline, and replaced."""

import contextlib
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from phalanx.envs.auto import num_cores
from phalanx.envs.block import Info, SpacesDiffer
from phalanx.envs.faults import Fault, PoolClosed, how_it_ended
from phalanx.envs.fork_client import Ended, ForkStarter, Started, kill, read_words, stack_of
from phalanx.envs.shared_memory import IDLE, Board, Ints, block_of, numbers
from phalanx.envs.waiting import Bell, Patience, fence
from phalanx.envs.worker import STOP, PoolSetup
from phalanx.errors import ConfigError, WorkerError

TICK_S = 0.1  # how often deadlines are looked at while waiting
CLOSE_S = 1.0  # how long environments may take to close
DEAF_S = 10.0  # in which the fork server has started a worker, or told of its end

OnFault = Callable[[Fault], None]


class Staff:
    """The workers as processes; what they are asked for, and what they give, is in `Workers`."""

    def __init__(
        self,
        setup: PoolSetup,
        board: Board,
        bells: list[Bell],
        starter: ForkStarter,
        *,
        step_timeout_s: float,
        start_timeout_s: float,
        on_fault: OnFault,
    ) -> None:
        n, self.num_workers = setup.shape.n_envs, setup.shape.num_workers
        self._setup, self._board, self._bells = setup, board, bells
        self._starter, self._on_fault = starter, on_fault
        self._step_timeout_s, self._start_timeout_s = step_timeout_s, start_timeout_s
        self._blocks = [block_of(w, n, self.num_workers) for w in range(self.num_workers)]
        self._sizes = [len(block) for block in self._blocks]
        self._all_workers = range(self.num_workers)
        self._owner = np.repeat(range(self.num_workers), [len(b) for b in self._blocks])
        self.everybody: Ints = np.arange(n)
        self.everybody.flags.writeable = False  # callers get it, and give it back
        self._sent, self._done = numbers(board.sent), numbers(board.done)
        self._requests = [numbers(board.requests[b.start : b.stop]) for b in self._blocks]
        self._finished = [numbers(board.finished[b.start : b.stop]) for b in self._blocks]
        self._asleep, self._goal = numbers(board.asleep), numbers(board.goal)
        self._in_rings: Ints | None = None  # `everybody`, if that is what was last asked for
        self._taken = [0] * self.num_workers  # finished rows that were fetched from each ring
        self._target = 0  # finished rows, of all workers together, that we wait for
        self._ready: deque[int] = deque()  # fetched, and not yet handed to the caller
        self._broken: set[int] = set()  # in a lost block, and the caller was not told yet
        self._infos: dict[int, Info] = {}
        self._replies: deque[tuple[bool, Any]] = deque()
        self._patience = Patience(self.num_workers / num_cores())
        self._running: dict[int, Started] = {}
        self._up = [False] * self.num_workers  # its environments are built
        self._seen = [(0, 0)] * self.num_workers  # how far each worker was when we last looked
        self._since = [time.monotonic()] * self.num_workers  # and since when it is there
        self._verdicts: dict[int, tuple[str, str]] = {}  # why we had to end it, and its stack
        self._failures: dict[int, tuple[int, str, str]] = {}  # why it could not begin
        self._owed: dict[int, float] = {}  # workers that the fork server has to tell of, since when
        self._attended_at = self._watched_at = 0.0
        self._starting, self._pid = True, os.getpid()
        self._left = self._closed = False
        self.files = contextlib.ExitStack()  # what is to be closed with us
        self._epoll = select.epoll()
        try:
            self._epoll.register(bells[-1].fd, select.EPOLLIN)
            self._begin(starter)
            while not all(self._up):
                self._sleep_until_something_happens(TICK_S)
        except BaseException:
            self.close()
            raise
        self._starting = False

    def _fetch_from(self, worker: int) -> None:
        """Take the numbers of the rows that a worker has finished."""
        raise NotImplementedError

    def _ask_again(self, worker: int) -> None:
        """What a dead worker was asked for and did not give: its successor will."""
        raise NotImplementedError

    # --- what may happen while we wait ------------------------------------------------------------

    def fileno(self) -> int:
        """Readable when `attend` has something to do. Say first what for: `arm`."""
        return self._epoll.fileno()

    def arm(self) -> None:
        """Let workers ring when there is enough."""
        self._goal[0] = self._target
        self._asleep[self.num_workers] = 1
        fence()

    def attend(self, timeout_s: float = 0.0) -> None:
        """Deal with all that has happened: bells, messages, deaths, deadlines."""
        self._stay()
        events = self._epoll.poll(timeout_s)
        self._stay()
        self._attended_at = time.monotonic()
        self._asleep[self.num_workers] = 0
        bell, others = self._bells[-1], [fd for fd, _event in events if fd != self._bells[-1].fd]
        if len(others) < len(events):
            bell.hush()
        if others:
            channels = {started.channel.fileno(): w for w, started in self._running.items()}
            for fd in others:
                if fd in channels:
                    self._read(channels[fd])
            if self._starter.control.fileno() in others:
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

    def _sleep_until_something_happens(self, timeout_s: float) -> None:
        self.arm()
        self.attend(0.0 if self._target and self._there() else timeout_s)

    def _there(self) -> bool:
        return sum(self._done) >= self._target

    def _read(self, worker: int) -> None:
        """Take the messages of a worker."""
        if worker not in self._running:
            return
        channel = self._running[worker].channel
        was_closed = channel.closed
        for kind, *rest in channel.receive():
            if kind == "infos":
                self._infos.update(rest[0])
            elif kind == "values":
                self._board.obs.update(rest[0])
                self._board.final_obs.update(rest[1])
            elif kind == "reply":
                self._replies.append((rest[0], rest[1]))
            elif kind == "ready":
                self._up[worker], self._since[worker] = True, time.monotonic()
            elif kind == "failed":
                self._failures[worker] = (rest[0], rest[1], rest[2])
            else:
                assert kind == "fault"
                env_id, what, trace, action, memory_mb = rest
                self._tell(
                    Fault(
                        what=f"environment {env_id} in worker {worker} failed: {what}",
                        env_id=env_id,
                        worker=worker,
                        lost=(env_id,),
                        traceback=trace,
                        memory_mb=memory_mb,
                        last_action=action,
                    )
                )
        if channel.closed and not was_closed:
            self._epoll.unregister(channel.fileno())
            self._owed.setdefault(worker, time.monotonic())

    def _watch(self) -> None:
        """End workers that are past their deadline."""
        now = self._watched_at = time.monotonic()
        if self._owed and now - min(self._owed.values()) > DEAF_S:
            self._starter.kill()
            self._owed.clear()
        for worker in range(self.num_workers):
            if worker in self._verdicts:
                continue
            if not self._up[worker]:
                if now - self._since[worker] > self._start_timeout_s:
                    limit = f"start_timeout of {self._start_timeout_s:g} s"
                    self._end(worker, f"took longer than the {limit} to build its environments")
            elif self._sent[worker] != self._done[worker]:
                seen = self._done[worker], int(self._board.now[worker])
                if seen != self._seen[worker]:
                    self._seen[worker], self._since[worker] = seen, now
                elif now - self._since[worker] > self._step_timeout_s:
                    limit = f"step_timeout of {self._step_timeout_s:g} s"
                    self._end(worker, f"hung for longer than the {limit}")

    def _end(self, worker: int, verdict: str) -> None:
        started = self._running.get(worker)
        if started is None:
            raise WorkerError(f"worker {worker} could not be started within its deadline")
        self._verdicts[worker] = verdict, stack_of(started.pid, started.last_words)
        kill(started.pid)
        self._owed[worker] = time.monotonic()

    # --- processes --------------------------------------------------------------------------------

    def _begin(self, starter: ForkStarter) -> None:
        self._starter = starter
        self._epoll.register(starter.control.fileno(), select.EPOLLIN)
        starter.set_up(self._setup)
        self._owed.clear()
        for worker in range(self.num_workers):
            self._ask_for(worker)

    def _ask_for(self, worker: int) -> None:
        self._since[worker] = self._owed[worker] = time.monotonic()
        self._starter.start(worker)

    def _hear(self) -> None:
        for news in self._starter.hear():
            if isinstance(news, Started):
                self._running[news.worker] = news
                self._since[news.worker] = time.monotonic()
                self._owed.pop(news.worker, None)
                self._epoll.register(news.channel.fileno(), select.EPOLLIN)
            elif news.worker in self._running and self._running[news.worker].pid == news.pid:
                fault = self._note_end(news)
                if self._starting:
                    self._could_not_start(fault)
                self._tell(fault)
                self._ask_for(news.worker)
        if self._starter.gone and not self._closed:
            self._begin_again()

    def _note_end(self, ended: Ended) -> Fault:
        """Keep what a worker had finished, ask again for what it had not, say what is known."""
        worker, block = ended.worker, self._blocks[ended.worker]
        self._read(worker)
        self._fetch_from(worker)
        started = self._running.pop(worker)
        words = read_words(started.last_words)
        self._let_go(started)
        at = int(self._board.now[worker])
        how, exit_code, signal_name = how_it_ended(ended.status)
        if worker in self._verdicts:
            how, words = self._verdicts.pop(worker)
        env_id: int | None = None
        if at != IDLE and at in (*block, *(~i for i in block)):
            env_id = at if at >= 0 else ~at
        if worker in self._failures:
            _at, what, words = self._failures.pop(worker)
            how = f"could not build environment {env_id}: {what}"
        doing = " when idle" if at == IDLE else f" in environment {env_id}"
        doing = "" if how.startswith("could not") or (env_id is None and at != IDLE) else doing
        action = None
        if at >= 0 and self._up[worker]:
            action = self._board.action_layout.reader(self._board.actions)(at)
        self._up[worker] = False
        self._ask_again(worker)
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

    def _could_not_start(self, fault: Fault) -> None:
        if fault.what.split(": ")[1:2] == [SpacesDiffer.__name__]:
            raise SpacesDiffer(str(fault))
        raise ConfigError(str(fault))

    def _begin_again(self) -> None:
        """The fork server was killed: begin with a new one, and new workers."""
        self._epoll.unregister(self._starter.control.fileno())
        for started in self._running.values():
            kill(started.pid)
            with contextlib.suppress(OSError):  # wait until it cannot write any more
                select.select([started.channel], [], [], 1.0)
        self._starter.close()
        for worker, started in list(self._running.items()):
            self._note_end(Ended(worker, started.pid, signal.SIGKILL, 0.0))
        if self._starting:
            raise WorkerError("the process that starts workers ended before it had started all")
        self._tell(
            Fault(
                what="the process that starts workers was killed, and its workers with it",
                env_id=None,
                worker=None,
                lost=tuple(self.everybody.tolist()),
            )
        )
        self._up = [False] * self.num_workers
        self._verdicts.clear()
        self._begin(self._starter.again())

    def _let_go(self, started: Started) -> None:
        if not started.channel.closed:
            self._epoll.unregister(started.channel.fileno())
        started.channel.close()
        os.close(started.last_words)

    @property
    def pids(self) -> list[int]:
        """The processes of the workers that run."""
        return [self._running[worker].pid for worker in sorted(self._running)]

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
        self._epoll.close()
        self.files.close()

    def _stop(self) -> None:
        for worker in range(self.num_workers):
            self._sent[worker] = STOP
            self._bells[worker].ring()
        deadline = time.monotonic() + CLOSE_S
        alive = {started.pid for started in self._running.values()}
        while alive and not self._starter.gone and time.monotonic() < deadline:
            select.select([self._starter.control], [], [], 0.05)
            for worker in list(self._running):
                with contextlib.suppress(Exception):  # what it still has to say comes too late
                    self._running[worker].channel.receive()
            for news in self._starter.hear():
                if isinstance(news, Ended):
                    alive.discard(news.pid)
                else:
                    self._running[news.worker] = news
                    self._epoll.register(news.channel.fileno(), select.EPOLLIN)
                    alive.add(news.pid)
        for pid in alive:
            kill(pid)
