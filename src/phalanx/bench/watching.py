"""What it costs to be watched: the live view, the split of the time, and where rows go besides."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from rich.console import Console
from rich.live import Live

from phalanx.stopwatch import POLICY, Stopped, Stopwatch
from phalanx.training.run import Run
from phalanx.training.trackers import Tracker
from phalanx.training.view import TrainingView

DRAWN_S = 1.0  # how often a terminal is drawn
TRIES = 10_000

P = ParamSpec("P")
T = TypeVar("T")


class Sink(Tracker):
    """A tracker that keeps nothing: rows as text is what all of them make first."""

    def __init__(self) -> None:
        self.name, self.failure, self._module = "nowhere", "", None

    def add(self, step: int, row: Mapping[str, object]) -> None:
        json.dumps(dict(row) | {"step": step})


class Counting(Stopwatch):
    """Counts how often it is asked."""

    __slots__ = ("switches",)

    def __init__(self) -> None:
        super().__init__()
        self.switches = 0

    def switch(self, part: str) -> None:
        self.switches += 1
        super().switch(part)


class Cost:
    """CPU seconds of this thread that went into some calls."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def of(self, call: Callable[P, T]) -> Callable[P, T]:
        """The same call, with its cost added."""

        def counted(*arguments: P.args, **options: P.kwargs) -> T:
            began = time.thread_time()
            try:
                return call(*arguments, **options)
            finally:
                self.seconds += time.thread_time() - began

        return counted


@contextmanager
def unwatched(run: Run) -> Iterator[None]:
    """Nobody looks, no time is told apart, and rows go to the tables only."""
    run.watch = Stopped()
    run.source.time_by(run.watch)
    run.folder.events._installed = False
    yield


@contextmanager
def watched(run: Run) -> Iterator[Callable[[], float]]:
    """A live view on a terminal that nobody sees, TensorBoard if it is installed, and a tracker.

    Yields what tells which share of its computing went into being watched so far.
    """
    run.watch = watch = Counting()
    run.source.time_by(watch)
    view, all_s, watching_s, drawn = TrainingView(run), Cost(), Cost(), 0.0
    run.tracker, events = Sink(), run.folder.events
    run.tracker.add = watching_s.of(run.tracker.add)  # type: ignore[method-assign]
    events.add = watching_s.of(events.add)  # type: ignore[method-assign]
    step, look = run.step, watching_s.of(view.look)
    with open(os.devnull, "w") as nowhere:
        console = Console(file=nowhere, force_terminal=True, width=120)
        with Live(
            console=console,
            get_renderable=view.on_terminal,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as live:
            draw = watching_s.of(live.refresh)

            def step_and_show() -> bool:
                nonlocal drawn
                did = step()
                look()
                if time.monotonic() - drawn > DRAWN_S:  # in truth by a thread of its own
                    drawn = time.monotonic()
                    draw()
                return did

            run.step = all_s.of(step_and_show)  # type: ignore[method-assign]
            yield lambda: (watching_s.seconds + watch.switches * switch_s()) / all_s.seconds


def switch_s() -> float:
    """CPU seconds of telling a stopwatch what comes next."""
    watch, began = Stopwatch(), time.thread_time()
    for _ in range(TRIES):
        watch.switch(POLICY)
    return (time.thread_time() - began) / TRIES
