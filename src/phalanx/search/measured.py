"""What a search measures: the return of an order, played by one learner against one attacker."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np

from phalanx.cage2.workflow import NUM_ORDERS
from phalanx.errors import RunError
from phalanx.settings.fields import Within, checked


@checked
@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of measured.csv."""

    attacker: str
    """who attacked"""
    learner: Annotated[int, Within(1, 1000)]
    """which of the networks that were trained from different seeds, from 1"""
    workflow: Annotated[int | None, Within(0, NUM_ORDERS - 1)]
    """the number of the order that it was told; empty: a learner without workflows"""
    episodes: int
    """that were played; all orders of a learner meet the same dice"""
    mean: float
    """mean return"""
    stderr: float
    """its standard error by the dice alone"""
    paired_stderr: float | None
    """the same without what the dice do to all orders alike; empty for the first order"""
    compliance: float | None
    """share of all fixes that followed the order; empty without a fix"""
    fixes_per_episode: float
    """fixes in an episode, on average"""
    share_without_fix: float
    """share of episodes without any fix"""
    reverse_compliance: float | None = None
    """the share that would have followed the reverse order; empty: not measured"""
    disputed_fixes: float | None = None
    """fixes in an episode that either the order or its reverse allows, and not both"""
    disputed_compliance: float | None = None
    """the share of these that followed the order; empty without any"""


class Figures(TypedDict):
    """An order by all learners: columns of search.csv."""

    measured_return: float
    stderr: float
    paired_stderr: float | None
    by_learner: str
    compliance: float | None
    fixes_per_episode: float
    share_without_fix: float
    measured_episodes: int


COLUMNS = tuple(Row.__dataclass_fields__)


def as_rows(rows: Iterable[Row]) -> list[dict[str, object]]:
    return [asdict(row) for row in rows]


def read_rows(path: Path) -> list[Row]:
    """measured.csv of a search; none if there is none."""
    if not path.exists():
        return []
    try:
        with path.open(newline="") as file:
            return [
                Row(**{name: _value(name, cell) for name, cell in row.items()})
                for row in csv.DictReader(file)
            ]
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise RunError(f"{path} is no table of what was measured: {error}") from None


def _value(name: str, cell: str) -> Any:
    if name == "attacker":
        return cell
    if cell == "":
        return None
    return int(cell) if name in ("learner", "workflow", "episodes") else float(cell)


def figures_of(rows: Sequence[Row], weights: Mapping[str, float]) -> Figures:
    """One order by all learners, against attackers of these weights: columns of search.csv.

    The return is the mean over learners; its standard errors are those of the dice. Compliance is
    pooled over all fixes.
    """
    learners = sorted({row.learner for row in rows})
    share = {row: weights[row.attacker] / len(learners) for row in rows}
    by_learner = [
        sum(weights[row.attacker] * row.mean for row in rows if row.learner == learner)
        for learner in learners
    ]
    fixes = sum(share[row] * row.fixes_per_episode for row in rows)
    compliant = sum(share[row] * row.fixes_per_episode * (row.compliance or 0.0) for row in rows)
    paired = [row.paired_stderr for row in rows]
    return {
        "measured_return": float(np.mean(by_learner)),
        "stderr": _joint([share[row] * row.stderr for row in rows]),
        "paired_stderr": None
        if None in paired
        else _joint([share[row] * (row.paired_stderr or 0.0) for row in rows]),
        "by_learner": " ".join(f"{value:.6g}" for value in by_learner),
        "compliance": float(compliant / fixes) if fixes else None,
        "fixes_per_episode": float(fixes),
        "share_without_fix": float(sum(share[row] * row.share_without_fix for row in rows)),
        "measured_episodes": sum(row.episodes for row in rows),
    }


def reverse_compliance(rows: Sequence[Row], weights: Mapping[str, float]) -> float | None:
    """The share of all fixes that would have followed the reverse order, pooled."""
    known = [row for row in rows if row.reverse_compliance is not None]
    fixes = [weights[row.attacker] * row.fixes_per_episode for row in known]
    return _share(fixes, [row.reverse_compliance or 0.0 for row in known])


def disputed(
    rows: Sequence[Row], weights: Mapping[str, float]
) -> tuple[float | None, float | None]:
    """Fixes an episode on which an order and its reverse disagree; the share that followed it."""
    known = [row for row in rows if row.disputed_fixes is not None]
    if not known:
        return None, None
    learners = len({row.learner for row in known})
    fixes = [weights[row.attacker] / learners * (row.disputed_fixes or 0.0) for row in known]
    return sum(fixes), _share(fixes, [row.disputed_compliance or 0.0 for row in known])


def _share(fixes: Sequence[float], followed: Sequence[float]) -> float | None:
    """Of all fixes together; None without any."""
    return float(np.dot(fixes, followed) / sum(fixes)) if any(fixes) else None


def _joint(errors: Sequence[float]) -> float:
    """The standard error of a sum of independent means."""
    return float(np.sqrt(np.sum(np.square(errors))))
