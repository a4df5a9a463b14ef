"""What defenders brought: a table for people, and the same as JSON."""

import dataclasses
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from rich.console import Console
from rich.table import Table

import phalanx
from phalanx.cage2.rules.scenario import CELLS, PUBLISHED
from phalanx.cage2.workflow import parse_order, short_name
from phalanx.display import new_table
from phalanx.errors import ConfigError
from phalanx.play.cells import Cell
from phalanx.play.evaluate_config import EvaluateConfig

TITLE = "Mean return ± its 95 % confidence interval"
WIDTH = 110


@dataclass(frozen=True, repr=False)
class Scores:
    """Cells of one or more defenders; printed, they are the table of `phalanx evaluate`.

    scores = phalanx.evaluate("champion", leaderboard=True)
    scores.total                # of all nine cells
    scores.cells[0].mean
    scores.as_dict()            # what --json writes; to_json() is the same as text
    """

    config: EvaluateConfig
    cells: tuple[Cell, ...]
    complete: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.policy for cell in self.cells))

    @property
    def totals(self) -> dict[str, float]:
        """The sum of each defender's cells."""
        return {
            name: sum(cell.mean for cell in self.cells if cell.policy == name)
            for name in self.names
        }

    @property
    def total(self) -> float:
        """The sum of the cells, of one defender."""
        if len(self.names) != 1:
            raise ConfigError(f"these are scores of {', '.join(self.names)}; see totals")
        return self.totals[self.names[0]]

    def __repr__(self) -> str:
        config = self.config
        if config.elsewhere:
            return "\n".join(_line_elsewhere(config, cell) for cell in self.cells)
        if config.leaderboard and not (config.workflow or config.workflow_grid):
            return self.beside_published()
        if any(cell.workflow for cell in self.cells):
            return by_workflow(config, self.cells)
        return by_horizon(config, self.cells, self.names)

    def beside_published(self) -> str:
        """The table with the published scores of the challenge's best beside it."""
        return beside_published(self.config, self.cells, self.names)

    def as_dict(self) -> dict[str, object]:
        return {
            "phalanx": phalanx.__version__,
            "rules": self.config.rules,
            "simulator": self.config.simulator,
            "compliance_rule": self.config.compliance_rule,
            "judged_by": self.config.judged_by,
            "total": self.total if len(self.names) == 1 else None,
            "totals": self.totals,
            "seed": self.config.seed,
            "complete": self.complete,
            "cells": [dataclasses.asdict(cell) for cell in self.cells],
        }

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), indent=1)


def by_horizon(config: EvaluateConfig, cells: Sequence[Cell], names: Sequence[str]) -> str:
    """A row per policy and attacker, a column per horizon."""
    table = _table(config, *(f"{horizon} turns" for horizon in config.horizon))
    by_cell = {(cell.policy, cell.red_agent, cell.horizon): cell for cell in cells}
    for policy, red_agent in product(names, config.red_agent):
        row = [by_cell.get((policy, red_agent, horizon)) for horizon in config.horizon]
        texts = [_with_interval(cell) if cell else "-" for cell in row]
        table.add_row(policy, red_agent, *texts)
    return _text(table, _footer(config))


def by_workflow(config: EvaluateConfig, cells: Sequence[Cell]) -> str:
    """A row per workflow, attacker and horizon: return, compliance, fixes; a grid's best first."""
    names = ("turns", "return", "compliance", "fixes", "without")
    table = _table(config, *names, words=("policy", "workflow", "red agent"))
    ranked = list(cells)
    if config.workflow_grid:
        ranked = sorted(cells, key=lambda c: (c.policy, c.red_agent, c.horizon, -c.mean))
    for cell in ranked:
        workflow = cell.workflow or "-"
        if "," in workflow:
            workflow = short_name(parse_order(workflow))
        compliance = "-" if cell.compliance is None else f"{cell.compliance:.1%}"
        table.add_row(
            cell.policy, workflow, cell.red_agent, str(cell.horizon), _with_interval(cell),
            compliance, f"{cell.fixes_per_episode or 0:.1f}", f"{cell.share_without_fix or 0:.0%}",
        )  # fmt: skip
    order = "" if config.judged_by is None else f" and the order {config.judged_by}"
    footer = (
        f"{_footer(config)}; compliance by the rule {config.compliance_rule!r}{order}, pooled over "
        "all fixes; fixes per episode, and the share of episodes without one"
    )
    states = [_state_line(cell) for cell in cells if cell.true_state is not None]
    return _text(table, footer, *states)


def _state_line(cell: Cell) -> str:
    """What saving on the true state brought, in words."""
    f = cell.true_state or {}
    off = f["compliance"] is None
    judged = "not judged" if off else f"{f['compliance']:.1%} ({f['error']:+.1%} off)"
    return (
        f"true state {f['mode']}, {cell.workflow} against {cell.red_agent}, {cell.horizon} turns: "
        f"compliance {judged}, "
        f"exact {f['exact_compliance']:.1%}; state {f['mean_age']:.1f} turns old at a fix; "
        f"{f['fetches_per_episode']:.1f} fetches an episode instead of "
        f"{f['exact_fetches_per_episode']:.1f}; {f['turns_per_s']:,.0f} turns/s instead of "
        f"{f['exact_turns_per_s']:,.0f} ({f['speed_gained']:.2f} x)"
    )


def beside_published(config: EvaluateConfig, cells: Sequence[Cell], names: Sequence[str]) -> str:
    """The cells beside the published scores of the challenge's best, and their sums."""
    table = _table(config, "turns", "this policy", *PUBLISHED)
    for policy in names:
        own = {(cell.red_agent, cell.horizon): cell for cell in cells if cell.policy == policy}
        for (red_agent, horizon), cell in own.items():
            others = [scores.get((red_agent, horizon)) for scores in PUBLISHED.values()]
            texts = ["-" if score is None else f"{score:.2f}" for score in others]
            table.add_row(policy, red_agent, str(horizon), _with_interval(cell), *texts)
        if set(own) == set(CELLS):
            mine = sum(cell.mean for cell in own.values())
            sums = [sum(scores.values()) for scores in PUBLISHED.values()]
            table.add_row(policy, "all nine", "", f"{mine:.2f}", *(f"{one:.2f}" for one in sums))
    return _text(table, _footer(config))


def _table(
    config: EvaluateConfig, *numbers: str, words: Sequence[str] = ("policy", "red agent")
) -> Table:
    return new_table(f"{TITLE}, rules {config.rules}", *words, *numbers, words=words)


def _with_interval(cell: Cell) -> str:
    return f"{cell.mean:.2f} ± {cell.high - cell.mean:.2f}"


def _line_elsewhere(config: EvaluateConfig, cell: Cell) -> str:
    env = cell.red_agent
    return f"{env}: return {_with_interval(cell)} over {cell.episodes} episodes, seed {config.seed}"


def _footer(config: EvaluateConfig) -> str:
    return f"{config.episodes} episodes per cell, seed {config.seed}"


def _text(table: Table, *lines: str) -> str:
    console = Console(file=io.StringIO(), width=WIDTH)
    console.print(table)
    return "\n".join([console.file.getvalue().rstrip("\n"), *lines])  # type: ignore[attr-defined]
