"""Worker processes as Python starts them on every system: each imports all that it needs again."""

import contextlib
import dataclasses
import multiprocessing
import os
import pickle
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import cloudpickle

from phalanx.envs.channel import Channel
from phalanx.envs.starter import DEAF_S, THREAD_SETTINGS, TRY_OUT, Ended, Started, environment
from phalanx.envs.trial import report_trial
from phalanx.envs.worker import PoolSetup, work

_spawn = multiprocessing.get_context("spawn")


class SpawnStarter:
    """Starts each process by itself; see `Starter`."""

    note = "; each starts from nothing, which takes longer: only Linux can fork them"
    gone = False

    def __init__(self, factory: bytes, threads: int, _timeout_s: float) -> None:
        self._factory, self._threads = factory, threads
        self._setup: PoolSetup | None = None
        self._begun: deque[Started] = deque()
        self._running: dict[int, Any] = {}  # processes by the number of their worker

    def again(self) -> "SpawnStarter":
        raise AssertionError("there is no process in between that could die")

    def fileno(self) -> int:
        return -1

    def try_out(self, name: str, **how: Any) -> None:
        self._start(TRY_OUT, partial(report_trial, name=name, **how))

    def set_up(self, setup: PoolSetup) -> None:
        self._setup = setup

    def start(self, worker: int) -> None:
        assert self._setup is not None
        setup = self._setup
        bells = {number: setup.bells[number] for number in (worker, setup.shape.num_workers)}
        self._start(worker, partial(_work, setup.packed(), worker), setup.memory, bells)

    def _start(self, worker: int, task: Callable[..., int], *given: Any) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(DEAF_S)
        content = self._factory, cloudpickle.dumps(task)
        process = _spawn.Process(target=_main, args=(theirs, *content, *given), daemon=True)
        before, script = dict(os.environ), sys.modules["__main__"]
        os.environ.update(environment(self._threads))  # a library reads it when it is imported
        sys.modules["__main__"] = ModuleType("__main__")  # so that the caller's script is not run
        try:
            process.start()
        finally:
            theirs.close()
            sys.modules["__main__"] = script
            for name in THREAD_SETTINGS:
                os.environ.pop(name)
            os.environ.update(before)
        assert process.pid is not None
        self._running[worker] = process
        self._begun.append(Started(worker, process.pid, Channel(ours), None))

    def hear(self) -> Iterator[Started | Ended]:
        while self._begun:
            yield self._begun.popleft()
        for worker, process in list(self._running.items()):
            if process.exitcode is not None:
                del self._running[worker]
                yield Ended(worker, process.pid, process.exitcode, None)

    def kill(self) -> None:
        for process in self._running.values():
            process.kill()

    def close(self) -> None:
        self.kill()
        for process in self._running.values():
            process.join()


def _main(end: socket.socket, factory: bytes, task: bytes, *given: Any) -> None:
    """The life of a process."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    channel = Channel(end)
    with contextlib.suppress(ConnectionError, EOFError):  # the caller has left
        try:
            make, run = pickle.loads(factory), pickle.loads(task)
        except Exception as error:
            channel.send(("cannot go", f"{type(error).__name__}: {error}"))
        else:
            sys.exit(run(*given, channel=channel, factory=make))
    sys.exit(1)


def _work(told: bytes, number: int, memory: Any, bells: Any, **how: Any) -> int:
    setup = dataclasses.replace(pickle.loads(told), memory=memory, bells=bells)
    return work(setup, number=number, **how)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
