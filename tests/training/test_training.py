"""Training: equal seeds give equal weights, and stopping changes nothing."""

import calendar
import csv
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import phalanx
from phalanx import display
from phalanx.agents import AGENTS
from phalanx.cli.commands import main
from phalanx.compiled.cache import cache_folder
from phalanx.configs import CONFIGS
from phalanx.errors import CheckpointError, ConfigError, RunError
from phalanx.play.cells import play_cells
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.trained import TrainedDefender, load_defender
from phalanx.settings.flags import from_file
from phalanx.training.cage2_extension import Cage2Extension, turn_weights
from phalanx.training.checkpoint import load_checkpoint, save_checkpoint
from phalanx.training.config import TrainConfig
from phalanx.training.folder import RunFolder
from phalanx.training.loop import train
from phalanx.training.recipe import SIZES, find_network
from phalanx.training.run import Run
from tests.training.inside import inside

SMALL = {
    "num_envs": 96,
    "total_steps": 96 * 25 * 6,
    "update_steps": 25,
    "horizon": 40,
    "hidden": (16,),
    "minibatch_size": 700,
    "checkpoint_every": 2,
    "k_epochs": 2,
}


def small(tmp_path: Path, name: str, **changes: Any) -> TrainConfig:
    return TrainConfig(**{**SMALL, "output_dir": tmp_path, "name": name, **changes})


def theta(run: Run) -> Any:
    return run.learner.save()[0]["theta"]


def rows(path: Path, name: str) -> list[dict[str, str]]:
    """A table without the columns of time."""
    with (path / f"{name}.csv").open() as file:
        return [
            {k: v for k, v in row.items() if k[-2:] != "_s" and k != "wall_time"}
            for row in csv.DictReader(file)
        ]


def test_rows_of_a_run_that_was_killed_before_its_first_checkpoint_are_forgotten(
    tmp_path: Path,
) -> None:
    RunFolder(tmp_path / "again").close()
    for name in ("updates", "episodes"):
        (tmp_path / "again" / f"{name}.csv").write_text("update,episodes\n1,96\n2,192\n")
    train(small(tmp_path, "again"))
    train(small(tmp_path, "new"))
    for name in ("updates", "episodes"):
        assert rows(tmp_path / "again", name) == rows(tmp_path / "new", name)


def test_equal_seeds_give_equal_weights_on_any_number_of_threads(tmp_path: Path) -> None:
    runs = [
        train(small(tmp_path, f"{k}", num_threads=threads))
        for k, threads in enumerate((1, 1, 2, 4))
    ]
    assert runs[0].updates == 6
    assert all(np.array_equal(theta(runs[0]), theta(run)) for run in runs[1:])
    assert all(
        np.array_equal(runs[0].sampler.batch.nets, run.sampler.batch.nets) for run in runs[1:]
    )
    other = train(small(tmp_path, "other", seed=1))
    assert not np.array_equal(theta(runs[0]), theta(other))


@pytest.mark.parametrize("observation", ["history", "belief"])
def test_stop_and_resume_equals_never_stopping(tmp_path: Path, observation: str) -> None:
    changes: dict[str, Any] = {"observation": observation}
    whole = train(small(tmp_path, "whole", **changes))

    def stop_after_three(run: Run) -> None:
        if run.updates == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    first = train(small(tmp_path, "cut", **changes), on_update=stop_after_three)
    assert first.updates == 3
    assert json.loads((tmp_path / "cut" / "summary.json").read_text())["state"] == "stopped"
    second = train(small(tmp_path, "cut", resume=tmp_path / "cut", num_threads=2, **changes))
    assert second.updates == whole.updates
    assert np.array_equal(theta(second), theta(whole))
    assert np.array_equal(second.sampler.batch.nets, whole.sampler.batch.nets)
    for name in ("updates", "episodes"):
        assert rows(tmp_path / "cut", name) == rows(tmp_path / "whole", name)


def test_checkpoints_are_written_after_so_many_updates_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[int] = []
    monkeypatch.setattr(Run, "save", lambda run: saved.append(run.updates))
    train(small(tmp_path, "run", total_steps=96 * 25 * 5, checkpoint_every=2))
    assert saved == [2, 4, 5]


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
        train(small(tmp_path, "cut"), on_update=die_after_five)
    assert len(rows(tmp_path / "cut", "updates")) == 5
    second = train(small(tmp_path, "cut", resume=tmp_path / "cut"))
    assert np.array_equal(theta(second), theta(whole))
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
    names = [p.name for p in folder.iterdir() if not p.name.startswith("events.out")]
    assert sorted(names) == [
        ".lock",
        "checkpoints",
        "config.yaml",
        "episodes.csv",
        "summary.json",
        "updates.csv",
    ]


