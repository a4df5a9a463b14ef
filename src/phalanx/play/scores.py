"""What defenders brought: a table for people, and the same as JSON."""

import dataclasses
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from rich.console import Console

import phalanx
from phalanx.cage2.rules.scenario import CELLS, PUBLISHED
from phalanx.cage2.scenario.names import CAGE2_NAME, as_named
from phalanx.cage2.scenario.names import short_name as named
from phalanx.cage2.workflow import parse_order, short_name
from phalanx.display import new_table, plus_minus
from phalanx.errors import ConfigError
from phalanx.play.cells import Cell
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.gains import Gain, paired_gains

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
            return "\n".join(
                f"{cell.red_agent}: return {_with_interval(cell)} over {cell.episodes} episodes, "
                f"seed {config.seed}"
                for cell in self.cells
            )
        if config.leaderboard and not (config.workflow or config.workflow_grid):
            return self.beside_published()
        if any(cell.workflow for cell in self.cells):
            return self._by_workflow()
        return self._by_horizon()

    def beside_published(self) -> str:
        """The table with the published scores of the challenge's best beside it, and the sums."""
        rows = []
        for policy in self.names:
            own = {
                (cell.red_agent, cell.horizon): cell for cell in self.cells if cell.policy == policy
            }
            for key, cell in own.items():
                others = [scores.get(key) for scores in PUBLISHED.values()]
                texts = ["-" if score is None else f"{score:.2f}" for score in others]
                rows.append([policy, key[0], str(key[1]), _with_interval(cell), *texts])
            if set(own) == set(CELLS):
                sums = [self.totals[policy], *(sum(one.values()) for one in PUBLISHED.values())]
                rows.append([policy, "all nine", "", *(f"{one:.2f}" for one in sums)])
        return self._table(("turns", "this policy", *PUBLISHED), rows)

    def _by_horizon(self) -> str:
        """A row per policy and attacker, a column per horizon."""
        horizons, rows = self.config.horizon, []
        by_cell = {(cell.policy, cell.red_agent, cell.horizon): cell for cell in self.cells}
        for policy, red_agent in product(self.names, self.config.red_agent):
            row = [by_cell.get((policy, red_agent, horizon)) for horizon in horizons]
            rows.append(
                [policy, red_agent, *(_with_interval(cell) if cell else "-" for cell in row)]
            )
        return self._table([f"{horizon} turns" for horizon in horizons], rows)

    def _by_workflow(self) -> str:
        """A row per workflow, attacker and horizon: return, compliance, fixes; grid's best first"""
        config, rows, ranked = self.config, [], list(self.cells)
        if config.workflow_grid:
            ranked.sort(key=lambda c: (c.policy, c.red_agent, c.horizon, -c.mean))
        for cell in ranked:
            workflow = cell.workflow or "-"
            if "," in workflow:
                workflow = short_name(parse_order(workflow))
            compliance = "-" if cell.compliance is None else f"{cell.compliance:.1%}"
            fixes, without = cell.fixes_per_episode or 0, cell.share_without_fix or 0
            played = [cell.policy, workflow, cell.red_agent, str(cell.horizon)]
            followed = [compliance, f"{fixes:.1f}", f"{without:.0%}"]
            rows.append([*played, _with_interval(cell), *followed])
        order = "" if config.judged_by is None else f" and the order {config.judged_by}"
        told = (
            f"; compliance by the rule {config.compliance_rule!r}{order}, pooled over all fixes; "
            "fixes per episode, and the share of episodes without one"
        )
        states = [f"\n{_state_line(cell)}" for cell in self.cells if cell.true_state is not None]
        columns = ("turns", "return", "compliance", "fixes", "without")
        return (
            self._table(columns, rows, ("policy", "workflow", "red agent")) + told + "".join(states)
        )

    def _table(
        self,
        numbers: Sequence[str],
        rows: list[list[str]],
        words: Sequence[str] = ("policy", "red agent"),
    ) -> str:
        title = f"Mean return ± its 95 % confidence interval, rules {self.config.rules}"
        if self.config.scenario != CAGE2_NAME:
            title += f", {named(self.config.scenario)}"
        console = Console(file=io.StringIO(), width=WIDTH)
        console.print(new_table(title, (*words, *numbers), rows, words))
        drawn: str = console.file.getvalue().rstrip("\n")  # type: ignore[attr-defined]
        told = f"{drawn}\n{self.config.episodes} episodes per cell, seed {self.config.seed}"
        return "\n".join([told, *map(_gain_line, self.gains), *self._planning_lines()])

    @property
    def gains(self) -> tuple[Gain, ...]:
        """By how much defenders beat the first one, on the same dice, against each attacker."""
        return () if self.config.elsewhere else paired_gains(self.cells)

    def _planning_lines(self) -> Iterator[str]:
        for name in self.names:
            told = [cell.planning for cell in self.cells if cell.policy == name and cell.planning]
            once = list({id(one): one for one in told}.values())  # cells that were played together
            if once:
                decisions = sum(one["decisions"] for one in once)
                seconds = sum(one["decisions"] / one["decisions_per_s"] for one in once)
                changed = sum(one["decisions"] * one["share_changed"] for one in once)
                yield (
                    f"{name}: {decisions:,.0f} decisions, {decisions / seconds:,.0f} a second; "
                    f"planning changed {changed / decisions:.1%} of them"
                )

    def as_dict(self) -> dict[str, object]:
        return {
            "phalanx": phalanx.__version__,
            "rules": self.config.rules,
            "scenario": as_named(self.config.scenario),
            "simulator": self.config.simulator,
            "compliance_rule": self.config.compliance_rule,
            "judged_by": self.config.judged_by,
            "total": self.total if len(self.names) == 1 else None,
            "totals": self.totals,
            "seed": self.config.seed,
            "complete": self.complete,
            "cells": [_as_dict(cell) for cell in self.cells],
            "gains": [one._asdict() for one in self.gains],
        }

    def to_json(self) -> str:
        return json.dumps(self.as_dict(), indent=1)


def _gain_line(gain: Gain) -> str:
    return (
        f"{gain.policy} minus {gain.over} against {gain.red_agent}, on the same dice, all horizons "
        f"together: {gain.mean:+.2f} ± {gain.high - gain.mean:.2f}"
    )


def _as_dict(cell: Cell) -> dict[str, object]:
    """All but the single returns."""
    return {k: v for k, v in dataclasses.asdict(cell).items() if k != "returns"}


def _with_interval(cell: Cell) -> str:
    return plus_minus(cell.mean, cell.high - cell.mean)


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
