"""Which runs, or which settings, are better: by how much, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from phalanx.errors import ConfigError
from phalanx.show.compare.config import CompareConfig
from phalanx.show.compare.scores import Scored, score_runs
from phalanx.show.compare.significance import (
    Difference,
    bootstrap,
    holm,
    interquartile_mean,
    paired,
    probability_of_improvement,
    unpaired,
)
from phalanx.show.runs.runs import RunRow
from phalanx.show.runs.settings_told import told_settings
from phalanx.statistics import interval

NOT_COMPARED = ("seed", "num_threads", "checkpoint_every")  # what a result does not depend on
FEW_SEEDS = 10  # below it a bootstrap interval is too narrow


@dataclass(frozen=True)
class Group:
    """Runs that are one: a single run, or all seeds of the same settings."""

    name: str
    runs: tuple[RunRow, ...]
    settings: dict[str, str]
    """those that differ between groups"""


class Standing(NamedTuple):
    """A group's score of one task."""

    group: str
    task: str
    runs: int
    mean: float
    low: float | None
    high: float | None
    """the 95 % interval: over seeds if there are several, else over episodes"""
    iqm: float | None
    iqm_low: float | None
    iqm_high: float | None
    """interquartile mean over seeds, and its interval by bootstrap"""


class Pair(NamedTuple):
    """Two groups on one task."""

    first: str
    second: str
    task: str
    unit: str
    """what varies: seeds, or episodes"""
    difference: Difference
    p_adjusted: float
    """for all pairs of groups on this task, or on all attackers if it is one of them"""
    improvement: tuple[float, float, float] | None
    """probability that a run of the first beats one of the second, and its interval"""
    comparisons: int

    @property
    def verdict(self) -> str:
        return self.difference.verdict(self.p_adjusted)


