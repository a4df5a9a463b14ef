"""Every column and key that a run writes is explained, and no other."""

import csv
import json
from pathlib import Path

import pytest

import phalanx
from phalanx.cli.commands import main
from phalanx.training.columns import EXPLAINED, SUMMARY, entry_for, keys_of

SMALL = "--total-episodes 32 --n-envs 16 --horizon 10 --update-steps 10 --hidden 8"
RUNS = {
    "with-workflow": f"{SMALL} --observation bits --workflow all",
    "own-reward": f"{SMALL} --observation bits --reward tests.training.test_own_reward:one_less",
    "taught": f"{SMALL} --teacher react-restore --teacher-episodes 2 --teacher-steps 1",
    "impala": f"{SMALL} --algo impala --observation bits",
    "in-workers": "--env tests.odd_envs:Raises --n-envs 4 --num-workers 1 --total-steps 256 "
    "--update-steps 32 --max-restarts 10000",
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What small runs wrote: the columns of each table, the keys of summary.json."""
    folder = tmp_path_factory.mktemp("runs")
    found: dict[str, set[str]] = {name: set() for name in EXPLAINED}
    for name, flags in RUNS.items():
        assert main(["train", *flags.split(), "--name", name, "--output-dir", str(folder)]) == 0
        for table in ("updates", "episodes", "faults"):
            path = folder / name / f"{table}.csv"
            if path.exists():
                with path.open() as file:
                    found[table] |= set(next(csv.reader(file)))
        found["summary"] |= set(keys_of(json.loads((folder / name / "summary.json").read_text())))
    return found


@pytest.mark.parametrize("table", EXPLAINED)
def test_what_a_run_writes_is_explained(table: str, written: dict[str, set[str]]) -> None:
    assert sorted(one for one in written[table] if entry_for(one, EXPLAINED[table]) is None) == []


@pytest.mark.parametrize("table", EXPLAINED)
def test_what_is_explained_is_written(table: str, written: dict[str, set[str]]) -> None:
    met = {entry_for(one, EXPLAINED[table]) for one in written[table]}
    assert sorted(set(EXPLAINED[table]) - met) == []


def test_entries_are_found_by_name_and_by_pattern() -> None:
    assert entry_for("return", EXPLAINED["updates"]) == "return"
    assert entry_for("return_b_line", EXPLAINED["updates"]) == "return_*"
    assert entry_for("nothing", EXPLAINED["updates"]) is None
    facts = {"returns": {"all": {"mean": 1.0}}, "score": {"cells": []}, "notes": []}
    assert keys_of(facts) == ["returns.all.mean", "score", "notes"]
    assert entry_for("returns.all.mean", SUMMARY) == "returns.*.mean"


def test_tables_of_a_run_are_read_by_name(tmp_path: Path) -> None:
    """The tables that are explained are those that `phalanx.read_table` reads."""
    for table in ("updates", "episodes", "faults"):
        (tmp_path / f"{table}.csv").write_text(",".join(EXPLAINED[table]) + "\n")
        assert list(phalanx.read_table(tmp_path, table)) == list(EXPLAINED[table])
