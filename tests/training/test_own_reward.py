"""A reward of one's own is logged beside the game's own score."""

import csv
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.cage2.rewards import reward
from phalanx.cli.commands import main
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.run import Run
from phalanx.training.saved_run import open_run

HERE = "tests.training.test_own_reward"
SMALL: dict[str, Any] = {
    "num_envs": 96,
    "total_steps": 96 * 25 * 6,
    "update_steps": 25,
    "horizon": 40,  # episodes go on from one rollout to the next
    "observation": "bits",
    "hidden": (16,),
    "minibatch_size": 700,
    "k_epochs": 1,
    "reward": f"{HERE}:one_less",
}


@reward
def one_less(turn: Any) -> float:
    return turn.reward - 1.0


def small(tmp_path: Path, name: str, **changes: Any) -> TrainConfig:
    return TrainConfig(**SMALL | {"output_dir": tmp_path, "name": name} | changes)


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    """A table without the columns of time."""
    with (folder / f"{name}.csv").open() as file:
        return [
            {k: v for k, v in row.items() if k[-2:] != "_s" and k != "wall_time"}
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"workflow": "all", "alignment_lambda": 50.0},  # what is paid for following is no part
        {"learner": "torch"},
        {"algo": "impala", "num_samplers": 2},
    ],
    ids=["ppo", "workflow", "torch", "impala"],
)
def test_each_episode_has_its_return_under_the_own_reward(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    """Whole, whatever the learner's weights of turns and its scale of rewards."""
    run = train(small(tmp_path, "run", **changes))
    episodes = rows(run.path, "episodes")
    assert len(episodes) >= 96
    for one in episodes:
        wanted = float(one["return"]) - int(one["length"])
        assert float(one["own_return"]) == pytest.approx(wanted, abs=1e-3)
    for update in rows(run.path, "updates"):
        ended = [float(e["own_return"]) for e in episodes if e["update"] == update["update"]]
        mean = np.mean(ended) if ended else np.nan
        assert float(update["own_return"]) == pytest.approx(mean, rel=1e-4, nan_ok=True)


def test_only_runs_with_a_reward_of_their_own_have_the_column(tmp_path: Path) -> None:
    own, plain = train(small(tmp_path, "own")), train(small(tmp_path, "plain", reward=None))
    for name in ("updates", "episodes"):
        columns = [list(rows(run.path, name)[0]) for run in (own, plain)]
        assert [one for one in columns[0] if one != "own_return"] == columns[1]
        assert "own_return" in columns[0]
    assert "own_returns" not in plain.sampler.save()
    assert plain.sampler.rollout.own_returns.nbytes == 0


def test_stop_and_resume_counts_on(tmp_path: Path) -> None:
    whole = train(small(tmp_path, "whole"))

    def stop_after_two(run: Run) -> None:  # in turn 10 of every network's second episode
        if run.updates == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    train(small(tmp_path, "cut"), on_update=stop_after_two)
    cut = train(small(tmp_path, "cut", resume=tmp_path / "cut", num_threads=2))
    assert cut.updates == whole.updates
    assert np.array_equal(cut.sampler.own_returns, whole.sampler.own_returns)
    for name in ("updates", "episodes"):
        assert rows(cut.path, name) == rows(whole.path, name)


def test_the_summary_and_the_end_of_the_command_tell_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = "--total-episodes 32 --n-envs 16 --horizon 10 --update-steps 10 --hidden 8"
    given = ["--reward", f"{HERE}:one_less", "--name", "own", "--output-dir", str(tmp_path)]
    assert main(["train", *flags.split(), *given]) == 0
    summary = json.loads((tmp_path / "own" / "summary.json").read_text())
    assert summary["own_return"]["episodes"] == 32
    wanted = summary["returns"]["all"]["mean"] - 10
    assert summary["own_return"]["mean"] == pytest.approx(wanted, abs=1e-3)
    said = capsys.readouterr().out
    assert f"return of the last 32 episodes under one_less {wanted:.4g} ± " in said
    history = open_run(tmp_path / "own").read_updates()
    assert np.nanmean(history["own_return"]) == pytest.approx(wanted, abs=1e-2)


def test_a_checkpoint_with_sums_that_are_no_numbers_is_refused(tmp_path: Path) -> None:
    run = train(small(tmp_path, "run"))
    sums = run.sampler.save()
    with pytest.raises(ValueError, match="no numbers"):
        run.sampler.load(sums | {"own_returns": np.full(96, np.nan)})
    run.sampler.load(sums)
