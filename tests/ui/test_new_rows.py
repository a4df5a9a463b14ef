"""Curves of a running training: each row is given once, whatever happens to the table."""

import os
from pathlib import Path

import pytest

from phalanx.ui.new_rows import new_rows


def written(path: Path, count: int, first: int = 0, factor: float = 0.5) -> None:
    lines = [f"{k},{factor * k},2026-11-17T15:10:43Z\n" for k in range(first, first + count)]
    with path.open("a") as file:
        file.write("".join(lines))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "updates.csv"
    path.write_text("update,return,wall_time\n")
    return path


def test_each_row_is_given_once(table: Path) -> None:
    written(table, 3)
    first = new_rows(table)
    assert first.names == ["update", "return", "wall_time"]
    assert first.rows == [[0, 0, None], [1, 0.5, None], [2, 1, None]]
    assert (first.anew, first.more) == (True, False)
    assert new_rows(table, first.at)._replace(at="") == (first.names, [], "", False, False)
    written(table, 2, 3)
    second = new_rows(table, first.at)
    assert [row[0] for row in second.rows] == [3, 4]
    assert not second.anew


def test_half_a_row_waits_for_its_other_half(table: Path) -> None:
    written(table, 2)
    with table.open("a") as file:
        file.write("2,1.")
    first = new_rows(table)
    assert len(first.rows) == 2
    with table.open("a") as file:
        file.write("5,x\n")
    assert new_rows(table, first.at).rows == [[2, 1.5, None]]


def test_a_long_table_comes_in_parts(table: Path) -> None:
    written(table, 500)
    at, seen, parts = "", list[float | None](), 0
    while True:
        part = new_rows(table, at, most_bytes=1000)
        seen += [row[0] for row in part.rows]
        at, parts = part.at, parts + 1
        if not part.more:
            break
    assert seen == list(range(500))
    assert parts > 10


def test_a_table_that_was_cut_begins_anew(table: Path) -> None:
    """Also if it has grown beyond what was there: a run went back to its checkpoint."""
    written(table, 10)
    at = new_rows(table).at
    for count in (5, 10, 50):
        table.write_text("update,return,wall_time\n")
        written(table, count, factor=0.25)
        again = new_rows(table, at)
        assert again.anew
        assert len(again.rows) == count


@pytest.mark.parametrize("at", ["x", "-1", "5", "99999-00000000", "1e3-0", "٣-0", "9" * 5000])
def test_a_position_that_nobody_gave_is_the_beginning(table: Path, at: str) -> None:
    written(table, 2)
    assert new_rows(table, at).anew
    assert len(new_rows(table, at).rows) == 2


def test_damaged_rows_are_left_out(table: Path) -> None:
    with table.open("ab") as file:
        file.write(b"1,nan,a\n1,2\n\xff\xfe,inf,\0\n" + b'"' + b"4,4,4\n")
    assert [row[:2] for row in new_rows(table).rows][:2] == [[1, None], [None, None]]


def test_an_empty_table_and_one_without_a_whole_header_have_no_rows(tmp_path: Path) -> None:
    for content in ("", "update,ret"):
        (tmp_path / "updates.csv").write_text(content)
        assert new_rows(tmp_path / "updates.csv").rows == []


def test_links_and_pipes_are_refused(table: Path, tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(table)
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("link.csv", "pipe.csv", "nothing.csv"):
        with pytest.raises(OSError):  # noqa: PT011
            new_rows(tmp_path / name)
