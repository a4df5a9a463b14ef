"""What updates gave, in numbers: what a run writes to its tables, whoever computed it."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from phalanx.learn.rollout import Rollout

IN_ROWS = ("simulator", "policy", "copying", "waiting", "logging")  # parts that updates.csv has


class Episode(NamedTuple):
    """One that ended."""

    env: int
    kind: str
    length: int
    total: float
    """its return"""
    order: int = 0
    """the workflow that it was to follow, if there was one"""
    fixes: int = 0
    compliant: int = 0
    """fixes that followed it"""
    alignment: float = 0.0
    """reward for that; not part of the return"""
    own: float = 0.0
    """its return under a reward of the user's own, if there is one"""


class UpdateRecord(NamedTuple):
    """One update, or several of one worker."""

    updates: int
    steps: int
    dropped: int
    """steps of them that were too old to learn from"""
    lags: Counter[int]
    """columns of the rollouts by the age of their weights, in updates"""
    episodes: list[Episode]
    rate: float
    entropy_weight: float
    metrics: dict[str, float]
    collect_s: float
    learn_s: float
    split: dict[str, float]
    """seconds by part"""

    @property
    def costs(self) -> dict[str, float]:
        """What it took, as updates.csv has it."""
        lost = {"lag": max(self.lags), "dropped_steps": self.dropped}
        spent = {"collect_s": self.collect_s, "learn_s": self.learn_s}
        return lost | spent | {f"{part}_s": self.split[part] for part in IN_ROWS}


def episodes_of(rollout: Rollout, kinds: Sequence[str], first_env: int = 0) -> list[Episode]:
    """The episodes that ended in a rollout, and are to be counted."""
    r, ended = rollout, np.nonzero(rollout.counted)
    notes = r.notes[["order", "fixes", "compliant", "score"]] if r.notes.dtype.names else r.notes
    returns = np.round(r.returns[ended].astype(np.float64), 4)  # more would be noise: of 32 bits
    kinds_of, lengths, noted = (part[ended].tolist() for part in (r.kinds, r.lengths, notes))
    columns = kinds_of, lengths, returns.tolist(), noted
    episodes = [
        Episode(first_env + env, kinds[kind], length, total, *noted)
        for env, kind, length, total, noted in zip(ended[1].tolist(), *columns, strict=True)
    ]
    if r.own_returns.shape[2] == 0:
        return episodes
    own = r.own_returns[..., 0][ended].tolist()
    return [one._replace(own=total) for one, total in zip(episodes, own, strict=True)]


def added_up(records: Sequence[UpdateRecord]) -> UpdateRecord:
    """Several as one: sums of what is counted, means of what is measured, the latest schedules."""
    last, counted = records[-1], ("updates", "steps", "dropped", "collect_s", "learn_s")
    return last._replace(
        **{name: sum(getattr(one, name) for one in records) for name in counted},
        lags=sum((one.lags for one in records), Counter()),
        episodes=[episode for one in records for episode in one.episodes],
        metrics={name: mean([one.metrics[name] for one in records]) for name in last.metrics},
        split={part: sum(one.split[part] for one in records) for part in last.split},
    )


def mean(values: Sequence[float]) -> float:
    """No number if there are no values."""
    return float(np.mean(values)) if values else math.nan
