"""The command `phalanx runs`: which runs there are, best first."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.text import Text

from phalanx.display import new_table, plus_minus, span
from phalanx.settings.fields import OneOf, checked
from phalanx.show.runs.runs import COLUMNS, RunRow, list_runs, sorted_rows

WORDS = ("run", "state", "game", "note")
STYLES = {"running": "cyan", "failed": "red", "crashed": "red", "damaged": "red"}
LEAST_WIDTH = 100  # of a file or a pipe, where nothing need be cut


@checked
@dataclass(frozen=True, kw_only=True)
class RunsConfig:
    """List runs, searches and sweeps: how far each is, and what it brought; best first.

    Folders are only read, also those of runs that are at work. What is damaged is listed as such.
    """

    folder: Path = field(default=Path("runs"), metadata={"positional": True, "metavar": "DIR"})
    """where to look; folders within it too"""
    sort: Annotated[str, OneOf(*COLUMNS)] = "return"
    """column whose best comes first: return, score (of the leaderboard's nine cells), speed, time,
    changed, began, progress, episodes, steps, updates, name, kind, state, env, red_agent, algo,
    seed"""
    json: bool = False
    """print all that is known of each, as JSON"""


def main(config: RunsConfig) -> int:
    rows = sorted_rows(list_runs(config.folder), config.sort)
    if config.json:
        print(json.dumps([row.as_dict() for row in rows], indent=1))
        return 0
    if not rows:
        print(f"no runs in {config.folder}; phalanx train makes one")
        return 0
    console = Console()
    if not console.is_terminal:
        console = Console(width=max(LEAST_WIDTH, 40 + max(map(_width, rows))))
    console.print(_table(rows))
    return 0


def _table(rows: list[RunRow]) -> object:
    columns = ["run", "state", "game", "done", "episodes", "return", "score", "episodes/s", "time"]
    notes = any(row.note for row in rows)
    lines = [[*_cells(row), *([Text(row.note)] if notes else [])] for row in rows]
    return new_table(None, [*columns, *(["note"] if notes else [])], lines, WORDS, overflow="fold")


def _cells(row: RunRow) -> list[Text]:
    """A line of the table; names are text, whatever brackets they have."""
    name = row.name if row.kind == "run" else f"{row.name} ({row.kind})"
    progress = "" if row.progress is None else f"{row.progress:.0%}"
    score = "" if row.score is None else f"{row.score:.2f}"
    time = "" if row.seconds is None else span(row.seconds)
    reached = [_count(row.episodes), _return(row), score, _count(row.episodes_per_s), time]
    words = [name, row.state, _game(row), progress, *reached]
    cells = [Text("".join(c if c.isprintable() else "?" for c in word)) for word in words]
    cells[1].stylize(STYLES.get(row.state, ""))
    return cells


def _game(row: RunRow) -> str:
    """The environment, and against whom; a mixture by its parts."""
    agents = [part.partition("=")[0] for part in (row.red_agent or "").split(",")]
    shown = ", ".join(agents[:2]) + (f" +{len(agents) - 2}" if len(agents) > 2 else "")
    return f"{row.env or ''} {shown}".strip()


def _return(row: RunRow) -> str:
    if row.mean is None:
        return ""
    return f"{row.mean:.2f}" if row.high is None else plus_minus(row.mean, row.high - row.mean)


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _width(row: RunRow) -> int:
    return sum(len(cell) + 3 for cell in _cells(row)) + len(row.note)
