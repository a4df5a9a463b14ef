"""The process that workers are forked from: it has imported the environment, and does nothing else.

The caller's process cannot fork workers, since it may have threads and open windows; starting each
worker from nothing takes a second or more of imports. So one clean process is started, imports what
the environment needs, and forks a worker in milliseconds whenever it is asked to, also in place of
one that died. It tells how a worker ended. Its first child tries one environment out, so that one
which hangs or crashes at its first step does so there.
"""

import contextlib
import dataclasses
import faulthandler
import gc
import json
import os
import pickle
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from phalanx.envs.channel import Channel, receive_files
from phalanx.envs.starter import TRY_OUT
from phalanx.envs.trial import report_trial
from phalanx.envs.worker import PoolSetup, work
from phalanx.system import Bell, MemoryFile, die_with, unnamed_file


def main(control_fd: int, factory_fd: int, life_fd: int) -> None:
    """Serve the caller at the other end of `control_fd` until it hangs up."""
    die_with(life_fd)
    control = socket.socket(fileno=control_fd)
    try:
        with open(factory_fd, "rb") as file:
            factory = pickle.load(file)
        if hasattr(factory, "prepare"):
            with contextlib.suppress(Exception):  # the trial will say what is wrong
                factory.prepare()
    except Exception as error:
        _say(control, {"failed": f"{type(error).__name__}: {error}"})
        return
    gc.collect()
    gc.freeze()  # what is here already stays shared with the workers
    _say(control, {"ready": os.getpid()})
    with contextlib.suppress(ConnectionError):  # the caller has left, and so shall we
        ForkServer(control, life_fd, factory).serve()


class ForkServer:
    """Follows the caller's orders: try an environment, set up workers, start one of them."""

    def __init__(self, control: socket.socket, life_fd: int, factory: Any) -> None:
        self._control, self._life_fd, self._factory = control, life_fd, factory
        self._setup: PoolSetup | None = None
        self._children: dict[int, tuple[int, int]] = {}  # by the process's handle: worker, pid
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        while True:
            for fd, _event in self._poll.poll():
                if fd != self._control.fileno():
                    self._note_end(fd)
                    continue
                message, files = receive_files(self._control)
                if not message:
                    return
                self._follow(json.loads(message), files)

    def _follow(self, order: dict[str, Any], files: list[int]) -> None:
        if "try" in order:
            self._fork(
                TRY_OUT, lambda channel: report_trial(channel, self._factory, **order["try"])
            )
        elif "set_up" in order:
            with open(files[0], "rb") as file:
                setup: PoolSetup = pickle.load(file)
            self._setup = dataclasses.replace(setup, memory=MemoryFile(files[1]))
        elif "bells" in order:
            assert self._setup is not None
            self._setup.bells.update(enumerate(map(Bell, files), order["bells"]))
        else:
            setup, number = self._setup, order["start"]  # type: ignore[assignment]
            self._fork(number, lambda channel: work(setup, self._factory, number, channel))

    def _note_end(self, handle: int) -> None:
        worker, pid = self._children.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        _pid, status, used = os.wait4(pid, 0)
        code, memory_mb = os.waitstatus_to_exitcode(status), used.ru_maxrss / 1024
        _say(self._control, {"ended": worker, "pid": pid, "code": code, "mb": memory_mb})

    def _fork(self, number: int, task: Callable[[Channel], int]) -> None:
        """Start a child; the caller gets its end of a channel, and the file of its last words."""
        callers_end, workers_end = socket.socketpair()
        last_words = unnamed_file()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            callers_end.close()
            self._control.close()
            _live(task, self._life_fd, Channel(workers_end), last_words)
        message = json.dumps({"started": number, "pid": pid}).encode()
        socket.send_fds(self._control, [message], [callers_end.fileno(), last_words])
        callers_end.close()
        workers_end.close()
        os.close(last_words)
        handle = os.pidfd_open(pid)
        self._children[handle] = number, pid
        self._poll.register(handle, select.POLLIN)


def _live(task: Callable[[Channel], int], life_fd: int, channel: Channel, last_words: int) -> None:
    """The life of a child, from its first breath to its exit code."""
    code = 1
    try:
        os.setpgid(0, 0)  # with all processes that its environments may start
        die_with(life_fd)
        _volunteer_for_memory()
        _wake_on_time()
        faulthandler.enable(last_words)
        faulthandler.register(signal.SIGUSR1, last_words)
        code = task(channel)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except ConnectionError:
        code = 1  # the caller has left
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _volunteer_for_memory() -> None:
    """If memory runs out, let the system end a worker, which can be replaced, not the caller."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")


def _wake_on_time() -> None:
    """Let environments sleep no longer than they say: by default the system adds some 50 µs."""
    with contextlib.suppress(OSError), open("/proc/self/timerslack_ns", "w") as file:
        file.write("1000")


def _say(control: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(ConnectionError):
        control.sendall(json.dumps(message).encode())
