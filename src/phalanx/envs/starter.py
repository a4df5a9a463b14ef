"""What starts the processes of a pool: by forking where that can be done, else by spawning.

Both start a process for each task, tell what has ended since, and end all that still runs.
"""

import contextlib
import json
import multiprocessing
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.context import SpawnProcess
from types import ModuleType
from typing import Any

import cloudpickle

from phalanx.envs.channel import Channel, Message
from phalanx.envs.factories import Factory
from phalanx.errors import ConfigError, WorkerError
from phalanx.importing import command_for
from phalanx.system import LINUX, kill, unnamed_file

DEAF_S = 10  # after which nobody reads what we send
DEAF = struct.pack("ll", DEAF_S, 0)
THREAD_SETTINGS = tuple(
    f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
)

Task = Callable[..., int]  # task(*given, factory=..., channel=...) gives the exit code


class CannotGo(ConfigError):
    """An environment's factory that only the caller's own process can use."""


@dataclass
class Started:
    """A process that runs, and what is known of it."""

    worker: int
    pid: int
    channel: Channel
    last_words: int | None
    """a file that holds its stack if it crashes, or if it is asked by SIGUSR1"""
    since: float = field(default_factory=time.monotonic)
    """when it began, or when it was last seen to move"""
    seen: tuple[int, ...] = ()
    """how far it was then"""
    ready: bool = False
    """its environments are built"""
    verdict: tuple[str, str] | None = None
    """why it had to end, and its stack, if we know"""
    owed_since: float = float("inf")
    """when it must have ended: the starter is to tell"""

    def words(self) -> str:
        if self.last_words is None:
            return ""
        return os.pread(self.last_words, 1 << 16, 0).decode(errors="replace")

    def stack(self) -> str:
        """Where it hangs, as Python sees it; "" if it does not say so at once."""
        if self.last_words is None:
            return ""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)
        for _ in range(20):
            time.sleep(0.005)
            if words := self.words():
                return words
        return ""

    def end(self, why: str) -> None:
        """Kill it for a reason that its fault will tell."""
        self.verdict = why, self.stack()
        kill(self.pid)
        self.owed_since = time.monotonic()

    def close(self) -> None:
        """Hang up."""
        self.channel.close()
        if self.last_words is not None:
            os.close(self.last_words)


@dataclass
class Ended:
    """A process is gone."""

    worker: int
    pid: int
    code: int
    """as Python gives it: the number of a signal if negative"""
    memory_mb: float | None


class ForkStarter:
    """Starts processes by a fork server."""

    note = ""
    """what to say of how processes are started, after why there are so many"""

    def __init__(self, factory: bytes, threads: int, timeout_s: float) -> None:
        self._asked = factory, threads, timeout_s
        self.gone = self._closed = False
        """gone: it has died, with all that it had started: use `again`"""
        self.unheard: deque[Ended] = deque()
        """what was told while a process was started"""
        with contextlib.ExitStack() as on_failure, contextlib.ExitStack() as theirs:
            life, self._life_end = os.pipe()  # all die when nobody holds `_life_end`
            theirs.callback(os.close, life)
            on_failure.callback(os.close, self._life_end)
            self._control, their_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            theirs.callback(their_end.close)
            on_failure.callback(self._control.close)
            factory_fd = unnamed_file(factory)
            theirs.callback(os.close, factory_fd)
            fds = their_end.fileno(), factory_fd, life
            self._process = subprocess.Popen(
                command_for("phalanx.envs.fork_server", *fds),
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                # Ctrl-C is for the caller, who then closes the pool. (Not a session of its own:
                # the system schedules a session as one, and giving it the core would fail.)
                process_group=0,
                env=environment(threads),
            )
            on_failure.pop_all()
            on_failure.callback(self.close)
            theirs.close()
            self._await_ready(timeout_s)
            on_failure.pop_all()

    def again(self) -> "ForkStarter":
        """Another one like this."""
        return ForkStarter(*self._asked)

    def fileno(self) -> int:
        """Readable when there is something to `hear`, or -1: then listen every now and then."""
        return self._control.fileno()

    def _await_ready(self, timeout_s: float) -> None:
        answer = self._receive(timeout_s)
        if self.gone:
            code = self._process.wait()
            raise WorkerError(
                f"the process that starts workers ended with code {code} before it could start "
                "any; what it printed is above. num_workers=0 needs no other process"
            )
        if answer is None:
            raise WorkerError(f"importing the environment took more than {timeout_s:g} s")
        if "failed" in answer:
            raise CannotGo(
                f"a worker process cannot load the environment's factory: {answer['failed']}; "
                "it must be importable, or defined where cloudpickle can reach it"
            )

    def _receive(self, timeout_s: float) -> Message:
        """What the server says next; None if it says nothing in that time, or is gone."""
        self._control.settimeout(timeout_s)
        try:
            answer = self._control.recv(1 << 16)
        except (BlockingIOError, TimeoutError):
            return None
        except ConnectionError:
            answer = b""
        self.gone = not answer
        return json.loads(answer) if answer else None

    def start(self, worker: int, task: Task, *given: Any) -> Started | None:
        """A process that runs a task with the memory and bells given; None if it cannot be."""
        with contextlib.ExitStack() as on_failure, contextlib.ExitStack() as theirs:
            ours, their_end = socket.socketpair()
            theirs.callback(their_end.close)
            on_failure.callback(ours.close)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, DEAF)
            words_fd = unnamed_file()
            on_failure.callback(os.close, words_fd)
            task_fd = unnamed_file(packed(task))
            theirs.callback(os.close, task_fd)
            files = [their_end.fileno(), words_fd, task_fd, *(one.fd for one in given)]
            self._control.settimeout(DEAF_S)
            with contextlib.suppress(ConnectionError, TimeoutError):
                socket.send_fds(self._control, [json.dumps(worker).encode()], files)
            while (news := self._receive(DEAF_S)) is not None:
                if isinstance(news, int):
                    on_failure.pop_all()
                    return Started(worker, news, Channel(ours), words_fd)
                self.unheard.append(Ended(*news))
        if not self.gone:  # it does not answer
            self.kill()
        return None

    def hear(self) -> Iterator[Ended]:
        """What has ended since, one by one: what nobody takes stays unread. Does not wait."""
        while True:
            if not self.unheard and not self.gone and (news := self._receive(0)) is not None:
                self.unheard.append(Ended(*news))
            if not self.unheard:
                break
            yield self.unheard.popleft()

    def kill(self) -> None:
        """End all that does not answer; `gone` or `hear` will tell."""
        kill(self._process.pid)

    def close(self) -> None:
        """Hang up; all that still runs is killed."""
        if self._closed:
            return
        self.gone = self._closed = True
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        os.close(self._life_end)
        self.kill()
        self._process.wait()


