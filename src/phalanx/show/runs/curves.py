"""What a run's tables say over time, in a hundred points or so: means and their intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from phalanx.show.runs.tables import Block, read_blocks, read_numbers
from phalanx.statistics import CONFIDENCE

POINTS = 120  # of a curve at most; each the mean of as many updates
MOST_KINDS = 8  # of episodes that are told apart
UNEQUAL = 0.05  # of all steps: by how much episodes of equal length may seem to differ
ALL = "all episodes"
PARTS = ("simulator", "policy", "copying", "waiting", "logging")  # columns of seconds: NAME_s
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A line and its interval; NaN where nothing is known. All arrays are [points]."""

    name: str
    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    is_points: bool = False
    """single measurements instead of a line"""
    labels: tuple[str, ...] = ()
    """what each point is called, if not by its x"""


@dataclass(frozen=True)
class Panel:
    """A picture: some curves over the same axis."""

    key: str
    title: str
    about: str
    """what it shows, in a sentence"""
    curves: Sequence[Curve]
    x_title: str = "episodes"
    style: str = "lines"
    """lines, or stack: shares that add up to one"""
    is_share: bool = False
    """a share, shown in per cent"""


@dataclass
class Timeline:
    """updates.csv in points: where each point lies in updates, episodes, steps and seconds."""

    columns: Block
    """updates.csv as it is"""
    last: int
    """number of the last update"""
    points: int
    counts: dict[str, Floats] = field(default_factory=dict)
    """[points] how far the run was in the middle of each: episodes, steps, seconds"""

    @property
    def axis(self) -> str:
        """What progress is counted in: episodes, or steps if episodes are not all as long."""
        episodes, steps = (self.columns.get(name) for name in ("episodes", "steps"))
        if episodes is None or steps is None or len(steps) < 2:
            return "episodes"
        off = np.abs(steps - steps[-1] / max(episodes[-1], 1) * episodes).max()
        return "episodes" if off <= UNEQUAL * steps[-1] else "steps"

    @property
    def x(self) -> Floats:
        """[points] where each lies on that axis."""
        return self.counts[self.axis]

    def point_of(self, updates: Floats) -> npt.NDArray[np.int64]:
        """The point that an update belongs to; -1 if it cannot be."""
        good = (updates >= 1) & (updates <= self.last)
        at = (np.where(good, updates, 1) - 1).astype(np.int64) * self.points // self.last
        return np.where(good, at, -1)

    def mean(self, name: str) -> Curve:
        """A column of updates.csv: mean, lowest and highest of each point's updates."""
        values = self.columns[name]
        at = self.point_of(self.columns["update"])
        low, high = np.full((2, self.points), np.nan)
        good = (at >= 0) & np.isfinite(values)
        np.fmin.at(low, at[good], values[good])
        np.fmax.at(high, at[good], values[good])
        return Curve(name, self.x, _means(at, values, self.points), low, high)


def read_timeline(folder: Path) -> Timeline | None:
    """The points of a run; None if it has no update. OSError if updates.csv cannot be read."""
    columns = read_numbers(folder / "updates.csv")
    updates = columns.get("update", np.zeros(0))
    good = np.isfinite(updates) & (updates >= 1) & (updates < 1e12)
    if not good.any():
        return None
    columns = {name: values[good] for name, values in columns.items()}
    last = int(columns["update"].max())
    timeline = Timeline(columns, last, min(POINTS, last))
    at = timeline.point_of(columns["update"])
    names = {"episodes": "episodes", "steps": "steps", "seconds": "elapsed_s"}
    for name, column in names.items():
        reached = columns.get(column, np.full(len(at), np.nan))
        timeline.counts[name] = _means(at, reached, timeline.points)
    return timeline


