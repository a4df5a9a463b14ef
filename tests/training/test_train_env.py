"""Training on any Gymnasium environment: the same run whatever steps it, and what it logs."""

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

import gymnasium
import numpy as np
import pytest
import yaml
from gymnasium import spaces

import phalanx
from phalanx.cli.commands import main
from phalanx.errors import CheckpointError, ConfigError
from phalanx.machine import count_cores
from phalanx.training.config import TrainConfig
from phalanx.training.extension import Extension
from phalanx.training.folder import RunFolder
from phalanx.training.on_pool import can_be_compiled
from phalanx.training.run import Run
from phalanx.training.saved_networks import load_networks
from tests import odd_envs
from tests.training.inside import inside
from tests.training.test_training import OWN, OwnNetwork, rows, theta

pytestmark = pytest.mark.slow
HERE = __name__


def short(tmp_path: Path, name: str, **changes: Any) -> TrainConfig:
    settings: dict[str, Any] = {
        "env": "CartPole-v1",
        "num_envs": 10,
        "update_steps": 32,
        "total_steps": 10 * 32 * 4,
        "num_workers": 0,
        "output_dir": tmp_path,
        "name": name,
    }
    return TrainConfig(**{**settings, **changes})


@pytest.mark.parametrize("overlap", [False, True])
def test_equal_seeds_give_equal_weights_on_any_number_of_workers(
    tmp_path: Path, overlap: bool
) -> None:
    runs = [
        phalanx.train(short(tmp_path, f"{workers}", num_workers=workers, overlap=overlap))
        for workers in (0, 1, 2, 5)
    ]
    assert all(np.array_equal(theta(runs[0]), theta(run)) for run in runs[1:])
    first, *others = (rows(tmp_path / run.folder.path.name, "episodes") for run in runs)
    assert first
    assert all(other == first for other in others)
    assert set(runs[0].lags) == ({0, 1} if overlap else {0})


def test_samplers_take_new_weights_every_so_often_and_no_batch_is_older(tmp_path: Path) -> None:
    for overlap in (False, True):
        run = phalanx.train(
            short(tmp_path, f"{overlap}", sync_every=3, overlap=overlap, total_steps=10 * 32 * 9)
        )
        assert max(run.lags) == (3 if overlap else 2)
        lags = [int(row["lag"]) for row in rows(tmp_path / f"{overlap}", "updates")]
        assert max(lags) <= 3


def test_ppo_out_of_step_drops_what_is_too_old_and_counts_it(tmp_path: Path) -> None:
    run = phalanx.train(short(tmp_path, "x", wait_for=3, num_workers=2, total_steps=10 * 32 * 8))
    assert max(run.lags) <= 1
    logged = rows(tmp_path / "x", "updates")
    assert sum(int(row["dropped_steps"]) for row in logged) == run.dropped_steps


