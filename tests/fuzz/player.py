"""A process that runs phalanx's commands one after the other, and tells what each of them did.

`python -m tests.fuzz.player ROOT`: reads a command as a line of JSON, answers with one.
"""

import contextlib
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.remove", "os.rename", "os.truncate", "os.mkdir", "os.rmdir", "os.symlink", "os.link")


class Watch:
    """Notes what is imported and which paths are written to, also by way of C."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        self.allowed = allowed
        self.imported: list[str] = []
        self.written: list[str] = []
        self.is_on = False
        sys.meta_path.insert(0, self)
        sys.addaudithook(self._hear)

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> None:
        if self.is_on:
            self.imported.append(name)

    def _hear(self, event: str, about: tuple[Any, ...]) -> None:
        if not self.is_on or (event != "open" and event not in CHANGES):
            return
        path, is_change = about[0], event != "open" or bool(about[2] & WRITES)
        if is_change and isinstance(path, str | bytes | os.PathLike):
            full = os.path.abspath(os.fsdecode(path))
            if not full.startswith(self.allowed):
                self.written.append(full)


def main(root: Path) -> None:
    answers, lines = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(0), "r")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(root)
    from phalanx.cli.commands import main as phalanx
    from phalanx.compiled.cache import cache_folder

    caches = (str(cache_folder()), os.path.dirname(str(cache_folder())))
    watch = Watch((str(root), *caches, "/dev/", "/proc/"))
    sys.path.append(str(root))  # so that whatever tries to import finds the bait
    for line in lines:
        _forget_peak()
        began, began_cpu, code, error = time.perf_counter(), time.process_time(), None, ""
        with _into_file(root / "said") as said:
            watch.is_on = True
            try:
                code = phalanx(json.loads(line))
            except BaseException:
                error = traceback.format_exc()
            watch.is_on = False
        answer = {
            "code": code,
            "error": error,
            "said": said(),
            "seconds": time.perf_counter() - began,
            "cpu_s": time.process_time() - began_cpu,
            "peak_mb": _peak_mb(),
            "imported": watch.imported,
            "written": watch.written,
        }
        watch.imported, watch.written = [], []
        print(json.dumps(answer), file=answers, flush=True)


@contextlib.contextmanager
def _into_file(path: Path) -> Iterator[Any]:
    """What is written to stderr, by other processes too, goes into a file; stdout nowhere."""
    with path.open("wb+") as file, open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(file.fileno(), 2)
        yield lambda: path.read_text(errors="replace")
        sys.stdout.flush()
        sys.stderr.flush()


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    """Of this process since the command began, or of any that it has started."""
    lines = Path("/proc/self/status").read_text().splitlines()
    mine = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return max(mine, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024


if __name__ == "__main__":
    main(Path(sys.argv[1]))
