"""The command `phalanx evaluate`."""

import sys
from pathlib import Path

from phalanx.display import progress_display
from phalanx.evaluate_config import EvaluateConfig
from phalanx.evaluate_env import play_env
from phalanx.evaluation import Cell, chosen_workflows, play_cells, summarise
from phalanx.recipe import find_network
from phalanx.results import write_json
from phalanx.scores import as_json, show, show_beside_published, with_interval


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
            for cell in play_cells(config, played):
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
    print(f"{env}: return {with_interval(cell)} over {cell.episodes} episodes, seed {config.seed}")
    if config.json is not None:
        write_json(config.json, as_json(config, [cell], True))
    return 0
