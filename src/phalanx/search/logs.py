"""The files of a search: its tables, where policies lie, and how shards are joined."""

import csv
import io
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, TypedDict

from phalanx.cage2.workflow import parse_order
from phalanx.errors import RunError
from phalanx.files import read_plain
from phalanx.search.config import SearchConfig
from phalanx.search.surrogate import Visit
from phalanx.settings.fields import values_of
from phalanx.training.checkpoint import last_checkpoint
from phalanx.training.config import NOT_SAVED
from phalanx.trust import IN_THE_GAME, NAMES_CODE, check_cluster, check_named

UPDATE_COLUMNS = (
    "shard",
    "phase",
    "workflow",
    "order",
    "update",
    "episodes",
    "total_episodes",
    "return",
    "alignment",
    "total_return",
    "compliance",
    "fixes_per_episode",
    "share_without_fix",
    "collect_s",
    "learn_s",
)
# What a search that goes on, or joins shards, may have otherwise than it began.
MAY_CHANGE = (
    "num_threads",
    "margin",
    "baseline",
    "confirm_episodes",
    "checkpoint_every",
    "ray_address",
    "cpus_per_sampler",
)
MAY_DIFFER = ("shard", "num_threads", "baseline", "start_from")  # between shards of one search


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([_short(row[name]) for name in columns] for row in rows)
    return text.getvalue()


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def read_updates(path: Path) -> list[dict[str, str]]:
    """The rows of a search's updates.csv."""
    try:
        rows = read_csv(path)
    except (OSError, ValueError, csv.Error) as error:
        raise RunError(f"cannot read {path}: {error}") from None
    if rows and set(rows[0]) != set(UPDATE_COLUMNS):
        raise RunError(f"{path} is no table of a search")
    return rows


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def own_seed(seed: int, name: str) -> int:
    """The seed of a training run inside a search; of the baseline, the search's own."""
    return seed if name == "baseline" else (seed * 1_000_003 + zlib.crc32(name.encode())) % 2**62


def school_name(learner: int) -> str:
    """The folder of what a learner (from 1) has learnt of all orders."""
    return "school" if learner == 1 else f"school-{learner}"


def own_name(number: int, learner: int = 1) -> str:
    """The folder of an order's own training, within that of the search."""
    return f"workflows/{number:03d}" if learner == 1 else f"workflows/{number:03d}-{learner}"


def find_policy(folder: Path, start_from: str | None, number: int, learner: int = 1) -> Path:
    """Where a learner's policy for an order lies: its own, or the one that all orders share."""
    merged = [f"policies/{number:03d}.npz"] if learner == 1 else []
    for place in (*merged, own_name(number, learner)):
        if last_checkpoint(folder / place).exists():
            return folder / place
    return Path(start_from or folder / school_name(learner))


def update_rows(
    folder: Path, shard: str, visits: Sequence[Visit], before_finish: int, learners: int = 1
) -> list[dict[str, object]]:
    """The updates of all training runs inside a search, in the order in which they were made.

    before_finish: episodes of the search before the winner's own training.
    """
    runs: list[tuple[str, str, int | None]] = [("school", "school", 0)]
    runs += [(school_name(k), "school", None) for k in range(2, learners + 1)]
    for visit in visits:
        before = visit.total_episodes - visit.measured_episodes - visit.trained_episodes
        runs.append((own_name(visit.workflow), "own training", before))
        runs += [
            (own_name(visit.workflow, k), "own training", None) for k in range(2, learners + 1)
        ]
    runs.append(("winner", "training the winner", before_finish))
    rows: list[dict[str, object]] = []
    total = 0
    for name, phase, start in runs:
        path = folder / name / "updates.csv"
        if not path.exists():
            continue
        before = total if start is None else start
        for row in read_csv(path):
            order, total = row["workflow"], before + int(row["episodes"])
            rows.append(
                {column: row.get(column, "") for column in UPDATE_COLUMNS}
                | {
                    "shard": shard,
                    "phase": phase,
                    "workflow": "" if order == "all" else parse_order(order),
                    "order": order,
                    "total_episodes": total,
                }
            )
    return rows


