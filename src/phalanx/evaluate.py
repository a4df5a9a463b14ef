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
from phalanx.cage2.batch import Batch
from phalanx.cage2.cyborg import CyborgEnv
from phalanx.cage2.defenders import Defender, make_defender
from phalanx.cage2.scenario import LEADERS_SCORES
from phalanx.config import EvaluateConfig
from phalanx.display import progress_display
from phalanx.evaluate_env import play_env, trained_on
from phalanx.recipe import find_network
from phalanx.results import write_json
from phalanx.trained import TrainedDefender, load_defender

TITLE = "Mean return ± its 95 % confidence interval"
CHUNK = 4096  # episodes played side by side
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


Heard = Callable[[int, float], None]  # episodes played, mean return so far


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
    for policy, red_agent in product(config.policies, config.red_agent):
        for horizons in played_together(config.horizon, defender):
            turns = "/".join(map(str, horizons))
            heard = partial(played, f"{policy} against {red_agent}, {turns} turns")
            returns = play_episodes(config, policy, red_agent, horizons, heard, defender)
            for horizon, column in zip(horizons, returns.T, strict=True):
                yield summarise(policy, red_agent, horizon, column)


def played_together(
    horizons: tuple[int, ...], trained: TrainedDefender | None
) -> list[tuple[int, ...]]:
    """Short games are the beginnings of long ones, but for policies that see the time left."""
    if trained is None:
        return [horizons]
    known = tuple(horizon for horizon in horizons if horizon <= trained.horizon)
    longer: list[tuple[int, ...]] = [
        (horizon,) for horizon in horizons if horizon > trained.horizon
    ]
    return [known, *longer] if known else longer


def play_episodes(
    config: EvaluateConfig,
    policy: str,
    red_agent: str,
    horizons: tuple[int, ...],
    played: Heard = lambda *_: None,
    trained: TrainedDefender | None = None,
) -> npt.NDArray[np.float64]:
    """Returns [episodes, horizons]; episode i is always that of (seed, i)."""
    if config.simulator == "cyborg":
        return play_original(config, policy, red_agent, horizons, played, trained)
    returns = np.empty((config.episodes, len(horizons)))
    for first in range(0, config.episodes, CHUNK):
        size = min(CHUNK, config.episodes - first)
        defender = make(config, policy, trained, first)
        batch = Batch(
            size,
            red_agent=red_agent,
            horizon=shown_horizon(horizons, trained),
            rules=config.rules,
            observation=defender.observation,
            seed=config.seed,
            first_index=first,
            num_threads=config.num_threads,
            same_step=False,
        )
        for turn in range(1, max(horizons) + 1):
            masks = batch.action_masks()
            batch.play(defender.act(batch.shown.obs, batch.nets["alert"], masks))
            for k, horizon in enumerate(horizons):
                if turn == horizon:
                    returns[first : first + size, k] = batch.nets["tenths"] / 10
        batch.close()
        played(size * len(horizons), float(returns[: first + size, -1].mean()))
    return returns


def play_original(
    config: EvaluateConfig,
    policy: str,
    red_agent: str,
    horizons: tuple[int, ...],
    played: Heard,
    trained: TrainedDefender | None,
) -> npt.NDArray[np.float64]:
    """The same in the original simulator, one episode after the other."""
    returns = np.zeros((config.episodes, len(horizons)))
    observation = make(config, policy, trained, 0).observation
    env = CyborgEnv(
        red_agent=red_agent,
        horizon=shown_horizon(horizons, trained),
        rules=config.rules,
        observation=observation,
    )
    for episode in range(config.episodes):
        defender = make(config, policy, trained, episode)
        obs, info = env.reset(seed=config.seed + episode)
        for turn in range(max(horizons)):
            alerts, masks = np.array([info["alert"]], np.int8), info["action_mask"][None] != 0
            action = int(defender.act(obs[None], alerts, masks)[0])
            obs, reward, _, _, info = env.step(action)
            returns[episode, np.array(horizons) > turn] += reward
        played(len(horizons), float(returns[: episode + 1, -1].mean()))
    return returns


def shown_horizon(horizons: tuple[int, ...], trained: TrainedDefender | None) -> int:
    """The horizon of the game: a trained policy is shown the one it knows, if that is longer."""
    return max(horizons) if trained is None else max(*horizons, trained.horizon)


def make(
    config: EvaluateConfig, policy: str, trained: TrainedDefender | None, first: int
) -> Defender:
    """The defender of a cell, for the episodes that begin with number `first`."""
    width = CHUNK if config.simulator == "phalanx" else 1
    if trained is None:
        return make_defender(policy, [config.seed, first], width)
    return trained.sampling([config.seed, first], width) if config.sample else trained


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


def main(config: EvaluateConfig) -> int:
    """The command: progress on a terminal, a table, and JSON if asked for.

    Ctrl-C keeps what is done.
    """
    if config.checkpoint is not None and trained_on(config.checkpoint).env != "cage2":
        return main_env(config, config.checkpoint)
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
        (show_beside_winner if config.leaderboard else show)(config, cells)
    if not complete:
        print(f"phalanx: interrupted after {len(cells)} cells of the table", file=sys.stderr)
    return 0 if complete else 130


def main_env(config: EvaluateConfig, checkpoint: Path) -> int:
    """The same for a policy of another environment: one number, and its interval."""
    env = trained_on(checkpoint).env
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


def show_beside_winner(config: EvaluateConfig, cells: list[Cell]) -> None:
    """The cells beside the published scores of the challenge's winner, and their sum."""
    table = Table(box=SIMPLE_HEAD, title=f"{TITLE}, rules {config.rules}")
    for name in ("policy", "red agent", "turns", "this policy", "challenge's winner"):
        table.add_column(name, justify="left" if name in ("policy", "red agent") else "right")
    for policy in config.policies:
        own = [cell for cell in cells if cell.policy == policy]
        for cell in own:
            winner = LEADERS_SCORES.get((cell.red_agent, cell.horizon))
            beside = "-" if winner is None else f"{winner:.2f}"
            row = (policy, cell.red_agent, str(cell.horizon), _with_interval(cell), beside)
            table.add_row(*row)
        if {(cell.red_agent, cell.horizon) for cell in own} == set(LEADERS_SCORES):
            mine, best = sum(cell.mean for cell in own), sum(LEADERS_SCORES.values())
            table.add_row(policy, "all nine", "", f"{mine:.2f}", f"{best:.2f}")
    Console(width=100).print(table)
    print(f"{config.episodes} episodes per cell, seed {config.seed}")


def _with_interval(cell: Cell) -> str:
    return f"{cell.mean:.2f} ± {HALF_WIDTH * cell.stderr:.2f}"


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