def test_a_run_gives_its_tables_as_arrays_and_says_in_a_line_how_it_went(tmp_path: Path) -> None:
    begun, during = time.time(), []

    def look(run: Run) -> None:
        during.append((repr(run), len(run.read_updates()["update"])))

    run = train(small(tmp_path, "run", total_steps=96 * 25 * 3), on_update=look)
    assert [rows for _, rows in during] == [1, 2, 3]
    assert during[0][0].startswith("<Run: running, 0 episodes, ")
    updates, episodes = run.read_updates(), run.read_episodes()
    assert updates["steps"].tolist() == [2400, 4800, 7200]
    assert (np.diff(updates["elapsed_s"]) > 0).all()
    assert updates["elapsed_s"][-1] <= run.elapsed_s
    wall = [calendar.timegm(time.strptime(t, "%Y-%m-%dT%H:%M:%SZ")) for t in updates["wall_time"]]
    assert begun - 1 <= wall[0] <= wall[-1] <= time.time()
    mean = episodes["return"].mean()
    assert repr(run) == (
        f"<Run: finished, {run.episodes} episodes, mean return {mean:.2f} of the last "
        f"{run.episodes}, {tmp_path / 'run'}>"
    )
    again = phalanx.read_table(tmp_path / "run", "episodes")
    np.testing.assert_array_equal(again["return"], episodes["return"])


def test_training_learns(tmp_path: Path) -> None:
    """Against B-line, 6,000 short episodes must halve what a beginner loses."""
    config = TrainConfig(
        num_envs=256,
        total_episodes=6_000,
        horizon=30,
        update_steps=30,
        red_agent="b_line",
        minibatch_size=1024,
        learning_rate=2e-3,
        turn_weights="flat",
        output_dir=tmp_path,
        name="x",
    )
    train(config)
    by_update = [float(row["return"]) for row in rows(tmp_path / "x", "updates")]
    assert np.mean(by_update[-3:]) > np.mean(by_update[:2]) / 2
    flags = EvaluateConfig(target=(str(tmp_path / "x"),), red_agent=("b_line",), horizon=(30,))
    assert flags.rules == "2.1-leaderboard"  # the run's own
    assert EvaluateConfig(target=("sleep",)).rules == "2.1-leaderboard"
    (cell,) = play_cells(flags)
    assert cell.mean > np.mean(by_update[:2]) / 2


def test_weights_of_turns() -> None:
    weights = turn_weights(TrainConfig())
    assert [weights[t] for t in (0, 29, 30, 49, 50, 99)] == [3, 3, 2, 2, 1, 1]
    assert turn_weights(TrainConfig(turn_weights="flat")).tolist() == [1] * 100


# --- other networks, from Python -----------------------------------------------------------------


class OwnNetwork(torch.nn.Module):
    """One body for both heads, as users bring them."""

    def __init__(self, obs_size: int, truth_size: int, num_actions: int) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(obs_size, 24), torch.nn.ReLU())
        self.actor = torch.nn.Linear(24, num_actions)
        self.critic = torch.nn.Linear(24 + truth_size, 1)

    def forward(self, obs: Any, truth: Any) -> Any:
        body = self.body(obs)
        return self.actor(body), self.critic(torch.cat([body, truth], dim=1))[:, 0]


class WithMore(OwnNetwork):
    def __init__(self, *sizes: int) -> None:
        super().__init__(*sizes)
        self.more = torch.nn.Linear(1, 1)


OWN = f"{__name__}:OwnNetwork"


