"""How far long work is: live on a terminal, a line now and then in a file, one line in a notebook.

All of it goes to standard error, what the work gives to standard output.
"""

import contextlib
import html
import math
import sys
import threading
from collections.abc import Container, Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

BARS = "▁▂▃▄▅▆▇█"


class View(Protocol):
    """How some work is going, drawn by whoever does it; asked for from other threads."""

    def on_terminal(self) -> RenderableType: ...

    def in_file(self) -> str:
        """One line."""
        ...

    def in_cell(self) -> str:
        """HTML, with everything foreign in it escaped."""
        ...


def progress_display(
    unit: str | None, wanted: bool | None = True, view: View | None = None
) -> "Display":
    """A display for whoever watches: what is done now, how fast, its note, the time left.

    with progress_display("episodes") as progress:
        task = progress.add_task("playing", total=100, note="")
        progress.update(task, advance=1, note="return -3.1")

    unit: what is counted; None if only the share counts. wanted: None means in a notebook only.
    view: draws it, in place of a bar or a line for each task.
    """
    if wanted is False or (wanted is None and not in_notebook()):
        nothing = Display(disable=True)
        nothing.is_shown = False
        return nothing
    if in_notebook():
        return _InCell(unit, view)
    console = Console(stderr=True)
    if not console.is_interactive:
        return _InFile(unit, view)
    display = Display(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        *([] if unit is None else [_Speed(unit)]),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        refresh_per_second=1 if view is not None else 10,
    )
    display.view = view
    return display


def new_table(
    title: str | None,
    columns: Iterable[str],
    rows: Iterable[Iterable[RenderableType]],
    words: Container[str],
    **options: Any,
) -> Table:
    """A table for a terminal: columns of `words`, all others of numbers."""
    overflow = options.pop("overflow", "ellipsis")
    table = Table(box=SIMPLE_HEAD, title=title, **options)
    for name in columns:
        table.add_column(name, justify="left" if name in words else "right", overflow=overflow)
    for row in rows:
        table.add_row(*row)
    return table


def plus_minus(mean: float, reach: float) -> str:
    """`-3.14 ± 0.05`."""
    return f"{mean:.2f} ± {reach:.2f}"


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this, and shows what it displays in a cell."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class Display(Progress):
    """rich's progress bar, with lines that stay above it and something to show below it."""

    below: RenderableType | None = None
    view: View | None = None
    is_shown = True
    """whether anybody sees it"""

    def say(self, line: str) -> None:
        """A line that stays."""
        if self.is_shown:
            self.console.print(Text(line), soft_wrap=True)

    def get_renderables(self) -> Iterable[RenderableType]:
        if self.view is None:
            yield from super().get_renderables()
        else:
            yield self.view.on_terminal()
        if self.below is not None:
            yield self.below


class _Speed(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} {self._unit}/s" if speed else "", style="cyan")


class _InFile(Display):
    """Lines for a file or a pipe, told by a thread of its own, since updates may be far apart.

    Work of a few seconds has none. Nothing is told before the first update: until then the work may
    still be refused.
    """

    first_s, every_s = 3.0, 10.0

    def __init__(self, unit: str | None, view: View | None = None) -> None:
        super().__init__(disable=True)
        self._unit, self.view = unit, view
        self._over = threading.Event()
        self._teller: threading.Thread | None = None
        self._told: dict[TaskID, float] = {}  # what was done when we last told

    def update(self, task_id: TaskID, **changes: Any) -> None:
        super().update(task_id, **changes)
        if self._teller is None:
            self._teller = threading.Thread(target=self._tell, daemon=True, name="progress")
            self._teller.start()

    def stop(self) -> None:
        self._over.set()
        if self._teller is not None:
            self._teller.join()

    def say(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody listens any more: work goes on
            print(line, file=sys.stderr, flush=True)

    def tell(self, line: str) -> None:
        """How far it is now."""
        self.say(line)

    def _tell(self) -> None:
        pause = self.first_s
        while not self._over.wait(pause):
            self.tell(self._line())
            pause = self.every_s

    def _line(self) -> str:
        if self.view is not None:
            return self.view.in_file()
        words = []
        for task in self.tasks:
            words.append(in_words(task, self._unit, task.completed != self._told.get(task.id)))
            self._told[task.id] = task.completed
        return "; ".join(words)


class _InCell(_InFile):
    """What stands below a notebook's cell and is written over; the last of it stays."""

    first_s, every_s = 0.2, 0.5

    def __init__(self, unit: str | None, view: View | None = None) -> None:
        super().__init__(unit, view)
        self._said: list[str] = []
        self._handle: Any = None

    def say(self, line: str) -> None:
        self._said.append(line)
        self._show(*self._said)

    def tell(self, line: str) -> None:
        self._show(*self._said, line)

    def stop(self) -> None:
        super().stop()
        if self._teller is not None:
            self.tell(self._line())

    def _show(self, *lines: str) -> None:
        from IPython.display import display  # type: ignore[import-not-found]

        shown = {"text/plain": "\n".join(lines)}
        if self.view is not None:
            said = "".join(f"<div>{html.escape(line)}</div>" for line in self._said)
            shown["text/html"] = said + self.view.in_cell()
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def in_words(task: Task, unit: str | None, moves: bool) -> str:
    """`training: 34% · 12 of 35 cases · 25 cases/s · return -3.1 · 13 s, about 25 s left`.

    moves: something was done since the last line; else nobody knows how long it will take.
    """
    parts = [task.description]
    if task.total is not None:
        parts[0] += f": {task.percentage:.0f}%"
        if unit is not None:
            parts.append(f"{task.completed:,.0f} of {task.total:,.0f} {unit}")
    speed = task.finished_speed or task.speed
    if unit is not None and speed and speed >= 1:
        parts.append(f"{speed:,.0f} {unit}/s")
    if task.fields.get("note"):
        parts.append(task.fields["note"])
    to_come = task.time_remaining if moves else None
    spent = span(task.elapsed or 0.0)
    parts.append(f"{spent}, about {span(to_come)} left" if to_come else spent)
    return " · ".join(parts)


def left(seconds: float) -> str:
    """`1:09`, `1:02:03`."""
    minutes, seconds = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def sparkline(values: Sequence[float], width: int = 8) -> str:
    """`▁▃▅▆▇█`: a row of numbers, from the smallest to the largest of them; nothing without two."""
    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2:
        return ""
    width = min(width, len(known))
    edges = [len(known) * k // width for k in range(width + 1)]
    means = [sum(known[a:b]) / (b - a) for a, b in pairwise(edges)]
    low, high = min(means), max(means)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] for value in means)


def span(seconds: float) -> str:
    """`95 s`, `12 min`, `3 h 20 min`."""
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
