"""A picture of a run, with each of its curves in it."""

from pathlib import Path

import numpy as np
import pytest

import phalanx
from phalanx.errors import RunError
from phalanx.show.drawing.run_picture import POINTS, coarse
from phalanx.training.saved_run import SavedRun

pytest.importorskip("matplotlib")

HEADER = "update,steps,return,return_b_line,return_meander,collect_s,learn_s"


def saved(folder: Path, header: str, *rows: str) -> SavedRun:
    (folder / "config.yaml").write_text("env: cage2\n")
    (folder / "updates.csv").write_text("\n".join((header, *rows)) + "\n")
    return phalanx.open_run(folder)


def test_returns_are_drawn_by_kind_and_the_time_by_part(tmp_path: Path) -> None:
    header = HEADER + ",simulator_s,policy_s,copying_s,waiting_s"
    rows = ("1,100,-5,-4,-6,0.3,0.7,0.2,0.1,0,0.1", "2,200,-3,nan,-3,0.3,0.7,0.2,0.1,0,0.1")
    figure = saved(tmp_path, header, *rows).plot()
    left, right = figure.axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in left.get_lines()}
    assert lines == {"b_line": [[100, -4]], "meander": [[100, -6], [200, -3]]}
    areas = [one.get_label() for one in right.collections]
    assert areas == ["simulator", "policy", "waiting", "learning"]
    heights = right.dataLim.y1
    assert heights == pytest.approx(1.0)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_run_of_an_older_version_is_drawn_too(tmp_path: Path) -> None:
    figure = saved(tmp_path, HEADER, "1,100,-5,-4,-6,0.3,0.7").plot()
    assert [one.get_label() for one in figure.axes[1].collections] == ["collecting", "learning"]


def test_before_the_first_update_there_is_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="has no updates yet"):
        saved(tmp_path, HEADER).plot()


def test_long_runs_are_drawn_by_means_of_neighbours() -> None:
    assert coarse(np.arange(4.0)).tolist() == [0, 1, 2, 3]
    many = coarse(np.arange(10_000.0))
    assert len(many) == POINTS
    assert many[0] == pytest.approx(24.5)
