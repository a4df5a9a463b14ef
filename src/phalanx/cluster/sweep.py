"""Train with every combination of some settings' values, as trials of Ray Tune, and compare."""

import contextlib
import csv
import io
import shutil
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from phalanx.cluster.ray import (
    check_ray_lives,
    connected,
    in_one_line,
    most_cores,
    move_to,
    workplace,
)
from phalanx.cluster.sweep_config import SweepConfig, Trial
from phalanx.errors import ConfigError, RunError, WorkerError
from phalanx.files import Facts, write_json, write_text
from phalanx.machine import describe_hardware, describe_versions
from phalanx.statistics import interval
from phalanx.training.loop import train
from phalanx.training.run import Run
from phalanx.training.summary import summary

REPORT_S = 1.0  # how often a trial tells how far it is, and looks whether it is to stop


class Outcome(NamedTuple):
    """How a trial ended."""

    state: str
    """finished, stopped, failed, or `not begun`"""
    mean: float | None = None
    """mean return of its last episodes"""
    stderr: float | None = None
    half_width: float | None = None
    """of the 95 % interval of that mean"""
    episodes: int = 0
    episodes_per_s: float | None = None
    seconds: float = 0.0
    error: str = ""
    """why it failed, in one line"""


class Combination(NamedTuple):
    """What all trials of one combination gave."""

    name: str
    folder: str
    seeds: list[int]
    """those that finished; the figures are theirs"""
    mean: float | None
    half_width: float | None
    """of the 95 % interval: over seeds if there are several, else over the run's episodes"""
    episodes_per_s: float | None


class Sweep:
    """All trials, how far they are and how they ended."""

    def __init__(
        self, config: SweepConfig, heard: Callable[["Sweep"], None] = lambda swept: None
    ) -> None:
        self.config, self.path, self.heard = config, config.path, heard
        self.progress = dict.fromkeys(range(len(config.trials)), 0.0)
        self.running: set[int] = set()
        self.outcomes: dict[int, Outcome] = {}
        self.stopped = False
        self.lost: WorkerError | None = None  # Ray, with all trials that were running
        self.seconds = 0.0

    @property
    def failed(self) -> int:
        return sum(outcome.state == "failed" for outcome in self.outcomes.values())

    def outcome(self, trial: Trial) -> Outcome:
        return self.outcomes.get(trial.number, Outcome("not begun"))

    def record(self, number: int, outcome: Outcome) -> None:
        """A trial has ended; the tables on disk are always those of all that have."""
        self.outcomes[number] = outcome
        self.progress[number] = 1.0
        self.running.discard(number)
        self.write()
        self.heard(self)

    def ranking(self) -> list[Combination]:
        """The combinations, best mean return first; those without any at the end."""
        found = [self._combination(name) for name in self.config.combinations]
        return sorted(found, key=lambda one: np.inf if one.mean is None else -one.mean)

    def _combination(self, name: str) -> Combination:
        trials = [trial for trial in self.config.trials if trial.combination == name]
        done = [trial for trial in trials if self.outcome(trial).state == "finished"]
        outcomes = [self.outcome(trial) for trial in done]
        speeds = [float(outcome.episodes_per_s or 0) for outcome in outcomes]
        folder, seeds = trials[0].path.parent.name, [trial.config.seed for trial in done]
        speed = float(np.mean(speeds)) if speeds else None
        return Combination(name, folder, seeds, *over_seeds(outcomes), speed)

    def write(self) -> None:
        """sweep.csv, a row for each trial, and summary.json."""
        rows = io.StringIO()
        writer = csv.writer(rows)
        writer.writerow(["trial", *self.config.values, "seed", *Outcome._fields, "folder"])
        for trial in self.config.trials:
            place = trial.path.relative_to(self.path)
            outcome = self.outcome(trial)
            writer.writerow(
                [trial.number, *trial.chosen.values(), trial.config.seed, *outcome, place]
            )
        write_text(self.path / "sweep.csv", rows.getvalue())
        states = [self.outcome(trial).state for trial in self.config.trials]
        facts = {
            "state": self.state,
            "trials": {state: states.count(state) for state in dict.fromkeys(states)},
            "seconds": self.seconds,
            "combinations": [one._asdict() for one in self.ranking()],
            "over": list(self.config.over),
            "config": None if self.config.base is None else str(self.config.base),
            "cpus_per_trial": self.config.cpus_per_trial,
            "versions": describe_versions(),
            "machine": describe_hardware(),
        }
        write_json(self.path / "summary.json", facts)

    @property
    def state(self) -> str:
        if self.lost is not None:
            return "failed"
        if self.stopped:
            return "stopped"
        return "finished" if len(self.outcomes) == len(self.config.trials) else "running"


