"""How fast environments are stepped: our pool beside other runners, and training on top of it.

The cases of a group are measured in turn, once a round, so that a noisy machine is noisy for all of
them; the medians over rounds are compared.
"""

from contextlib import ExitStack
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from phalanx.bench.config import BenchConfig
from phalanx.bench.runner_cases import GROUPS, Case
from phalanx.bench.runner_ratios import side_by_side
from phalanx.display import progress_display
from phalanx.errors import MissingError, PhalanxError
from phalanx.files import write_json
from phalanx.machine import describe_machine


def main(config: BenchConfig) -> int:
    """Measure, print the table, write JSON if asked for."""
    rows: list[dict[str, Any]] = []
    skipped: list[str] = []
    groups = [(work, n) for work in config.work for n in GROUPS[work].sizes]
    with progress_display("groups") as progress:
        task = progress.add_task("measuring", total=len(groups), note="")
        for work, n in groups:
            progress.update(task, description=f"{work}, {n} environments")
            try:
                cases = GROUPS[work].cases(n)
            except MissingError as error:
                skipped.append(f"{work}: {error}")
            else:
                rows += measure(cases, config.rounds, config.seconds or 0.0, skipped)
            progress.advance(task)
    skipped = list(dict.fromkeys(skipped))
    result = {
        "machine": describe_machine(),
        "rows": rows,
        "ratios": side_by_side(rows),
        "skipped": skipped,
    }
    show(result)
    if config.json is not None:
        write_json(config.json, result)
    return 0


def measure(
    cases: list[Case], rounds: int, seconds: float, skipped: list[str]
) -> list[dict[str, Any]]:
    """Open all cases, measure each once a round; those that cannot be opened are told of."""
    with ExitStack() as stack:
        ready = []
        for case in cases:
            try:
                ready.append((case, stack.enter_context(case.open())))
            except PhalanxError as error:
                skipped.append(f"{case.runner}: {error}")
        for _ in range(rounds):
            for case, way in ready:
                case.spent.append(way.measure(seconds))
        return [case.row(way) for case, way in ready]


def show(result: dict[str, Any]) -> None:
    table = Table(box=SIMPLE_HEAD, title="Steps a second of all environments (median of rounds)")
    titles = (
        "work",
        "runner",
        "envs",
        "workers",
        "steps/s",
        "CPU µs/step",
        "parent",
        "others",
        "return",
    )
    for name in titles:
        table.add_column(name, justify="left" if name in ("work", "runner") else "right")
    for row in result["rows"]:
        table.add_row(
            row["work"],
            row["runner"],
            str(row["n_envs"]),
            str(row["workers"]),
            f"{row['steps_per_s']:,.0f}",
            f"{row['cpu_us_per_step']:,.1f}",
            f"{row['parent_cpu_share']:.0%}",
            f"{row['others_cores']:.1f}",
            f"{row['return']:.1f}" if "return" in row else "",
        )
    Console(width=120).print(table)
    print("parent: its share of a core; others: cores that other people's processes used")
    for name, ratio in result["ratios"].items():
        print(f"{name}: {ratio:,.2f}")
    print(", ".join(f"{name} {value}" for name, value in result["machine"].items()))
    for line in result["skipped"]:
        print(f"not compared: {line}")
