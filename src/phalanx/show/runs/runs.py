"""Which runs, searches and sweeps lie in a folder, how far each is and what it brought.

for row in list_runs(Path("runs")):
    print(row.name, row.state, row.mean)

Folders are only read. One that is damaged, half-written or still at work is a row that says so.
"""

import dataclasses
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from phalanx.errors import ConfigError, RunError
from phalanx.files import Facts, open_plain, read_plain
from phalanx.search.config import SEARCH_ONLY
from phalanx.settings.yaml_file import Words, read_settings
from phalanx.show.runs.tables import Rows, last_rows, number
from phalanx.statistics import interval
from phalanx.system import is_locked
from phalanx.training.checkpoint import RECENT
from phalanx.training.folder import MARK

DEEPEST = 4  # folders between that which is looked through and a run
LARGEST_SUMMARY = 1 << 24  # bytes
STILL_S = 120.0  # what holds no lock and wrote nothing for so long is gone
OVER = ("finished", "stopped", "failed")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run, search or sweep in a list of them."""

    name: str
    """its path within the folder that was looked through"""
    path: Path
    kind: str = "run"
    """run, search or sweep"""
    state: str
    """running, finished, stopped, failed (it said so), crashed (its process is gone), damaged"""
    note: str = ""
    """what is missing or damaged, in a sentence"""
    env: str | None = None
    red_agent: str | None = None
    algo: str | None = None
    seed: int | None = None
    progress: float | None = None
    """share of its budget, 0 to 1"""
    updates: int | None = None
    episodes: int | None = None
    steps: int | None = None
    mean: float | None = None
    """return: of a run's last 2,000 episodes, a search's winner, a sweep's best combination"""
    low: float | None = None
    high: float | None = None
    """the 95 % interval of that mean"""
    score: float | None = None
    """sum of the leaderboard's nine cells, if they were played after training"""
    episodes_per_s: float | None = None
    seconds: float | None = None
    began: float | None = None
    changed: float | None = None
    """when its folder was made, and when anything in it changed last: seconds since 1970"""

    def as_dict(self) -> Facts:
        """Plain values, as `phalanx runs --json` has them."""
        return {**dataclasses.asdict(self), "path": str(self.path)}


def list_runs(folder: Path) -> list[RunRow]:
    """Every run, search and sweep in a folder, by name; those inside a search are its own."""
    if not folder.is_dir():
        raise RunError(f"there is no folder {folder}; give one that holds runs, such as runs")
    return [read_run(path, folder) for path in find_runs(folder)]


