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
from pathlib import Path

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
    """Clean up after processes of ours that could not: nobody holds the lock of their folder."""
    for entry in os.scandir(place):
        # What is not ours, is a link, or is locked, is left alone.
        with contextlib.suppress(OSError):
            is_mine = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name.startswith(PREFIX) and is_mine and is_folder:
                flags = os.O_NOFOLLOW | os.O_NONBLOCK
                with open(os.open(os.path.join(entry.path, OWNER), flags)) as owner:
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
    """Wait until process `pid` says farewell, or ends without a word; then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends soon after those who are meant
    poll = select.poll()
    poll.register(sys.stdin, select.POLLIN)
    with contextlib.suppress(ProcessLookupError):
        poll.register(os.pidfd_open(pid), select.POLLIN)
        if os.getppid() == pid:
            poll.poll()
    os.set_blocking(0, False)
    farewell = b""
    with contextlib.suppress(BlockingIOError):  # a child of theirs holds the other end too
        farewell = os.read(0, 1)
    if not farewell:
        with contextlib.suppress(OSError):
            print(LAST_WORDS, file=sys.stderr, flush=True)
    clean_up(folder)


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
    if f"{MARK}={folder}".encode() in Path(process, "environ").read_bytes().split(b"\0"):
        return True
    if not Path(process, "cmdline").read_bytes().startswith(b"ray::"):
        return False
    files = (os.readlink(entry.path) for entry in os.scandir(f"{process}/fd"))
    return any(file.startswith(folder + "/") for file in files)


@contextlib.contextmanager
def _claimed(folder: str) -> Iterator[int]:
    """Hold the lock of a folder; it has its name only when it is locked."""
    path = os.path.join(folder, OWNER)
    with open(f"{path}.new", "x") as owner:
        owner.write(IS_OURS)
        owner.flush()
        fcntl.flock(owner, fcntl.LOCK_EX)
        os.rename(f"{path}.new", path)
        yield owner.fileno()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
