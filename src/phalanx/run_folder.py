"""Where a run keeps its settings, its rows, its checkpoints and its summary."""

import csv
import fcntl
import io
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from phalanx.errors import ConfigError, RunError
from phalanx.events import Events
from phalanx.results import write_json

FLUSH_S = 1.0  # rows that a kill may cost


class RunFolder:
    """config.yaml, episodes.csv, updates.csv, summary.json, checkpoints/; used by one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            (path / "checkpoints").mkdir(parents=True, exist_ok=True)
            self._lock = (path / ".lock").open("a")
        except OSError as error:
            raise RunError(
                f"cannot write to {path}: {error.strerror}; give another --output-dir"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise RunError(f"{path} is in use by another process; wait for it or stop it") from None
        self._tables: dict[str, Table] = {}
        self.events = Events(path)

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoints" / "last.npz"

    def write_config(self, settings: dict[str, Any]) -> None:
        path = self.path / "config.yaml"
        try:
            path.write_text(yaml.safe_dump(settings, sort_keys=False))
        except OSError as error:
            raise _cannot_write(path, error) from None

    def table(self, name: str) -> "Table":
        if name not in self._tables:
            self._tables[name] = Table(self.path / f"{name}.csv")
        return self._tables[name]

    def forget_rows(self) -> None:
        """Begin with empty tables: a run that was killed before its first checkpoint left some."""
        for path in self.path.glob("*.csv"):
            self.table(path.stem).cut(0)

    def write_summary(self, summary: dict[str, Any]) -> None:
        write_json(self.path / "summary.json", summary)

    def remove_if_empty(self) -> None:
        """Leave nothing of a run that could not begin."""
        within = {path.name for path in self.path.iterdir()}
        if within <= {".lock", "checkpoints"} and not any((self.path / "checkpoints").iterdir()):
            shutil.rmtree(self.path)

    def close(self) -> None:
        for table in self._tables.values():
            table.close()
        self.events.close()
        self._lock.close()


def read_config(path: Path) -> dict[str, Any]:
    """A YAML file of settings as a dict."""
    try:
        settings = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(settings, dict):
        raise ConfigError(f"{path} must hold settings as `name: value` lines")
    return settings


def _cannot_write(path: Path, error: OSError) -> RunError:
    return RunError(
        f"cannot write {path}: {error.strerror}; what was saved before is whole: make room, then "
        f"phalanx train --resume {path.parent}"
    )


class Table:
    """Rows of a CSV file, written at most a second after they are given."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("ab+", buffering=0)
        self._pending = io.StringIO()
        self._writer = csv.writer(self._pending)
        self._flushed = time.monotonic()

    def add(self, names: tuple[str, ...], rows: Iterable[Iterable[Any]]) -> None:
        if self._file.tell() == 0 and self._pending.tell() == 0:
            self._writer.writerow(names)
        self._writer.writerows(rows)
        if time.monotonic() - self._flushed > FLUSH_S:
            self.flush()

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
        self._file.seek(0, io.SEEK_END)

    def close(self) -> None:
        self.flush()
        self._file.close()
