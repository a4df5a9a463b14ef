"""The first start: compiling is announced, Ctrl-C ends it, and the run's clock begins after it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from phalanx.cli.commands import main
from phalanx.compiled import rule
from phalanx.training import loop as training
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train

SMALL: dict[str, Any] = {
    "num_envs": 8,
    "total_steps": 8 * 10 * 2,
    "update_steps": 10,
    "horizon": 10,
    "hidden": (8,),
}
FLAGS = ["--n-envs", "8", "--total-steps", "160", "--horizon", "10", "--hidden", "8"]


def small(folder: Path, name: str, **changes: Any) -> TrainConfig:
    return TrainConfig(**{**SMALL, "output_dir": folder, "name": name, **changes})


def test_each_part_is_announced_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rule, "_announced", set())
    for module in ("cage2.kernel", "cage2.network", "learn.collect", "learn.returns", "bench.x"):
        rule._announce(f"phalanx.{module}")
    game, learning = capsys.readouterr().err.splitlines()
    assert game.startswith("phalanx: compiling the simulator, once; this takes")
    assert learning.startswith("phalanx: compiling what plays and learns, once; this takes")


def test_compiling_that_takes_long_is_told_of_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Mock(monotonic=Mock(return_value=100.0))
    monkeypatch.setattr(rule, "time", clock)
    monkeypatch.setattr(rule, "_announced", set())
    rule._say_that_it_goes_on(100.0)  # nothing is being compiled
    rule._announce("phalanx.cage2.kernel")
    for now in (101.0, 109.0, 111.0, 115.0, 121.0):
        clock.monotonic.return_value = now
        rule._say_that_it_goes_on(100.0)
    lines = capsys.readouterr().err.splitlines()[1:]
    assert lines == [f"phalanx: still compiling, {s} s so far" for s in (11, 21)]


def test_time_between_two_compilations_is_not_told_as_compiling(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A search compiles what judges orders when learners have been trained for minutes."""

    def later(work: Any, *arguments: Any, meanwhile: Callable[[], None]) -> None:
        clock.monotonic.return_value += 12.0
        meanwhile()

    clock = Mock(monotonic=Mock(return_value=500.0))
    monkeypatch.setattr(rule, "time", clock)
    monkeypatch.setattr(rule, "aside", later)
    monkeypatch.setattr(rule, "_announced", {"learn"})
    monkeypatch.setattr(rule, "_said", {"at": 100.0})
    monkeypatch.setattr(rule, "_compile_s", 30.0)
    rule._compile(Mock(), Mock(), ())
    assert capsys.readouterr().err == "phalanx: still compiling, 42 s so far\n"


@pytest.mark.parametrize("learner", ["compiled", "torch"])
def test_compiling_throws_none_of_the_runs_dice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learner: str
) -> None:
    def weights(name: str) -> Any:
        run = train(small(tmp_path, name, learner=learner))
        return run.learner.save()[0]["theta"]

    compiled_first = weights("first")
    monkeypatch.setattr(training, "compile_cage2", lambda config, network: None)
    assert np.array_equal(weights("never"), compiled_first)


def test_the_time_of_compiling_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "compile_s", iter([1.0, 61.5]).__next__)
    train(small(tmp_path, "run"))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["compile_s"] == 60.5
    assert summary["seconds"] < 60.5
    assert sum(summary["time_split"].values()) == pytest.approx(1)


def test_an_interrupt_while_it_compiles_leaves_nothing_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_settings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "compile_cage2", interrupt)
    assert main(["train", *FLAGS, "--output-dir", str(tmp_path / "a/b"), "--name", "run"]) == 130
    assert capsys.readouterr().err == "phalanx: interrupted\n"
    assert not list(tmp_path.iterdir())


TERMINATED = """
import os, signal, sys
from phalanx.cli.commands import main
from phalanx.training import loop as training
training.compile_cage2 = lambda *settings: os.kill(os.getpid(), signal.SIGTERM)
sys.exit(main(["train", *sys.argv[1:]]))
"""


def test_sigterm_while_it_compiles_leaves_nothing_of_the_run_either(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", TERMINATED, *FLAGS, "--output-dir", str(tmp_path / "runs")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (130, "phalanx: interrupted\n")
    assert not list(tmp_path.iterdir())


needs_compiler = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="compiles")


@needs_compiler
def test_ctrl_c_does_not_wait_for_the_compiler(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "phalanx", "train", *FLAGS]
    process = subprocess.Popen(
        [*command, "--output-dir", str(tmp_path / "runs"), "--name", "run"],
        env={**os.environ, "PHALANX_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "compiling the simulator" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert said == "phalanx: interrupted\n"
    assert not (tmp_path / "runs").exists()


@needs_compiler
def test_nothing_is_said_if_all_is_on_disk() -> None:
    """And the first of the two says what it compiles, if it must."""
    code = (
        "import numpy as np; from phalanx.cage2 import Batch\n"
        "Batch(2, num_threads=1).play(np.zeros(2, np.int64))"
    )
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
    assert ran.stderr == ""


COMPILED_LATE = """
import gc, sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from phalanx.training import loop as training
from phalanx.compiled.cache import KeptKernel
from tests.training.test_first_start import small

def forms():
    kernels = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    kept = [one for one in kernels if isinstance(one._cache, KeptKernel)]
    return {f"{one.__name__}{types}" for one in kept for types in one.overloads}

def noted(run, *rest):
    before = forms()
    loop(run, *rest)
    print(f"late in {run.config.name}: {forms() - before}")

loop, training._loop = training._loop, noted
for name, changes in {
    "pool": {"env": "CartPole-v1", "wait_for": 3, "num_workers": 0},
    "impala": {"algo": "impala", "workflow": "all", "num_samplers": 2},
    "torch": {"learner": "torch"},
    "replay": {"algo": "impala", "replay": 1, "num_threads": 2},
}.items():
    training.train(small(Path(sys.argv[1]), name, **changes))
"""


@needs_compiler
def test_nothing_is_compiled_once_the_clock_runs(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", COMPILED_LATE, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    late = [line for line in ran.stdout.splitlines() if line.startswith("late")]
    assert late == [f"late in {name}: set()" for name in ("pool", "impala", "torch", "replay")]
