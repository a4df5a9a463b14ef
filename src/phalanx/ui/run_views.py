"""Runs as the web app shows them: the list, one of them, and how its tables grow.

A run is named as in the list and found by looking it up there: no name leads out of the folder, and
no link is followed, neither to a folder nor to a file of a run.
"""

import time
from pathlib import Path

from phalanx.files import Facts
from phalanx.show.runs.runs import RunRow, find_runs, is_at_work, read_run, read_summary
from phalanx.show.runs.settings_told import told_settings
from phalanx.training.folder import MADE, TABLES
from phalanx.ui.asked import NotHere
from phalanx.ui.new_rows import NewRows, new_rows

FILES = (*MADE, "checkpoints/last.npz", "sweep.csv")
FRESH_S = 2.0  # for so long a list of names is not made again
PLAYED = ("cage2", "cyborg")


class RunViews:
    """What can be asked of the folder that holds the runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._found: dict[str, Path] = {}
        self._looked = -FRESH_S
        self._rows: dict[Path, tuple[object, RunRow]] = {}

    def list(self) -> dict[str, object]:
        """All runs, in the order of their names; an empty or absent folder has none."""
        self._look()
        rows = [self._row(path) for path in self._found.values()]
        return {"folder": str(self.folder), "runs": [plain(row) for row in rows]}

    def one(self, run: str) -> Facts:
        """All that is told of one run."""
        path = self.path_of(run)
        row = self._row(path)
        if linked_file(path):
            return {"row": plain(row), "settings": [], "summary": {}}
        return {
            "row": plain(row),
            "settings": settings_in(path),
            "summary": read_summary(path)[0],
        }

    def rows(self, run: str, table: str = "updates", at: str = "") -> dict[str, object]:
        """What a table of a run has grown by since `at`."""
        if table not in TABLES:
            raise NotHere(f"a run has no table {table!r:.80}")
        try:
            found = new_rows(self.path_of(run) / f"{table}.csv", at)
        except OSError:
            found = NewRows([], [], "", True, False)
        return found.as_dict()

    def path_of(self, run: str) -> Path:
        """The folder of a run by its name in the list."""
        if run not in self._found or time.monotonic() - self._looked > FRESH_S:
            self._look()
        path = self._found.get(run)
        if path is None or not path.is_dir() or _passes_link(path, self.folder):
            raise NotHere(f"there is no run {run!r:.80} any more")
        return path

    def unlinked(self, run: str) -> Path:
        """The same, if none of its files leads elsewhere."""
        path = self.path_of(run)
        link = linked_file(path)
        if link is not None:
            raise NotHere(f"{link} of {run!r:.80} is a link, which is not followed")
        return path

    def _look(self) -> None:
        found = list(find_runs(self.folder))
        self._found = {read_name(path, self.folder): path for path in found}
        self._rows = {path: self._rows[path] for path in found if path in self._rows}
        self._looked = time.monotonic()

    def _row(self, path: Path) -> RunRow:
        link = linked_file(path)
        if link is not None:
            note = f"{link} is a link, which is not followed"
            return RunRow(name=read_name(path, self.folder), path=path, state="damaged", note=note)
        now, before = signature(path), self._rows.get(path)
        if before is not None and before[0] == now and before[1].kind != "sweep":
            return before[1]  # a sweep depends on its trials and on the time, too
        row = read_run(path, self.folder)
        self._rows[path] = (now, row)
        return row


def signature(path: Path) -> tuple[object, ...]:
    """What changes if anything that a row tells does; it is found much sooner than the row."""
    return is_at_work(path), *(_stamp(path / name) for name in FILES)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def settings_in(path: Path) -> list[dict[str, object]]:
    """Each setting as one would write it, and what it would be if nothing were said."""
    return [
        {"name": one.name, "value": one.value, "usual": one.default, "changed": one.differs}
        for one in told_settings(path)[0]
    ]


def read_name(path: Path, root: Path) -> str:
    """As `read_run` names it."""
    return path.resolve().name if path == root else str(path.relative_to(root))


def plain(row: RunRow) -> dict[str, object]:
    """A row as JSON: where it lies on this machine is nobody's business."""
    return {name: value for name, value in row.as_dict().items() if name != "path"} | {
        "is_playable": is_playable(row)
    }


def is_playable(row: RunRow) -> bool:
    """Whether it has a policy that can defend the network."""
    checkpoint = row.path / "checkpoints" / "last.npz"
    return row.kind == "run" and row.env in PLAYED and checkpoint.is_file()


def linked_file(path: Path) -> str | None:
    """The first of a run's files that is a link."""
    return next((name for name in FILES if (path / name).is_symlink()), None)


def _passes_link(path: Path, root: Path) -> bool:
    """Whether a folder below the root is a link by now."""
    between = [path, *path.parents]
    return any(place.is_symlink() for place in between[: between.index(root)])
