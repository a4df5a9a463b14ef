"""The tables of a run folder as arrays."""

from pathlib import Path

import numpy as np
import pytest

import phalanx
from phalanx.errors import RunError


def test_columns_are_numbers_where_they_can_be(tmp_path: Path) -> None:
    rows = "1,-3.5,b_line,\n2,nan,meander,all\n"
    (tmp_path / "episodes.csv").write_text("update,return,kind,workflow\n" + rows)
    columns = phalanx.read_table(tmp_path, "episodes")
    assert columns["update"].dtype == np.int64
    np.testing.assert_array_equal(columns["return"], [-3.5, np.nan])
    assert columns["kind"].tolist() == ["b_line", "meander"]
    assert columns["workflow"].tolist() == ["", "all"]


def test_a_row_that_is_being_written_is_left_for_later(tmp_path: Path) -> None:
    (tmp_path / "updates.csv").write_text("update,steps\n1,10\n2,1")
    assert phalanx.read_table(tmp_path)["update"].tolist() == [1]
    (tmp_path / "updates.csv").write_text("")
    assert phalanx.read_table(tmp_path) == {}


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot read .*updates.csv: No such file"):
        phalanx.read_table(tmp_path)