class Target(gymnasium.Env[Any, Any]):
    """Say the number that is shown: a continuous action in a space that is not around 0."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Box(2, 6, (1,), np.float32)

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        self.turn, self.shown = 0, self.np_random.random(1).astype(np.float32)
        return self.shown, {}

    def step(self, action: Any) -> Any:
        missed = float(abs(action[0] - (2 + 4 * self.shown[0])))
        self.turn, self.shown = self.turn + 1, self.np_random.random(1).astype(np.float32)
        return self.shown, -missed, False, self.turn == 10, {}


def test_continuous_actions_are_learnt(tmp_path: Path) -> None:
    config = short(
        tmp_path, "x", env=f"{HERE}:Target", total_steps=30_000, gamma=0.0, learning_rate=3e-3
    )
    phalanx.train(config)
    returns = [float(row["return"]) for row in rows(tmp_path / "x", "episodes")]
    assert np.mean(returns[:20]) < -9  # by chance
    assert np.mean(returns[-50:]) > -5


class Colours(gymnasium.Env[Any, Any]):
    """An image whose colour says which of three actions pays."""

    observation_space = spaces.Box(0, 255, (24, 24, 3), np.uint8)
    action_space = spaces.Discrete(3)

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        self.turn = 0
        return self.paint(), {}

    def paint(self) -> Any:
        self.colour = int(self.np_random.integers(3))
        image = self.np_random.integers(0, 40, (24, 24, 3), np.uint8)
        image[..., self.colour] += 60
        return image

    def step(self, action: Any) -> Any:
        right, self.turn = float(action == self.colour), self.turn + 1
        return self.paint(), right, False, self.turn == 10, {}


@pytest.mark.parametrize("algo", ["ppo", "impala"])
def test_images_are_learnt_from(tmp_path: Path, algo: str) -> None:
    config = short(
        tmp_path,
        "x",
        env=f"{HERE}:Colours",
        algo=algo,
        total_steps=20_000,
        gamma=0.0,
        k_epochs=3,
        num_workers=0,
        learning_rate=2e-3,
        hidden=(32,),
    )
    run = phalanx.train(config)
    assert np.mean([episode.total for episode in run.recent][-50:]) > 8


def test_tiny_images_are_seen_as_vectors() -> None:
    three = spaces.Discrete(3)
    assert can_be_compiled(spaces.Box(0, 1, (10, 10, 4), np.bool_), three)
    assert can_be_compiled(spaces.Box(0, 255, (15, 15, 3), np.uint8), three)
    assert not can_be_compiled(spaces.Box(0, 255, (16, 15, 3), np.uint8), three)


# --- what can happen ------------------------------------------------------------------------------


class Slow(odd_envs.Counting):
    length = 1_000_000  # an episode that has just begun has no return yet

    def step(self, action: Any) -> Any:
        time.sleep(0.02)
        return super().step(action)


@pytest.mark.parametrize("algo", ["ppo", "impala"])
def test_a_timed_run_does_not_wait_for_its_rollout(tmp_path: Path, algo: str) -> None:
    """One that would take some minutes; returns are there although no rollout was finished."""
    config = short(
        tmp_path,
        "x",
        env=f"{HERE}:Slow",
        algo=algo,
        num_workers=2,
        num_envs=4,
        update_steps=20_000,
        duration=1.0 / 3600,
    )
    began = time.monotonic()
    run = phalanx.train(config)
    assert time.monotonic() - began < 60
    assert run.updates == 0
    summary = json.loads((tmp_path / "x" / "summary.json").read_text())
    assert summary["returns"]["all"]["mean"] > 0


def test_failed_environments_are_logged_and_training_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = short(
        tmp_path,
        "x",
        env="tests.odd_envs:Raises",
        num_workers=2,
        max_restarts=10_000,
        total_steps=2000,
    )
    run = phalanx.train(config)
    assert run.steps >= 2000
    faults = faults_of(tmp_path / "x")
    assert len(faults) > 5
    assert "the reactor is on fire" in faults[0]["what"]
    assert "the reactor is on fire" in capsys.readouterr().err
    assert json.loads((tmp_path / "x" / "summary.json").read_text())["faults"] == len(faults)


def faults_of(folder: Path) -> list[dict[str, str]]:
    path = folder / "faults.csv"
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def test_faults_outlive_a_kill_and_are_counted_on(tmp_path: Path) -> None:
    config = short(
        tmp_path,
        "x",
        env="tests.odd_envs:Raises",
        num_workers=2,
        max_restarts=10**6,
        total_steps=320,
        checkpoint_every=10**6,
    )
    first = phalanx.train(config)
    flags = f"train --resume {tmp_path / 'x'} --env tests.odd_envs:Raises --total-steps 100000000"
    child = subprocess.Popen(
        [sys.executable, "-m", "phalanx.cli.commands", *flags.split()],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while len(faults_of(tmp_path / "x")) < first.faults_recorded + 50:
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.05)
    child.kill()
    child.wait()
    before = len(faults_of(tmp_path / "x"))
    phalanx.train(dataclasses.replace(config, resume=tmp_path / "x", total_steps=640))
    summary = json.loads((tmp_path / "x" / "summary.json").read_text())
    assert summary["steps"] == 640
    assert summary["faults"] == len(faults_of(tmp_path / "x")) > before


def test_a_fault_is_on_disk_while_an_update_is_under_way(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "x")
    run = Run(short(tmp_path, "x", num_workers=2, overlap=False), folder)
    try:
        run.sampler.listen(run.record_fault)
        run.step()
        os.kill(run.sampler.pool.worker_pids[0], signal.SIGKILL)
        deadline = time.monotonic() + 30
        while not (faults := faults_of(tmp_path / "x")) and time.monotonic() < deadline:
            time.sleep(0.02)  # as if something was learnt from: nobody waits for the environments
        (fault,) = faults
        assert "worker 0 was killed by SIGKILL" in fault["what"]
    finally:
        run.recipe.close()
        folder.close()


class Broken(odd_envs.Counting):
    """Its 40th step shows no number."""

    length = 1000

    def see(self) -> Any:
        seen = super().see()
        seen[2] = np.nan if self.count == 40 else 0
        return seen


@pytest.mark.parametrize("algo", ["ppo", "a3c"])
def test_an_observation_that_is_no_number_ends_the_run_in_one_line(
    tmp_path: Path, algo: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = f"--env {HERE}:Broken --algo {algo} --num-workers 1 --n-envs 2 --update-steps 32"
    flags += f" --total-steps 10000 --output-dir {tmp_path} --name x"
    assert main(["train", *flags.split()]) == 2
    *_, said = capsys.readouterr().err.strip().split("\n")
    told = r"phalanx: environment [01] gave an observation that is no number .* at step 40 of"
    assert re.match(told, said)
    summary = json.loads((tmp_path / "x" / "summary.json").read_text())
    assert (summary["state"], summary["updates"] >= 1) == ("failed", True)
    assert (tmp_path / "x" / "checkpoints" / "last.npz").exists()


def test_the_threads_of_workers_are_told_and_so_is_what_overrides_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    phalanx.train(short(tmp_path, "x", num_workers=2, total_steps=320))
    said = capsys.readouterr().out
    assert f"threads per worker: {max(1, count_cores() // 2)}" in said
    assert "OMP_NUM_THREADS=64 is set outside" in said


def test_one_summary_for_every_algorithm_and_layout(tmp_path: Path) -> None:
    cage2 = {"env": "cage2", "num_envs": 32, "horizon": 20, "update_steps": 20, "total_steps": 1280}
    configs = [
        short(tmp_path, "ppo"),
        short(tmp_path, "workers", num_workers=2),
        short(tmp_path, "impala", algo="impala", replay=1),
        short(tmp_path, "cage2", **cage2),
        short(tmp_path, "cage2-impala", **cage2, algo="impala"),
    ]
    for config in configs:
        phalanx.train(config)
    summaries = [
        json.loads((tmp_path / str(config.name) / "summary.json").read_text()) for config in configs
    ]
    assert all(summary.keys() == summaries[0].keys() for summary in summaries)
    for summary in summaries:
        assert summary["steps"] >= 1280
        assert summary["returns"]["all"]["mean"] is not None
        assert summary["steps_per_s"] == pytest.approx(summary["steps"] / summary["seconds"])


def test_a_run_on_an_environment_goes_on_where_it_was(tmp_path: Path) -> None:
    first = phalanx.train(short(tmp_path, "x"))
    longer = short(tmp_path, "x", resume=tmp_path / "x", total_steps=10 * 32 * 6)
    second = phalanx.train(longer)
    assert second.updates == 6
    assert second.steps == 10 * 32 * 6
    assert second.episodes >= first.episodes
    assert [int(row["update"]) for row in rows(tmp_path / "x", "updates")] == list(range(1, 7))


def test_a_run_that_goes_on_has_its_weights_and_its_optimiser_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = phalanx.train(short(tmp_path, "x"))
    monkeypatch.setattr(Run, "step", lambda run: os.kill(os.getpid(), signal.SIGINT))
    longer = short(tmp_path, "x", resume=tmp_path / "x", total_steps=10 * 32 * 6)
    second = phalanx.train(longer)
    assert np.array_equal(theta(second), theta(first))
    assert (second.updates, second.steps) == (4, first.steps)
    (before, facts), (after, second_facts) = (run.learner.save() for run in (first, second))
    assert (second.episodes, second_facts["adam_steps"]) == (first.episodes, facts["adam_steps"])
    assert before["obs_count"] == after["obs_count"] == first.steps
    assert all(np.array_equal(before[name], after[name]) for name in before)
    before, after = (run.learner.stepper.optimiser() for run in (first, second))
    assert before.keys() == after.keys()
    assert all(before[name].any() for name in before)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_statistics_of_a_run_that_goes_on_are_of_all_that_it_saw(tmp_path: Path) -> None:
    first = phalanx.train(short(tmp_path, "x"))
    second = phalanx.train(short(tmp_path, "x", resume=tmp_path / "x", total_steps=10 * 32 * 6))
    counts = [run.learner.save()[0]["obs_count"] for run in (first, second)]
    assert counts == [10 * 32 * 4, 10 * 32 * 6]
    returns = second.recipe.intake.returns
    assert returns is not None
    assert returns.count == 10 * 32 * 6


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_a_policy_sees_what_it_saw_in_training_wherever_it_plays(tmp_path: Path, env: str) -> None:
    run = phalanx.train(short(tmp_path, "x", env=env))
    run.sampler.set_weights(run.learner.stepper.weights(), 0)
    assert main(["export", str(tmp_path / "x"), str(tmp_path / "agent.npz")]) == 0
    spaces = run.sampler.pool.single_observation_space, run.sampler.pool.single_action_space
    obs = np.array([spaces[0].sample() for _ in range(5)]).clip(-3, 3)
    known = np.asarray(run.sampler.actor.forward(run.sampler.actor.prepare(obs))[0])
    for file in (tmp_path / "x" / "checkpoints" / "last.npz", tmp_path / "agent.npz"):
        assert main(["evaluate", str(file), "--episodes", "2"]) == 0
        actor, stepper = load_networks(file, run.config, *spaces, None)
        assert np.array_equal(np.asarray(actor.forward(actor.prepare(obs))[0]), known)
        assert inside(stepper).seen.count == run.steps  # what is seen in evaluation is not added
    other = short(tmp_path, "y", env=env, start_from=str(tmp_path / "agent.npz"))
    assert inside(phalanx.train(other).learner.stepper).seen.count == 2 * run.steps


def test_weights_learnt_from_observations_as_they_are_do_not_start_a_run_that_normalises(
    tmp_path: Path,
) -> None:
    phalanx.train(short(tmp_path, "x", normalize_observation=False))
    with pytest.raises(CheckpointError, match="--normalize-observation False"):
        phalanx.train(short(tmp_path, "y", start_from=str(tmp_path / "x")))


def cart_pole() -> Any:
    return gymnasium.make("CartPole-v1")


def test_an_environment_may_be_given_as_a_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def mine() -> Any:
        return cart_pole()

    longer = 10 * 32 * 6
    named = phalanx.train(short(tmp_path, "named"))
    given = phalanx.train(short(tmp_path, "given", env=mine, num_workers=1))
    assert np.array_equal(theta(given), theta(named))
    again = short(tmp_path, "given", env=mine, total_steps=longer, resume=tmp_path / "given")
    assert phalanx.train(again).updates == 6
    settings = (tmp_path / "given" / "config.yaml").read_text()
    assert "env: function test_an_environment_may_be_given" in settings
    with pytest.raises(ConfigError, match=r"was given from Python .* give it again"):
        phalanx.train(short(tmp_path, "x", env=again.env_name))
    assert main(["train", "--resume", str(tmp_path / "given"), "--total-steps", "9999"]) == 2
    assert capsys.readouterr().err.count("give it again") == 1
    with pytest.raises(ConfigError, match="env must be a word or a function, got 7"):
        TrainConfig(env=7)  # type: ignore[arg-type]


def test_a_function_that_a_module_has_is_found_again_by_its_place(tmp_path: Path) -> None:
    phalanx.train(short(tmp_path, "x", env=cart_pole))
    assert f"env: {HERE}:cart_pole\n" in (tmp_path / "x" / "config.yaml").read_text()
    longer = short(
        tmp_path, "x", env=f"{HERE}:cart_pole", total_steps=10 * 32 * 6, resume=tmp_path / "x"
    )
    assert phalanx.train(longer).updates == 6


def test_how_many_environments_were_chosen_is_kept(tmp_path: Path) -> None:
    run = phalanx.train(short(tmp_path, "x", num_envs="auto", total_steps=100))
    size = run.config.num_envs
    assert isinstance(size, int)
    settings = (tmp_path / "x" / "config.yaml").read_text()
    assert f"\nnum_envs: {size}\n" in settings
    assert (
        f"# --n-envs auto chose {size}, as everywhere for an environment that computes" in settings
    )
    summary = json.loads((tmp_path / "x" / "summary.json").read_text())
    assert summary["num_envs"] == size
    assert any("auto chose" in note for note in summary["notes"])
    assert summary["num_workers"] == run.recipe.num_workers
    again = short(tmp_path, "x", num_envs="auto", total_steps=3 * 32 * size, resume=tmp_path / "x")
    assert phalanx.train(again).config.num_envs == size


def test_the_number_that_was_chosen_gives_the_same_run_again(tmp_path: Path) -> None:
    chosen = phalanx.train(short(tmp_path, "auto", num_envs="auto", total_steps=100))
    given = short(tmp_path, "given", num_envs=chosen.config.num_envs, total_steps=100)
    assert np.array_equal(theta(phalanx.train(given)), theta(chosen))


def test_a_policy_is_evaluated_in_its_own_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phalanx.train(short(tmp_path, "x"))
    report = tmp_path / "cells.json"
    flags = [str(tmp_path / "x"), "--episodes", "20", "--json", str(report)]
    assert main(["evaluate", *flags]) == 0
    assert "CartPole-v1: return" in capsys.readouterr().out
    (cell,) = json.loads(report.read_text())["cells"]
    assert cell["episodes"] == 20
    assert cell["mean"] > 8
    for flag in (["--leaderboard"], ["--horizon", "10"], ["--rules", "2.1-final"]):
        assert main(["evaluate", str(tmp_path / "x"), *flag]) == 2
        assert f"leave out {flag[0]}, which is for CAGE-2" in capsys.readouterr().err


def test_what_is_left_open_is_chosen_by_the_kind_of_task_and_kept(tmp_path: Path) -> None:
    drawn = short(tmp_path, "drawn", env="Pendulum-v1")
    run = phalanx.train(drawn)
    assert run.config.entropy == 0.0
    saved = yaml.safe_load((run.folder.path / "config.yaml").read_text())
    assert saved["entropy"] == 0.0
    longer = phalanx.train(dataclasses.replace(drawn, resume=run.folder.path, total_steps=10**4))
    assert longer.config.entropy == 0.0
    given = phalanx.train(short(tmp_path, "given", env="Pendulum-v1", entropy=0.01))
    assert given.config.entropy == 0.01
    assert phalanx.train(short(tmp_path, "discrete")).config.entropy == 0.01
    seen = phalanx.train(short(tmp_path, "seen", env=f"{HERE}:Colours", total_steps=320)).config
    assert (seen.k_epochs, seen.minibatch_size, seen.learning_rate) == (1, 64, 3e-3)


def test_a_run_on_another_environment_knows_nothing_of_cage2(tmp_path: Path) -> None:
    run = phalanx.train(short(tmp_path, "x"))
    assert type(run.extension) is Extension
    columns = set(run.read_updates()) | set(run.read_episodes())
    assert not columns & {"restore_price", "workflow", "fixes", "compliance", "alignment"}


def test_a_batch_that_is_wholly_too_old_is_dropped_and_the_next_one_learnt_from(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path / "x")
    run = Run(short(tmp_path, "x", overlap=False), folder)
    fresh = run.source.next

    def first_an_old_one(weights: Any, version: int, shaping: Any) -> Any:
        rollout = fresh(weights, version, shaping)
        if len(asked) == 0:
            rollout.versions[:] = -5
        asked.append(version)
        return rollout

    asked: list[int] = []
    run.source.next = first_an_old_one  # type: ignore[method-assign]
    run.step()
    assert asked == [0, 0]
    assert (run.updates, run.steps, run.dropped_steps) == (1, 320, 320)
    run.recipe.close()
    folder.close()


def test_a_network_of_ones_own_must_be_named_to_be_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phalanx.train(short(tmp_path, "x"), network=OwnNetwork)
    flags = [str(tmp_path / "x"), "--episodes", "4"]
    assert main(["evaluate", *flags]) == 2
    assert "--network module:factory" in capsys.readouterr().err
    assert main(["evaluate", *flags, "--network", OWN]) == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--env NoSuchEnv-v0", "NoSuchEnv"),
        ("--env tests.odd_envs:Nowhere", "Nowhere"),
        ("--env CartPole-v1 --wait-for 0", "wait_for must be"),
        ("--env CartPole-v1 --num-workers -1", "num_workers must be"),
        ("--env CartPole-v1 --num-envs-per-worker 4", "needs --num-workers"),
        ("--env CartPole-v1 --algo pppo", "did you mean ppo"),
        ("--env CartPole-v1 --duration 0", "duration must be more than 0"),
        ("--algo a3c", "for environments in worker processes"),
        ("--env FrozenLake-v1", "cannot be learnt"),
        ("--env CartPole-v1 --learner compiled --compile", "--learner compiled"),
    ],
)
def test_bad_flags_get_one_line(
    flags: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["train", *flags.split(), "--output-dir", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


class Waiting(odd_envs.Counting):
    def step(self, action: Any) -> Any:
        time.sleep(0.002)
        return super().step(action)


def test_environments_that_wait_get_company(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"num_envs": "auto", "num_workers": "auto", "update_steps": 1, "total_steps": 1}
    for env, fewer in (("CartPole-v1", True), (f"{HERE}:Waiting", False)):
        run = phalanx.train(short(tmp_path, env.split(":")[-1], env=env, **one))
        assert (run.sampler.pool.n_envs < 64) == fewer
        assert f"{run.sampler.pool.n_envs} environments; " in capsys.readouterr().out
