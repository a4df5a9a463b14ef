"""How far long work is: lines in a file, one line in a notebook, nothing where nobody asked."""

import io
import re
import sys
import time
from contextlib import redirect_stderr
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from phalanx import display
from phalanx.display import Display, left, progress_display, span, sparkline


def wait_for(is_so: Any) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines follow each other as if ten seconds were over at once."""
    monkeypatch.setattr(display._InFile, "first_s", 0.0)
    monkeypatch.setattr(display._InFile, "every_s", 0.01)


def test_a_pipe_gets_lines_that_say_how_far_it_is(at_once: None) -> None:
    # What pytest captures cannot be read while a thread writes.
    with redirect_stderr(io.StringIO()) as errors, progress_display("cases") as progress:
        progress.say("measuring 40 cases")
        task = progress.add_task("starting", total=40, note="")
        for k in range(20):
            progress.update(task, advance=1, description=f"case {k}", note="return -3.1")
            time.sleep(0.001)
        wait_for(lambda: errors.getvalue().count("20 of 40") >= 2)
    said = errors.getvalue()
    lines = [line for line in said.splitlines() if "20 of" in line]
    assert said.startswith("measuring 40 cases\n")
    assert re.fullmatch(
        r"case 19: 50% · 20 of 40 cases · [\d,]+ cases/s · return -3.1 · \d+ s, about \d+ s left",
        lines[0],
    )
    assert re.search(r" · return -3.1 · \d+ s$", lines[1])  # nothing moves: nobody knows how long


def test_lines_come_without_updates_too(at_once: None) -> None:
    with redirect_stderr(io.StringIO()) as errors, progress_display(None) as progress:
        task = progress.add_task("preparing", total=None, note="")
        progress.update(task, description="compiling")
        wait_for(lambda: errors.getvalue().count("\n") >= 3)
    assert errors.getvalue().startswith("compiling · 0 s\n")


def test_short_work_and_work_that_is_refused_say_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress_display("episodes") as progress:
        task = progress.add_task("playing", total=2, note="")
        progress.update(task, advance=1)
    monkeypatch.setattr(display._InFile, "first_s", 0.0)
    with progress_display("episodes") as progress:
        progress.add_task("playing", total=2, note="")
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_what_nobody_reads_any_more_does_not_stop_the_work(
    at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        tries = 0

        def write(self, text: str) -> None:
            self.tries += 1
            raise BrokenPipeError

        def flush(self) -> None: ...

    gone = Gone()
    monkeypatch.setattr(sys, "stderr", gone)
    with progress_display(None) as progress:
        progress.say("training")
        progress.update(progress.add_task("training", total=1.0, note=""), completed=0.5)
        wait_for(lambda: gone.tries > 3)


# --- notebooks ------------------------------------------------------------------------------------


class Cell:
    """What a notebook shows below a cell: one output, shown and then written over."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.html: list[str] = []

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> "Cell":
        assert raw
        assert display_id
        assert not self.shown
        self.update(content, raw=raw)
        return self

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(content["text/plain"])
        self.html.append(content.get("text/html", ""))


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """As if a kernel of Jupyter ran this."""
    found = Cell()
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    ipython.display = ModuleType("IPython.display")
    ipython.display.display = found.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return found


def test_a_notebook_shows_it_in_the_cell_without_being_asked(
    cell: Cell, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_display("episodes", wanted=None) as progress:
        progress.say("playing the nine cells")
        task = progress.add_task("playing", total=10, note="")
        progress.update(task, completed=5)
        wait_for(lambda: "50%" in cell.shown[-1])
        progress.update(task, completed=10)
    assert cell.shown[0] == "playing the nine cells"
    assert cell.shown[-1].startswith("playing the nine cells\nplaying: 100% · 10 of 10 episodes")
    assert capsys.readouterr() == ("", "")


def test_a_script_shows_nothing_without_being_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_display(None, wanted=None) as progress:
        progress.say("training")
        assert type(progress) is Display
        assert not progress.is_shown
    assert capsys.readouterr() == ("", "")


def test_a_notebook_can_be_told_to_show_nothing(cell: Cell) -> None:
    with progress_display(None, wanted=False) as progress:
        progress.say("training")
    assert cell.shown == []


def test_spans_of_time_are_told_in_the_unit_that_one_would_say() -> None:
    assert [span(seconds) for seconds in (3.4, 119, 125, 7140, 12_000)] == [
        "3 s",
        "119 s",
        "2 min",
        "119 min",
        "3 h 20 min",
    ]


# --- views of one's own ---------------------------------------------------------------------------


class Face:
    """How work is going, as whoever does it draws it."""

    def on_terminal(self) -> str:
        return "on a terminal"

    def in_file(self) -> str:
        return "in a file"

    def in_cell(self) -> str:
        return "<b>in a cell</b>"


def test_a_view_draws_itself_in_a_file(at_once: None) -> None:
    with redirect_stderr(io.StringIO()) as errors, progress_display(None, view=Face()) as progress:
        progress.update(progress.add_task("training", total=1.0, note=""))
        wait_for(lambda: errors.getvalue().count("in a file\n") >= 2)


def test_a_view_draws_itself_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(display, "Console", lambda stderr: console)
    with progress_display(None, view=Face()) as progress:
        progress.say("it begins")
        progress.refresh()
    assert "on a terminal" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "it begins" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_view_draws_itself_in_a_notebook_and_what_is_said_is_text(cell: Cell) -> None:
    with progress_display(None, wanted=None, view=Face()) as progress:
        progress.say("run folder <script>")
        progress.update(progress.add_task("training", total=1.0, note=""))
    assert cell.shown[-1] == "run folder <script>\nin a file"
    assert cell.html[-1] == "<div>run folder &lt;script&gt;</div><b>in a cell</b>"


def test_time_left_is_told_as_on_a_clock() -> None:
    assert [left(s) for s in (-3, 9.4, 69, 3723)] == ["0:00", "0:09", "1:09", "1:02:03"]


def test_a_row_of_numbers_is_drawn_from_its_smallest_to_its_largest() -> None:
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8]) == "▁▂▃▄▅▆▇█"
    assert sparkline([-10, -10, 0, 0], width=2) == "▁█"
    assert sparkline([3.0, 3.0, 3.0]) == "▁▁▁"
    assert sparkline([float("nan"), 1.0]) == ""
    assert len(sparkline(range(1000))) == 8