def find_runs(folder: Path, deepest: int = DEEPEST) -> Iterator[Path]:
    """The folders of runs, searches, sweeps and their trials; no link is followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    names = {entry.name for entry in entries}
    is_sweep = "sweep.csv" in names
    if is_sweep or _is_run(folder, names):
        yield folder
        if not is_sweep:
            return
    for entry in entries:
        inside = entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        if inside and deepest > 0:
            yield from find_runs(Path(entry.path), deepest - 1)


def read_run(path: Path, root: Path | None = None, name: str = "") -> RunRow:
    """What the folder of a run tells; never an error, whatever lies there."""
    if not name:
        name = path.name if root is None or path == root else str(path.relative_to(root))
    name = name or path.resolve().name
    summary, why = read_summary(path)
    times = list(_times(path))
    began, changed = min(times, default=None), max(times, default=None)
    facts: Facts = {"name": name, "path": path, "began": began, "changed": changed}
    if (path / "sweep.csv").exists():
        return _sweep_row(path, facts, summary, why)
    settings, why_not = settings_of(path)
    facts |= {name: settings.get(name) for name in ("env", "algo")}
    facts["seed"] = whole(settings.get("seed"))
    if settings.get("env") in ("cage2", "cyborg"):
        facts["red_agent"] = settings.get("red_agent")
    notes = [why_not, why]
    running = is_at_work(path)
    if is_search(settings):
        notes += _add_search(facts, settings, summary)
    else:
        notes += _add_run(facts, path, settings, {} if running else summary)
    return RunRow(**facts, state=_state(running, summary, notes), note=_sentence(notes))


def sorted_rows(rows: list[RunRow], column: str) -> list[RunRow]:
    """Best first: highest returns and speeds, latest times, names and words by the alphabet."""
    if column not in COLUMNS:
        raise ConfigError(f"there is no column {column!r:.80}; sort by one of {', '.join(COLUMNS)}")
    field = COLUMNS[column]

    def key(row: RunRow) -> tuple[bool, object]:
        value = getattr(row, field)
        if value is None:
            return True, 0
        return False, value if isinstance(value, str) else -value

    return sorted(rows, key=key)


COLUMNS = {
    "return": "mean",
    "score": "score",
    "speed": "episodes_per_s",
    "time": "seconds",
    "changed": "changed",
    "began": "began",
    **{name: name for name in ("name", "kind", "state", "env", "red_agent", "algo", "seed")},
    **{name: name for name in ("progress", "updates", "episodes", "steps")},
}
"""what a list can be sorted by, and the field of `RunRow` that holds it"""


# --- what lies in a folder ------------------------------------------------------------------------


def _is_run(folder: Path, names: set[str]) -> bool:
    """A folder with our mark, or one that was copied without it."""
    if "config.yaml" in names and names & {"updates.csv", "summary.json", "checkpoints"}:
        return True
    with suppress(OSError):
        return ".lock" in names and read_plain(folder / ".lock", len(MARK)) == MARK.encode()
    return False


def is_at_work(path: Path) -> bool:
    """Whether a process uses the folder now; where no lock tells, whether one has lately."""
    try:
        with open_plain(path / ".lock") as file:
            locked = is_locked(file.fileno())
    except OSError:
        return False
    return time.time() - max(_times(path), default=0) < STILL_S if locked is None else locked


def settings_of(path: Path) -> tuple[dict[str, object], str]:
    """The words of config.yaml by name, and what is wrong with it."""
    if not (path / "config.yaml").exists():
        return {}, "it has no config.yaml yet: nothing was begun"
    try:
        return {
            name: _plain(words) for name, words in read_settings(path / "config.yaml").items()
        }, ""
    except ConfigError:
        return {}, "config.yaml cannot be read"


def read_summary(path: Path) -> tuple[Facts, str]:
    """summary.json, and what is wrong with it; without one nothing is."""
    try:
        facts = json.loads(read_plain(path / "summary.json", LARGEST_SUMMARY))
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, RecursionError):
        return {}, "summary.json cannot be read"
    if isinstance(facts, dict) and isinstance(facts.get("state"), str):
        return facts, ""
    return {}, "summary.json cannot be read"


def is_search(settings: Facts) -> bool:
    return not SEARCH_ONLY.isdisjoint(settings)


def whole(value: object) -> int | None:
    found = number(str(value))
    return None if found is None else int(found)


def _plain(words: Words) -> object:
    return ",".join(words) if isinstance(words, list) else words


def _times(path: Path) -> Iterator[float]:
    names = (".lock", "config.yaml", "updates.csv", "episodes.csv", "summary.json", "sweep.csv")
    for name in names:
        with suppress(OSError):
            yield (path / name).stat().st_mtime


# --- one row --------------------------------------------------------------------------------------


def _add_run(facts: Facts, path: Path, settings: Facts, summary: Facts) -> list[str]:
    """What a training run has reached, from its summary or else from its tables; what is amiss."""
    if summary:
        returns = _part(_part(summary, "returns"), "all")
        facts |= {name: whole(summary.get(name)) for name in ("updates", "episodes", "steps")}
        facts |= {name: real(returns.get(name)) for name in ("mean", "low", "high")}
        facts |= {name: real(summary.get(name)) for name in ("seconds", "episodes_per_s")}
        score = _part(summary, "score")
        cells = score.get("cells")
        if isinstance(cells, list) and len(cells) == 9:
            facts["score"] = real(score.get("total"))
    else:
        amiss = _add_from_tables(facts, path)
        if amiss:
            return amiss
    facts["progress"] = _progress(facts, settings)
    return []


def _add_from_tables(facts: Facts, path: Path) -> list[str]:
    """The same of a run that has not ended, or was killed."""
    try:
        updates = last_rows(path / "updates.csv")
    except FileNotFoundError:
        return ["it has no update yet"]
    except OSError:
        return ["updates.csv cannot be read"]
    if not updates.rows:
        return ["updates.csv has no whole row" if updates.spoilt else "it has no update yet"]
    counts = {"updates": "update", "episodes": "episodes", "steps": "steps"}
    facts |= {name: whole(updates.last(column)) for name, column in counts.items()}
    seconds = number(updates.last("elapsed_s"))
    facts["seconds"] = seconds
    if seconds and facts["episodes"] is not None:
        facts["episodes_per_s"] = facts["episodes"] / seconds
    with suppress(OSError):
        facts |= last_returns(last_rows(path / "episodes.csv"))
    return ["some rows of updates.csv are damaged"] if updates.spoilt else []


def last_returns(episodes: Rows) -> Facts:
    """Mean and interval of the last episodes, as summary.json would have them."""
    returns = [
        value for word in episodes.column("return")[-RECENT:] if (value := number(word)) is not None
    ]
    if not returns:
        return {}
    found = interval(returns)
    return {name: found[name] for name in ("mean", "low", "high")}


def _add_search(facts: Facts, settings: Facts, summary: Facts) -> list[str]:
    facts |= {"kind": "search", "episodes": whole(summary.get("episodes"))}
    facts["seconds"] = real(summary.get("seconds"))
    if facts["seconds"] and facts["episodes"] is not None:
        facts["episodes_per_s"] = facts["episodes"] / facts["seconds"]
    confirmed = listed(summary, "confirmed", dict)
    winner: Facts = next((row for row in confirmed if row.get("name") == "winner"), {})
    facts |= {name: real(winner.get(name)) for name in ("mean", "low", "high")}
    facts["progress"] = _progress(facts, settings)
    return [] if summary else ["it has no summary.json yet"]


def _sweep_row(path: Path, facts: Facts, summary: Facts, why: str) -> RunRow:
    state = str(summary.get("state"))
    if state not in OVER:
        recent = time.time() - (facts["changed"] or 0) < STILL_S
        at_work = recent or any(is_at_work(trial) for trial in find_runs(path) if trial != path)
        state = "running" if at_work else "crashed"
    combinations = listed(summary, "combinations", dict)
    best: Facts = combinations[0] if combinations else {}
    mean, reach = real(best.get("mean")), real(best.get("half_width"))
    trials = {name: whole(count) or 0 for name, count in _part(summary, "trials").items()}
    ended = sum(count for name, count in trials.items() if name != "not begun")
    if mean is not None and reach is not None:
        facts |= {"low": mean - reach, "high": mean + reach}
    progress = ended / sum(trials.values()) if sum(trials.values()) else None
    facts |= {"state": "damaged" if why else state, "note": _sentence([why])}
    facts |= {"mean": mean, "progress": progress, "seconds": real(summary.get("seconds"))}
    return RunRow(**facts, kind="sweep")


def _state(running: bool, summary: Facts, notes: list[str]) -> str:
    if running:
        return "running"
    if any("cannot be read" in note or "damaged" in note for note in notes):
        return "damaged"
    state = str(summary.get("state"))
    return state if state in OVER else "crashed"


def _sentence(notes: list[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, notes)))


def _progress(facts: Facts, settings: Facts) -> float | None:
    """The share of the budget that is spent, of whichever is nearest to its end."""
    budgets = (
        (facts.get("steps"), number(settings.get("total_steps"))),
        (facts.get("episodes"), number(settings.get("total_episodes"))),
        (facts.get("seconds"), 3600 * (number(settings.get("duration")) or 0)),
    )
    shares = [done / total for done, total in budgets if done is not None and total]
    return min(1.0, max(shares)) if shares else None


def real(value: object) -> float | None:
    """A finite number of a file, or None: who writes files by hand may write anything."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value - value != 0:
        return None
    return float(value)


def listed(facts: Facts, name: str, kind: type[T]) -> list[T]:
    """Those of a list in a file that are what they should be."""
    found = facts.get(name)
    return [one for one in found if isinstance(one, kind)] if isinstance(found, list) else []


def _part(facts: Facts, name: str) -> Facts:
    part = facts.get(name)
    return part if isinstance(part, dict) else {}
