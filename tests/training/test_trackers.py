"""Trackers hear what updates.csv has, and never end a run."""

import csv
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from phalanx.cli.commands import main
from phalanx.errors import ConfigError, MissingError
from phalanx.settings.flags import from_file
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.trackers import Tracker, check_tracker

SMALL: dict[str, Any] = {
    "num_envs": 16,
    "total_steps": 16 * 20 * 3,
    "update_steps": 20,
    "horizon": 20,
    "hidden": (8,),
    "observation": "bits",
}


class Fake(ModuleType):
    """The calls of wandb and trackio that we use, and what they were given."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = object()  # type: ignore[assignment]
        self.begun: dict[str, Any] = {}
        self.rows: list[tuple[int, dict[str, Any]]] = []
        self.finished = 0
        self.fails_at = ""

    def _may_fail(self, call: str) -> None:
        if call == self.fails_at:
            raise OSError("the network\nis down")

    def init(self, *, project: str, name: str, config: dict[str, Any], resume: str) -> None:
        self._may_fail("init")
        self.begun = {"project": project, "name": name, "config": config}

    def log(self, row: dict[str, Any], step: int) -> None:
        self._may_fail("log")
        self.rows.append((step, row))

    def finish(self) -> None:
        self._may_fail("finish")
        self.finished += 1


@pytest.fixture(params=["wandb", "trackio"])
def fake(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fake:
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    fake = Fake(request.param)
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    return fake


def test_a_tracker_hears_the_columns_of_updates_csv(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phalanx.training.run.TOLD_EVERY_S", 0.0)
    run = train(TrainConfig(output_dir=tmp_path, name="mine", track=fake.__name__, **SMALL))
    assert (fake.begun["project"], fake.begun["name"]) == ("phalanx", "mine")
    assert fake.begun["config"] == run.config.as_dict()
    with (tmp_path / "mine" / "updates.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [step for step, _row in fake.rows] == [int(row["steps"]) for row in rows]
    for (_step, told), row in zip(fake.rows, rows, strict=True):
        assert list(told) == list(row)
        for name, value in told.items():
            words = f"{value:.6g}" if isinstance(value, float) else str(value)
            assert words == row[name]
    assert fake.finished == 1
    assert "track" not in (tmp_path / "mine" / "config.yaml").read_text()


def test_of_many_rows_a_second_a_tracker_hears_some_and_the_last(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phalanx.training.run.TOLD_EVERY_S", 1e9)
    run = train(TrainConfig(output_dir=tmp_path, name="mine", track=fake.__name__, **SMALL))
    assert run.updates == 3
    assert [row["update"] for _step, row in fake.rows] == [1, 3]


@pytest.mark.parametrize("call", ["init", "log", "finish"])
def test_a_tracker_that_fails_is_told_of_once_and_training_goes_on(
    tmp_path: Path, fake: Fake, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.fails_at = call
    run = train(TrainConfig(output_dir=tmp_path, name="mine", track=fake.__name__, **SMALL))
    assert run.state == "finished"
    assert run.updates == 3
    said = [line for line in capsys.readouterr().err.splitlines() if "compiling" not in line]
    assert said == [
        f"phalanx: {fake.__name__} hears no more of this run (OSError: the network is down); "
        "updates.csv has everything, training goes on"
    ]
    if call != "finish":
        assert run.warnings() == [f"{fake.__name__} hears no more of this run"]
        assert fake.finished == 0


def test_a_project_of_ones_own_is_taken(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "thesis")
    Tracker(fake.__name__, "mine", {}).close()
    assert fake.begun["project"] == "thesis"


def test_numbers_that_are_none_are_told_as_they_are(fake: Fake) -> None:
    Tracker(fake.__name__, "mine", {}).add(3, {"return": math.nan})
    assert math.isnan(fake.rows[0][1]["return"])


def test_one_that_is_missing_is_named_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("phalanx.training.trackers.find_spec", lambda name: None)
    with pytest.raises(MissingError, match=r"pip install 'phalanx\[wandb\]'"):
        check_tracker("wandb")
    assert main(["train", "--track", "trackio", "--output-dir", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert said == "phalanx: --track trackio needs trackio: pip install 'phalanx[trackio]'\n"
    assert not (tmp_path / "runs").exists()


def test_no_other_tracker_is_known_and_no_file_asks_for_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="wandb"):
        TrainConfig(track="mlflow")
    (tmp_path / "mine.yaml").write_text("track: wandb\n")
    with pytest.raises(ConfigError, match="track is a flag, not a setting of a file"):
        from_file(TrainConfig, tmp_path / "mine.yaml")
