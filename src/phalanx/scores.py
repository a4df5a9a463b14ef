"""Tables of returns for people, and the same as JSON."""

import dataclasses
from itertools import product

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import phalanx
from phalanx.cage2.scenario import CELLS, PUBLISHED
from phalanx.cage2.workflow import parse_order, short_name
from phalanx.evaluate_config import EvaluateConfig
from phalanx.evaluation import HALF_WIDTH, Cell

TITLE = "Mean return ± its 95 % confidence interval"


def show(config: EvaluateConfig, cells: list[Cell]) -> None:
    """Print the table: a row per policy and attacker, a column per horizon."""
    if any(cell.workflow for cell in cells):
        show_workflows(config, cells)
        return
    table = Table(box=SIMPLE_HEAD, title=f"{TITLE}, rules {config.rules}")
    table.add_column("policy")
    table.add_column("red agent")
    for horizon in config.horizon:
        table.add_column(f"{horizon} turns", justify="right")
    by_cell = {(cell.policy, cell.red_agent, cell.horizon): cell for cell in cells}
    for policy, red_agent in product(config.policies, config.red_agent):
        row = [by_cell.get((policy, red_agent, horizon)) for horizon in config.horizon]
        texts = [with_interval(cell) if cell else "-" for cell in row]
        table.add_row(policy, red_agent, *texts)
    Console(width=100).print(table)
    print(f"{config.episodes} episodes per cell, seed {config.seed}")


def show_workflows(config: EvaluateConfig, cells: list[Cell]) -> None:
    """A row per workflow, attacker and horizon: return, compliance, fixes; a grid's best first."""
    table = Table(box=SIMPLE_HEAD, title=f"{TITLE}, rules {config.rules}")
    names = ("policy", "workflow", "red agent", "turns", "return", "compliance", "fixes", "without")
    for name in names:
        table.add_column(name, justify="left" if name in names[:3] else "right")
    ranked = cells
    if config.workflow_grid:
        ranked = sorted(cells, key=lambda c: (c.policy, c.red_agent, c.horizon, -c.mean))
    for cell in ranked:
        workflow = cell.workflow or "-"
        if "," in workflow:
            workflow = short_name(parse_order(workflow))
        compliance = "-" if cell.compliance is None else f"{cell.compliance:.1%}"
        table.add_row(
            cell.policy, workflow, cell.red_agent, str(cell.horizon), with_interval(cell),
            compliance, f"{cell.fixes_per_episode or 0:.1f}", f"{cell.share_without_fix or 0:.0%}",
        )  # fmt: skip
    Console(width=110).print(table)
    order = "" if config.judged_by is None else f" and the order {config.judged_by}"
    print(
        f"{config.episodes} episodes per cell, seed {config.seed}; compliance by the rule "
        f"{config.compliance_rule!r}{order}, pooled over all fixes; fixes per episode, and the "
        "share of episodes without one"
    )
    for cell in cells:
        if cell.true_state is not None:
            print(_state_line(cell))


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


def show_beside_published(config: EvaluateConfig, cells: list[Cell]) -> None:
    """The cells beside the published scores of the challenge's best, and their sums."""
    table = Table(box=SIMPLE_HEAD, title=f"{TITLE}, rules {config.rules}")
    for name in ("policy", "red agent", "turns", "this policy", *PUBLISHED):
        table.add_column(name, justify="left" if name in ("policy", "red agent") else "right")
    for policy in config.policies:
        own = {(cell.red_agent, cell.horizon): cell for cell in cells if cell.policy == policy}
        for (red_agent, horizon), cell in own.items():
            others = [scores.get((red_agent, horizon)) for scores in PUBLISHED.values()]
            texts = ["-" if score is None else f"{score:.2f}" for score in others]
            table.add_row(policy, red_agent, str(horizon), with_interval(cell), *texts)
        if set(own) == set(CELLS):
            mine = sum(cell.mean for cell in own.values())
            sums = [sum(scores.values()) for scores in PUBLISHED.values()]
            table.add_row(policy, "all nine", "", f"{mine:.2f}", *(f"{one:.2f}" for one in sums))
    Console(width=110).print(table)
    print(f"{config.episodes} episodes per cell, seed {config.seed}")


def with_interval(cell: Cell) -> str:
    return f"{cell.mean:.2f} ± {HALF_WIDTH * cell.stderr:.2f}"


def as_json(config: EvaluateConfig, cells: list[Cell], complete: bool) -> dict[str, object]:
    return {
        "phalanx": phalanx.__version__,
        "rules": config.rules,
        "simulator": config.simulator,
        "compliance_rule": config.compliance_rule,
        "judged_by": config.judged_by,
        "total": sum(cell.mean for cell in cells),
        "seed": config.seed,
        "complete": complete,
        "cells": [dataclasses.asdict(cell) for cell in cells],
    }
