"""What only some systems offer, each with what Python offers everywhere in its place.

PHALANX_PORTABLE=1 has the latter used on Linux too: so it can be tried there.
"""

import contextlib
import itertools
import mmap
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from ctypes import Array, c_byte
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeAlias

PORTABLE = bool(os.environ.get("PHALANX_PORTABLE"))
LINUX = sys.platform == "linux" and not PORTABLE
UNIX = os.name == "posix" and not PORTABLE


def _optional(module: str) -> ModuleType | None:
    """A module of the standard library that not every system has, or None."""
    with contextlib.suppress(ImportError):
        return None if PORTABLE else import_module(module)
    return None


fcntl, resource, msvcrt = _optional("fcntl"), _optional("resource"), _optional("msvcrt")

# --- files ----------------------------------------------------------------------------------------


def _flags(*names: str) -> int:
    return sum(0 if PORTABLE else getattr(os, name, 0) for name in names)


EXACTLY = _flags("O_BINARY", "O_CLOEXEC")
"""for os.open: bytes as they are, and the file is closed in our children"""
NO_LINK = EXACTLY | _flags("O_NOFOLLOW")
"""for os.open: the file itself, never one that a link leads to"""
AT_ONCE = EXACTLY | _flags("O_NONBLOCK")
"""for os.open: without waiting for the other end of a pipe"""


def take_lock(fd: int) -> bool:
    """Lock an open file until it is closed, however that happens; False if somebody else has it.

    Without a lock of the system's, nobody is kept out.
    """
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt is not None:  # it locks bytes, which then nobody can read: one far beyond
            at = os.lseek(fd, 0, os.SEEK_CUR)
            os.lseek(fd, 1 << 30, os.SEEK_SET)
            try:
                msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(fd, at, os.SEEK_SET)
    except (BlockingIOError, PermissionError):
        return False
    return True


def is_locked(fd: int) -> bool | None:
    """Whether somebody else has locked an open file; None where nobody can tell."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    return False


def is_ours(status: os.stat_result) -> bool:
    """Whether a file belongs to this user; where files have no owner, their folder protects them"""
    return not UNIX or status.st_uid == os.geteuid()


class Folder(NamedTuple):
    """An open folder: by its descriptor, which stays the same if somebody moves it, or its path."""

    path: Path
    fd: int | None
    """names are looked up here; None: at `path`"""

    def open(self, name: str, flags: int) -> int:
        """A file in it, that nobody else may read or write."""
        file = os.open(self._at(name), flags | NO_LINK, 0o600, dir_fd=self.fd)
        if UNIX and flags & os.O_CREAT:
            os.fchmod(file, 0o600)  # whatever the umask
        return file

    def replace(self, old: str, new: str) -> None:
        os.replace(self._at(old), self._at(new), src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def status(self) -> os.stat_result:
        return self.path.stat() if self.fd is None else os.fstat(self.fd)

    def _at(self, name: str) -> str | Path:
        return self.path / name if self.fd is None else name


@contextlib.contextmanager
def open_folder(path: Path) -> Iterator[Folder]:
    if not UNIX:
        yield Folder(path, None)
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | NO_LINK)
    try:
        yield Folder(path, fd)
    finally:
        os.close(fd)


def unnamed_file(content: bytes = b"") -> int:
    """A file in memory, gone with the last process that has it open; read from its beginning."""
    fd = os.memfd_create("phalanx")
    try:
        with open(os.dup(fd), "wb") as file:
            file.write(content)
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd


# --- memory that processes share ------------------------------------------------------------------


class MemoryFile:
    """Bytes of an unnamed file, for all processes that have it open."""

    def __init__(self, fd: int | None = None) -> None:
        self.fd = unnamed_file() if fd is None else fd

    def map(self, size: int) -> mmap.mmap:
        if os.fstat(self.fd).st_size < size:
            os.ftruncate(self.fd, size)
        return mmap.mmap(self.fd, size)

    def close(self) -> None:
        os.close(self.fd)


class SpawnedBytes:
    """Bytes that this process shares with those which `multiprocessing` starts for it."""

    def __init__(self) -> None:
        self._bytes: Array[c_byte] | None = None

    def map(self, size: int) -> Array[c_byte]:
        if self._bytes is None:
            from multiprocessing import get_context  # seldom needed, and not small

            self._bytes = get_context("spawn").RawArray("b", size)
        return self._bytes

    def close(self) -> None:
        """They are gone with the last process that has them."""


AnyMemory = MemoryFile | SpawnedBytes
Bytes: TypeAlias = bytearray | mmap.mmap | Array[c_byte]  # that arrays are laid out in


def new_memory() -> AnyMemory:
    return MemoryFile() if LINUX else SpawnedBytes()


# --- waking and waiting ---------------------------------------------------------------------------

READABLE = 1  # EPOLLIN
DONT_WAIT: int = socket.MSG_DONTWAIT if LINUX else 0
give_way = os.sched_yield if LINUX else lambda: time.sleep(0)


class Bell:
    """What a sleeper is woken by: `fd` becomes readable. Writers need not know whether it rang."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def ring(self) -> None:
        os.eventfd_write(self.fd, 1)

    def hush(self) -> None:
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            return

    def close(self) -> None:
        os.close(self.fd)