@dataclass(frozen=True)
class Comparison:
    """All of it; groups are the best first."""

    groups: tuple[Group, ...]
    scored: Scored
    by: str

    @cached_property
    def standings(self) -> tuple[Standing, ...]:
        return tuple(self._standing(group, task) for task in self.tasks for group in self.groups)

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.scored.tasks

    def scores(self, group: Group, task: str) -> list[float]:
        """One for each run."""
        return [self.scored.score(row.name, task) for row in group.runs]

    def _standing(self, group: Group, task: str) -> Standing:
        scores = self.scores(group, task)
        if len(scores) == 1:
            found = interval(self.scored.games(group.runs[0].name, task))
            return Standing(
                group.name, task, 1, scores[0], found["low"], found["high"], None, None, None
            )
        found = interval(scores)
        low, high = bootstrap(lambda drawn: interquartile_mean(drawn[0]), [scores])
        middle = float(interquartile_mean(scores))
        ends = found["mean"], found["low"], found["high"]
        return Standing(group.name, task, len(scores), *ends, middle, low, high)

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every two groups, on all together and then on each attacker."""
        main, *others = self.tasks
        return (*self._pairs([main]), *self._pairs(others))

    def _pairs(self, tasks: Sequence[str]) -> list[Pair]:
        """One family of comparisons: their chances are corrected for how many they are."""
        asked = [(task, *two) for task in tasks for two in combinations(self.groups, 2)]
        found = [self._difference(task, first, second) for task, first, second in asked]
        adjusted = holm([difference.p for _unit, difference in found])
        pairs = []
        for (task, one, other), (unit, d), p in zip(asked, found, adjusted, strict=True):
            better = self._improvement(task, one, other)
            pairs.append(Pair(one.name, other.name, task, unit, d, p, better, len(asked)))
        return pairs

    def _difference(self, task: str, first: Group, second: Group) -> tuple[str, Difference]:
        if min(len(first.runs), len(second.runs)) > 1:
            return "seeds", unpaired(self.scores(first, task), self.scores(second, task))
        x, y = (
            np.mean([self.scored.games(row.name, task) for row in group.runs], axis=0)
            if self.scored.on_same_dice
            else np.concatenate([self.scored.games(row.name, task) for row in group.runs])
            for group in (first, second)
        )
        return "episodes", (paired if self.scored.on_same_dice else unpaired)(x, y)

    def _improvement(
        self, task: str, first: Group, second: Group
    ) -> tuple[float, float, float] | None:
        x, y = self.scores(first, task), self.scores(second, task)
        if min(len(x), len(y)) < 2:
            return None
        chance = float(probability_of_improvement([x], [y]))
        low, high = bootstrap(
            lambda drawn: probability_of_improvement([drawn[0]], [drawn[1]]), [x, y]
        )
        return chance, low, high

    @property
    def differing(self) -> list[str]:
        """Names of the settings that are not the same in all groups."""
        return list(self.groups[0].settings)

    def as_dict(self) -> dict[str, object]:
        """Plain values, as --json has them."""
        return {
            "by": self.by,
            "about": self.scored.about,
            "tasks": list(self.tasks),
            "groups": [
                {
                    "name": group.name,
                    "runs": [str(row.path) for row in group.runs],
                    "seeds": [row.seed for row in group.runs],
                    "settings": group.settings,
                    "scores": {task: self.scores(group, task) for task in self.tasks},
                }
                for group in self.groups
            ],
            "standings": [one._asdict() for one in self.standings],
            "pairs": [flat(pair) for pair in self.pairs],
        }


def flat(pair: Pair) -> dict[str, object]:
    """A pair as one row of plain values."""
    d, chance = pair.difference, pair.improvement or (None, None, None)
    return {
        "first": pair.first,
        "second": pair.second,
        "task": pair.task,
        "unit": pair.unit,
        "paired": d.is_paired,
        "n_first": d.counts[0],
        "n_second": d.counts[-1],
        "difference": d.mean,
        "low": d.low,
        "high": d.high,
        "p": d.p,
        "p_adjusted": pair.p_adjusted,
        "comparisons": pair.comparisons,
        "verdict": pair.verdict,
        "detectable": d.detectable(pair.comparisons),
        "probability_of_improvement": chance[0],
        "improvement_low": chance[1],
        "improvement_high": chance[2],
    }


def compare(config: CompareConfig, progress: bool | None = False) -> Comparison:
    """Play what can be played, and compare; progress: show how far it is."""
    groups = group_runs(config.rows, config.by)
    if len(groups) < 2:
        raise ConfigError(
            f"--by {config.by} makes all {len(config.rows)} runs one group, with nothing to compare"
            " it to; leave it out to compare the runs one by one"
        )
    scored = score_runs(config, progress)
    main = scored.tasks[0]

    def best(group: Group) -> float:
        return -float(np.mean([scored.score(row.name, main) for row in group.runs]))

    return Comparison(tuple(sorted(groups, key=best)), scored, config.by)


def group_runs(rows: Sequence[RunRow], by: str) -> list[Group]:
    """Each run alone, or those together that differ in nothing but the seed, or lie together."""
    settings = {row.name: _settings(row) for row in rows}
    names = dict.fromkeys(name for own in settings.values() for name in own)
    differ = [name for name in names if len({own.get(name) for own in settings.values()}) > 1]
    together: dict[object, list[RunRow]] = {}
    for row in rows:
        own = settings[row.name]
        keys = {"seed": tuple(own.get(name) for name in differ), "folder": row.path.parent}
        key = keys.get(by, row.name)
        together.setdefault(key, []).append(row)
    return [
        Group(
            _group_name(members, settings[members[0].name], differ, by),
            tuple(members),
            {name: settings[members[0].name].get(name, "unknown") for name in differ},
        )
        for members in together.values()
    ]


def _settings(row: RunRow) -> dict[str, str]:
    found, _why = told_settings(row.path)
    return {one.name: one.value for one in found if one.name not in NOT_COMPARED}


def _group_name(
    members: Sequence[RunRow], settings: dict[str, str], differ: Sequence[str], by: str
) -> str:
    if not by:
        return members[0].name
    if by == "folder":
        return str(Path(members[0].name).parent)
    words = [f"{name}={settings.get(name, 'unknown')}" for name in differ]
    if len(words) in (1, 2, 3) and sum(map(len, words)) < 60:
        return " ".join(words)
    return members[0].name if len(members) == 1 else f"{members[0].name} +{len(members) - 1}"
