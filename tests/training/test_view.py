"""How a run is going, on a terminal, in a file and in a notebook."""

import io
import math
import re
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from phalanx.stopwatch import PARTS, Stopwatch
from phalanx.training import view as views
from phalanx.training.update_record import Episode
from phalanx.training.view import Curve, TrainingView


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def strftime(self, form: str) -> str:
        return "12:04:10"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(views, "time", clock)
    return clock


def running(**changes: Any) -> Any:
    """A run of which 62 % are done, and that has seen two kinds of attackers often."""
    seconds = dict.fromkeys(PARTS, 0.0) | {"simulator": 9.0, "policy": 14.0, "learning": 75.0}
    watch = Stopwatch()
    watch.seconds = seconds | {"logging": 2.0}
    kinds = ("b_line", "meander", "sleep", "coin")
    recent = [Episode(0, "b_line", 30, -10.0), Episode(0, "b_line", 30, -10.8)] * 10
    recent += [Episode(0, "meander", 30, -13.5)] * 20
    recent += [Episode(0, "sleep", 30, 0.0), Episode(0, "coin", 30, -4.0)]
    run = SimpleNamespace(
        updates=3,
        progress=0.62,
        episodes=124_000,
        steps=12_400_000,
        recent=recent,
        spent_s=119.0,
        seconds=watch.seconds,
        watch=watch,
        workers=None,
        latest={},
        warnings=list,
        source=SimpleNamespace(samplers=[SimpleNamespace(watch=watch)]),
        config=SimpleNamespace(total_steps=None, algo="ppo"),
        folder=SimpleNamespace(path=SimpleNamespace(name="first")),
        extension=SimpleNamespace(kinds=kinds, in_words=lambda recent: {}),
    )
    run.__dict__.update(changes)
    return run


def viewed(clock: Clock, **changes: Any) -> TrainingView:
    run = running(progress=0.0, updates=0)
    view = TrainingView(run)
    run.__dict__.update(running(**changes).__dict__)
    for step in (-30.0, -20.0, -10.0):
        run.latest = {"return_b_line": step, "return_meander": step / 2, "return_coin": math.nan}
        view.look()
    clock.now += 100.0
    view.look()
    return view


def drawn(view: TrainingView, width: int = 120) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(view.on_terminal())
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return [line.rstrip() for line in lines]


def test_a_terminal_shows_progress_returns_and_where_the_time_goes(clock: Clock) -> None:
    progress, returns, speed = drawn(viewed(clock))
    assert re.fullmatch(
        r"training  first · ppo · b_line, meander, sleep, coin +[━╸╺]+ +62 %  1:01 left", progress
    )
    assert returns == (
        "return    b_line \N{MINUS SIGN}10.4 ▁▅██   meander \N{MINUS SIGN}13.5 ▁▅██   2 others "
        "\N{MINUS SIGN}2.0   (last 42 episodes, ± 25.4)"
    )
    assert speed == (
        "speed     1,042 episodes/s · simulator 9 % · policy 14 % · learning 75 % · other 2 %"
    )


def test_a_narrow_terminal_has_as_many_lines(clock: Clock) -> None:
    lines = drawn(viewed(clock), width=60)
    assert len(lines) == 3
    assert all(len(line) <= 60 for line in lines)


def test_a_file_gets_the_same_in_one_line_with_the_time_of_day(clock: Clock) -> None:
    assert viewed(clock).in_file() == (
        "12:04:10  62 %  124,000 episodes  1,042/s  b_line -10.4  meander -13.5  2 others -2.0  "
        "± 25.4  simulator 9 %  policy 14 %  learning 75 %  other 2 %  1:01 left"
    )


def test_a_notebook_gets_a_bar_and_a_table_in_which_names_stay_text(clock: Clock) -> None:
    folder = SimpleNamespace(path=SimpleNamespace(name="<script>alert(1)</script>"))
    page = viewed(clock, folder=folder, warnings=lambda: ["3 failures"]).in_cell()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; · ppo" in page
    assert "<progress value='0.6200' max='1'>" in page
    for words in ("1:01 left", "1,042 episodes/s", "simulator 9 %", "3 failures"):
        assert words in page


def test_before_the_first_update_only_the_time_is_told(clock: Clock) -> None:
    view = TrainingView(running(updates=0, progress=0.0))
    clock.now += 12.0
    view.look()
    assert view.in_file() == "12:04:10  before its first update, 12 s"
    assert drawn(view)[1].strip() == "before its first update, 12 s"
    assert view.in_cell() == "<div>before its first update, 12 s</div>"


def test_time_left_is_counted_down_between_updates_and_never_below_nothing(clock: Clock) -> None:
    view = viewed(clock)
    clock.now += 31.0
    assert view.in_file().endswith("0:30 left")
    clock.now += 500.0
    assert view.in_file().endswith("0:00 left")


def test_a_run_that_goes_on_knows_how_long_it_takes_from_there(clock: Clock) -> None:
    run = running(progress=0.5)
    view = TrainingView(run)
    run.progress = 0.6
    clock.now += 10.0
    view.look()
    assert view.in_file().endswith("0:40 left")  # not 10 s * 0.4 / 0.6


def test_facts_are_brought_up_to_date_once_a_second_at_most(clock: Clock) -> None:
    view = viewed(clock)
    first = view.facts
    clock.now += 0.1
    view.look()
    assert view.facts is first
    view.look(at_once=True)
    assert view.facts is not first
    clock.now += 1.0
    second = view.facts
    view.look()
    assert view.facts is not second


def test_samplers_that_play_ahead_have_a_line_of_their_own(clock: Clock) -> None:
    watch = Stopwatch()
    watch.seconds = dict.fromkeys(PARTS, 0.0) | {"simulator": 7.0e6, "idle": 3.0e6}
    source = SimpleNamespace(samplers=[SimpleNamespace(watch=watch)])
    assert drawn(viewed(clock, source=source))[3] == "samplers  simulator 70 % · other 30 %"


def test_what_the_game_adds_and_warnings_have_lines_too(clock: Clock) -> None:
    extension = SimpleNamespace(kinds=("b_line", "meander", "sleep", "coin"))
    extension.in_words = lambda recent: {"reward": "mine -3 ± 1", "workflow": "compliance 93.1%"}
    view = viewed(clock, extension=extension, warnings=lambda: ["2 failures, see faults.csv"])
    assert drawn(view)[3:] == [
        "reward    mine -3 ± 1",
        "workflow  compliance 93.1%",
        "warning   2 failures, see faults.csv",
    ]
    assert "  mine -3 ± 1  compliance 93.1%  " in view.in_file()
    assert "reward</th>" in view.in_cell()
    assert view.in_file().endswith("1:01 left  2 failures, see faults.csv")


def test_a_curve_is_coarser_the_longer_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "POINTS", 2)
    curve = Curve()
    for value in (1.0, 3.0, math.nan, 5.0, 7.0):
        curve.add(value)
    assert curve.points == [2.0, 6.0]
    curve.add(10.0)
    assert curve.points == [2.0, 6.0]  # half of the next
    curve.add(12.0)
    assert curve.points == [2.0, 6.0, 11.0]
