"""Where a run keeps its settings, its rows, its checkpoints and its summary.

Nothing else is ever touched: a folder that holds what phalanx has not made is refused as it is, and
no name in it may be a link that leads elsewhere.
"""

import csv
import io
import json
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from phalanx.arrays import Arrays
from phalanx.errors import RunError
from phalanx.files import replace_text
from phalanx.system import NO_LINK, take_lock

LOOKING_S = 0.2  # who lists runs holds a lock for a moment: not a reason to refuse
FLUSH_S = 1.0  # rows that a kill may cost
LONGEST_HEADER = 100_000  # bytes of the names of columns
TABLES = ("updates", "episodes", "faults")
MARK = "a run folder of phalanx\n"  # in .lock: what tells our folders from others
MADE = (".lock", "config.yaml", "summary.json", "checkpoints", *(f"{name}.csv" for name in TABLES))
MADE_BY_SEARCH = (
    *MADE,
    "search.csv",
    "policies",
    "school",
    "workflows",
    "winner",
    "baseline",
    "plots",
)
Columns = Arrays


class RunFolder:
    """config.yaml, episodes.csv, updates.csv, summary.json, checkpoints/; used by one process.

    goes_on: a run or search is continued: what users put beside its files does not matter.
    is_new: it must not be there yet; FileExistsError if it is.
    for_search: a search, not a run, is to begin in it: each may take over only its own leftovers.
    """

    def __init__(
        self,
        path: Path,
        *,
        goes_on: bool = False,
        is_new: bool = False,
        for_search: bool = False,
    ) -> None:
        self.path = path
        if not goes_on and not is_new:
            check_free(path, MADE_BY_SEARCH if for_search else MADE)
        try:
            self._made = [place for place in (path, *path.parents) if not place.exists()]
            path.mkdir(parents=True, exist_ok=not is_new)
            with ExitStack() as on_failure:
                self._lock = on_failure.enter_context(_open_lock(path / ".lock"))
                for name in MADE_BY_SEARCH:
                    check_not_linked(path / name)
                (path / "checkpoints").mkdir(exist_ok=True)
                on_failure.pop_all()
        except OSError as error:
            if is_new and isinstance(error, FileExistsError):
                raise
            raise _not_here(path, error) from None
        self._tables: dict[str, Table] = {}
        self.events = Events(path)

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoints" / "last.npz"

    def write_config(self, settings: Mapping[str, object], notes: Iterable[str] = ()) -> None:
        """The settings, and above them what was chosen at the start, and why."""
        lines = "".join(f"# {' '.join(note.split())}\n" for note in notes)
        self.write("config.yaml", lines + yaml.safe_dump(settings, sort_keys=False))

    def table(self, name: str) -> "Table":
        if name not in self._tables:
            self._tables[name] = Table(self.path / f"{name}.csv")
        return self._tables[name]

    def flush(self) -> None:
        """Write all rows that were given."""
        for table in list(self._tables.values()):  # a fault may begin another one meanwhile
            table.flush()

    def count_rows(self, name: str) -> int:
        """Rows that a table has on disk."""
        path = self.path / f"{name}.csv"
        if not path.exists():
            return 0
        with path.open(newline="", errors="replace") as file:
            try:
                return max(0, sum(1 for _row in csv.reader(file)) - 1)
            except csv.Error as error:
                raise RunError(f"{path} is no table of a run ({error}); remove it") from None

    def forget_rows(self) -> None:
        """Begin with empty tables: a run that was killed before its first checkpoint left some."""
        for name in TABLES:
            if (self.path / f"{name}.csv").exists():
                self.table(name).cut(0)

    def write_summary(self, summary: Mapping[str, object]) -> None:
        self.write("summary.json", json.dumps(summary, indent=1) + "\n")

    def write(self, name: str, text: str) -> None:
        """A file of the folder: whole or not at all, and in the folder whatever lies there."""
        try:
            replace_text(self.path / name, text)
        except OSError as error:
            raise _cannot_write(self.path / name, error) from None

    def remove_if_empty(self) -> None:
        """Leave nothing of a run that could not begin, nor folders that were made for it."""
        within = {path.name for path in self.path.iterdir()}
        if within <= {".lock", "checkpoints"} and not any((self.path / "checkpoints").iterdir()):
            (self.path / "checkpoints").rmdir()
            (self.path / ".lock").unlink()
            with suppress(OSError):  # somebody else may use them by now
                for place in self._made:
                    place.rmdir()

    def close(self) -> None:
        for table in self._tables.values():
            table.close()
        self.events.close()
        self._lock.close()


