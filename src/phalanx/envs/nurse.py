"""The caller's side of the nursery: start it, ask for workers, hear how they ended."""

import array
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import cloudpickle

from phalanx.envs.channel import Channel
from phalanx.envs.nursery import STARTER
from phalanx.envs.worker import Setup
from phalanx.errors import ConfigError, WorkerError

THREAD_SETTINGS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


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


class Nurse:
    """Starts the nursery. `gone` tells that it has died, and has to be started again."""

    def __init__(self, setup: Setup, threads: int, timeout_s: float) -> None:
        self._life, self._life_end = os.pipe()  # workers die when nobody holds `_life_end`
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.gone = False
        setup_fd = os.memfd_create("phalanx-setup")
        try:
            with open(os.dup(setup_fd), "wb") as file:
                cloudpickle.dump(setup, file)
            os.lseek(setup_fd, 0, os.SEEK_SET)
            fds = [theirs.fileno(), setup_fd, self._life]
            path = [place or os.getcwd() for place in setup.path]
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *subprocess._args_from_interpreter_flags(),  # type: ignore[attr-defined]
                    "-c",
                    STARTER,
                    json.dumps(path),
                    *map(str, fds),
                ],
                pass_fds=(*fds, setup.memory_fd, *setup.bell_fds),
                stdin=subprocess.DEVNULL,
                # Ctrl-C is for the caller, who then closes the pool. (Not a session of its own:
                # the system schedules a session as one, and giving it the core would fail.)
                process_group=0,
                env=environment(threads),
            )
        finally:
            theirs.close()
            os.close(setup_fd)
            os.close(self._life)
        try:
            self._await_ready(timeout_s)
        except BaseException:
            self.close()
            raise

    def _await_ready(self, timeout_s: float) -> None:
        if not select.select([self.control], [], [], timeout_s)[0]:
            raise WorkerError(f"importing the environment took more than {timeout_s:.0f} s")
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
            raise ConfigError(
                f"a worker process cannot load the environment's factory: {message['failed']}; "
                "it must be importable, or defined where cloudpickle can reach it"
            )

    def start(self, worker: int) -> None:
        """Ask for a worker; `hear` will tell that it has begun."""
        with contextlib.suppress(ConnectionError):  # `hear` will find out
            self.control.send(json.dumps({"start": worker}).encode())

    def hear(self) -> list[Started | Ended]:
        """What has happened since; does not wait."""
        news: list[Started | Ended] = []
        while not self.gone:
            try:
                # Like socket.recv_fds, which cannot be told to close the files in our children.
                answer, aids, _flags, _sender = self.control.recvmsg(
                    1 << 16, socket.CMSG_LEN(8), socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                break
            except ConnectionError:
                answer = b""
            if not answer:
                self.gone = True
                break
            fds = array.array("i", aids[0][2]) if aids else []
            news.append(_understood(json.loads(answer), list(fds)))
        return news

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """Hang up; all that still runs is killed."""
        self.control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        os.close(self._life_end)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _understood(message: dict[str, Any], fds: list[int]) -> Started | Ended:
    if "started" in message:
        end = socket.socket(fileno=fds[0])
        return Started(message["started"], message["pid"], Channel(end), fds[1])
    return Ended(message["ended"], message["pid"], message["status"], message["mb"])


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