def over_seeds(outcomes: Sequence[Outcome]) -> tuple[float | None, float | None]:
    """Mean return and half the width of its 95 % interval.

    Over seeds, mean ± t₀.₉₇₅(n - 1) · s / √n: how much training depends on luck. Of one seed only
    how much its own episodes vary is known.
    """
    known = [outcome for outcome in outcomes if outcome.mean is not None]
    if not known:
        return None, None
    if len(known) == 1:
        return known[0].mean, known[0].half_width
    over = interval([outcome.mean for outcome in known if outcome.mean is not None])
    return over["mean"], over["high"] - over["mean"]


def sweep(config: SweepConfig, heard: Callable[[Sweep], None] = lambda swept: None) -> Sweep:
    """Train all trials, until they are done, or SIGINT or SIGTERM.

    heard: is told of whatever a trial reports; standard output is silenced until the end.
    """
    swept, began = Sweep(config, heard), time.monotonic()
    desk = config.path.absolute() / ".tune"  # what Tune writes, and the sign to stop
    with (
        _folder(desk),
        contextlib.redirect_stdout(io.StringIO()),  # Ray prints whenever a process dies
        connected(config.ray_address, with_tune=True) as ray,
        _stopping(swept, desk / "stop"),
    ):
        if config.cpus_per_trial > most_cores():
            raise ConfigError(
                f"cpus_per_trial must be at most {most_cores()}, the cores of the largest machine, "
                f"got {config.cpus_per_trial}"
            )
        heard(swept)
        with contextlib.suppress(_StopNow):
            _tuner(ray.tune, swept, desk).fit()
        swept.seconds = time.monotonic() - began
        if swept.lost is not None:
            for number in list(swept.running):
                swept.record(number, Outcome("failed", error=str(swept.lost)))
        swept.write()
        if swept.lost is not None:
            raise swept.lost
    return swept


def _tuner(tune: ModuleType, swept: Sweep, desk: Path) -> Any:
    config = swept.config
    trials = [
        trial._replace(config=replace(trial.config, output_dir=trial.path.parent.absolute()))
        for trial in config.trials
    ]
    here = workplace()

    def trial_of(chosen: dict[str, int]) -> dict[str, object]:
        move_to(here)
        outcome = play(trials[chosen["trial"]], desk / "stop", tune.report)
        return {"outcome": outcome._asdict()}

    watcher, at_once = _watcher(tune, swept), config.max_concurrent
    return tune.Tuner(
        tune.with_resources(trial_of, {"cpu": config.cpus_per_trial}),
        param_space={"trial": tune.grid_search(list(range(len(trials))))},
        tune_config=tune.TuneConfig(max_concurrent_trials=at_once, reuse_actors=True),
        run_config=tune.RunConfig(
            name="trials", storage_path=str(desk), verbose=0, callbacks=[watcher]
        ),
    )


