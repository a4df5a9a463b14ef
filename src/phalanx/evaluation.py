"""Play many episodes and say what they brought: mean, standard error, quantiles."""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import phalanx
from phalanx.cage2.scenario import CELLS, PUBLISHED
from phalanx.cage2.workflow import (
    NAMED_ORDERS,
    NUM_ORDERS,
    order_name,
    parse_order,
    short_name,
)
from phalanx.display import progress_display
from phalanx.errors import ConfigError
from phalanx.evaluate_config import EvaluateConfig
from phalanx.evaluate_env import play_env
from phalanx.play import StateCost, play_episodes
from phalanx.recipe import find_network
from phalanx.results import write_json
from phalanx.trained import TrainedDefender, load_defender

TITLE = "Mean return ± its 95 % confidence interval"
HALF_WIDTH = 1.96  # of a 95 % interval, in standard errors
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Cell:
    """One policy against one attacker over one horizon."""

    policy: str
    red_agent: str
    horizon: int
    episodes: int
    mean: float
    stderr: float
    low: float
    high: float
    std: float
    min: float
    max: float
    quantiles: dict[str, float]
    workflow: str | None = None
    """the order of repair that was to be followed"""
    compliance: float | None = None
    """share of all fixes that followed it; None without a fix"""
    fixes_per_episode: float | None = None
    share_without_fix: float | None = None
    true_state: dict[str, Any] | None = None
    """what saving on the true state brought, and how far compliance is off by it"""


def evaluate(
    config: EvaluateConfig,
    played: Callable[[str, int, float], None] = lambda *_: None,
    defender: TrainedDefender | None = None,
) -> Iterator[Cell]:
    """The cells of the table, one after the other. `played` hears: cell, episodes, mean.

    defender: one that is in memory already, instead of the one that the settings name.
    """
    if defender is None and config.checkpoint is not None:
        defender = load_defender(config.checkpoint, find_network(config.network))
    workflows = chosen_workflows(config, None if defender is None else defender.workflow)
    if config.judged_by is not None and workflows == [None]:
        raise ConfigError("this policy is told no order; give --workflow instead of --judged-by")
    for policy, workflow, red_agent in product(config.policies, workflows, config.red_agent):
        for horizons in played_together(config, defender):
            turns = "/".join(map(str, horizons))
            heard = partial(played, f"{policy} against {red_agent}, {turns} turns")
            orders = order_numbers(workflow, config.episodes)
            cost = None if config.true_state == "exact" or orders is None else StateCost()
            results = play_episodes(
                config, policy, red_agent, horizons, orders, heard, defender, cost
            )
            for k, horizon in enumerate(horizons):
                cell = summarise(policy, red_agent, horizon, results.returns[:, k])
                if workflow is not None:
                    fixes, compliant = results.fixes[:, k], results.compliant[:, k]
                    cell = with_compliance(cell, workflow, fixes, compliant, config.true_state)
                    if cost is not None and horizon == max(horizons):
                        figures = cost.figures(config.true_state, config.episodes)
                        cell = dataclasses.replace(cell, true_state=figures)
                yield cell


def chosen_workflows(config: EvaluateConfig, trained_for: str | None) -> list[str | None]:
    """The orders that are played: as asked for, else the one that the policy was trained for."""
    if config.workflow_grid:
        return [order_name(number) for number in range(NUM_ORDERS)]
    if config.workflow == "named":
        return list(NAMED_ORDERS)
    return [config.workflow or trained_for]


def order_numbers(workflow: str | None, episodes: int) -> npt.NDArray[np.int64] | None:
    """The order of each episode; with `all` they take turns."""
    if workflow is None:
        return None
    if workflow == "all":
        return np.arange(episodes) % NUM_ORDERS
    return np.full(episodes, parse_order(workflow))


def played_together(
    config: EvaluateConfig, trained: TrainedDefender | None
) -> list[tuple[int, ...]]:
    """Short games are the beginnings of long ones, but for policies that see the time left.

    And where fixes are judged at the end of an episode: each has its own.
    """
    horizons = config.horizon
    if config.true_state == "episode_end":
        return [(horizon,) for horizon in horizons]
    if trained is None:
        return [horizons]
    known = tuple(horizon for horizon in horizons if horizon <= trained.horizon)
    longer: list[tuple[int, ...]] = [
        (horizon,) for horizon in horizons if horizon > trained.horizon
    ]
    return [known, *longer] if known else longer


