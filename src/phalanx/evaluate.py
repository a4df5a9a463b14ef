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
from phalanx.cage2.cyborg import CyborgEnv
from phalanx.cage2.defenders import Defender, make_defender
from phalanx.cage2.scenario import LEADERS_SCORES
from phalanx.config import EvaluateConfig
from phalanx.display import progress_display
from phalanx.results import write_json
from phalanx.trained import TrainedDefender, load_defender

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


Heard = Callable[[int, float], None]  # episodes played, mean return so far


def evaluate(
    config: EvaluateConfig, played: Callable[[str, int, float], None] = lambda *_: None
) -> Iterator[Cell]:
    """The cells of the table, one after the other. `played` hears: cell, episodes, mean."""
    trained = None if config.checkpoint is None else load_defender(config.checkpoint)
    for policy, red_agent, horizon in product(config.policies, config.red_agent, config.horizon):
        name = f"{policy} against {red_agent}, {horizon} turns"
        returns = play_episodes(config, policy, red_agent, horizon, partial(played, name), trained)
        yield summarise(policy, red_agent, horizon, returns)


def play_episodes(
    config: EvaluateConfig,
    policy: str,
    red_agent: str,
    horizon: int,
    played: Heard = lambda *_: None,
    trained: TrainedDefender | None = None,
) -> npt.NDArray[np.float64]:
    """The returns of `config.episodes` episodes; episode i is always that of (seed, i)."""
    if config.simulator == "cyborg":
        return play_original(config, policy, red_agent, horizon, played, trained)
    returns = np.empty(config.episodes)
    for first in range(0, config.episodes, CHUNK):
        size = min(CHUNK, config.episodes - first)
        defender = make(config, policy, trained, first)
        batch = Batch(
            size,
            red_agent=red_agent,
            horizon=shown_horizon(horizon, trained),
            rules=config.rules,
            observation=defender.observation,
            seed=config.seed,
            first_index=first,
            num_threads=config.num_threads,
            same_step=False,
        )
        for _ in range(horizon):
            masks = batch.action_masks()
            batch.play(defender.act(batch.shown.obs, batch.nets["alert"], masks))
        returns[first : first + size] = batch.nets["tenths"] / 10
        batch.close()
        played(size, float(returns[: first + size].mean()))
    return returns


def play_original(
    config: EvaluateConfig,
    policy: str,
    red_agent: str,
    horizon: int,
    played: Heard,
    trained: TrainedDefender | None,
) -> npt.NDArray[np.float64]:
    """The same in the original simulator, one episode after the other."""
    returns = np.zeros(config.episodes)
    observation = make(config, policy, trained, 0).observation
    env = CyborgEnv(
        red_agent=red_agent,
        horizon=shown_horizon(horizon, trained),
        rules=config.rules,
        observation=observation,
    )
    for episode in range(config.episodes):
        defender = make(config, policy, trained, episode)
        obs, info = env.reset(seed=config.seed + episode)
        for _ in range(horizon):
            alerts, masks = np.array([info["alert"]], np.int8), info["action_mask"][None] != 0
            action = int(defender.act(obs[None], alerts, masks)[0])
            obs, reward, _, _, info = env.step(action)
            returns[episode] += reward
        played(1, float(returns[: episode + 1].mean()))
    return returns


def shown_horizon(horizon: int, trained: TrainedDefender | None) -> int:
    """The horizon of the game: a trained policy is shown the one it knows, if that is longer."""
    return horizon if trained is None else max(horizon, trained.horizon)


def make(
    config: EvaluateConfig, policy: str, trained: TrainedDefender | None, first: int
) -> Defender:
    """The defender of a cell, for the episodes that begin with number `first`."""
    width = CHUNK if config.simulator == "phalanx" else 1
    if trained is None:
        return make_defender(policy, [config.seed, first], width)
    return trained.sampling([config.seed, first], width) if config.sample else trained


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
    total = config.episodes * len(config.policies) * len(config.red_agent) * len(config.horizon)
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
    for policy, red_agent in product(config.policies, config.red_agent):
        row = [by_cell.get((policy, red_agent, horizon)) for horizon in config.horizon]
        texts = [f"{cell.mean:.2f} ± {cell.stderr:.2f}" if cell else "-" for cell in row]
        table.add_row(policy, red_agent, *texts)
    Console(width=100).print(table)
    if config.leaderboard and len(cells) == 9:
        mine, best = sum(cell.mean for cell in cells), sum(LEADERS_SCORES.values())
        print(f"sum of the nine cells: {mine:.2f} (the challenge's winner: {best:.2f})")
    print(f"{config.episodes} episodes per cell, seed {config.seed}")


def as_json(config: EvaluateConfig, cells: list[Cell], complete: bool) -> dict[str, object]:
    return {
        "phalanx": phalanx.__version__,
        "rules": config.rules,
        "simulator": config.simulator,
        "total": sum(cell.mean for cell in cells),
        "seed": config.seed,
        "complete": complete,
        "cells": [dataclasses.asdict(cell) for cell in cells],
    }
