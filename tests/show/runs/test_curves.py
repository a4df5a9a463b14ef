"""Curves are what the tables say: means, intervals, shares; and what is damaged is left out."""

from pathlib import Path

import numpy as np
import pytest

from phalanx.show.runs.curves import (
    ALL,
    POINTS,
    changing_columns,
    compliance_curve,
    constant_columns,
    count_episodes,
    fixes_curve,
    read_timeline,
    return_curves,
    speed_curve,
    time_shares,
)
from phalanx.show.runs.tables import read_blocks, read_numbers
from phalanx.statistics import interval
from tests.show.run_folders import make_run


def write_tables(folder: Path, updates: int, extra: str = "") -> Path:
    """A run of two kinds and two episodes of each in every update."""
    folder.mkdir()
    rows = ["update,episodes,steps,entropy,epochs,collect_s,learn_s,elapsed_s"]
    rows += [f"{u},{4 * u},{400 * u},{u / 10},4,0.25,0.5,{u}" for u in range(1, updates + 1)]
    (folder / "updates.csv").write_text("\n".join(rows) + "\n")
    rows = ["update,env,kind,length,return,workflow,fixes,compliant,alignment"]
    for u in range(1, updates + 1):
        rows += [f"{u},0,a,100,{-u},0,4,3,0", f"{u},1,a,100,{-u - 1},0,2,2,0"]
        rows += [f"{u},2,b,100,{-2 * u},0,0,0,0", f"{u},3,b,100,{-2 * u},0,2,1,0"]
    (folder / "episodes.csv").write_text("\n".join(rows) + "\n" + extra)
    return folder


def test_returns_by_kind_have_students_interval(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "run", 3)
    timeline = read_timeline(folder)
    assert timeline is not None
    curves = {one.name: one for one in return_curves(timeline, count_episodes(folder, timeline))}
    assert list(curves) == ["a", "b", ALL]
    assert curves["a"].mean.tolist() == [-1.5, -2.5, -3.5]
    assert curves["b"].low.tolist() == curves["b"].mean.tolist() == [-2.0, -4.0, -6.0]
    expected = interval([-2.0, -3.0, -4.0, -4.0])
    at = curves[ALL]
    assert (at.mean[1], at.low[1], at.high[1]) == pytest.approx(
        (expected["mean"], expected["low"], expected["high"])
    )
    assert at.x.tolist() == [4, 8, 12]


def test_many_updates_become_points_of_several(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "run", 1000)
    timeline = read_timeline(folder)
    assert timeline is not None
    entropy = timeline.mean("entropy")
    assert len(entropy.mean) == POINTS
    first = np.arange(1, 10) / 10  # nine updates are the first of 120 points
    assert (entropy.mean[0], entropy.low[0], entropy.high[0]) == pytest.approx(
        (first.mean(), 0.1, 0.9)
    )
    total = count_episodes(folder, timeline).of(ALL, "count").sum()
    assert total == 4000


def test_compliance_is_pooled_over_fixes(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "run", 2)
    timeline = read_timeline(folder)
    assert timeline is not None
    moments = count_episodes(folder, timeline)
    curve = compliance_curve(timeline, moments)
    assert curve.mean.tolist() == [6 / 8, 6 / 8]
    fixes, obeyed = np.array([4.0, 2, 0, 2]), np.array([3.0, 2, 0, 1])
    error = np.sqrt(4 / 3 * ((obeyed - 0.75 * fixes) ** 2).sum()) / 8
    assert curve.low[0] == pytest.approx(0.75 - 3.182446 * error)
    assert curve.high[0] == pytest.approx(min(1.0, 0.75 + 3.182446 * error))
    assert fixes_curve(timeline, moments).mean.tolist() == [2.0, 2.0]


def test_speed_and_shares_of_time(tmp_path: Path) -> None:
    timeline = read_timeline(write_tables(tmp_path / "run", 4))
    assert timeline is not None
    speed = speed_curve(timeline)
    assert speed is not None
    assert (speed.name, speed.mean[1:].tolist()) == ("episodes/s", [4.0, 4.0, 4.0])
    shares = {one.name: one.mean[2] for one in time_shares(timeline)}
    assert shares == {"collect": 0.25, "learning": 0.5, "other": 0.25}
    assert list(changing_columns(timeline)) == ["entropy"]
    assert constant_columns(timeline) == {"epochs": 4.0}


def test_a_finer_split_does_not_count_sampling_twice(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "updates.csv").write_text(
        "update,collect_s,learn_s,simulator_s,policy_s,waiting_s,elapsed_s\n"
        "1,0.5,0.4,0.2,0.2,0.2,1\n2,0.5,0.4,0.2,0.2,0.2,2\n"
    )
    timeline = read_timeline(folder)
    assert timeline is not None
    shares = {one.name: one.mean[1] for one in time_shares(timeline)}
    assert shares == pytest.approx(
        {"simulator": 0.2, "policy": 0.2, "waiting": 0.2, "learning": 0.4, "other": 0.0}
    )


def test_progress_is_counted_in_steps_where_episodes_are_not_all_as_long(tmp_path: Path) -> None:
    timeline = read_timeline(write_tables(tmp_path / "equal", 5))
    assert timeline is not None
    assert timeline.axis == "episodes"
    folder = tmp_path / "unequal"
    folder.mkdir()
    rows = ["1,50,1000,1", "2,60,2000,2", "3,62,3000,3"]
    (folder / "updates.csv").write_text(
        "update,episodes,steps,elapsed_s\n" + "\n".join(rows) + "\n"
    )
    timeline = read_timeline(folder)
    assert timeline is not None
    assert (timeline.axis, timeline.x.tolist()) == ("steps", [1000, 2000, 3000])
    speed = speed_curve(timeline)
    assert speed is not None
    assert (speed.name, speed.mean[1]) == ("steps/s", 1000.0)


def test_damaged_rows_and_half_of_the_last_are_left_out(tmp_path: Path) -> None:
    extra = "3,0,a,100\n\0\0,,\n2,0,a,100,not a number,0,1,1,0\n9999,0,a,100,-5,0,1,1,0\n2,0,a,10"
    folder = write_tables(tmp_path / "run", 3, extra)
    timeline = read_timeline(folder)
    assert timeline is not None
    assert count_episodes(folder, timeline).of(ALL, "count").tolist() == [4, 4, 4]


def test_a_table_without_a_row_has_no_timeline(tmp_path: Path) -> None:
    (tmp_path / "updates.csv").write_text("update,episodes\n")
    assert read_timeline(tmp_path) is None
    (tmp_path / "updates.csv").write_text("")
    assert read_timeline(tmp_path) is None


def test_columns_of_words_are_no_numbers_and_missing_ones_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,when,b\n1,2026-01-01,nan\n2,"x,y",\n')
    numbers = read_numbers(tmp_path / "t.csv")
    assert list(numbers) == ["a", "b"]
    assert np.isnan(numbers["b"]).all()
    (block,) = read_blocks(tmp_path / "t.csv", ("when", "c"), words=("when",))
    assert block["when"].tolist() == ["2026-01-01", "x,y"]


def test_a_run_of_one_update_is_one_point(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", updates=1)
    timeline = read_timeline(folder)
    assert timeline is not None
    (_a, _b, every) = return_curves(timeline, count_episodes(folder, timeline))
    assert len(every.mean) == 1
    assert speed_curve(timeline) is None
    assert time_shares(timeline) == []