class Moments:
    """Episodes by point and kind, added up as they are read."""

    def __init__(self, points: int) -> None:
        self.kinds: list[str] = []
        self._sums: dict[str, Floats] = {}
        self._points = points

    def add(self, at: npt.NDArray[np.int64], kinds: npt.NDArray[np.str_], values: Block) -> None:
        """Of each episode: its point, its kind, and numbers of which sums are wanted."""
        left = at >= 0
        while left.any():
            kind = str(kinds[np.argmax(left)])
            mine = (kinds == kind) & left
            left &= ~mine
            if kind not in self.kinds:
                if len(self.kinds) == MOST_KINDS:
                    continue  # it counts among all
                self.kinds.append(kind)
            self._add(kind, at[mine], {name: column[mine] for name, column in values.items()})
        good = at >= 0
        self._add(ALL, at[good], {name: column[good] for name, column in values.items()})

    def _add(self, kind: str, at: npt.NDArray[np.int64], values: Block) -> None:
        for name, column in {"count": np.ones(len(at)), **values}.items():
            key = f"{kind}\n{name}"
            before = self._sums.get(key, np.zeros(self._points))
            self._sums[key] = before + np.bincount(at, column, self._points)

    def of(self, kind: str, name: str) -> Floats:
        """[points] a sum over the episodes of a kind; 0 where there were none."""
        return self._sums.get(f"{kind}\n{name}", np.zeros(self._points))


def count_episodes(folder: Path, timeline: Timeline) -> Moments:
    """episodes.csv, added up. OSError if it cannot be read."""
    moments = Moments(timeline.points)
    wanted = ("update", "kind", "return", "fixes", "compliant")
    for block in read_blocks(folder / "episodes.csv", wanted, words=("kind",)):
        if "return" not in block or "update" not in block:
            break
        at = timeline.point_of(block["update"])
        returns = block["return"]
        at = np.where(np.isfinite(returns), at, -1)
        values = {"return": returns, "square": returns**2}
        if "fixes" in block and "compliant" in block:
            fixes, obeyed = block["fixes"], block["compliant"]
            at = np.where(np.isfinite(fixes + obeyed), at, -1)
            values |= {"fixes": fixes, "obeyed": obeyed, "both": fixes * obeyed}
            values |= {"fixes2": fixes**2, "obeyed2": obeyed**2}
        moments.add(at, block.get("kind", np.full(len(at), ALL)), values)
    return moments


def return_curves(timeline: Timeline, moments: Moments) -> list[Curve]:
    """Mean return of the episodes of each kind and of all, with Student's 95 % interval."""
    often = {kind: moments.of(kind, "count").sum() for kind in sorted(moments.kinds)}
    kinds = [] if len(often) < 2 else sorted(often, key=lambda kind: -often[kind])
    return [_mean_curve(timeline, moments, kind) for kind in (*kinds, ALL)]


def _mean_curve(timeline: Timeline, moments: Moments, kind: str) -> Curve:
    n, total, squares = (moments.of(kind, name) for name in ("count", "return", "square"))
    mean, reach = _mean_and_reach(n, total, squares)
    return Curve(kind, timeline.x, mean, mean - reach, mean + reach)


