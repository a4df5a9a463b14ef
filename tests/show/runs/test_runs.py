"""A list of runs: what lies in a folder, how far it is, and that damage is a row that says so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.cli.commands import main
from phalanx.errors import ConfigError, RunError
from phalanx.show.runs.runs import RunRow, list_runs, read_run, sorted_rows
from phalanx.training.folder import RunFolder
from tests.show.run_folders import make_run, make_search, make_sweep, mark


def by_name(folder: Path) -> dict[str, RunRow]:
    return {row.name: row for row in list_runs(folder)}


def test_runs_searches_and_sweeps_are_found_with_what_they_brought(tmp_path: Path) -> None:
    make_run(tmp_path / "first", seed=3)
    make_search(tmp_path / "deep" / "orders")
    make_sweep(tmp_path / "grid")
    rows = by_name(tmp_path)
    first, orders, grid = rows["first"], rows["deep/orders"], rows["grid"]
    assert (first.kind, first.state, first.env, first.algo) == ("run", "finished", "cage2", "ppo")
    assert (first.episodes, first.seed, first.mean, first.low) == (120, 3, -10.0, -10.2)
    assert (orders.kind, orders.state, orders.mean, orders.high) == (
        "search",
        "finished",
        -18.0,
        -17.5,
    )
    assert (grid.kind, grid.state, grid.mean) == ("sweep", "finished", -10.5)
    assert rows["grid/0-learning_rate=1e-3/seed=0"].mean == -10.0
    assert len(rows) == 6


def test_a_folder_that_is_a_run_is_listed_by_its_own_name(tmp_path: Path) -> None:
    assert list(by_name(make_run(tmp_path / "alone"))) == ["alone"]


def test_a_killed_run_is_told_from_its_tables(tmp_path: Path) -> None:
    row = read_run(make_run(tmp_path / "killed", state=None, level=-7.0))
    assert (row.state, row.updates, row.episodes, row.progress) == ("crashed", 6, 120, 1.0)
    assert row.mean == pytest.approx(-7.0 - 5 * 5 / 12)
    assert (row.low or 0.0) < -9.0 < (row.high or -99.0)
    assert row.seconds == pytest.approx(0.6)


def test_a_run_that_is_locked_runs_whatever_its_old_summary_says(tmp_path: Path) -> None:
    path = make_run(tmp_path / "resumed", state="stopped")
    assert read_run(path).state == "stopped"
    folder = RunFolder(path, goes_on=True)
    # Another process asks: within one, a second descriptor of the file tells nothing new.
    code = (
        "from phalanx.show.runs.runs import *; import sys; print(read_run(Path(sys.argv[1])).state)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "running"
    folder.close()
    assert read_run(path).state == "stopped"


def test_damage_is_a_row_that_says_so(tmp_path: Path) -> None:
    make_run(tmp_path / "a").joinpath("summary.json").write_text('{"state": "fini')
    make_run(tmp_path / "b").joinpath("config.yaml").write_text("env: [cage2")
    empty = make_run(tmp_path / "c", state=None)
    (empty / "updates.csv").write_bytes(b"\x00\xff\xfe garbage\n,,,\n")
    mark(tmp_path / "d")
    make_run(tmp_path / "e").joinpath("summary.json").write_text('{"state": 3}')
    make_run(tmp_path / "f", state=None).joinpath("updates.csv").unlink()
    make_run(tmp_path / "h").joinpath("summary.json").write_text(
        '{"state": "finished", "returns": {"all": [NaN]}, "episodes": NaN, "seconds": Infinity}'
    )
    os.mkfifo(make_run(tmp_path / "g", state=None) / "summary.json")
    rows = by_name(tmp_path)
    assert (rows["a"].state, rows["a"].note) == ("damaged", "summary.json cannot be read")
    assert rows["a"].episodes == 120  # from the tables
    assert (rows["b"].state, rows["b"].note) == ("damaged", "config.yaml cannot be read")
    assert (rows["c"].state, rows["c"].note) == ("crashed", "updates.csv has no whole row")
    assert (rows["d"].state, rows["d"].mean) == ("crashed", None)
    assert rows["d"].note == "it has no config.yaml yet: nothing was begun; it has no update yet"
    assert (rows["e"].note, rows["e"].episodes) == ("summary.json cannot be read", 120)
    assert rows["f"].note == "it has no update yet"
    assert rows["g"].note == "summary.json cannot be read"
    assert (rows["h"].state, rows["h"].mean, rows["h"].episodes) == ("finished", None, None)
    json.dumps([row.as_dict() for row in rows.values()], allow_nan=False)


def test_the_half_of_a_row_that_is_on_its_way_is_not_read(tmp_path: Path) -> None:
    path = make_run(tmp_path / "young", state=None)
    with (path / "updates.csv").open("a") as file:
        file.write("7,14")
    assert read_run(path).updates == 6


def test_links_and_hidden_folders_are_not_followed(tmp_path: Path) -> None:
    make_run(tmp_path / "elsewhere" / "run")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "elsewhere")
    make_run(inside / ".hidden" / "run")
    assert list_runs(inside) == []


def test_best_first_by_any_column_and_what_has_none_last(tmp_path: Path) -> None:
    make_run(tmp_path / "low", level=-30.0)
    make_run(tmp_path / "high", level=-3.0)
    mark(tmp_path / "bare")
    rows = list_runs(tmp_path)
    assert [row.name for row in sorted_rows(rows, "return")] == ["high", "low", "bare"]
    assert [row.name for row in sorted_rows(rows, "name")] == ["bare", "high", "low"]
    with pytest.raises(ConfigError, match="no column 'colour'; sort by one of return, score"):
        sorted_rows(rows, "colour")


def test_a_folder_that_is_not_there_is_one_line() -> None:
    with pytest.raises(RunError, match="there is no folder nowhere"):
        list_runs(Path("nowhere"))


def test_a_list_needs_no_numba(tmp_path: Path) -> None:
    make_run(tmp_path / "first")
    code = (
        "import sys; from phalanx.cli.commands import main; code = main(['runs', sys.argv[1]]);"
        "sys.exit(code or 'numba' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, capture_output=True)


def test_the_command_prints_a_table_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "[red]first", seed=3)
    make_run(tmp_path / "second", state=None, level=-3.0)
    assert main(["runs", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[:3] == ["second", "crashed", "cage2"]
    assert "[red]first" in lines[4]
    assert "-10.00 ± 0.20" in lines[4]
    assert main(["runs", str(tmp_path), "--json", "--sort", "name"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["[red]first", "second"]
    assert main(["runs", str(tmp_path), "--sort", "colour"]) == 2
    assert "unknown sort 'colour'" in capsys.readouterr().err