def interval(returns: Any) -> dict[str, Any]:
    """Mean of independent returns, its standard error and 95 % confidence interval."""
    mean, count = float(np.mean(returns)), len(returns)
    if count < 2:
        return {"mean": mean, "stderr": None, "low": None, "high": None, "episodes": count}
    stderr = float(np.std(returns, ddof=1)) / count**0.5
    low, high = mean - HALF_WIDTH * stderr, mean + HALF_WIDTH * stderr
    return {"mean": mean, "stderr": stderr, "low": low, "high": high, "episodes": count}


def summarise(policy: str, red_agent: str, horizon: int, returns: npt.NDArray[np.float64]) -> Cell:
    return Cell(
        policy=policy,
        red_agent=red_agent,
        horizon=horizon,
        **interval(returns),
        std=float(returns.std(ddof=1)),
        min=float(returns.min()),
        max=float(returns.max()),
        quantiles={str(q): float(np.quantile(returns, q)) for q in QUANTILES},
    )


def with_compliance(cell: Cell, workflow: str, fixes: Any, compliant: Any, true_state: str) -> Cell:
    """A cell, and how well its episodes followed the workflow: pooled over all fixes."""
    judged = true_state != "off" and fixes.any()
    return dataclasses.replace(
        cell,
        workflow=workflow,
        compliance=float(compliant.sum() / fixes.sum()) if judged else None,
        fixes_per_episode=float(fixes.mean()),
        share_without_fix=float((fixes == 0).mean()),
    )


def main(config: EvaluateConfig) -> int:
    """The command: progress on a terminal, a table, and JSON if asked for.

    Ctrl-C keeps what is done.
    """
    if config.checkpoint is not None and config.env != "cage2":
        return main_env(config, config.checkpoint)
    cells: list[Cell] = []
    total = config.episodes * len(config.policies) * len(config.red_agent) * len(config.horizon)
    total *= len(chosen_workflows(config, None))
    complete = False
    with progress_display("episodes") as progress:
        task = progress.add_task("starting", total=total, note="")

        def played(name: str, episodes: int, mean: float) -> None:
            progress.update(task, advance=episodes, description=name, note=f"return {mean:.1f}")

        try:
            for cell in evaluate(config, played):
                cells.append(cell)
            complete = True
        except KeyboardInterrupt:
            pass
    if config.json is not None and cells:
        write_json(config.json, as_json(config, cells, complete))
    if cells:
        beside = config.leaderboard and not (config.workflow or config.workflow_grid)
        (show_beside_published if beside else show)(config, cells)
    if not complete:
        print(f"phalanx: interrupted after {len(cells)} cells of the table", file=sys.stderr)
    return 0 if complete else 130


def main_env(config: EvaluateConfig, checkpoint: Path) -> int:
    """The same for a policy of another environment: one number, and its interval."""
    env = config.env
    with progress_display("episodes") as progress:
        task = progress.add_task(env, total=config.episodes, note="")

        def played(episodes: int, mean: float) -> None:
            progress.update(task, advance=episodes, note=f"return {mean:.1f}")

        network = find_network(config.network)
        returns = play_env(checkpoint, config.episodes, config.seed, config.sample, network, played)
    cell = summarise(str(checkpoint), env, 0, returns)
    print(f"{env}: return {_with_interval(cell)} over {cell.episodes} episodes, seed {config.seed}")
    if config.json is not None:
        write_json(config.json, as_json(config, [cell], True))
    return 0


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
        texts = [_with_interval(cell) if cell else "-" for cell in row]
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
            cell.policy, workflow, cell.red_agent, str(cell.horizon), _with_interval(cell),
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
            table.add_row(policy, red_agent, str(horizon), _with_interval(cell), *texts)
        if set(own) == set(CELLS):
            mine = sum(cell.mean for cell in own.values())
            sums = [sum(scores.values()) for scores in PUBLISHED.values()]
            table.add_row(policy, "all nine", "", f"{mine:.2f}", *(f"{one:.2f}" for one in sums))
    Console(width=110).print(table)
    print(f"{config.episodes} episodes per cell, seed {config.seed}")


def _with_interval(cell: Cell) -> str:
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
