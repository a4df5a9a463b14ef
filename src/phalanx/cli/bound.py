"""The command `phalanx bound`: a table of what no defender can beat."""

import math

from rich.console import Console

import phalanx
from phalanx.bound.bounds import Bound, find_bounds
from phalanx.bound.config import BoundConfig
from phalanx.display import new_table, progress_display
from phalanx.files import write_json

COLUMNS = ("red agent", "turns", "no defender beats", "if it saw the truth", "positions")


def main(config: BoundConfig) -> int:
    """The command: progress, a table, and JSON if asked for."""
    found = [one for red_agent in config.red_agent for one in bounds_against(red_agent, config)]
    rows = [
        (one.red_agent, str(one.horizon), up(one.value), up(one.at_once), f"{one.positions:,}")
        for one in found
    ]
    title = f"Upper bounds on the mean return, rules {config.rules}"
    Console().print(new_table(title, COLUMNS, rows, words=("red agent",)))
    if config.json is not None:
        bounds = [one._asdict() for one in found]
        write_json(config.json, {"phalanx": phalanx.__version__, "bounds": bounds})
    return 0


def up(bound: float) -> str:
    """Rounded up: a bound that is too low would be none."""
    return f"{math.ceil(100 * bound) / 100 + 0.0:.2f}"


def bounds_against(red_agent: str, config: BoundConfig) -> list[Bound]:
    """The bounds against one attacker, with progress for whoever watches."""
    with progress_display("turns") as progress:
        task = progress.add_task(f"against {red_agent}", total=None, note="")

        def on_found(positions: int) -> None:
            progress.update(task, note=f"{positions:,} positions")

        def on_turn() -> None:
            progress.update(task, total=2 * max(config.horizon), advance=1)

        return find_bounds(red_agent, config.horizon, config.rules, on_found, on_turn)
