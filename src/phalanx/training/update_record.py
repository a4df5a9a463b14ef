"""What updates gave, in numbers: what a run writes to its tables, whoever computed it."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from phalanx.learn.rollout import Rollout


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


class Tally(NamedTuple):
    """One update, or several of one worker."""

    updates: int
    steps: int
    dropped: int
    """steps of them that were too old to learn from"""
    lags: dict[int, int]
    """columns of the rollouts by the age of their weights, in updates"""
    episodes: list[Episode]
    rate: float
    entropy_weight: float
    metrics: dict[str, float]
    collect_s: float
    learn_s: float

    @property
    def lag(self) -> int:
        """The age of the oldest weights."""
        return max(self.lags)


def episodes_of(rollout: Rollout, kinds: Sequence[str], first_env: int = 0) -> list[Episode]:
    """The episodes that ended in a rollout, and are to be counted."""
    turns, envs = np.nonzero(rollout.counted)
    returns = rollout.returns[turns, envs].astype(np.float64)
    conducts = rollout.conducts[turns, envs]
    return [
        Episode(first_env + env, kinds[kind], *rest)
        for env, kind, *rest in zip(
            envs.tolist(), rollout.kinds[turns, envs].tolist(),
            rollout.lengths[turns, envs].tolist(), returns.tolist(), conducts["order"].tolist(),
            conducts["fixes"].tolist(), conducts["compliant"].tolist(),
            conducts["score"].tolist(), strict=True,
        )
    ]  # fmt: skip


def added_up(tallies: Sequence[Tally]) -> Tally:
    """Several as one: sums of what is counted, means of what is measured, the latest schedules."""
    lags: Counter[int] = Counter()
    for one in tallies:
        lags.update(one.lags)
    last = tallies[-1]
    return Tally(
        updates=sum(one.updates for one in tallies),
        steps=sum(one.steps for one in tallies),
        dropped=sum(one.dropped for one in tallies),
        lags=dict(lags),
        episodes=[episode for one in tallies for episode in one.episodes],
        rate=last.rate,
        entropy_weight=last.entropy_weight,
        metrics={
            name: float(np.mean([one.metrics[name] for one in tallies])) for name in last.metrics
        },
        collect_s=sum(one.collect_s for one in tallies),
        learn_s=sum(one.learn_s for one in tallies),
    )
