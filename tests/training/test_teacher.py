"""A teacher in a run: its decisions are learnt, kept, and found again."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.cage2.rules.observation import PASSED
from phalanx.cage2.rules.scenario import ACTION_SLEEP
from phalanx.cli.commands import main
from phalanx.errors import CheckpointError, ConfigError
from phalanx.play.lessons import open_teacher
from phalanx.play.trained import load_defender
from phalanx.training.checkpoint import load_checkpoint, save_checkpoint
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.run import Run
from phalanx.training.teacher import watch
from tests.training.test_training import rows, small, theta

TAUGHT: dict[str, Any] = {"teacher": "champion", "teacher_episodes": 6, "teacher_steps": 3}


def test_lessons_are_what_the_learner_would_see_and_the_teacher_did() -> None:
    champion = load_defender("champion")
    config = TrainConfig(
        **TAUGHT, prior=champion.prior, horizon=30, condition=(0.5,), actions="useful"
    )
    actions = open_teacher(config)()
    assert actions.shape == (30, 6)
    lessons = watch(config, actions)
    assert lessons.obs.shape == (180, 457)
    assert (lessons.obs[:, -1] == 0.5).all()
    shown = lessons.obs[:, :-1].copy()
    shown[:, PASSED] *= (
        30 / 100
    )  # the share of the horizon that is gone; the champion's is 100 turns
    assert np.array_equal(champion.act(shown, masks=lessons.masks), lessons.actions)


def test_what_the_learner_may_not_do_is_left_out() -> None:
    config = TrainConfig(teacher="random", teacher_episodes=5, horizon=20)
    lessons = watch(config, open_teacher(config)())
    assert 0 < len(lessons.actions) < 100
    assert lessons.masks[np.arange(len(lessons.actions)), lessons.actions].all()
    quiet = TrainConfig(teacher="react-restore", teacher_episodes=5, horizon=20)
    assert len(watch(quiet, open_teacher(quiet)()).actions) == 100  # Monitor is Sleep


def test_what_is_in_vain_is_learnt_as_sleep() -> None:
    config = TrainConfig(teacher="random", teacher_episodes=5, horizon=20, actions="useful")
    actions = open_teacher(config)()
    plain, effective = (
        watch(replace(config, actions=chosen), actions) for chosen in ("useful", "effective")
    )
    assert len(effective.actions) >= len(plain.actions)
    asleep = [(lessons.actions == ACTION_SLEEP).sum() for lessons in (plain, effective)]
    assert asleep[1] > asleep[0] + 3
    assert effective.masks[np.arange(len(effective.actions)), effective.actions].all()


def test_a_taught_run_learns_what_the_teacher_does(tmp_path: Path) -> None:
    run = train(small(tmp_path, "taught", **{**TAUGHT, "teacher_steps": 20}))
    losses, weights = (run.read_updates()[name] for name in ("teacher_loss", "teacher_weight"))
    assert losses[-1] < losses[0] - 0.3
    assert weights.tolist() == pytest.approx([1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6], rel=1e-4)
    alone = train(small(tmp_path, "alone"))
    assert not np.array_equal(theta(run), theta(alone))


def test_stop_and_resume_equals_never_stopping_with_a_teacher_who_has_left(tmp_path: Path) -> None:
    main(["export", "champion", str(tmp_path / "teacher.npz")])
    changes = {**TAUGHT, "teacher": str(tmp_path / "teacher.npz")}
    whole = train(small(tmp_path, "whole", **changes, num_threads=1))

    def stop_after_three(run: Run) -> None:
        if run.updates == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    train(small(tmp_path, "cut", **changes), on_update=stop_after_three)
    (tmp_path / "teacher.npz").unlink()
    second = train(small(tmp_path, "cut", resume=tmp_path / "cut", num_threads=2, **changes))
    assert second.updates == whole.updates
    assert np.array_equal(theta(second), theta(whole))
    assert rows(tmp_path / "cut", "updates") == rows(tmp_path / "whole", "updates")


def test_a_defender_in_memory_can_teach(tmp_path: Path) -> None:
    few = {**TAUGHT, "total_steps": 96 * 25}
    named = train(small(tmp_path, "named", **few))
    few["teacher"] = None
    given = phalanx.train(
        small(tmp_path, "given", **few), teacher=phalanx.load_defender("champion")
    )
    assert np.array_equal(theta(named), theta(given))
    assert given.config.teacher == "function TrainedDefender"


def test_actions_that_are_none_are_refused(tmp_path: Path) -> None:
    config, folder = small(tmp_path, "run", **TAUGHT, total_steps=96 * 25), tmp_path / "run"
    run = train(config)
    arrays, facts = load_checkpoint(run.folder.checkpoint, run._saved()[0])
    assert arrays["lessons"].shape == (40, 6)
    arrays["lessons"][3, 2] = 200
    save_checkpoint(run.folder.checkpoint, arrays, facts)
    with pytest.raises(CheckpointError, match="the teacher's actions are none of this game"):
        train(small(tmp_path, "run", **TAUGHT, total_steps=2 * 96 * 25, resume=folder))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--teacher nowhere", "there is no run or checkpoint nowhere"),
        ("--teacher champion --algo impala", "--teacher has no effect here"),
        ("--teacher champion --env CartPole-v1", "--teacher has no effect here"),
        ("--teacher-steps 3", "--teacher-steps has no effect here, it is for --teacher"),
        ("--teacher champion --teacher-weight 0", "must be more than 0"),
        ("--teacher champion --teacher-episodes 1000000", "give fewer --teacher-episodes"),
    ],
)
def test_bad_input_gets_one_line(
    arguments: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *arguments.split(), "--output-dir", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_names_a_teachers_code_does_not_decide_that_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("teacher: mine:Blue\n")
    assert main(["train", "--config", str(file), "--output-dir", str(tmp_path)]) == 2
    assert "a file never decides what runs" in capsys.readouterr().err
    file.write_text("teacher: champion\nnum_envs: 0\n")
    assert main(["train", "--config", str(file), "--output-dir", str(tmp_path)]) == 2
    assert "num_envs" in capsys.readouterr().err


def test_a_teacher_given_in_python_is_refused_where_it_has_no_effect(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is for --algo ppo on the compiled cage2"):
        phalanx.train(small(tmp_path, "run", algo="impala"), teacher="champion")
    with pytest.raises(ConfigError, match="nowhere"):
        phalanx.train(small(tmp_path, "run"), teacher="nowhere")
    assert list(tmp_path.iterdir()) == []
