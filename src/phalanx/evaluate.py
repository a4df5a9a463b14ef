"""Play many episodes and say what they brought: mean, standard error, quantiles."""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import phalanx
from phalanx.cage2.batch import Batch
from phalanx.cage2.defenders import make_defender
from phalanx.config import EvaluateConfig
from phalanx.display import progress_display
from phalanx.results import write_json

CHUNK = 4096  # episodes played side by side
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
    std: float
    min: float
    max: float
    quantiles: dict[str, float]


def evaluate(
    config: EvaluateConfig, played: Callable[[str, int, float], None] = lambda *_: None
) -> Iterator[Cell]:
    """The cells of the table, one after the other. `played` hears of progress: cell, episodes,
    mean.
    """
    for policy, red_agent, horizon in product(config.policy, config.red_agent, config.horizon):
        name = f"{policy} against {red_agent}, {horizon} turns"
        returns = play_episodes(config, policy, red_agent, horizon, partial(played, name))
        yield summarise(policy, red_agent, horizon, returns)


def play_episodes(
    config: EvaluateConfig,
    policy: str,
    red_agent: str,
    horizon: int,
    played: Callable[[int, float], None] = lambda *_: None,
) -> npt.NDArray[np.float64]:
    """The returns of `config.episodes` episodes; episode i is always that of (seed, i)."""
    returns = np.empty(config.episodes)
    for first in range(0, config.episodes, CHUNK):
        size = min(CHUNK, config.episodes - first)
        batch = Batch(
            size,
            red_agent=red_agent,
            horizon=horizon,
            rules=config.rules,
            seed=config.seed,
            first_index=first,
            num_threads=config.num_threads,
            same_step=False,
        )
        defender = make_defender(policy, [config.seed, first], CHUNK)
        for _ in range(horizon):
            batch.play(defender.act(batch.shown.obs, batch.nets["alert"]))
        returns[first : first + size] = batch.shown.returns
        batch.close()
        played(size, float(returns[: first + size].mean()))
    return returns


def summarise(policy: str, red_agent: str, horizon: int, returns: npt.NDArray[np.float64]) -> Cell:
    std = float(returns.std(ddof=1))
    return Cell(
        policy=policy,
        red_agent=red_agent,
        horizon=horizon,
        episodes=len(returns),
        mean=float(returns.mean()),
        stderr=std / len(returns) ** 0.5,
        std=std,
        min=float(returns.min()),
        max=float(returns.max()),
        quantiles={str(q): float(np.quantile(returns, q)) for q in QUANTILES},
    )


def main(config: EvaluateConfig) -> int:
    """The command: progress on a terminal, a table, and JSON if asked for.

    Ctrl-C keeps what is done.
    """
    cells: list[Cell] = []
    total = config.episodes * len(config.policy) * len(config.red_agent) * len(config.horizon)
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
        show(config, cells)
    if not complete:
        print(f"phalanx: interrupted after {len(cells)} cells of the table", file=sys.stderr)
    return 0 if complete else 130


def show(config: EvaluateConfig, cells: list[Cell]) -> None:
    """Print the table: a row per policy and attacker, a column per horizon."""
    table = Table(box=SIMPLE_HEAD, title=f"Mean return ± standard error, rules {config.rules}")
    table.add_column("policy")
    table.add_column("red agent")
    for horizon in config.horizon:
        table.add_column(f"{horizon} turns", justify="right")
    by_cell = {(cell.policy, cell.red_agent, cell.horizon): cell for cell in cells}
    for policy, red_agent in product(config.policy, config.red_agent):
        row = [by_cell.get((policy, red_agent, horizon)) for horizon in config.horizon]
        texts = [f"{cell.mean:.2f} ± {cell.stderr:.2f}" if cell else "-" for cell in row]
        table.add_row(policy, red_agent, *texts)
    Console(width=100).print(table)
    print(f"{config.episodes} episodes per cell, seed {config.seed}")


def as_json(config: EvaluateConfig, cells: list[Cell], complete: bool) -> dict[str, object]:
    return {
        "phalanx": phalanx.__version__,
        "rules": config.rules,
        "seed": config.seed,
        "complete": complete,
        "cells": [dataclasses.asdict(cell) for cell in cells],
    }