@pytest.mark.parametrize("changes", [{"learner": "torch"}, {"network": OWN}])
def test_torch_networks_stop_and_resume_exactly_on_any_number_of_threads(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    whole = phalanx.train(small(tmp_path, "whole", num_threads=1, **changes))

    def stop_after_three(run: Run) -> None:
        if run.updates == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    phalanx.train(small(tmp_path, "cut", num_threads=2, **changes), on_update=stop_after_three)
    resumed = small(tmp_path, "cut", resume=tmp_path / "cut", num_threads=1, **changes)
    second = phalanx.train(resumed)
    one, other = (run.learner.stepper.weights() for run in (whole, second))
    assert all(torch.equal(one[name], other[name]) for name in one)
    for name in ("updates", "episodes"):
        assert rows(tmp_path / "cut", name) == rows(tmp_path / "whole", name)


def test_the_torch_learner_trains_like_the_compiled_one(tmp_path: Path) -> None:
    compiled = phalanx.train(small(tmp_path, "compiled"))
    plain = phalanx.train(small(tmp_path, "plain", learner="torch"))
    one, other = (rows(tmp_path / name, "updates") for name in ("compiled", "plain"))
    for name in ("policy_loss", "value_loss", "entropy"):
        assert float(one[0][name]) == pytest.approx(float(other[0][name]), rel=0.02, abs=1e-3)
    assert compiled.recipe.device == plain.recipe.device == "cpu"
    # Its checkpoint is read without torch, as that of the compiled one.
    assert isinstance(load_defender(tmp_path / "plain"), TrainedDefender)


def test_a_network_of_ones_own_is_evaluated_only_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phalanx.train(small(tmp_path, "own", condition=(1.0, 0.0)), network=OwnNetwork)
    target = [str(tmp_path / "own"), "--horizon", "30", "--episodes", "20"]
    assert main(["evaluate", *target]) == 2
    assert "--network module:factory" in capsys.readouterr().err
    assert main(["evaluate", *target, "--network", OWN]) == 0
    with pytest.raises(ConfigError, match="not those of this network"):
        load_defender(tmp_path / "own", WithMore)


def test_the_fastest_number_of_networks_is_found(tmp_path: Path) -> None:
    config = small(tmp_path, "auto", num_envs="auto", total_steps=1, update_steps=2, horizon=10)
    run = phalanx.train(config)
    size = run.config.num_envs
    assert size in SIZES
    settings = (tmp_path / "auto" / "config.yaml").read_text()
    assert f"num_envs: {size}" in settings
    (note,) = json.loads((tmp_path / "auto" / "summary.json").read_text())["notes"]
    assert note.startswith(f"--n-envs auto chose {size}, by thousand turns/s measured here (256: ")
    assert f"give --n-envs {size} to get the same run from the same seed again" in note
    assert settings.startswith(f"# {note}\n")
    longer = dataclasses.replace(config, total_steps=3 * int(size), resume=tmp_path / "auto")
    assert phalanx.train(longer).config.num_envs == size  # not chosen anew


def test_the_number_that_was_chosen_gives_the_same_run_again(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"total_steps": 1, "update_steps": 2, "horizon": 10}
    chosen = phalanx.train(small(tmp_path, "auto", num_envs="auto", **changes))
    again = phalanx.train(small(tmp_path, "given", num_envs=chosen.config.num_envs, **changes))
    assert np.array_equal(theta(again), theta(chosen))
    assert np.array_equal(again.sampler.batch.nets, chosen.sampler.batch.nets)


def test_curves_are_there_for_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phalanx.training.run.TOLD_EVERY_S", 0.0)
    event_accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    phalanx.train(small(tmp_path, "run"))
    read = event_accumulator.EventAccumulator(str(tmp_path / "run"))
    read.Reload()
    steps = [point.step for point in read.Scalars("entropy")]
    assert steps == [96 * 25 * k for k in range(1, 7)]
    wanted = [float(row["entropy"]) for row in rows(tmp_path / "run", "updates")]
    assert [p.value for p in read.Scalars("entropy")] == pytest.approx(wanted, rel=1e-5)


def test_training_begins_with_the_champion_and_a_fresh_optimiser(tmp_path: Path) -> None:
    config = small(
        tmp_path,
        "run",
        start_from="champion",
        hidden=(64, 64),
        observation="belief",
        total_steps=96 * 25,
        learning_rate=1e-9,
        final_learning_rate=1e-9,
    )
    run = train(config)
    champion, _ = load_checkpoint(AGENTS["champion"])
    policy = inside(run.learner.stepper).policy
    np.testing.assert_allclose(policy.theta, policy.narrowed(champion["theta"]), atol=1e-6)
    assert 0 < inside(run.learner.stepper).steps < 20  # of this run alone


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


def test_a_run_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot find --network"):
        train(small(tmp_path, "x", network="no.such:thing"))
    assert not (tmp_path / "x").exists()


def test_resume_refuses_what_cannot_be_continued(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run with a checkpoint"):
        train(small(tmp_path, "x", resume=tmp_path / "nowhere"))
    train(small(tmp_path, "run", total_steps=96 * 25))
    before = sorted((tmp_path / "run").rglob("*"))
    with pytest.raises(RunError, match=r"is finished.*raise --total-steps"):
        train(small(tmp_path, "run", total_steps=96 * 25, resume=tmp_path / "run"))
    assert sorted((tmp_path / "run").rglob("*")) == before
    with pytest.raises(RunError, match="another gamma"):
        train(small(tmp_path, "run", gamma=0.5, resume=tmp_path / "run"))


@pytest.mark.parametrize("left", [None, b""], ids=["missing", "empty"])
def test_a_lost_table_is_begun_anew_on_resume(tmp_path: Path, left: bytes | None) -> None:
    train(small(tmp_path, "run", total_steps=96 * 25))
    table = tmp_path / "run" / "updates.csv"
    header = table.read_text().splitlines()[0]
    table.unlink() if left is None else table.write_bytes(left)
    train(small(tmp_path, "run", total_steps=96 * 50, resume=tmp_path / "run"))
    lines = table.read_text().splitlines()
    assert lines[0] == header
    assert lines[1].startswith("2,")


def fails(*_sizes: int) -> Any:
    raise RuntimeError("boom")


class OnlyLogits(OwnNetwork):
    def forward(self, obs: Any, truth: Any) -> Any:
        return super().forward(obs, truth)[0]


@pytest.mark.parametrize(
    ("network", "message"),
    [("fails", "boom"), ("OnlyLogits", "gives .* for 2 rows"), ("small", "cannot be used")],
)
def test_a_network_that_cannot_work_is_refused(tmp_path: Path, network: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"network.*{message}"):
        train(small(tmp_path, "x", network=f"{__name__}:{network}"))
    assert not (tmp_path / "x").exists()


def test_files_of_the_current_folder_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net_of_mine.py").write_text("class Mine: pass")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    network: Any = find_network("net_of_mine:Mine")
    assert network.__name__ == "Mine"


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_what_was_good(tmp_path: Path) -> None:
    config = small(tmp_path, "run")

    def spoil(run: Run) -> None:
        inside(run.learner.stepper).policy.theta[:] = np.nan

    with pytest.raises(RunError, match=r"update 2 gave a \w+ that is no number") as told:
        train(config, on_update=spoil)
    assert "there is no checkpoint of the time before" in str(told.value)
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["state"] == "failed"
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_a_run_that_failed_names_the_checkpoint_before_and_that_can_be_read(tmp_path: Path) -> None:
    def spoil(run: Run) -> None:
        if run.updates == 2:
            inside(run.learner.stepper).policy.theta[:] = np.nan

    with pytest.raises(RunError, match=r"last.npz holds the weights of the checkpoint before"):
        train(small(tmp_path, "run", checkpoint_every=1), on_update=spoil)
    (kept,) = (tmp_path / "run" / "checkpoints").iterdir()
    assert load_checkpoint(kept)[1]["updates"] == 1


FULL_DISK = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing fails as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
from phalanx.cli.commands import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_full_disk_gets_one_line_and_loses_nothing_saved(tmp_path: Path) -> None:
    flags = f"""train --n-envs 64 --update-steps 20 --horizon 20 --hidden 8 --observation bits
        --critic-truth false --output-dir {tmp_path} --name run --checkpoint-every 10 --quiet"""
    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, *flags.split()],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PHALANX_CACHE_DIR": str(cache_folder().parent)},  # type: ignore[union-attr]
    )
    assert ran.returncode == 2
    said = [line for line in ran.stderr.splitlines() if "compiling" not in line]
    assert len(said) == 1
    assert "cannot write" in said[0]
    assert "File too large" in said[0]
    arrays, _ = load_checkpoint(tmp_path / "run" / "checkpoints" / "last.npz")
    assert np.isfinite(arrays["theta"]).all()


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
    for wrong in ({"theta": np.zeros(3, np.float32)}, {"sampler_nets": np.zeros(7, np.uint8)}):
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


