"""A run as tables, facts and pictures: the one that was just trained, or any on disk."""

import html
import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from phalanx.errors import RunError
from phalanx.files import Facts, read_plain
from phalanx.settings.yaml_file import Words, read_settings
from phalanx.training.folder import Columns, read_table

LARGEST_SUMMARY = 1 << 22  # bytes


class RunTables:
    """What can be read of a run, in a notebook or elsewhere, also while it goes on."""

    @property
    def path(self) -> Path:
        """Its folder."""
        raise NotImplementedError

    def _write_all(self) -> None:
        """What is still to be written comes first."""

    def read_updates(self) -> Columns:
        """A column of numbers for each name in updates.csv; pandas.DataFrame takes it as it is."""
        self._write_all()
        return read_table(self.path)

    def read_episodes(self) -> Columns:
        """The same of episodes.csv."""
        self._write_all()
        return read_table(self.path, "episodes")

    def history(self) -> Any:
        """updates.csv as a pandas.DataFrame; where pandas is not installed, as `read_updates`."""
        return as_frame(self.read_updates())

    def episode_table(self) -> Any:
        """episodes.csv, likewise. (`run.episodes` is how many there were.)"""
        return as_frame(self.read_episodes())

    def plot(self) -> Any:
        """Returns and where the time went, as a matplotlib figure that a notebook shows."""
        # By its name, as `recipe.py` does it: pictures are in a room above this one.
        return import_module("phalanx.show.drawing.run_picture").draw_run(self)


class SavedRun(RunTables):
    """A run on disk.

    run = phalanx.open_run("runs/first")
    run.state, run.summary["returns"]["all"]["mean"]
    run.history().plot("steps", "return")
    run.plot()
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.config: dict[str, Words] = read_settings(path / "config.yaml")
        """its settings, as they are written in config.yaml"""

    @property
    def path(self) -> Path:
        return self._path

    @property
    def summary(self) -> Facts:
        """summary.json; nothing before the run has ended."""
        try:
            facts = json.loads(read_plain(self.path / "summary.json", LARGEST_SUMMARY))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            what = str(error)[:100]
            raise RunError(f"cannot read {self.path / 'summary.json'}: {what}") from None
        return facts if isinstance(facts, dict) else {}

    @property
    def state(self) -> str:
        """finished, stopped or failed; `running` also if it was killed."""
        return str(self.summary.get("state", "running"))

    def __repr__(self) -> str:
        return f"<SavedRun: {', '.join(self._facts().values())}, {self.path}>"

    def _facts(self) -> dict[str, str]:
        summary = self.summary
        facts = {"state": self.state}
        if isinstance(summary.get("episodes"), int):
            facts["episodes"] = f"{summary['episodes']:,} episodes"
        try:
            last = summary["returns"]["all"]
            facts["return"] = f"mean return {last['mean']:.2f} of the last {last['episodes']:,}"
        except (KeyError, TypeError, ValueError):  # of a run under way, or somebody's own file
            pass
        return facts

    def _repr_html_(self) -> str:
        """In a notebook."""
        words = " · ".join(html.escape(word) for word in self._facts().values())
        return f"<div><b>{html.escape(str(self.path))}</b> · {words}</div>"


def open_run(path: Path | str) -> SavedRun:
    """A run on disk: finished, stopped, crashed or under way."""
    folder = Path(path)
    if not (folder / "config.yaml").is_file():
        raise RunError(f"there is no run in {folder}; give the folder of a run, such as runs/first")
    return SavedRun(folder)


def as_frame(columns: Columns) -> Any:
    """A pandas.DataFrame, where pandas is installed; else the columns as they are."""
    if find_spec("pandas") is None:
        return columns
    return import_module("pandas").DataFrame(columns)