def _mean_and_reach(n: Floats, total: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Of numbers whose sums are known: the mean and half its 95 % interval, NaN where unknown."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / n
        variance = np.maximum(squares - n * mean**2, 0) / (n - 1)
        reach = stdtrit(np.maximum(n - 1, 1), (1 + CONFIDENCE) / 2) * np.sqrt(variance / n)
    reach[n < 2] = np.nan
    mean[n == 0] = np.nan
    return mean, reach


def compliance_curve(timeline: Timeline, moments: Moments) -> Curve:
    """Share of all fixes that followed the order, with its 95 % interval over episodes.

    A ratio of sums, r = Σc / Σf; its variance is n/(n-1) Σ(c - r f)² / (Σf)².
    """
    n, f, c, f2, c2, both = (
        moments.of(ALL, name) for name in ("count", "fixes", "obeyed", "fixes2", "obeyed2", "both")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        share = c / f
        squares = np.maximum(c2 - 2 * share * both + share**2 * f2, 0)
        reach = stdtrit(np.maximum(n - 1, 1), (1 + CONFIDENCE) / 2)
        reach = reach * np.sqrt(squares * n / (n - 1)) / f
    reach[n < 2] = np.nan
    low, high = np.maximum(share - reach, 0), np.minimum(share + reach, 1)
    return Curve("compliance", timeline.x, share, low, high)


def fixes_curve(timeline: Timeline, moments: Moments) -> Curve:
    n, fixes, squares = (moments.of(ALL, name) for name in ("count", "fixes", "fixes2"))
    mean, reach = _mean_and_reach(n, fixes, squares)
    return Curve("fixes", timeline.x, mean, mean - reach, mean + reach)


def speed_curve(timeline: Timeline) -> Curve | None:
    """Episodes (or steps) a second: of each point, from clock to clock."""
    for what in dict.fromkeys((timeline.axis, "steps")):
        done, clock = timeline.columns.get(what), timeline.columns.get("elapsed_s")
        if done is None or clock is None or len(done) < 2 or np.nanmax(done) <= 0:
            continue
        at = timeline.point_of(timeline.columns["update"])[1:]
        did, took = (_sums(at, np.diff(one), timeline.points) for one in (done, clock))
        with np.errstate(invalid="ignore", divide="ignore"):
            speed = np.where((took > 0) & (did >= 0), did / took, np.nan)
        nothing = np.full(timeline.points, np.nan)
        return Curve(f"{what}/s", timeline.x, speed, nothing, nothing)
    return None


def time_shares(timeline: Timeline) -> list[Curve]:
    """How the time of each point was spent: parts that add up to one."""
    columns = timeline.columns
    clock = columns.get("elapsed_s")
    if clock is None or len(clock) < 2:
        return []
    at = timeline.point_of(columns["update"])[1:]

    def spent(name: str) -> Floats:
        return _sums(at, columns[name][1:], timeline.points)

    fine = [name for name in PARTS if f"{name}_s" in columns]
    parts = {name: spent(f"{name}_s") for name in fine or ("collect",) if f"{name}_s" in columns}
    known = sum(parts.values(), np.zeros(timeline.points))
    learnt = spent("learn_s") if "learn_s" in columns else np.zeros(timeline.points)
    whole = np.maximum(_sums(at, np.diff(clock), timeline.points), known)
    whole = whole if fine else np.maximum(whole, known + learnt)  # workers work side by side
    parts["learning"] = np.minimum(learnt, whole - known)  # less what it waited, which is a part
    parts["other"] = whole - known - parts["learning"]
    nothing = np.full(timeline.points, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return [
            Curve(name, timeline.x, part / whole, nothing, nothing) for name, part in parts.items()
        ]


def changing_columns(timeline: Timeline) -> Iterator[str]:
    """Columns of updates.csv that are figures of learning, and do not stay the same throughout."""
    for name, values in timeline.columns.items():
        if not is_figure(name) or not np.isfinite(values).any():
            continue
        if np.nanmax(values) > np.nanmin(values):
            yield name


def constant_columns(timeline: Timeline) -> dict[str, float]:
    """Those that do, and their values."""
    return {
        name: float(values[0])
        for name, values in timeline.columns.items()
        if is_figure(name) and np.isfinite(values).all() and (values == values[0]).all()
    }


def is_figure(name: str) -> bool:
    """Whether a column of updates.csv is no counter, no time, and no return, which has its own."""
    counted = ("update", "episodes", "steps", "compliance", "fixes_per_episode")
    return not (name in counted or name.startswith("return") or name.endswith(("_s", "_time")))


def _sums(at: npt.NDArray[np.int64], values: Floats, points: int) -> Floats:
    good = (at >= 0) & np.isfinite(values)
    return np.asarray(np.bincount(at[good], values[good], points), np.float64)


def _means(at: npt.NDArray[np.int64], values: Floats, points: int) -> Floats:
    good = (at >= 0) & np.isfinite(values)
    counts = np.bincount(at[good], minlength=points)
    sums = np.bincount(at[good], values[good], points)
    return np.divide(sums, counts, out=np.full(points, np.nan), where=counts > 0)
