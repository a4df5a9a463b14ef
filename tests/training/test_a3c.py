"""A3C: workers on shared weights learn as one does, and none of their misfortunes ends a run."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.cli.commands import main
from phalanx.errors import ConfigError, WorkerError
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.run import Run
from tests import odd_envs
from tests.training.inside import inside

CORRIDOR = "tests.learn.tasks:short_corridor"


def config(tmp_path: Path, name: str = "run", **changes: Any) -> TrainConfig:
    settings = {
        "env": CORRIDOR,
        "algo": "a3c",
        "num_workers": 2,
        "num_envs": 8,
        "hidden": (16,),
        "total_steps": 4_000,
        "output_dir": tmp_path,
        "name": name,
    }
    return TrainConfig(**{**settings, **changes})


def rows(path: Path, name: str) -> list[dict[str, str]]:
    with (path / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def summary(path: Path) -> dict[str, Any]:
    return json.loads((path / "summary.json").read_text())


def last_returns(run: Run) -> float:
    return float(np.mean([episode.total for episode in run.recent][-100:]))


def until(returns: float) -> Callable[[Run], None]:
    """Ends a run once its last hundred episodes have brought so much on average."""

    def watch(run: Run) -> None:
        run.enough = len(run.recent) >= 100 and last_returns(run) >= returns

    return watch


class Slow(odd_envs.Sleeps):
    """A third of a second for every step: a rollout takes ten."""

    def step(self, action: Any) -> Any:
        return super().step(odd_envs.ACT_UP)


# --- learning -------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_one_worker_and_two_learn_to_balance_the_pole(tmp_path: Path, workers: int) -> None:
    changes: dict[str, Any] = {"num_envs": 16 * workers, "hidden": (64, 64), "reward_scale": 0.1}
    changes |= {"total_steps": 250_000, "learning_rate": 3e-3}
    settings = config(tmp_path, env="CartPole-v1", num_workers=workers, **changes)
    run = train(settings, on_update=until(400))
    assert last_returns(run) >= 400


@pytest.mark.parametrize("workers", [1, 2])
def test_one_worker_and_two_find_the_way_through_the_corridor(tmp_path: Path, workers: int) -> None:
    changes: dict[str, Any] = {
        "num_envs": 16,
        "total_steps": 60_000,
        "learning_rate": 5e-3,
    }
    run = train(config(tmp_path, num_workers=workers, **changes))
    assert last_returns(run) >= 0.95
    lengths = [int(row["length"]) for row in rows(tmp_path / "run", "episodes")]
    assert np.mean(lengths[-100:]) < 5  # the shortest way has four turns


def test_continuous_actions_are_learnt_on_shared_torch_weights(tmp_path: Path) -> None:
    run = train(config(tmp_path, env="Pendulum-v1", total_steps=2_000, num_envs=4))
    moved = {row["policy_loss"] for row in rows(tmp_path / "run", "updates")}
    assert len(moved) == len(rows(tmp_path / "run", "updates"))
    assert inside(run.learner).stepper.steps == run.updates == inside(run.learner).shared.updates


# --- the books ------------------------------------------------------------------------------------


def test_the_summary_is_that_of_any_algorithm(tmp_path: Path) -> None:
    run = train(config(tmp_path))
    train(config(tmp_path, "ppo", algo="ppo", num_workers=0, update_steps=100))
    ours, theirs = summary(tmp_path / "run"), summary(tmp_path / "ppo")
    assert ours.keys() == theirs.keys()
    assert ours["time_split"].keys() == theirs["time_split"].keys()
    assert ours["returns"].keys() == theirs["returns"].keys()
    assert sum(ours["time_split"].values()) == pytest.approx(1)
    for part, column in (("simulator", "simulator_s"), ("policy", "policy_s")):
        told = sum(float(row[column]) for row in rows(tmp_path / "run", "updates"))
        assert run.seconds[part] == pytest.approx(told / 2, rel=1e-3)  # spent side by side
    assert ours["time_split_elsewhere"].keys() == {"worker 0", "worker 1"}
    tables = [rows(tmp_path / name, "updates")[0].keys() for name in ("run", "ppo")]
    assert tables[0] == tables[1]
    assert 4_000 <= run.steps <= 4_000 + 2 * 8 * 8
    assert sum(ours["lag"].values()) * 8 == run.steps
    assert run.updates == inside(run.learner).shared.updates
    episodes = rows(tmp_path / "run", "episodes")
    assert len(episodes) == run.episodes
    assert {int(row["env"]) for row in episodes} <= set(range(8))  # one worker may do it all


def test_environments_of_all_workers_are_numbered_through(tmp_path: Path) -> None:
    def until_all_have_played(run: Run) -> None:
        run.enough = {episode.env for episode in run.recent} >= set(range(8))

    run = train(config(tmp_path, total_steps=10**6), on_update=until_all_have_played)
    assert {int(row["env"]) for row in rows(tmp_path / "run", "episodes")} == set(range(8))
    assert run.enough


def test_schedules_of_workers_follow_the_time_of_a_run_that_ends_by_it(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"total_steps": 10**12, "duration": 2.0 / 3600}
    train(config(tmp_path, learning_rate=1e-3, final_learning_rate=0.0, **changes))
    rates = [float(row["learning_rate"]) for row in rows(tmp_path / "run", "updates")]
    assert rates[-1] < 1e-3  # as it would stay with so large a budget
    assert summary(tmp_path / "run")["state"] == "finished"


def test_a_stopped_run_is_continued_where_it_was(tmp_path: Path) -> None:
    def stop(run: Run) -> None:
        if run.steps > 1_000:
            os.kill(os.getpid(), signal.SIGTERM)

    first = train(config(tmp_path, total_steps=100_000), on_update=stop)
    assert first.stopped
    assert summary(tmp_path / "run")["state"] == "stopped"
    before = first.learner.stepper.weights()
    budget = first.steps + 3_000
    again = train(config(tmp_path, total_steps=budget, resume=tmp_path / "run"))
    assert again.steps >= budget
    assert again.updates == inside(again.learner.stepper).steps > first.updates
    assert int(rows(tmp_path / "run", "updates")[-1]["steps"]) == again.steps
    assert not np.array_equal(again.learner.stepper.weights(), before)


def test_time_that_is_up_ends_even_slow_rollouts(tmp_path: Path) -> None:
    began = time.monotonic()
    run = train(config(tmp_path, env="tests.training.test_a3c:Slow", duration=1 / 3600))
    assert run.spent_s < 2
    assert time.monotonic() - began < 30
    assert summary(tmp_path / "run")["state"] == "finished"


# --- what can go wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (signal.SIGKILL, "worker 0 was killed by SIGKILL"),
        (signal.SIGSTOP, "worker 0 hung for longer than the step_timeout"),
    ],
)
def test_a_killed_or_halted_worker_is_replaced_and_nothing_is_counted_twice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], number: signal.Signals, told: str
) -> None:
    killed: list[int] = []

    def kill_one(run: Run) -> None:
        if not killed and run.steps > 1_000:
            killed.append(inside(run.source).pids[0])
            os.kill(killed[0], number)
        # Who is halted is missed only after a second: the other may have spent any budget by then.
        run.enough = number == signal.SIGSTOP and run.faults_recorded > 0

    steps = 40_000 if number == signal.SIGKILL else 10**7
    run = train(config(tmp_path, total_steps=steps, step_timeout=1.0), on_update=kill_one)
    (fault,) = rows(tmp_path / "run", "faults")
    assert told in fault["what"]
    assert told in capfd.readouterr().err
    if number == signal.SIGKILL:
        assert 40_000 <= run.steps <= 40_000 + 2 * 8 * 8
    assert run.steps == 8 * sum(run.lags.values())


def test_a_worker_that_hangs_is_ended_at_its_deadline(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"step_timeout": 0.5, "max_restarts": 1, "num_workers": 1}
    with pytest.raises(WorkerError, match=r"2 failures.*hung for longer than the step_timeout"):
        train(config(tmp_path, env="tests.odd_envs:Hangs", **changes))
    assert summary(tmp_path / "run")["state"] == "failed"
    assert "act_up" in rows(tmp_path / "run", "faults")[0]["traceback"]


def test_an_environment_that_raises_costs_one_episode(tmp_path: Path) -> None:
    def until_it_failed(run: Run) -> None:
        run.enough = run.faults_recorded > 0

    changes: dict[str, Any] = {"env": "tests.odd_envs:Raises", "max_restarts": 100_000}
    train(config(tmp_path, total_steps=100_000, **changes), on_update=until_it_failed)
    faults = rows(tmp_path / "run", "faults")
    assert "in worker" in faults[0]["what"]
    assert "the reactor is on fire" in faults[0]["traceback"]


def test_what_cannot_work_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        train(config(tmp_path, env="tests.odd_envs:CannotBeBuilt"))
    for flags in ("--num-workers 0", "--device cuda", "--wait-for 2"):
        assert main(["train", "--env", "CartPole-v1", "--algo", "a3c", *flags.split()]) == 2
        assert "--algo a3c computes in its worker processes" in capsys.readouterr().err


def test_a_loss_that_is_no_number_stops_the_run(tmp_path: Path) -> None:
    def spoil(run: Run) -> None:
        inside(run.source).shared.weights[:] = np.nan

    with pytest.raises(Exception, match="that is no number"):
        train(config(tmp_path, total_steps=10**6), on_update=spoil)
    assert summary(tmp_path / "run")["state"] == "failed"


def test_nothing_is_left_when_the_run_is_killed(tmp_path: Path) -> None:
    flags = f"train --env CartPole-v1 --algo a3c --num-workers 2 --output-dir {tmp_path} --name run"
    process = subprocess.Popen(
        [sys.executable, "-m", "phalanx", *flags.split(), "--total-steps", "100000000"],
        stdout=subprocess.DEVNULL,
    )
    blocks = set(os.listdir("/dev/shm"))
    table = tmp_path / "run" / "updates.csv"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (table.exists() and table.stat().st_size > 400):
        time.sleep(0.05)
    workers = children_of(process.pid)
    assert len(workers) == 2
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_alive, workers))
    assert set(os.listdir("/dev/shm")) <= blocks


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