def play(trial: Trial, stop: Path, report: Callable[[dict[str, float]], None]) -> Outcome:
    """One trial, in a process of Ray: an ordinary training run."""
    if stop.exists():
        return Outcome("not begun")
    reported_at = 0.0

    def heard(run: Run) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= REPORT_S:
            reported_at = time.monotonic()
            report({"progress": run.progress})
            run.enough = stop.exists()

    try:
        run = train(trial.config, on_update=heard, progress=False)
    except Exception as error:
        _keep("".join(traceback.format_exception(error)), trial.path)
        return Outcome("failed", error=in_one_line(error))
    state = "stopped" if run.enough and run.progress < 1 else "finished"
    facts = summary(run, state)
    run.folder.write_summary(facts)
    returns = facts["returns"]["all"]
    reach = None if returns["high"] is None else returns["high"] - returns["mean"]
    measured = returns["mean"], returns["stderr"], reach
    spent = [facts[name] for name in ("episodes", "episodes_per_s", "seconds")]
    return Outcome(state, *measured, *spent)


def _keep(story: str, path: Path) -> None:
    """The whole of an error, in the run folder."""
    with contextlib.suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        (path / "error.txt").write_text(story)


class TuneTrial(Protocol):
    """What we look at of a trial of Tune's."""

    config: Mapping[str, int]
    error_file: str | None


def _watcher(tune: Any, swept: Sweep) -> Any:
    """What Tune tells of its trials, written into `swept`."""

    class Watcher(tune.Callback):  # type: ignore[misc]
        def __init__(self, swept: Sweep) -> None:
            self.swept = swept

        def __getstate__(self) -> dict[str, object]:
            return {}  # Tune saves what it is given; a progress line cannot be

        def on_step_begin(self, **_unused_rest: object) -> None:
            try:
                check_ray_lives()
            except WorkerError as error:
                self.swept.lost = error
                raise _StopNow from None

        def on_trial_start(self, *, trial: TuneTrial, **_unused_rest: object) -> None:
            self.swept.running.add(trial.config["trial"])
            self.swept.heard(self.swept)

        def on_trial_result(
            self, *, trial: TuneTrial, result: Facts, **_unused_rest: object
        ) -> None:
            number = trial.config["trial"]
            if "outcome" in result:
                self.swept.record(number, Outcome(**result["outcome"]))
            else:
                self.swept.progress[number] = result.get("progress", 0.0)
                self.swept.heard(self.swept)

        def on_trial_error(self, *, trial: TuneTrial, **_unused_rest: object) -> None:
            """What a trial could not tell itself, such as that its process was killed."""
            number = trial.config["trial"]
            path = self.swept.config.trials[number].path
            story = Path(trial.error_file).read_text() if trial.error_file else ""
            _keep(story, path)
            why = " ".join(story.split())[-200:] or "nobody knows why"
            if "Worker unexpectedly exits" in story:
                why = "it was killed or it crashed, perhaps for want of memory"
            died = f"its process ended: {why}; see {path / 'error.txt'}"
            self.swept.record(number, Outcome("failed", error=died))

    return Watcher(swept)


@contextlib.contextmanager
def _folder(desk: Path) -> Iterator[None]:
    try:
        desk.mkdir(parents=True)
    except OSError as error:
        raise RunError(
            f"cannot write to {desk.parent}: {error.strerror}; give another --output-dir"
        ) from None
    try:
        yield
    finally:
        shutil.rmtree(desk, ignore_errors=True)
        with contextlib.suppress(OSError):  # unless nothing was begun, it is not empty
            desk.parent.rmdir()


class _StopNow(BaseException):
    """Asked a second time, or Ray is lost: do not wait for the running trials."""


@contextlib.contextmanager
def _stopping(swept: Sweep, stop: Path) -> Iterator[None]:
    """Ctrl-C and SIGTERM let running trials save and stop; a second time, they are left alone."""

    def ask(number: int, frame: FrameType | None) -> None:
        if swept.stopped:
            raise _StopNow
        swept.stopped = True
        stop.touch()

    with contextlib.ExitStack() as at_the_end:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                at_the_end.callback(signal.signal, number, signal.signal(number, ask))
        yield