@pytest.fixture
def a_quarter_of_an_hour_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes by in updates."""
    monkeypatch.setattr(Run, "elapsed_s", property(lambda run: 900.0 * run.updates))


@pytest.mark.usefixtures("a_quarter_of_an_hour_each")
def test_schedules_follow_the_time_of_a_run_that_ends_by_it(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "total_steps": 10**9,
        "learning_rate": 1e-3,
        "final_learning_rate": 0.0,
        "restore_curriculum": 0.5,
    }
    run = train(small(tmp_path, "run", duration=1.0, **changes))
    assert not run.stopped
    table = run.read_updates()
    assert table["learning_rate"] == pytest.approx([1e-3, 0.75e-3, 0.5e-3, 0.25e-3])
    assert table["restore_price"] == pytest.approx([0.2, 0.6, 1.0, 1.0])
    facts = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (facts["state"], facts["schedule_progress"]) == ("finished", 0.75)
    with pytest.raises(RunError, match=r"is finished: 4 updates; raise --duration"):
        train(small(tmp_path, "run", duration=1.0, resume=tmp_path / "run", **changes))
    more = train(small(tmp_path, "run", duration=1.5, resume=tmp_path / "run", **changes))
    assert more.updates == 6
    assert more.read_updates()["learning_rate"][-1] == pytest.approx(1e-3 / 6, rel=1e-4)


@pytest.mark.usefixtures("a_quarter_of_an_hour_each")
def test_a_run_whose_budget_ends_before_its_time_is_as_without_a_limit(tmp_path: Path) -> None:
    limited = train(small(tmp_path, "limited", duration=10.0))
    assert np.array_equal(theta(limited), theta(train(small(tmp_path, "free"))))


def test_time_before_a_run_was_continued_counts(tmp_path: Path) -> None:
    first = train(small(tmp_path, "run", total_steps=96 * 25))
    path = first.folder.checkpoint
    template = first._saved()[0] | first.learner.stepper.optimiser()
    arrays, facts = load_checkpoint(path, template)
    assert facts["elapsed_s"] == pytest.approx(first.elapsed_s)
    save_checkpoint(path, arrays, facts | {"elapsed_s": 7000.0})
    second = train(small(tmp_path, "run", resume=tmp_path / "run", duration=2.0))
    assert 7000 < second.read_updates()["elapsed_s"][1] < 7200


def test_an_episode_cut_before_the_last_horizon_goes_on_in_value(tmp_path: Path) -> None:
    for horizon, weights, goes_on in (
        (100, "leaderboard", False),
        (40, "leaderboard", True),
        (100, "flat", True),
    ):
        config = small(tmp_path, "x", horizon=horizon, turn_weights=weights)
        assert (Cage2Extension(config).shaping(0.0).final_gamma > 0) == goes_on


def test_foreign_and_malicious_files_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, facts=np.array([print], object))
    with pytest.raises(CheckpointError):
        load_checkpoint(path)
    save_checkpoint(path, {"theta": np.zeros(3, np.float32)}, {"config": {}})
    with pytest.raises(CheckpointError, match="is no policy of a training run"):
        load_defender(path)
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load_checkpoint(tmp_path / "none")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--learning-rat 1", "did you mean --learning-rate"),
        ("--learning-rate x", "'x' is not a number"),
        ("--gamma 2", "gamma must be from 0 to 1"),
        ("--hidden 0", "hidden must be from 1 to 8,192, got 0"),
        ("--observation bit", "did you mean bits"),
        ("--config nowhere.yaml", "unknown config or YAML file 'nowhere.yaml'"),
        ("--resume nowhere", "cannot read nowhere/config.yaml"),
        ("--output-dir /proc/x", "cannot write to"),
        ("--n-envs 0", "num_envs must be"),
        ("--overlap maybe", "'maybe' is neither true nor false"),
        ("--name ../x", "give its place as --output-dir"),
        ("--red-agent b_line,meander", "b_line=0.5,meander=0.5"),
        ("--hidden 64xa", "'64xa' is not a whole number"),
        ("--config docs/champion.png", "docs/champion.png: it has more than the 65536 bytes"),
        ("--k-epochs 0", "k_epochs must be from 1 to"),
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


def test_what_is_wrong_in_a_file_names_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.yaml", "hidden: 64x32")
    assert from_file(TrainConfig, file) == {"hidden": (64, 32)}
    for text in ("total_episodes: many", "hidden: [64, foo]", "overlap: maybe"):
        with pytest.raises(ConfigError, match=r"mine.yaml: .* (not a|neither)"):
            from_file(TrainConfig, write(file, text))


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
    score = json.loads((tmp_path / "run" / "summary.json").read_text())["score"]
    assert [cell["horizon"] for cell in score["cells"]] == [10, 10, 10]
    assert all(cell["low"] <= cell["mean"] <= cell["high"] for cell in score["cells"])
    assert score["total"] == pytest.approx(sum(cell["mean"] for cell in score["cells"]))
    assert (score["rules"], score["cells"][0]["episodes"]) == ("2.1-leaderboard", 1000)
    assert from_file(TrainConfig, write(file, "critic_truth: 'false'\ntarget_kl: null\n")) == {
        "critic_truth": False
    }
    file.write_text("gama: 0.9\n")
    assert main(["train", "--config", str(file)]) == 2
    assert "did you mean gamma" in capsys.readouterr().err


def test_the_score_of_a_run_is_what_evaluate_writes(tmp_path: Path) -> None:
    flags = "--n-envs 96 --hidden 8 --update-steps 10 --horizon 10 --total-steps 960 --name run"
    assert main(["train", *flags.split(), "--output-dir", str(tmp_path)]) == 0
    run, file = tmp_path / "run", tmp_path / "score.json"
    score = json.loads((run / "summary.json").read_text())["score"]
    again = f"--horizon 10 --episodes 1000 --seed {score['seed']} --json {file}"
    assert main(["evaluate", str(run), *again.split()]) == 0
    assert json.loads(file.read_text()) == score


def test_a_run_that_is_piped_says_what_is_trained_and_how_that_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(display._InFile, "first_s", 0.0)
    monkeypatch.setattr(display._InFile, "every_s", 0.001)
    flags = "--n-envs 96 --hidden 8 --update-steps 10 --horizon 10 --total-steps 19200"
    flags += " --red-agent b_line=0.5,meander=0.5"
    assert main(["train", *flags.split(), "--output-dir", str(tmp_path), "--name", "run"]) == 0
    said = capsys.readouterr()
    first, *others = [line for line in said.err.splitlines() if "compiling" not in line]
    assert first == (
        "training with ppo on cage2 against b_line=0.5,meander=0.5, 96 environments, 19,200 steps; "
        f"run folder {tmp_path / 'run'}"
    )
    learning = [line for line in others if "/s  " in line]
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d  \d+ %  [\d,]+ steps  [\d.,]+/s  b_line -\d+\.\d  meander -\d+\.\d  "
        r"± \S+  .*learning \d+ %.*  \d+:\d\d left",
        learning[-1],
    )
    assert "left" not in said.out


def test_a_quiet_run_tells_its_results_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(display._InFile, "first_s", 0.0)
    flags = "--env CartPole-v1 --n-envs 4 --num-workers 0 --total-steps 600 --quiet --config none"
    assert main(["train", *flags.split(), "--output-dir", str(tmp_path), "--name", "run"]) == 0
    said = capsys.readouterr()
    assert [line for line in said.err.splitlines() if "compiling" not in line] == []
    assert len(said.out.splitlines()) == 2
    assert "quiet" not in (tmp_path / "run" / "config.yaml").read_text()


def test_training_from_python_says_nothing_unless_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(small(tmp_path, "quiet", total_steps=96 * 25))
    assert capsys.readouterr() == ("", "")
    train(small(tmp_path, "told", total_steps=96 * 25), progress=True)
    assert capsys.readouterr().err.startswith("training with ppo on cage2")


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    flags = f"train --n-envs 128 --output-dir {tmp_path} --name run"
    command = [sys.executable, "-m", "phalanx.cli.commands", *flags.split()]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    table = tmp_path / "run" / "updates.csv"
    while time.monotonic() < deadline and not (table.exists() and table.stat().st_size > 400):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "--resume" in said
    assert "Traceback" not in said
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["state"] == "stopped"


@pytest.mark.parametrize("name", CONFIGS)
def test_each_starting_point_can_be_started(name: str, tmp_path: Path) -> None:
    flags = f"--config {name} --total-steps 1 --n-envs 32 --output-dir {tmp_path} --name run"
    assert main(["train", *flags.split()]) == 0


def test_the_first_starting_point_is_the_default() -> None:
    assert TrainConfig(**from_file(TrainConfig, CONFIGS["leaderboard"])) == TrainConfig()


def test_a_run_that_cannot_go_on_says_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(small(tmp_path, "x"))
    capsys.readouterr()
    other = small(tmp_path, "x", resume=run.folder.path, gamma=0.5, step_timeout=1.0)
    with pytest.raises(RunError, match="was trained with another gamma"):
        train(other)
    assert capsys.readouterr().err == ""
