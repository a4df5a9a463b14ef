"""Sweeps: what is refused, what is trained, what is told, and that nothing is left running."""

import contextlib
import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from phalanx.cli.commands import main
from phalanx.cluster.sweep import Outcome, Sweep, _StopNow, _stopping, _watcher, over_seeds, sweep
from phalanx.cluster.sweep_config import SweepConfig
from phalanx.errors import WorkerError
from phalanx.machine import count_cores
from phalanx.training.checkpoint import load_checkpoint
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from tests.leftovers import Marked

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
pytestmark = pytest.mark.slow
PHALANX = Path(sys.executable).parent / "phalanx"
SMALL: dict[str, Any] = {
    "red_agent": "b_line", "total_episodes": 64, "horizon": 10, "update_steps": 10, "num_envs": 32,
    "minibatch_size": 160, "observation": "bits", "hidden": [8], "seed": 5,
}  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    return path


# --- what is asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "nothing to vary: give --over"),
        (
            "--over lerning_rate=1",
            "there is no setting 'lerning_rate'; did you mean learning_rate?",
        ),
        ("--over learning_rate=fast", "'fast' is not a number"),
        ("--over k_epochs=1.5", "'1.5' is not a whole number"),
        ("--over gamma=0.9,1.5", "gamma=1.5: gamma must be from 0 to 1"),
        ("--over algo=ppo,sarsa", "unknown algo 'sarsa'"),
        ("--over gamma", "give name=value"),
        ("--over gamma=", "at least one value"),
        ("--over gamma=0.9,0.90", "given twice"),
        ("--over gamma=0.9 gamma=0.8", "given twice"),
        ("--over seed=1,2", "give --seeds"),
        ("--over num_threads=1,2", "give --cpus-per-trial"),
        ("--over gamma=0.9 --seeds 1,1", "given twice"),
        ("--over gamma=0.9 --seeds -1", "seeds must be from 0"),
        ("--over gamma=0.9 --cpus-per-trial 0", "must be from 1 to"),
        ("--over gamma=0.9 --max-concurrent 0", "must be from 1 to"),
        (f"--over gamma=0.9 --cpus-per-trial {count_cores() + 1}", f"at most {count_cores()}"),
        ("--over gamma=0.9 --ray-address here", "auto or HOST:PORT"),
        ("--over gamma=0.9 --name there", "exists already"),
        ("nowhere.yaml --over gamma=0.9", "unknown config or YAML file 'nowhere.yaml'"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(
    flags: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").mkdir()
    assert main(["sweep", *flags.split(), "--output-dir", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize("folder", ["file/below", "/proc/below"])
def test_a_folder_that_cannot_be_made_is_refused(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["sweep", "--over", "gamma=0.9", "--output-dir", str(tmp_path / folder)]) == 2
    assert "give another --output-dir" in capsys.readouterr().err


def test_without_ray_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["sweep", "--over", "gamma=0.9", "--output-dir", str(tmp_path)]) == 2
    assert "pip install 'phalanx[ray]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@needs_ray
def test_a_ray_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--over", "gamma=0.9", "--ray-address", "127.0.0.1:1", "--output-dir", str(tmp_path)]
    assert main(["sweep", *flags]) == 2
    assert "nobody listens there" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@needs_ray
def test_neither_ray_nor_tune_is_loaded_for_nothing() -> None:
    code = (
        "import sys, phalanx.cli.commands, phalanx.cluster.rllib, phalanx.cluster.sweep\n"
        "assert 'ray' not in sys.modules\n"
        "phalanx.cluster.ray.import_ray()\n"  # as every sampler does
        "assert not {'ray.tune', 'pandas', 'pyarrow'} & set(sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_combination_is_trained_with_every_seed(base: Path, tmp_path: Path) -> None:
    over = ("learning_rate=1e-3,3e-4", "hidden=8,16x16", "gamma=0.9")
    config = SweepConfig(base=base, over=over, seeds=(0, 1), output_dir=tmp_path, name="s")
    asked = {
        (t.config.learning_rate, t.config.hidden, t.config.gamma, t.config.seed)
        for t in config.trials
    }
    assert asked == {
        (rate, hidden, 0.9, seed)
        for rate in (1e-3, 3e-4)
        for hidden in ((8,), (16, 16))
        for seed in (0, 1)
    }
    assert len({trial.path for trial in config.trials}) == len(config.trials) == 8
    assert all(trial.config.horizon == SMALL["horizon"] for trial in config.trials)
    last = config.trials[-1]
    assert last.path == tmp_path / "s" / "3-learning_rate=3e-4-hidden=16x16" / "seed=1"
    assert last.combination == "learning_rate=3e-4 hidden=16x16 gamma=0.9"


def test_the_configs_own_seed_is_taken_if_none_is_given(base: Path) -> None:
    assert [t.config.seed for t in SweepConfig(base=base, over=("gamma=0.9",)).trials] == [5]


def test_a_value_with_commas_stands_in_brackets() -> None:
    config = SweepConfig(over=("red_agent=sleep,[b_line=0.5,meander=0.5]", "hidden=[8,8],4"))
    assert [trial.config.red_agent for trial in config.trials[::2]] == [
        "sleep",
        "b_line=0.5,meander=0.5",
    ]
    assert [trial.config.hidden for trial in config.trials[:2]] == [(8, 8), (4,)]


def test_a_trial_uses_its_cores_and_no_others() -> None:
    cores = count_cores()
    over = ("env=cage2,CartPole-v1", "algo=ppo")
    ours, pole = SweepConfig(over=over, cpus_per_trial=cores).trials
    assert ours.config.num_threads == pole.config.num_threads == cores
    assert pole.config.num_workers == (cores if cores > 1 else 0)
    alone = SweepConfig(over=("env=CartPole-v1", "algo=ppo,a3c")).trials
    assert [trial.config.num_workers for trial in alone] == [0, 1]


def test_the_interval_is_over_seeds_if_there_are_several() -> None:
    """Three seeds: t with two degrees of freedom is 4.303."""
    three = [Outcome("finished", mean, 0.1, 0.2) for mean in (1.0, 2.0, 3.0)]
    mean, half_width = over_seeds(three)
    assert mean == 2.0
    assert half_width == pytest.approx(4.3027 * 1.0 / 3**0.5, rel=1e-4)
    assert over_seeds(three[:1]) == (1.0, 0.2)
    unknown = [Outcome("stopped"), *three[:1]]
    assert over_seeds(unknown) == (1.0, 0.2)
    assert over_seeds([]) == (None, None)


def files_of(path: Path) -> tuple[list[str], dict[str, Any]]:
    """The states in sweep.csv, and summary.json."""
    with (path / "sweep.csv").open() as file:
        states = [row["state"] for row in csv.DictReader(file)]
    return states, json.loads((path / "summary.json").read_text())


def three_trials(base: Path, tmp_path: Path) -> SweepConfig:
    return SweepConfig(base=base, over=("gamma=0.9,0.8,0.7",), output_dir=tmp_path, name="s")


def test_the_tables_are_up_to_date_after_every_trial(base: Path, tmp_path: Path) -> None:
    swept = Sweep(three_trials(base, tmp_path))
    swept.path.mkdir()
    swept.record(1, Outcome("finished", mean=-3.0, episodes_per_s=1.0))
    states, facts = files_of(swept.path)
    assert states == ["not begun", "finished", "not begun"]
    assert facts["combinations"][0]["mean"] == -3.0
    swept.record(0, Outcome("finished", mean=-2.0, episodes_per_s=1.0))
    states, facts = files_of(swept.path)
    assert states == ["finished", "finished", "not begun"]
    assert (facts["combinations"][0]["mean"], facts["state"]) == (-2.0, "running")


def test_a_second_ctrl_c_does_not_wait_for_the_trials(base: Path, tmp_path: Path) -> None:
    swept, stop = Sweep(three_trials(base, tmp_path)), tmp_path / "stop"
    with _stopping(swept, stop):
        signal.raise_signal(signal.SIGINT)
        assert swept.stopped
        assert stop.exists()  # what running trials look for
        with pytest.raises(_StopNow):
            signal.raise_signal(signal.SIGINT)


class OneTrialOfTune:
    """A Tune that has begun a trial when Ray is lost."""

    Callback = object

    def __init__(self, swept: Sweep) -> None:
        self._watcher = _watcher(self, swept)

    def fit(self) -> None:
        trial = SimpleNamespace(config={"trial": 0})
        self._watcher.on_trial_start(trial=trial)
        self._watcher.on_trial_result(trial=trial, result={"outcome": {"state": "finished"}})
        self._watcher.on_trial_start(trial=SimpleNamespace(config={"trial": 1}))
        self._watcher.on_step_begin()


def test_trials_that_were_running_when_ray_was_lost_have_failed(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> None:
        raise WorkerError("Ray is lost")

    no_ray = contextlib.nullcontext(SimpleNamespace(tune=None))
    monkeypatch.setattr("phalanx.cluster.sweep.connected", lambda _address, with_tune: no_ray)
    monkeypatch.setattr("phalanx.cluster.sweep.most_cores", lambda: 1)
    monkeypatch.setattr("phalanx.cluster.sweep.check_ray_lives", lost)
    monkeypatch.setattr(
        "phalanx.cluster.sweep._tuner", lambda _tune, swept, *_rest: OneTrialOfTune(swept)
    )
    with pytest.raises(WorkerError, match="Ray is lost"):
        sweep(three_trials(base, tmp_path))
    states, facts = files_of(tmp_path / "s")
    assert states == ["finished", "failed", "not begun"]
    assert facts["state"] == "failed"
    assert not (tmp_path / "s" / ".tune").exists()


# --- what comes out -------------------------------------------------------------------------------


class Ran:
    def __init__(self, ran: subprocess.CompletedProcess[str], path: Path, marked: Marked) -> None:
        self.ran, self.path, self.marked = ran, path, marked
        self.summary = json.loads((path / "summary.json").read_text())
        with (path / "sweep.csv").open() as file:
            self.rows = list(csv.DictReader(file))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Two good combinations, one whose trials fail, one whose processes die."""
    tmp_path = tmp_path_factory.mktemp("sweep")
    base = tmp_path / "small.yaml"
    base.write_text(yaml.safe_dump(SMALL | {"seed": 0, "total_steps": 640}))
    over = "env=cage2,tests.odd_envs:Dies,Nope-v0,CartPole-v1"
    with Marked() as marked:
        ran = subprocess.run(
            [
                *(PHALANX, "sweep", base, "--over", over, "--seeds", "0,1"),
                *("--output-dir", tmp_path, "--name", "s"),
            ],
            env={**marked.env, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        yield Ran(ran, tmp_path / "s", marked)


@needs_ray
def test_a_trial_that_fails_or_dies_does_not_end_the_sweep(ran: Ran) -> None:
    assert ran.ran.returncode == 1, ran.ran.stderr
    states = {(row["env"], row["state"]) for row in ran.rows}
    assert states == {
        ("cage2", "finished"),
        ("CartPole-v1", "finished"),
        ("Nope-v0", "failed"),
        ("tests.odd_envs:Dies", "failed"),
    }
    assert ran.summary["trials"] == {"finished": 4, "failed": 4}
    for row in ran.rows:
        if row["env"] == "Nope-v0":
            assert "Nope-v0 cannot be used" in row["error"]
            assert "Traceback" in (ran.path / row["folder"] / "error.txt").read_text()
        elif row["env"] == "tests.odd_envs:Dies":
            assert row["error"].startswith("its process ended: it was killed")
        assert "\n" not in row["error"]


@needs_ray
def test_the_table_has_every_combination_and_every_failure(ran: Ran) -> None:
    said = ran.ran.stdout
    assert said.startswith("4 of 8 trials finished")
    for what in ("env=cage2", "env=CartPole-v1", "0,1", "±", "failed", "killed", "NameNotFound"):
        assert what in said
    progress = ran.ran.stderr.splitlines()
    assert progress[0] == f"sweeping: 8 trials; folder {ran.path}"
    assert all(line.startswith("sweep: ") for line in progress[1:])  # and nothing of Ray's
    assert "ray" not in said.lower()
    best, second = ran.summary["combinations"][:2]
    assert (best["name"], second["name"]) == ("env=CartPole-v1", "env=cage2")
    assert best["seeds"] == second["seeds"] == [0, 1]
    assert best["mean"] > 0 > second["mean"]
    assert best["half_width"] > 0
    assert all(one["mean"] is None for one in ran.summary["combinations"][2:])


@needs_ray
def test_a_trial_is_an_ordinary_run(ran: Ran, tmp_path: Path) -> None:
    """The same folder, and bit for bit the weights that `phalanx train` gives."""
    row = next(row for row in ran.rows if row["env"] == "cage2" and row["seed"] == "1")
    folder = ran.path / row["folder"]
    names = {"config.yaml", "updates.csv", "episodes.csv", "summary.json", "checkpoints"}
    assert names <= {path.name for path in folder.iterdir()}
    settings = yaml.safe_load((folder / "config.yaml").read_text())
    assert settings["seed"] == settings["num_threads"] == 1
    settings = {name: tuple(v) if isinstance(v, list) else v for name, v in settings.items()}
    alone = train(TrainConfig(**settings, output_dir=tmp_path, name="alone"))
    theirs, _ = load_checkpoint(folder / "checkpoints" / "last.npz")
    ours, _ = load_checkpoint(alone.folder.checkpoint)
    np.testing.assert_array_equal(theirs["theta"], ours["theta"])
    assert json.loads((folder / "summary.json").read_text())["state"] == "finished"


@needs_ray
def test_nothing_is_left_of_its_ray(ran: Ran) -> None:
    assert ran.marked.left() == []
    assert list(ran.marked.temp.iterdir()) == []
    assert not (ran.path / ".tune").exists()


RUNNING_RAY = """
import sys, ray
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
         logging_level="ERROR", object_store_memory=100 * 2**20)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def running() -> Iterator[tuple[str, Marked]]:
    """The address of a Ray that somebody else has started."""
    with (
        Marked() as marked,
        subprocess.Popen(
            [sys.executable, "-c", RUNNING_RAY],
            env=marked.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as ray,
    ):
        assert ray.stdin is not None
        assert ray.stdout is not None
        yield ray.stdout.readline().strip(), marked
        ray.stdin.close()
        assert ray.wait(timeout=600) == 0
        assert marked.left() == []


@needs_ray
def test_ctrl_c_keeps_what_is_there_and_leaves_a_foreign_ray_alone(
    running: tuple[str, Marked], base: Path, tmp_path: Path
) -> None:
    address, marked = running
    path, table = tmp_path / "s", tmp_path / "s" / "sweep.csv"
    with subprocess.Popen(
        [
            *(PHALANX, "sweep", base, "--over", "total_episodes=64,100000000,100000001"),
            *("--output-dir", tmp_path, "--name", "s"),
            *("--ray-address", address, "--max-concurrent", "1"),
        ],
        env=marked.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as sweep:
        second = path / "1-total_episodes=100000000" / "seed=5" / "updates.csv"
        deadline = time.monotonic() + 120
        while not (second.exists() and second.stat().st_size) and time.monotonic() < deadline:
            assert sweep.poll() is None, sweep.communicate()
            time.sleep(0.2)
        sweep.send_signal(signal.SIGINT)
        out, err = sweep.communicate(timeout=600)
    assert sweep.returncode == 130, err
    *progress, last = err.splitlines()
    assert last == "stopped; phalanx train --resume continues a stopped trial"
    assert all(line.startswith("sweep") for line in progress)
    assert out.startswith("1 of 3 trials finished")
    with table.open() as file:
        states = [row["state"] for row in csv.DictReader(file)]
    assert states == ["finished", "stopped", "not begun"]
    stopped = second.parent
    assert json.loads((stopped / "summary.json").read_text())["state"] == "stopped"
    assert (stopped / "checkpoints" / "last.npz").exists()
    assert not (path / ".tune").exists()
    assert any("raylet" in line for line in marked.alive())  # not ours to stop
