"""What a Ray of our own has on this machine: private while it runs, and gone when we are.

A small process waits for our end, whatever brings it, then ends what is left of our Ray and removes
its folder. If that process is killed too, the next start does its work. It runs this file alone and
without site-packages, so nothing but the standard library is imported here.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

with contextlib.suppress(ImportError):  # only Linux has all that is needed here
    import fcntl

PREFIX, OWNER = "phalanx", "owner"
IS_OURS = "a folder of phalanx for its own Ray\n"  # in OWNER; locked for as long as it is in use
MARK = "PHALANX_RAY"  # in the environment of all processes of such a Ray: its folder
LONGEST = 25  # Ray's sockets lie 82 characters deeper, and a socket's path has at most 107
END_S = 8.0  # in which all processes of a Ray must have ended
LAST_WORDS = (
    "phalanx: ended without a word: killed, or by Ray, whose raylet was killed or has crashed; "
    "--resume continues from the last checkpoint"
)


@contextlib.contextmanager
def cleaned_up() -> Iterator[str]:
    """A private folder for a Ray whose processes have it as MARK; both are gone at the end."""
    usual = tempfile.gettempdir()
    place = usual if len(usual) <= LONGEST else "/tmp"
    remove_abandoned(place)
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=place)
    with _claimed(folder) as owner:
        cleaner = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(os.getpid()), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[owner],
            start_new_session=True,  # Ctrl-C is not meant for it
        )
        try:
            yield folder
        finally:
            cleaner.communicate(b"farewell")


def remove_abandoned(place: str) -> None:
    """Clean up after those of our own who ended without: nobody holds the lock of their folder."""
    for entry in os.scandir(place):
        if entry.name.startswith(PREFIX) and _is_own_folder(entry):
            with contextlib.suppress(OSError), open(_at(entry.path), opener=_as_it_is) as owner:
                if owner.read(len(IS_OURS) + 1) == IS_OURS:
                    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    clean_up(entry.path)


def clean_up(folder: str) -> None:
    """End all processes that are marked with a folder, and remove it."""
    deadline, quiet = time.monotonic() + END_S, 0
    while quiet < 2 and time.monotonic() < deadline:  # one may have begun another meanwhile
        found = _kill_all_of(folder)
        quiet = 0 if found else quiet + 1
        time.sleep(0.1 if found else 0.02)
    shutil.rmtree(folder, ignore_errors=True)


def main(pid: int, folder: str) -> None:
    """Wait until process `pid` says farewell, or ends without; then somebody should be told."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends soon after those who are meant
    poll = select.poll()
    poll.register(sys.stdin, select.POLLIN)
    with contextlib.suppress(ProcessLookupError):
        poll.register(os.pidfd_open(pid), select.POLLIN)
        if os.getppid() == pid:
            poll.poll()
    if not _farewell():
        with contextlib.suppress(OSError):
            print(LAST_WORDS, file=sys.stderr, flush=True)
    clean_up(folder)


def _farewell() -> bytes:
    os.set_blocking(0, False)
    with contextlib.suppress(BlockingIOError):  # a child of theirs holds the other end too
        return os.read(0, 1)
    return b""


def _kill_all_of(folder: str) -> bool:
    """Whether there were any. The handle makes sure that no other process has got the number."""
    found = False
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):  # ended just now, somebody else's, or none
            handle = os.pidfd_open(int(name))
            try:
                if _is_of(f"/proc/{name}", folder):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    found = True
            finally:
                os.close(handle)
    return found


def _is_of(process: str, folder: str) -> bool:
    """Whether a process has the mark; where Ray's title lies over it, whether its log is there."""
    if f"{MARK}={folder}".encode() in _read(f"{process}/environ").split(b"\0"):
        return True
    if not _read(f"{process}/cmdline").startswith(b"ray::"):
        return False
    files = (os.readlink(entry.path) for entry in os.scandir(f"{process}/fd"))
    return any(file.startswith(folder + "/") for file in files)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


@contextlib.contextmanager
def _claimed(folder: str) -> Iterator[int]:
    """Hold the lock of a folder; it has its name only when it is locked."""
    new = _at(folder) + ".new"
    with open(new, "x") as owner:
        owner.write(IS_OURS)
        owner.flush()
        fcntl.flock(owner, fcntl.LOCK_EX)
        os.rename(new, _at(folder))
        yield owner.fileno()


def _is_own_folder(entry: "os.DirEntry[str]") -> bool:
    with contextlib.suppress(OSError):
        is_mine = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
        return is_mine and entry.is_dir(follow_symlinks=False)
    return False


def _as_it_is(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _at(folder: str) -> str:
    return os.path.join(folder, OWNER)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
