"""The caller's side of the fork server: start it, ask for workers, hear how they ended."""

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
from collections.abc import Iterator
from typing import Any

from phalanx.envs.channel import MOST_FILES, Channel, receive_files
from phalanx.envs.starter import DEAF_S, CannotGo, Ended, Started, environment
from phalanx.envs.worker import PoolSetup
from phalanx.errors import WorkerError
from phalanx.importing import command_for
from phalanx.system import Bell, MemoryFile, kill, unnamed_file

DEAF = struct.pack("ll", DEAF_S, 0)


class ForkStarter:
    """Starts the fork server; see `Starter`."""

    note = ""

    def __init__(self, factory: bytes, threads: int, timeout_s: float) -> None:
        self._asked = factory, threads, timeout_s
        self.gone = self._closed = False
        ours, theirs = contextlib.ExitStack(), contextlib.ExitStack()
        try:
            life, self._life_end = os.pipe()  # all die when nobody holds `_life_end`
            theirs.callback(os.close, life)
            ours.callback(os.close, self._life_end)
            self._control, their_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            theirs.callback(their_end.close)
            ours.callback(self._control.close)
            self._control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, DEAF)
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
        return ForkStarter(*self._asked)

    def fileno(self) -> int:
        return self._control.fileno()

    def _await_ready(self, timeout_s: float) -> None:
        if not select.select([self._control], [], [], timeout_s)[0]:
            raise WorkerError(f"importing the environment took more than {timeout_s:g} s")
        try:
            answer = self._control.recv(1 << 16)
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
        self._order({"try": {"name": name, **how}})

    def set_up(self, setup: PoolSetup) -> None:
        """The memory and the bells travel as open files, the rest as bytes."""
        assert isinstance(setup.memory, MemoryFile)
        setup_fd = unnamed_file(setup.packed())
        try:
            self._order({"set_up": setup.shape.num_workers}, [setup_fd, setup.memory.fd])
        finally:
            os.close(setup_fd)
        bells = [bell.fd for bell in setup.bells.values() if isinstance(bell, Bell)]
        for first in range(0, len(bells), MOST_FILES):
            self._order({"bells": first}, bells[first : first + MOST_FILES])

    def start(self, worker: int) -> None:
        self._order({"start": worker})

    def _order(self, order: dict[str, Any], files: list[int] | None = None) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(order).encode()], files or [])
        except ConnectionError:
            pass  # `hear` will find out
        except BlockingIOError:  # nobody has read the orders before for ten seconds
            self.kill()

    def hear(self) -> Iterator[Started | Ended]:
        while not self.gone:
            try:
                answer, files = receive_files(self._control, socket.MSG_DONTWAIT)
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


def _understood(message: dict[str, Any], fds: list[int]) -> Started | Ended:
    if "started" in message:
        end = socket.socket(fileno=fds[0])
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, DEAF)
        return Started(message["started"], message["pid"], Channel(end), fds[1])
    return Ended(message["ended"], message["pid"], message["code"], message["mb"])