class SpawnStarter:
    """Starts each process by itself, as Python does on every system: see `ForkStarter`."""

    note = "; each starts from nothing, which takes longer: only Linux can fork them"
    gone, unheard = False, ()

    def __init__(self, factory: bytes, threads: int, _timeout_s: float) -> None:
        self._factory, self._threads = factory, threads
        self._running: dict[int, SpawnProcess] = {}  # processes by the number of their worker

    def again(self) -> "SpawnStarter":
        raise AssertionError("there is no process in between that could die")

    def fileno(self) -> int:
        return -1

    def start(self, worker: int, task: Task, *given: object) -> Started:
        ours, theirs = socket.socketpair()
        ours.settimeout(DEAF_S)
        process = multiprocessing.get_context("spawn").Process(
            target=_main, args=(theirs, self._factory, packed(task), *given), daemon=True
        )
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
        return Started(worker, process.pid, Channel(ours), None)

    def hear(self) -> Iterator[Ended]:
        for worker, process in list(self._running.items()):
            if process.exitcode is not None:
                del self._running[worker]
                assert process.pid is not None
                yield Ended(worker, process.pid, process.exitcode, None)

    def kill(self) -> None:
        for process in self._running.values():
            process.kill()

    def close(self) -> None:
        self.kill()
        for process in self._running.values():
            process.join()


Starter = ForkStarter | SpawnStarter


def open_starter(factory: Factory, threads: int, timeout_s: float) -> Starter:
    """What starts processes on this system."""
    return (ForkStarter if LINUX else SpawnStarter)(packed(factory), threads, timeout_s)


def _main(end: socket.socket, factory: bytes, task: bytes, *given: object) -> None:
    """The life of a process that was spawned."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    channel = Channel(end)
    with contextlib.suppress(ConnectionError, EOFError):  # the caller has left
        try:
            make, run = unpacked(factory), pickle.loads(task)
        except Exception as error:
            channel.send(("cannot go", f"{type(error).__name__}: {error}"))
        else:
            sys.exit(run(*given, factory=make, channel=channel))
    sys.exit(1)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def packed(factory: Factory | Task) -> bytes:
    """A factory or task as bytes, for another process."""
    try:
        return cloudpickle.dumps(factory)
    except Exception as error:
        raise CannotGo(f"the environment's factory cannot go to a worker: {error}") from None


def unpacked(factory: bytes) -> Factory:
    """The factory in that process, with all imported that building takes."""
    made = pickle.loads(factory)
    if hasattr(made, "prepare"):
        with contextlib.suppress(Exception):  # building will say what is wrong
            made.prepare()
    return made


def environment(threads: int) -> dict[str, str]:
    """Our environment variables, with at most `threads` threads for each numerical library."""
    variables = dict(os.environ)
    for name in THREAD_SETTINGS:
        given = variables.get(name, "")
        variables[name] = str(min(threads, int(given)) if given.isdigit() else threads)
    return variables
