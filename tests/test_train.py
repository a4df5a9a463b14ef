"""Training: equal seeds give equal weights, and stopping changes nothing."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.checkpoint import load_checkpoint, save_checkpoint
from phalanx.cli import main
from phalanx.config import EvaluateConfig, TrainConfig, from_file
from phalanx.errors import CheckpointError, RunError
from phalanx.evaluate import evaluate
from phalanx.run_folder import RunFolder
from phalanx.train import Run, train, turn_weights
from phalanx.trained import load_defender

SMALL = {
    "num_envs": 96, "total_steps": 96 * 25 * 6, "update_steps": 25, "horizon": 40, "hidden": (16,),
    "minibatch_size": 700, "checkpoint_every": 2, "k_epochs": 2,
}  # fmt: skip


def small(tmp_path: Path, name: str, **changes: Any) -> TrainConfig:
    return TrainConfig(**{**SMALL, "output_dir": tmp_path, "name": name, **changes})


def rows(path: Path, name: str) -> list[dict[str, str]]:
    """A table without the columns of time."""
    with (path / f"{name}.csv").open() as file:
        return [{k: v for k, v in row.items() if k[-2:] != "_s"} for row in csv.DictReader(file)]


def test_equal_seeds_give_equal_weights_on_any_number_of_threads(tmp_path: Path) -> None:
    runs = [
        train(small(tmp_path, f"{k}", num_threads=threads))
        for k, threads in enumerate((1, 1, 2, 4))
    ]
    assert runs[0].updates == 6
    assert all(np.array_equal(runs[0].policy.theta, run.policy.theta) for run in runs[1:])
    assert all(np.array_equal(runs[0].batch.nets, run.batch.nets) for run in runs[1:])
    other = train(small(tmp_path, "other", seed=1))
    assert not np.array_equal(runs[0].policy.theta, other.policy.theta)


def test_stop_and_resume_equals_never_stopping(tmp_path: Path) -> None:
    whole = train(small(tmp_path, "whole"))

    def stop_after_three(run: Run) -> None:
        if run.updates == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    first = train(small(tmp_path, "cut"), stop_after_three)
    assert first.updates == 3
    assert json.loads((tmp_path / "cut" / "summary.json").read_text())["state"] == "stopped"
    second = train(small(tmp_path, "cut", resume=tmp_path / "cut", num_threads=2))
    assert second.updates == whole.updates
    assert np.array_equal(second.policy.theta, whole.policy.theta)
    assert np.array_equal(second.batch.nets, whole.batch.nets)
    for name in ("updates", "episodes"):
        assert rows(tmp_path / "cut", name) == rows(tmp_path / "whole", name)


def test_a_kill_goes_back_to_the_last_checkpoint(tmp_path: Path) -> None:
    whole = train(small(tmp_path, "whole"))

    class Killed(Exception):
        pass

    def die_after_five(run: Run) -> None:
        if run.updates == 5:  # one after the checkpoint; its rows are on disk
            for name in ("updates", "episodes"):
                run.folder.table(name).flush()
            raise Killed

    with pytest.raises(Killed):
        train(small(tmp_path, "cut"), die_after_five)
    assert len(rows(tmp_path / "cut", "updates")) == 5
    second = train(small(tmp_path, "cut", resume=tmp_path / "cut"))
    assert np.array_equal(second.policy.theta, whole.policy.theta)
    for name in ("updates", "episodes"):
        assert rows(tmp_path / "cut", name) == rows(tmp_path / "whole", name)


def test_a_run_folder_holds_everything(tmp_path: Path) -> None:
    run = train(small(tmp_path, "run"))
    folder = tmp_path / "run"
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["state"] == "finished"
    assert summary["steps"] == run.steps == 96 * 25 * 6
    assert summary["episodes"] == len(rows(folder, "episodes")) == run.episodes
    assert sum(summary["time_split"].values()) == pytest.approx(1)
    returns = [float(row["return"]) for row in rows(folder, "episodes") if row["update"] == "5"]
    assert float(rows(folder, "updates")[4]["return"]) == pytest.approx(np.mean(returns), abs=1e-3)
    settings = (folder / "config.yaml").read_text()
    assert "num_envs: 96" in settings
    assert sorted(p.name for p in folder.iterdir()) == [
        ".lock", "checkpoints", "config.yaml", "episodes.csv", "summary.json", "updates.csv",
    ]  # fmt: skip


def test_training_learns(tmp_path: Path) -> None:
    """Against B-line, 6,000 short episodes must halve what a beginner loses."""
    config = TrainConfig(
        num_envs=256, total_episodes=6_000, horizon=30, update_steps=30, red_agent="b_line",
        minibatch_size=1024, learning_rate=2e-3, turn_weights="flat", output_dir=tmp_path, name="x",
    )  # fmt: skip
    train(config)
    by_update = [float(row["return"]) for row in rows(tmp_path / "x", "updates")]
    assert np.mean(by_update[-3:]) > np.mean(by_update[:2]) / 2
    flags = EvaluateConfig(target=str(tmp_path / "x"), red_agent=("b_line",), horizon=(30,))
    assert flags.rules == "2.1-leaderboard"  # the run's own
    assert EvaluateConfig(target="sleep").rules == "2.1-final"
    (cell,) = evaluate(flags)
    assert cell.mean > np.mean(by_update[:2]) / 2


def test_weights_of_turns() -> None:
    weights = turn_weights(TrainConfig())
    assert [weights[t] for t in (0, 29, 30, 49, 50, 99)] == [3, 3, 2, 2, 1, 1]
    assert turn_weights(TrainConfig(turn_weights="flat")).tolist() == [1] * 100


# --- what can go wrong ----------------------------------------------------------------------------


def test_a_folder_is_used_by_one_process(tmp_path: Path) -> None:
    held = RunFolder(tmp_path / "run")
    with pytest.raises(RunError, match="in use by another process"):
        train(small(tmp_path, "run"))
    held.close()


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    train(small(tmp_path, "run", total_steps=96 * 25))
    with pytest.raises(RunError, match="holds a run already"):
        train(small(tmp_path, "run"))


def test_resume_refuses_what_cannot_be_continued(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run with a checkpoint"):
        train(small(tmp_path, "x", resume=tmp_path / "nowhere"))
    train(small(tmp_path, "run", total_steps=96 * 25))
    with pytest.raises(RunError, match="is finished"):
        train(small(tmp_path, "run", total_steps=96 * 25, resume=tmp_path / "run"))
    with pytest.raises(RunError, match="another gamma"):
        train(small(tmp_path, "run", gamma=0.5, resume=tmp_path / "run"))


@pytest.mark.parametrize("keep", [0, 100, 5000])
def test_a_broken_checkpoint_gets_one_line(tmp_path: Path, keep: int) -> None:
    train(small(tmp_path, "run", total_steps=96 * 25))
    path = tmp_path / "run" / "checkpoints" / "last.npz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="not a whole checkpoint"):
        load_defender(tmp_path / "run")


def test_a_checkpoint_that_does_not_fit_is_refused_on_resume(tmp_path: Path) -> None:
    train(small(tmp_path, "run", total_steps=96 * 25))
    path = tmp_path / "run" / "checkpoints" / "last.npz"
    arrays, facts = load_checkpoint(path)
    for wrong in ({"theta": np.zeros(3, np.float32)}, {"batch_nets": np.zeros(7, np.uint8)}):
        save_checkpoint(path, arrays | wrong, facts)
        with pytest.raises(CheckpointError, match="does not fit"):
            train(small(tmp_path, "run", resume=tmp_path / "run"))


def test_a_run_stopped_within_its_duration_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "step", lambda run: os.kill(os.getpid(), signal.SIGINT))
    run = train(small(tmp_path, "run", duration=1.0))
    assert run.stopped
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["state"] == "stopped"


def test_an_episode_cut_before_the_last_horizon_goes_on_in_value(tmp_path: Path) -> None:
    for horizon, weights, goes_on in (
        (100, "leaderboard", False), (40, "leaderboard", True), (100, "flat", True),
    ):  # fmt: skip
        config = small(tmp_path, "x", horizon=horizon, turn_weights=weights)
        folder = RunFolder(tmp_path / f"{horizon}{weights}")
        assert Run(config, folder).learner.settings.bootstrap == goes_on
        folder.close()


def test_foreign_and_malicious_files_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, facts=np.array([print], object))
    with pytest.raises(CheckpointError):
        load_checkpoint(path)
    save_checkpoint(path, {"theta": np.zeros(3, np.float32)}, {"config": {}})
    with pytest.raises(CheckpointError, match="no checkpoint of a training run"):
        load_defender(path)
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load_checkpoint(tmp_path / "none")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--learning-rat 1", "did you mean --learning-rate"),
        ("--learning-rate x", "invalid float value"),
        ("--gamma 2", "gamma must be from 0 to 1"),
        ("--hidden 0", "hidden must be layer sizes"),
        ("--observation bit", "did you mean bits"),
        ("--config nowhere.yaml", "cannot read nowhere.yaml"),
        ("--resume nowhere", "cannot read nowhere/config.yaml"),
        ("--output-dir /proc/x", "cannot write to"),
        ("--n-envs 0", "num_envs must be"),
        ("--k-epochs 0", "k_epochs must be 1 or more"),
    ],
)
def test_bad_flags_get_one_line(
    flags: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *flags.split()]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def write(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def test_settings_come_from_defaults_then_file_then_flags(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("num-envs: 96\nhidden: [8, 8]\nupdate_steps: 10\nhorizon: 10\ngamma: 0.9\n")
    flags = f"--config {file} --gamma 0.8 --total-steps 960 --output-dir {tmp_path} --name run"
    assert main(["train", *flags.split()]) == 0
    settings = (tmp_path / "run" / "config.yaml").read_text()
    assert "gamma: 0.8" in settings
    assert "num_envs: 96" in settings
    assert "clip: 0.2" in settings
    assert from_file(TrainConfig, write(file, "critic_truth: 'false'\ntarget_kl: null\n")) == {
        "critic_truth": False
    }
    file.write_text("gama: 0.9\n")
    assert main(["train", "--config", str(file)]) == 2
    assert "did you mean gamma" in capsys.readouterr().err


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    flags = f"train --n-envs 128 --output-dir {tmp_path} --name run"
    command = [sys.executable, "-m", "phalanx.cli", *flags.split()]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    table = tmp_path / "run" / "updates.csv"
    while time.monotonic() < deadline and not (table.exists() and table.stat().st_size > 400):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in said
    assert "Traceback" not in said
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["state"] == "stopped"
