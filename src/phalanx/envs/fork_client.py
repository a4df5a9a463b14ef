"""The caller's side of the fork server: start it, ask for workers, hear how they ended."""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cloudpickle

from phalanx.envs.channel import MOST_FILES, Channel, receive_files
from phalanx.envs.worker import PoolSetup
from phalanx.errors import ConfigError, WorkerError
from phalanx.importing import command_for

DEAF = struct.pack("ll", 10, 0)  # seconds after which nobody reads what we send
THREAD_SETTINGS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class CannotGo(ConfigError):
    """An environment's factory that only the caller's own process can use."""


@dataclass
class Started:
    """A worker process has begun; its environments have not been built yet."""

    worker: int
    pid: int
    channel: Channel
    last_words: int
    """a file that holds its stack if it crashes, or if it is asked by SIGUSR1"""


@dataclass
class Ended:
    """A worker process is gone."""

    worker: int
    pid: int
    status: int
    memory_mb: float


def packed(factory: Any) -> bytes:
    """A factory as bytes, for another process."""
    try:
        return cloudpickle.dumps(factory)
    except Exception as error:
        raise CannotGo(f"the environment's factory cannot go to a worker: {error}") from None


class ForkStarter:
    """Starts the fork server. `gone` tells that it has died, and has to be started again."""

    def __init__(self, factory: bytes, threads: int, timeout_s: float) -> None:
        self._asked = factory, threads, timeout_s
        self.gone = self._closed = False
        ours, theirs = contextlib.ExitStack(), contextlib.ExitStack()
        try:
            life, self._life_end = os.pipe()  # all die when nobody holds `_life_end`
            theirs.callback(os.close, life)
            ours.callback(os.close, self._life_end)
            self.control, their_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            theirs.callback(their_end.close)
            ours.callback(self.control.close)
            self.control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, DEAF)
            factory_fd = file_of(factory)
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
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        try:
            self._await_ready(timeout_s)
        except BaseException:
            self.close()
            raise

    def again(self) -> "ForkStarter":
        """Another one, with a fork server like that of this one."""
        return ForkStarter(*self._asked)

    def _await_ready(self, timeout_s: float) -> None:
        if not select.select([self.control], [], [], timeout_s)[0]:
            raise WorkerError(f"importing the environment took more than {timeout_s:g} s")
        try:
            answer = self.control.recv(1 << 16)
        except ConnectionError:
            answer = b""
        if not answer:
            code = self._process.wait()
            raise WorkerError(
                f"the process that starts workers ended with code {code} before it could start "
                "any; what it printed is above. num_workers=0 needs no other process"
            )
        if "failed" in (message := json.loads(answer)):
            raise CannotGo(
                f"a worker process cannot load the environment's factory: {message['failed']}; "
                "it must be importable, or defined where cloudpickle can reach it"
            )

    def try_out(self, name: str, **how: Any) -> None:
        """Ask for a process that tries one environment; `hear` will tell that it has begun."""
        self._order({"try": {"name": name, **how}})

    def set_up(self, setup: PoolSetup) -> None:
        """Say what workers will be."""
        setup_fd = file_of(cloudpickle.dumps(setup))
        try:
            self._order({"set_up": setup.shape.num_workers}, [setup_fd, setup.memory_fd])
        finally:
            os.close(setup_fd)
        for start in range(0, len(setup.bell_fds), MOST_FILES):
            self._order({"bells": start}, setup.bell_fds[start : start + MOST_FILES])

    def start(self, worker: int) -> None:
        """Ask for a worker; `hear` will tell that it has begun."""
        self._order({"start": worker})

    def _order(self, order: dict[str, Any], files: list[int] | None = None) -> None:
        try:
            socket.send_fds(self.control, [json.dumps(order).encode()], files or [])
        except ConnectionError:
            pass  # `hear` will find out
        except BlockingIOError:  # nobody has read the orders before for ten seconds
            self.kill()

    def hear(self) -> Iterator[Started | Ended]:
        """What has happened since, one by one: what nobody takes stays unread. Does not wait."""
        while not self.gone:
            try:
                answer, files = receive_files(self.control, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except ConnectionError:
                answer = b""
            if not answer:
                self.gone = True
                break
            yield _understood(json.loads(answer), files)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """End the fork server; `gone` will tell."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Hang up; all that still runs is killed."""
        if self._closed:
            return
        self.gone = self._closed = True
        self.control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        os.close(self._life_end)
        self.kill()
        self._process.wait()


def _understood(message: dict[str, Any], fds: list[int]) -> Started | Ended:
    if "started" in message:
        end = socket.socket(fileno=fds[0])
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, DEAF)
        return Started(message["started"], message["pid"], Channel(end), fds[1])
    return Ended(message["ended"], message["pid"], message["status"], message["mb"])


def file_of(content: bytes) -> int:
    """A file without a name that holds this, to be read from its beginning."""
    fd = os.memfd_create("phalanx")
    try:
        with open(os.dup(fd), "wb") as file:
            file.write(content)
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd


def environment(threads: int) -> dict[str, str]:
    """Our environment variables, with at most `threads` threads for each numerical library."""
    variables = dict(os.environ)
    for name in THREAD_SETTINGS:
        given = variables.get(name, "")
        variables[name] = str(min(threads, int(given)) if given.isdigit() else threads)
    return variables


def kill(pid: int) -> None:
    """End a worker with all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # it may not have had time to form its group
        os.kill(pid, signal.SIGKILL)


def stack_of(pid: int, last_words: int) -> str:
    """Where a process hangs, as Python sees it; "" if it does not say so at once."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGUSR1)
    for _ in range(20):
        time.sleep(0.005)
        if words := read_words(last_words):
            return words
    return ""


def read_words(last_words: int) -> str:
    return os.pread(last_words, 1 << 16, 0).decode(errors="replace")
