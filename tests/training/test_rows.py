"""Rows reach the disk within a second, whole, and can be taken back."""

import csv
import os
import stat
import time
from pathlib import Path

import pytest

from phalanx.errors import RunError
from phalanx.training.folder import FLUSH_S, RunFolder, Table

NAMES = ("update", "return")


def rows_of(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text().splitlines()))


class Clock:
    """Time that passes when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def test_rows_are_written_a_second_after_the_last_ones_and_not_before(
    tmp_path: Path, clock: Clock
) -> None:
    assert FLUSH_S == 1
    path = tmp_path / "updates.csv"
    table = Table(path)
    table.add(NAMES, [(1, -5.0)])
    clock.now += FLUSH_S
    table.add(NAMES, [(2, -4.0)])
    assert path.read_text() == ""
    clock.now += 0.01
    table.add(NAMES, [(3, -3.0)])
    assert len(path.read_text().splitlines()) == 4
    clock.now += FLUSH_S / 2
    table.add(NAMES, [(4, -2.0)])  # a second is counted from the last time
    assert len(path.read_text().splitlines()) == 4
    table.close()
    assert len(path.read_text().splitlines()) == 5


def test_names_stand_above_the_rows_once(tmp_path: Path) -> None:
    path = tmp_path / "updates.csv"
    for number in (1, 2):  # of a run that is continued
        table = Table(path)
        table.add(NAMES, [(number, -5.0)])
        table.add(NAMES, [(number, -4.0)])
        table.close()
    assert rows_of(path) == [
        list(NAMES),
        ["1", "-5.0"],
        ["1", "-4.0"],
        ["2", "-5.0"],
        ["2", "-4.0"],
    ]


def test_a_table_goes_back_to_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "updates.csv"
    table = Table(path)
    table.add(NAMES, [(1, -5.0)])
    size = table.size()
    assert size == path.stat().st_size > 0
    table.add(NAMES, [(2, -4.0)])
    table.cut(size)
    assert table.size() == size
    table.cut(size + 100)  # the file was lost, and has fewer rows than the checkpoint knew
    assert table.size() == size
    table.add(NAMES, [(3, -3.0)])
    table.close()
    assert [row[0] for row in rows_of(path)] == ["update", "1", "3"]


def test_a_table_that_is_begun_anew_has_its_names_again(tmp_path: Path) -> None:
    path = tmp_path / "updates.csv"
    table = Table(path)
    table.add(NAMES, [(1, -5.0)])
    table.cut(0)
    table.add(NAMES, [(2, -4.0)])
    table.close()
    assert rows_of(path) == [list(NAMES), ["2", "-4.0"]]


def test_a_full_disk_is_one_line_that_says_how_to_go_on(tmp_path: Path) -> None:
    table = Table(tmp_path / "updates.csv")
    table.add(NAMES, [(1, -5.0)])
    table._file.close()
    table._file = open("/dev/full", "ab+", buffering=0)  # noqa: SIM115
    with pytest.raises(RunError, match=r"No space left.*phalanx train --resume"):
        table.flush()
    table._file.close()


def test_a_folder_in_use_is_refused_and_free_again_afterwards(tmp_path: Path) -> None:
    first = RunFolder(tmp_path / "run")
    with pytest.raises(RunError, match="in use by another process"):
        RunFolder(tmp_path / "run", goes_on=True)
    first.close()
    RunFolder(tmp_path / "run", goes_on=True).close()


def test_the_mark_of_a_folder_is_written_once(tmp_path: Path) -> None:
    for goes_on in (False, True, True):
        RunFolder(tmp_path / "run", goes_on=goes_on).close()
    assert (tmp_path / "run" / ".lock").read_text() == "a run folder of phalanx\n"


def test_a_file_where_the_folder_should_be_and_one_above_it_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is a file; give another --name"):
        RunFolder(tmp_path / "file")
    with pytest.raises(RunError, match="file"):
        RunFolder(tmp_path / "file" / "run")


def test_folders_above_a_run_are_made_with_it(tmp_path: Path) -> None:
    RunFolder(tmp_path / "a" / "b" / "run").close()
    assert (tmp_path / "a" / "b" / "run" / "checkpoints").is_dir()


def test_an_empty_folder_and_one_of_ours_are_taken(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    RunFolder(tmp_path / "run").close()
    (tmp_path / "run" / "events.out.tfevents.1").write_text("")
    RunFolder(tmp_path / "run").close()


def test_tables_are_appended_to_and_readable_by_all_that_the_umask_lets(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        Table(tmp_path / "t.csv").close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t.csv").stat().st_mode) == 0o644
