"""Run a command with a Ray of its own, and see that nothing of it is left."""

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import time
from pathlib import Path

MARK = "PHALANX_TEST_MARK"


class Marked:
    """Environment variables by which all descendants of a command are found again.

    with Marked() as marked:
        subprocess.run(command, env=marked.env)
        assert marked.left() == []
    """

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        self.temp = Path(tempfile.mkdtemp(prefix="px", dir="/tmp"))  # Ray wants a short path
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            MARK: self.mark,
            "TMPDIR": str(self.temp),
            "RAY_TMPDIR": str(self.temp),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listen on loopback only
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }

    def __enter__(self) -> "Marked":
        return self

    def __exit__(self, *_exception: object) -> None:
        shutil.rmtree(self.temp, ignore_errors=True)

    def left(self, within_s: float = 90.0) -> list[str]:
        """Command lines of its processes that are still alive after a while."""
        deadline = time.monotonic() + within_s
        while (found := self.alive()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def alive(self) -> list[str]:
        return list(self.processes().values())

    def kill(self) -> None:
        """As when the machine loses its power."""
        while found := self.processes():
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)

    def processes(self) -> dict[int, str]:
        """The command lines of its processes that are alive, by their numbers."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found[int(entry.name)] = line
            except OSError:  # it has just ended, or is somebody else's
                continue
        return found