class SocketBell:
    """As `Bell`, by a pair of sockets."""

    def __init__(self) -> None:
        self._ear, self._hammer = socket.socketpair()
        self._hammer.setblocking(False)

    @property
    def fd(self) -> int:
        return self._ear.fileno()

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it has rung often enough
            self._hammer.send(b"!")

    def hush(self) -> None:
        while select.select([self._ear], [], [], 0)[0]:
            self._ear.recv(4096)

    def close(self) -> None:
        self._ear.close()
        self._hammer.close()


AnyBell = Bell | SocketBell


def new_bell() -> AnyBell:
    return Bell(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)) if LINUX else SocketBell()


class SelectPoll(set[int]):
    """As `select.epoll`; each wait takes longer the more files there are."""

    unregister, close = set.remove, set.clear

    def register(self, fd: int, _events: int) -> None:
        self.add(fd)

    def poll(self, timeout_s: float) -> list[tuple[int, int]]:
        return [(fd, READABLE) for fd in select.select(list(self), [], [], timeout_s)[0]]

    def fileno(self) -> int:
        return -1


def new_poll() -> "select.epoll | SelectPoll":
    return select.epoll() if LINUX else SelectPoll()


# --- processes ------------------------------------------------------------------------------------


def kill(pid: int) -> None:
    """End a process with all that it has started."""
    if not UNIX:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)  # on Windows nobody can refuse it
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # it may not have had time to form its group
        os.kill(pid, signal.SIGKILL)


def die_with(life_fd: int) -> None:
    """Be killed, with the whole process group, as soon as nobody holds the other end of this pipe.

    The kernel does it, so it works for a process that hangs in compiled code, and however the
    caller's process ended. (A signal on the death of the parent *thread* would not do: the pool may
    have been made in a thread that ends early.)
    """
    assert fcntl is not None, "only on Linux"
    own = os.open(f"/proc/self/fd/{life_fd}", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(own, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(own, fcntl.F_SETFL, fcntl.fcntl(own, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([own], [], [], 0)[0]:  # it was too late already
        os.killpg(0, signal.SIGKILL)


_unknown = itertools.count()


def switches() -> tuple[int, int]:
    """How often this thread gave up its core to wait, and how often it was taken from it."""
    if resource is None:
        return next(_unknown), 0  # as if it had chosen all its pauses
    used = resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF))
    return used.ru_nvcsw, used.ru_nivcsw


def peak_memory_mb() -> float | None:
    """The most memory that this process has had; None where nobody knows."""
    if resource is None:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