# --- shards ---------------------------------------------------------------------------------------


class Summary(TypedDict):
    """What a search that goes on, or joins shards, takes from summary.json."""

    state: str
    config: dict[str, Any]
    visits: list[Visit]
    spent: dict[str, int]
    seconds: float
    finals: list[dict[str, Any]]
    merged: list[str]
    winner: int | None


KINDS: dict[str, type | UnionType] = {
    "state": str,
    "config": dict,
    "visits": list,
    "spent": dict,
    "seconds": float,
    "finals": list,
    "merged": list,
    "winner": int | None,
}
LARGEST_SUMMARY = 1 << 24  # bytes; 120 visits take a hundredth of that


def read_summary(folder: Path) -> Summary:
    """What a search has written of itself; its visits as such."""
    path = folder / "summary.json"
    try:
        facts = json.loads(read_plain(path, LARGEST_SUMMARY))
        good = [isinstance(facts[name], kind) for name, kind in KINDS.items()]
        if not all(good) or any(type(n) is not int for n in facts["spent"].values()):
            raise TypeError
        facts["visits"] = [Visit(**visit) for visit in facts["visits"]]
        facts["config"] = SearchConfig(**facts["config"]).as_dict()  # all of them, each of its kind
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise RunError(f"{folder} holds no search; give folders of phalanx search") from None
    return facts


def read_shard(folder: Path) -> Summary:
    """The summary of a finished shard."""
    facts = read_summary(folder)
    if facts["state"] != "finished":
        raise RunError(f"{folder} is not finished: phalanx search --resume {folder}")
    return facts


def check_that_they_fit(folders: Sequence[Path], shards: Sequence[Summary]) -> None:
    """Parts of one search: the same settings, and no part twice."""
    for folder, shard in zip(folders[1:], shards[1:], strict=True):
        first, other = shards[0]["config"], shard["config"]
        differ = [k for k in first if k not in MAY_DIFFER and first[k] != other.get(k)]
        if differ:
            k = differ[0]
            raise RunError(
                f"{folders[0]} and {folder} are not of one search: {k} is {first[k]} and "
                f"{other.get(k)}; merge shards with the same settings"
            )
    parts = [shard["config"]["shard"] for shard in shards]
    twice = {part for part in parts if parts.count(part) > 1}
    if twice:
        raise RunError(f"shard {min(twice)} is given twice; merge each part once")
    if shards:
        wanted = int(parts[0].partition("/")[2])
        missing = [f"{k + 1}/{wanted}" for k in range(wanted) if f"{k + 1}/{wanted}" not in parts]
        if missing:
            raise RunError(f"shard {missing[0]} is missing; run it, or add its folder to --merge")


def joined_settings(given: SearchConfig, shards: Sequence[Summary]) -> SearchConfig:
    """The settings of the search that the shards are parts of, with what was given besides."""
    both = {"baseline": any(shard["config"]["baseline"] for shard in shards)}
    theirs = values_of(SearchConfig(**shards[0]["config"] | both), but={*NOT_SAVED, "merge"})
    where = given.merge[0] / "summary.json"
    code = (*NAMES_CODE, *IN_THE_GAME)
    named = {name: getattr(given, name) for name in code if name in given.given}
    check_named(theirs, named, where, also=IN_THE_GAME)
    check_cluster(theirs, {"ray_address": given.ray_address}, where)
    asked = {name: getattr(given, name) for name in given.given}
    for name, value in asked.items():
        if name in theirs and name not in MAY_CHANGE and value != theirs[name]:
            raise RunError(
                f"{name} is {value} here, and the shards were searched with {theirs[name]}; leave "
                f"it out: a merge has the settings of its shards, but for {', '.join(MAY_CHANGE)}"
            )
    return SearchConfig(**(theirs | asked | {"shard": "1/1", "start_from": None}))