def open_new(output_dir: Path, name: str | None, *, for_search: bool = False) -> RunFolder:
    """A folder for a new run; of two without a name that begin in the same second, each has one."""
    if name is not None:
        return RunFolder(output_dir / name, for_search=for_search)
    now, count = time.strftime("%Y%m%d-%H%M%S"), 1
    while True:
        path = output_dir / (now if count == 1 else f"{now}-{count}")
        try:
            return RunFolder(path, is_new=True, for_search=for_search)
        except FileExistsError:
            count += 1


def _not_here(path: Path, error: OSError) -> RunError:
    return RunError(f"cannot write to {path}: {error.strerror}; give another --output-dir")


def check_free(path: Path, made: Sequence[str]) -> None:
    """Refuse a folder for a new run that holds anything but what phalanx has left there."""
    if path.is_symlink():
        raise RunError(f"{path} is a link; give another --name, or the --output-dir it leads to")
    try:
        within = {entry.name for entry in os.scandir(path)}
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise RunError(f"{path} is a file; give another --name") from None
    except OSError as error:
        raise _not_here(path, error) from None
    others = sorted(
        name for name in within if name not in made and not name.startswith("events.out.tfevents.")
    )
    if within and (others or not _is_marked(path / ".lock")):
        what = (others or sorted(within))[0]
        raise RunError(
            f"{path} holds {what!r:.80}, which is no part of a run; nothing was touched: give "
            "another --name"
        )


def _is_marked(lock: Path) -> bool:
    try:
        with lock.open("rb") as file:
            return not lock.is_symlink() and file.read(len(MARK)) == MARK.encode()
    except OSError:
        return False


