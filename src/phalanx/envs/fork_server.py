"""The process that workers are forked from: it has imported the environment, and does nothing else.

The caller's process cannot fork workers, since it may have threads and open windows; starting each
worker from nothing takes a second or more of imports. So one clean process is started, imports what
the environment needs, and forks a worker in milliseconds whenever it is asked to, also in place of
one that died. It tells how a worker ended. Its first child tries one environment out, so that one
which hangs or crashes at its first step does so there.
"""

import contextlib
import errno
import faulthandler
import gc
import json
import os
import pickle
import select
import signal
import socket
import sys

from phalanx.envs import trial, worker  # noqa: F401  what children run is imported here, once
from phalanx.envs.channel import Channel
from phalanx.envs.factories import Factory
from phalanx.envs.starter import unpacked
from phalanx.system import Bell, MemoryFile, die_with

MOST_FILES = 6  # of a child: its channel, its last words, its task, its memory, two bells


def main(control_fd: int, factory_fd: int, life_fd: int) -> None:
    """Serve the caller at the other end of `control_fd` until it hangs up."""
    die_with(life_fd)
    control = socket.socket(fileno=control_fd)
    with contextlib.suppress(ConnectionError):  # the caller has left, and so shall we
        try:
            with open(factory_fd, "rb") as file:
                factory = unpacked(file.read())
        except Exception as error:
            _say(control, {"failed": f"{type(error).__name__}: {error}"})
            return
        gc.collect()
        gc.freeze()  # what is here already stays shared with the workers
        _say(control, {"ready": os.getpid()})
        _serve(control, life_fd, factory)


def _serve(control: socket.socket, life_fd: int, factory: Factory) -> None:
    """Start a process for each task that the caller sends, and tell of its end."""
    children: dict[int, tuple[int, int]] = {}  # by the process's handle: worker, pid
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        for fd, _event in poll.poll():
            if fd in children:
                number, pid = children.pop(fd)
                poll.unregister(fd)
                os.close(fd)
                _pid, status, used = os.wait4(pid, 0)
                code, memory_mb = os.waitstatus_to_exitcode(status), used.ru_maxrss / 1024
                _say(control, [number, pid, code, memory_mb])
                continue
            message, files, flags, _sender = socket.recv_fds(control, 1 << 16, MOST_FILES)
            if not message:
                return
            if flags & socket.MSG_CTRUNC:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            sys.stdout.flush()
            sys.stderr.flush()
            pid = os.fork()
            if pid == 0:
                control.close()
                _live(life_fd, factory, *files)
            for file in files:
                os.close(file)
            handle = os.pidfd_open(pid)
            children[handle] = json.loads(message), pid
            poll.register(handle, select.POLLIN)
            _say(control, pid)


def _live(
    life_fd: int, factory: Factory, channel_fd: int, last_words: int, task_fd: int, *shared: int
) -> None:
    """The life of a child, from its first breath to its exit code."""
    code = 1
    try:
        os.setpgid(0, 0)  # with all processes that its environments may start
        die_with(life_fd)
        # If memory runs out, let the system end a worker, which can be replaced, not the caller.
        # Let environments sleep no longer than they say: by default it adds some 50 µs.
        for name, value in (("oom_score_adj", "500"), ("timerslack_ns", "1000")):
            with contextlib.suppress(OSError), open(f"/proc/self/{name}", "w") as setting:
                setting.write(value)
        for fd in (channel_fd, last_words, *shared):
            os.set_inheritable(fd, False)
        faulthandler.enable(last_words)
        faulthandler.register(signal.SIGUSR1, last_words)
        with open(task_fd, "rb") as file:
            task = pickle.load(file)
        given = [kind(fd) for kind, fd in zip((MemoryFile, Bell, Bell), shared, strict=False)]
        channel = Channel(socket.socket(fileno=channel_fd))
        code = task(*given, factory=factory, channel=channel)
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


def _say(control: socket.socket, message: object) -> None:
    control.sendall(json.dumps(message).encode())
