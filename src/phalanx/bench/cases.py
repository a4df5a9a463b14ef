"""How a figure is measured: cases that take turns, so that noise falls on all of them alike.

Each case is measured once a round; the medians over rounds are compared.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.console import Console

from phalanx.bench.config import BenchConfig
from phalanx.bench.spent import Spent
from phalanx.display import new_table, progress_display
from phalanx.errors import MissingError
from phalanx.files import Facts, write_json
from phalanx.machine import describe_machine

Rows = Sequence[Mapping[str, object]]


class Opened(NamedTuple):
    """A case that is ready to be measured."""

    measure: Callable[[float], Spent]  # seconds to spend
    facts: Callable[[], Facts] = dict  # what else is known of it


Open = Callable[[], AbstractContextManager[Opened]]


@dataclass
class Case:
    """One way to spend the time, and what it did in each round."""

    name: str
    open: Open
    labels: dict[str, str | int] = field(default_factory=dict)  # the first columns of its row
    spent: list[Spent] = field(default_factory=list)
    facts: Facts = field(default_factory=dict)  # known after the last round

    def median(self, figure: Callable[[Spent], float]) -> float:
        return statistics.median(map(figure, self.spent))

    @property
    def speed(self) -> float:
        return self.median(Spent.speed)

    @property
    def best_speed(self) -> float:
        return max(map(Spent.speed, self.spent))


SPEED_COLUMNS = {"case": "case", "median": "median:,.0f", "best": "best:,.0f"}


def speed_row(case: Case) -> dict[str, str | float]:
    return {"case": case.name, "median": case.speed, "best": case.best_speed}


def measure(
    groups: Sequence[Sequence[Case]], config: BenchConfig, skipped: list[str]
) -> list[Case]:
    """Open the cases of a group, measure each once a round and close them; then the next group.

    skipped: is told why cases were left out that cannot be opened here.
    """
    measured: list[Case] = []
    with progress_display("cases") as progress:
        total = config.rounds * sum(map(len, groups))
        task = progress.add_task("preparing", total=total, note="")
        for group in groups:
            with ExitStack() as stack:
                ready = []
                for case in group:
                    progress.update(task, description=f"preparing {case.name}")
                    try:
                        ready.append((case, stack.enter_context(case.open())))
                    except MissingError as error:
                        skipped.append(f"{case.name}: {error}")
                        progress.advance(task, config.rounds)
                for _ in range(config.rounds):
                    for case, opened in ready:
                        progress.update(task, description=case.name)
                        case.spent.append(opened.measure(config.seconds or 0.0))
                        progress.advance(task)
                for case, opened in ready:
                    case.facts = opened.facts()
                    measured.append(case)
    return measured


def quotients(pairs: Mapping[str, tuple[float | None, float | None]]) -> dict[str, float]:
    """Ratios of figures, by what they are called, where both were measured."""
    return {
        name: round(above / below, 3)
        for name, (above, below) in pairs.items()
        if above is not None and below
    }


def report(
    config: BenchConfig,
    title: str,
    columns: Mapping[str, str],
    result: Facts,
    *,
    notes: Iterable[str] = (),
    skipped: Iterable[str] = (),
) -> None:
    """Print the result, and write it as JSON if that is asked for; it needs rows and ratios."""
    result["machine"] = describe_machine()
    show_table(title, columns, result["rows"])
    for name, ratio in result["ratios"].items():
        print(f"{name}: {ratio:,.2f}")
    for line in (*notes, in_words(result["machine"])):
        print(line)
    for line in skipped:
        print(f"not compared: {line}")
    if config.json is not None:
        write_json(config.json, result)


def in_words(facts: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def show_table(title: str, columns: Mapping[str, str], rows: Rows) -> None:
    """columns: by their titles, `name` of words or `name:format` of numbers."""
    keys = {column: key.partition(":")[::2] for column, key in columns.items()}
    words = [column for column, (_, spec) in keys.items() if not spec]
    cells = (
        [format(row[name], spec) if name in row else "" for name, spec in keys.values()]
        for row in rows
    )
    Console(width=160).print(new_table(title, keys, cells, words))
