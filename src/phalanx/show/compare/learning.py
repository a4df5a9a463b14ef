"""Learning of several runs on one axis: by episodes and by seconds, seeds together."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from phalanx.show.runs.curves import (
    ALL,
    Curve,
    Floats,
    count_episodes,
    read_timeline,
    return_curves,
)
from phalanx.statistics import CONFIDENCE, interval

POINTS = 100
STOPS = (0.1, 0.25, 0.5, 1.0)  # of what all runs have reached


class Learnt(NamedTuple):
    """The returns of one run over time; all [points]."""

    returns: Curve
    axis: str
    """what its progress is counted in: episodes, or steps if episodes are not all as long"""
    episodes: Floats
    steps: Floats
    seconds: Floats


class Stop(NamedTuple):
    """What groups returned after as many episodes, steps or seconds."""

    after: float
    returns: list[tuple[float, float | None, float | None]]
    """of each group: mean, and its 95 % interval over seeds if there are several"""


def read_learnt(folder: Path) -> Learnt | None:
    """How a run learnt; None if its tables do not tell."""
    try:
        timeline = read_timeline(folder)
        if timeline is None:
            return None
        curves = return_curves(timeline, count_episodes(folder, timeline))
    except OSError:
        return None
    returns = next(curve for curve in curves if curve.name == ALL)
    if not np.isfinite(returns.mean).any():
        return None
    counts = (timeline.counts[name] for name in ("episodes", "steps", "seconds"))
    return Learnt(returns, timeline.axis, *counts)


def axes_of(runs: Iterable[Learnt]) -> tuple[str, str]:
    """Over what learning is compared: episodes (or steps, if a run counts in them), and seconds."""
    return "episodes" if all(run.axis == "episodes" for run in runs) else "steps", "seconds"


def group_curve(name: str, runs: Sequence[Learnt], axis: str) -> Curve:
    """The mean of some runs over episodes, steps or seconds, with its 95 % interval over seeds.

    One run keeps its own points and its interval over episodes.
    """
    if len(runs) == 1:
        one = runs[0].returns
        return Curve(name, getattr(runs[0], axis), one.mean, one.low, one.high)
    reached = [_last(run, axis) for run in runs]
    x = np.linspace(0, min(reached), POINTS + 1)[1:]
    values = np.array([at(run, axis, x) for run in runs])
    mean = values.mean(axis=0)
    n = len(runs)
    reach = stdtrit(n - 1, (1 + CONFIDENCE) / 2) * values.std(axis=0, ddof=1) / n**0.5
    return Curve(name, x, mean, mean - reach, mean + reach)


def stops(groups: Sequence[Sequence[Learnt]], axis: str) -> list[Stop]:
    """The groups side by side at some points that all runs have reached; none if one has none."""
    if not groups or not all(groups):
        return []
    shared = min(_last(run, axis) for runs in groups for run in runs)
    if not shared > 0:
        return []
    found = []
    for share in STOPS:
        x = np.array([share * shared])
        row: list[tuple[float, float | None, float | None]] = []
        for runs in groups:
            values = [float(at(run, axis, x)[0]) for run in runs]
            one = interval(values)
            row.append((one["mean"], one["low"], one["high"]))
        found.append(Stop(float(x[0]), row))
    return found


def at(run: Learnt, axis: str, x: Floats) -> Floats:
    """A run's mean return at some places of an axis, between its points in a straight line."""
    places, mean = getattr(run, axis), run.returns.mean
    good = np.isfinite(places) & np.isfinite(mean)
    return np.interp(x, places[good], mean[good]) if good.any() else np.full(len(x), np.nan)


def _last(run: Learnt, axis: str) -> float:
    known = getattr(run, axis)
    return float(np.nanmax(known)) if np.isfinite(known).any() else 0.0
