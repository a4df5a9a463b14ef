"""The process that workers are forked from: it has imported the environment, and does nothing else.

The caller's process cannot fork workers, since it may have threads and open windows; starting each
worker from nothing takes a second or more of imports. So one clean process is started, imports what
the environment needs, and forks a worker in milliseconds whenever it is asked to, also in place of
one that died. It tells how a worker ended.
"""

import contextlib
import faulthandler
import fcntl
import gc
import json
import os
import pickle
import select
import signal
import socket
import sys
from typing import Any

from phalanx.envs.channel import Channel
from phalanx.envs.worker import Setup, work

STARTER = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from phalanx.envs.nursery import main
main(*map(int, sys.argv[2:]))
"""


def main(control_fd: int, setup_fd: int, life_fd: int) -> None:
    """Serve the caller at the other end of `control_fd` until it hangs up."""
    die_with(life_fd)
    control = socket.socket(fileno=control_fd)
    with open(setup_fd, "rb") as file:
        setup: Setup = pickle.load(file)
    try:
        factory = pickle.loads(setup.factory)
        if hasattr(factory, "prepare"):
            with contextlib.suppress(Exception):  # the first worker will say what is wrong
                factory.prepare()
    except Exception as error:
        _say(control, {"failed": f"{type(error).__name__}: {error}"})
        return
    gc.collect()
    gc.freeze()  # what is here already stays shared with the workers
    _say(control, {"ready": os.getpid()})
    with contextlib.suppress(ConnectionError):  # the caller has left, and so shall we
        _serve(control, life_fd, setup, factory)


def _serve(control: socket.socket, life_fd: int, setup: Setup, factory: Any) -> None:
    poll = select.poll()
    poll.register(control, select.POLLIN)
    children: dict[int, tuple[int, int]] = {}  # by the handle of the process: worker, pid
    while True:
        for fd, _event in poll.poll():
            if fd == control.fileno():
                order = control.recv(1 << 16)
                if not order:
                    return
                worker = json.loads(order)["start"]
                pid = _fork(control, life_fd, setup, factory, worker)
                handle = os.pidfd_open(pid)
                children[handle] = worker, pid
                poll.register(handle, select.POLLIN)
            else:
                worker, pid = children.pop(fd)
                poll.unregister(fd)
                os.close(fd)
                _pid, status, used = os.wait4(pid, 0)
                memory_mb = used.ru_maxrss / 1024
                _say(control, {"ended": worker, "pid": pid, "status": status, "mb": memory_mb})


def _fork(control: socket.socket, life_fd: int, setup: Setup, factory: Any, worker: int) -> int:
    """Start a worker; the caller gets its end of their channel, and the file of its last words."""
    callers_end, workers_end = socket.socketpair()
    last_words = os.memfd_create(f"phalanx-worker-{worker}")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setpgid(0, 0)  # with all processes that its environments may start
            die_with(life_fd)
            callers_end.close()
            control.close()
            _volunteer_for_memory()
            _wake_on_time()
            faulthandler.enable(last_words)
            faulthandler.register(signal.SIGUSR1, last_words)
            code = work(setup, factory, worker, Channel(workers_end))
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
    message = json.dumps({"started": worker, "pid": pid}).encode()
    socket.send_fds(control, [message], [callers_end.fileno(), last_words])
    callers_end.close()
    workers_end.close()
    os.close(last_words)
    return pid


def die_with(life_fd: int) -> None:
    """Be killed, with the whole process group, as soon as nobody holds the other end of this pipe.

    The kernel does it, so it works for a process that hangs in compiled code, and however the
    caller's process ended. (A signal on the death of the parent *thread* would not do: the pool may
    have been made in a thread that ends early.)
    """
    own = os.open(f"/proc/self/fd/{life_fd}", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(own, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(own, fcntl.F_SETFL, fcntl.fcntl(own, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([own], [], [], 0)[0]:  # it was too late already
        os.killpg(0, signal.SIGKILL)


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
