"""Where the time of a run goes, in all ways of running."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.stopwatch import PARTS
from phalanx.training.checkpoint import save_checkpoint
from phalanx.training.config import TrainConfig
from phalanx.training.folder import RunFolder, Table, read_table
from phalanx.training.loop import train
from phalanx.training.time_split import is_split, old_split_as_new
from phalanx.training.update_record import IN_ROWS

GAME: dict[str, Any] = {
    "num_envs": 64,
    "total_steps": 64 * 20 * 4,
    "update_steps": 20,
    "horizon": 20,
    "hidden": (8,),
    "observation": "bits",
}
POLE: dict[str, Any] = {"env": "CartPole-v1", "num_envs": 4, "total_steps": 4 * 128 * 3}

WAYS: dict[str, tuple[dict[str, Any], set[str], dict[str, set[str]]]] = {
    "in step": (
        GAME | {"num_threads": 2},
        {"simulator", "policy", "learning", "logging"},
        {"thread 1": {"idle"}},  # it may come too late for all of it
    ),
    "torch": (GAME | {"learner": "torch"}, {"simulator", "policy", "learning", "logging"}, {}),
    "ahead": (
        GAME | {"algo": "impala", "num_samplers": 2, "num_threads": 1},
        {"waiting", "learning", "logging"},
        {"sampler 0": {"simulator", "policy", "idle"}, "sampler 1": {"simulator", "policy"}},
    ),
    "pool here": (
        POLE | {"num_workers": 0, "overlap": False, "num_threads": 1},
        {"simulator", "policy", "copying", "learning", "logging"},
        {},
    ),
    "pool of workers": (
        POLE | {"num_workers": 2, "num_threads": 1},
        {"waiting", "learning", "logging"},
        {
            "sampler 0": {"policy", "copying", "waiting"},
            "worker 0": {"simulator", "idle"},
            "worker 1": {"simulator", "idle"},
        },
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_parts_are_told_apart_and_sum_to_all(tmp_path: Path, way: str) -> None:
    changes, own, elsewhere = WAYS[way]
    run = train(TrainConfig(output_dir=tmp_path, name="run", **changes))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    split, others = summary["time_split"], summary["time_split_elsewhere"]
    assert tuple(split) == PARTS
    assert sum(split.values()) == pytest.approx(1)
    assert min(split.values()) > -1e-9
    assert {part for part, share in split.items() if share > 0} >= own
    assert others.keys() == elsewhere.keys()
    for name, parts in elsewhere.items():
        assert sum(others[name].values()) == pytest.approx(1)
        assert {part for part, share in others[name].items() if share > 0} >= parts
    updates = run.read_updates()
    assert updates["learn_s"].sum() > 0
    told = sum(updates[f"{part}_s"].sum() for part in IN_ROWS if part != "logging")
    spent = sum(run.seconds.values()) - run.seconds["learning"] - run.seconds["logging"]
    assert told == pytest.approx(spent, rel=1e-3, abs=1e-3)
    assert updates["logging_s"][0] == 0  # what the first row took is told by the second
    assert (updates["logging_s"][1:] > 0).all()


def test_the_time_of_checkpoints_is_logging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(path: Path, arrays: Any, facts: Any) -> None:
        time.sleep(0.2)
        save_checkpoint(path, arrays, facts)

    monkeypatch.setattr("phalanx.training.checkpoint.save_checkpoint", slowly)
    run = train(TrainConfig(output_dir=tmp_path, name="run", **GAME | {"checkpoint_every": 2}))
    assert run.seconds["logging"] > 0.4


# --- what was begun with an older version ---------------------------------------------------------

OLD = {"collect": 3.0, "learn": 6.0, "other": 1.0}


def test_parts_of_old_runs_keep_their_meaning() -> None:
    new = {"collecting": 3.0, "learning": 6.0, "logging": 1.0}
    assert old_split_as_new(OLD) == new
    assert old_split_as_new(dict.fromkeys(PARTS, 1.0)) == dict.fromkeys(PARTS, 1.0)
    assert is_split(OLD)
    assert is_split(dict.fromkeys(PARTS, 1.0) | new)
    assert not is_split({"collect": 1.0})
    assert not is_split(dict.fromkeys(PARTS, 1.0) | {"more": 1.0})


def test_a_run_of_an_older_version_goes_on_as_if_nothing_had_changed(tmp_path: Path) -> None:
    constant = {"final_learning_rate": 1e-3, "final_entropy": 0.01, "restore_curriculum": 0.0}
    settings = GAME | constant | {"output_dir": tmp_path}
    whole = train(TrainConfig(name="whole", **settings))
    train(TrainConfig(name="old", **settings | {"total_steps": 64 * 20 * 2}))
    folder = tmp_path / "old"
    make_old(folder)
    run = train(TrainConfig(resume=folder, **settings))
    assert np.array_equal(run.learner.save()[0]["theta"], whole.learner.save()[0]["theta"])
    assert run.seconds["collecting"] == 3.0
    assert run.seconds["learning"] > 6.0
    summary = json.loads((folder / "summary.json").read_text())
    assert sum(summary["time_split"].values()) == pytest.approx(1)
    table = read_table(folder)
    assert table["update"].tolist() == [1, 2, 3, 4]
    assert "policy_s" not in table
    assert table["wall_time"][3].endswith("Z")


def make_old(folder: Path) -> None:
    """As a run looked before its time was told by part."""
    with np.load(folder / "checkpoints" / "last.npz") as file:
        arrays = {name: file[name] for name in file if name not in ("facts", "digest")}
        facts = json.loads(file["facts"].tobytes())
    lines = (folder / "updates.csv").read_text().splitlines()
    names = lines[0].split(",")
    keep = [k for k, name in enumerate(names) if name not in {f"{part}_s" for part in IN_ROWS}]
    rows = [",".join(line.split(",")[k] for k in keep) for line in lines]
    text = "".join(f"{row}\r\n" for row in rows)
    (folder / "updates.csv").write_bytes(text.encode())
    facts["tables"]["updates"] = len(text)
    save_checkpoint(folder / "checkpoints" / "last.npz", arrays, facts | {"seconds": OLD})


def test_a_table_keeps_the_columns_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,gone\r\n1,2,3\r\n")
    table = Table(tmp_path / "t.csv")
    table.add(("b", "new", "a"), [(5, 6, 4)])
    table.close()
    assert (tmp_path / "t.csv").read_text().split() == ["a,b,gone", "1,2,3", "4,5,"]


def test_a_table_that_is_cut_to_nothing_begins_anew(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    table = folder.table("updates")
    table.add(("a",), [(1,)])
    table.cut(0)
    table.add(("b", "a"), [(2, 3)])
    folder.close()
    assert (tmp_path / "run" / "updates.csv").read_text().split() == ["b,a", "2,3"]