def check_not_linked(path: Path) -> None:
    """Refuse a name that leads outside: a link, or a file that has another name elsewhere."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    linked = stat.S_ISLNK(status.st_mode) or (
        not stat.S_ISDIR(status.st_mode) and status.st_nlink > 1
    )
    if linked:
        raise RunError(f"{path} is a link to a file elsewhere; nothing was touched: remove it")


def _open_lock(path: Path) -> io.TextIOWrapper:
    """Take the folder for this process; the mark says whose it is."""
    check_not_linked(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666)
    lock = os.fdopen(descriptor, "r+")
    try:
        until = time.monotonic() + LOOKING_S
        while not (taken := take_lock(descriptor)) and time.monotonic() < until:
            time.sleep(LOOKING_S / 10)
        if not taken:
            raise RunError(f"{path.parent} is in use by another process; wait for it or stop it")
        if not os.fstat(descriptor).st_size:
            lock.write(MARK)
            lock.flush()
    except (RunError, OSError):
        lock.close()
        raise
    return lock


def _cannot_write(path: Path, error: OSError) -> RunError:
    return RunError(
        f"cannot write {path}: {error.strerror}; what was saved before is whole: make room, then "
        f"phalanx train --resume {path.parent}"
    )


class Table:
    """Rows of a CSV file, written at most a second after they are given."""

    def __init__(self, path: Path) -> None:
        self._path = path
        check_not_linked(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | NO_LINK
        self._file = os.fdopen(os.open(path, flags, 0o666), "ab+", buffering=0)
        self._pending = io.StringIO()
        self._writer = csv.writer(self._pending)
        self._flushed = time.monotonic()
        self._columns: tuple[str, ...] | None = None  # not known yet

    def add(self, names: tuple[str, ...], rows: Iterable[Iterable[object]]) -> None:
        """A table that another version began keeps its columns: others are left out."""
        if self._columns is None:
            self._columns = self._read_columns() or names
            if self._file.tell() == 0:
                self._writer.writerow(names)
        if self._columns != names:
            named = (dict(zip(names, row, strict=True)) for row in rows)
            rows = [[row.get(name, "") for name in self._columns] for row in named]
        self._writer.writerows(rows)
        if time.monotonic() - self._flushed > FLUSH_S:
            self.flush()

    def _read_columns(self) -> tuple[str, ...]:
        """Those that it has on disk; none if it is empty."""
        self._file.seek(0)
        first = self._file.readline(LONGEST_HEADER).decode(errors="replace")
        self._file.seek(0, io.SEEK_END)
        return tuple(next(csv.reader([first]), ()))

    def flush(self) -> None:
        rows = memoryview(self._pending.getvalue().encode())
        self._pending.seek(0)
        self._pending.truncate()
        self._flushed = time.monotonic()
        try:
            while rows:
                rows = rows[self._file.write(rows) :]
        except OSError as error:
            raise _cannot_write(self._path, error) from None

    def size(self) -> int:
        """Bytes on disk, all rows included; where `cut` goes back to."""
        self.flush()
        self._file.seek(0, io.SEEK_END)
        return self._file.tell()

    def cut(self, size: int) -> None:
        """Forget the rows after a checkpoint: they will be played again."""
        self._file.truncate(min(size, self.size()))  # the file may have been lost meanwhile
        self._columns = None
        self._file.seek(0, io.SEEK_END)

    def close(self) -> None:
        self.flush()
        self._file.close()


def read_table(folder: Path | str, name: str = "updates") -> Columns:
    """A table of a run folder: updates, episodes or faults; also while the run goes on.

    pandas.DataFrame(phalanx.read_table("runs/first"))

    Columns of whole numbers are int64, of other numbers float64, all others strings.
    """
    path = Path(folder) / f"{name}.csv"
    try:
        text = path.read_text()
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}; give the folder of a run") from None
    whole = text[: text.rfind("\n") + 1]  # of the last row half may be on its way
    names, *rows = csv.reader(whole.splitlines(keepends=True)) if whole else [[]]
    return {name: _as_numbers(np.array([row[k] for row in rows])) for k, name in enumerate(names)}


def _as_numbers(words: npt.NDArray[np.str_]) -> npt.NDArray[np.generic]:
    for kind in (np.int64, np.float64):
        try:
            return words.astype(kind)
        except (ValueError, OverflowError):
            pass
    return words


class Events:
    """The numbers of a run as TensorBoard events; does nothing where that is not installed.

    Nothing is imported or written before the first number.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None
        self._pending: list[tuple[float, int, Mapping[str, object] | None]] = []
        self._written = time.monotonic()
        self._installed = find_spec("tensorboard") is not None

    def add(self, step: int, numbers: Mapping[str, object]) -> None:
        """One point on the curve of each of these numbers."""
        if self._installed:
            self._keep(step, numbers)

    def forget_after(self, step: int) -> None:
        """A run went back to this step: TensorBoard drops what was written after it."""
        if self._installed:
            self._keep(step + 1, None)

    def _keep(self, step: int, numbers: Mapping[str, object] | None) -> None:
        """Many are written at a time: to wake the writer's thread for each would cost more."""
        self._pending.append((time.time(), step, numbers))
        if self._writer is None or time.monotonic() - self._written > FLUSH_S:
            self._write()

    def _write(self) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        if self._writer is None:
            self._writer = EventFileWriter(str(self._folder), flush_secs=1)
        pending, self._pending, self._written = self._pending, [], time.monotonic()
        for wall_time, step, numbers in pending:
            event = Event(wall_time=wall_time, step=step)
            if numbers is None:
                event.session_log.status = SessionLog.START
            else:
                event.summary.value.extend(
                    Summary.Value(tag=name, simple_value=value)
                    for name, value in numbers.items()
                    if isinstance(value, float) and value == value
                )
            self._writer.add_event(event)

    def close(self) -> None:
        if self._writer is not None:
            self._write()
            self._writer.close()
