"""Train with every combination of some settings' values, as trials of Ray Tune, and compare."""

import contextlib
import csv
import io
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text
from scipy.stats import t as student

from phalanx.display import progress_display
from phalanx.errors import PhalanxError, RunError
from phalanx.evaluate import HALF_WIDTH
from phalanx.machine import describe_versions
from phalanx.own_ray import connected_ray
from phalanx.results import write_json, write_text
from phalanx.run import Run, summary
from phalanx.sweep_config import SweepConfig, Trial
from phalanx.training import train

REPORT_S = 1.0  # how often a trial tells how far it is, and looks whether it is to stop


class Outcome(NamedTuple):
    """How a trial ended."""

    state: str
    """finished, stopped, failed, or `not begun`"""
    mean: float | None = None
    """mean return of its last episodes"""
    stderr: float | None = None
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

    def __init__(self, config: SweepConfig) -> None:
        self.config, self.path = config, config.path
        self.progress = dict.fromkeys(range(len(config.trials)), 0.0)
        self.running: set[int] = set()
        self.outcomes: dict[int, Outcome] = {}
        self.stopped = False
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

    def ranking(self) -> list[Combination]:
        """The combinations, best mean return first; those without any at the end."""
        found = [self._combination(name) for name in self.config.combinations]
        return sorted(found, key=lambda one: np.inf if one.mean is None else -one.mean)

    def _combination(self, name: str) -> Combination:
        trials = [trial for trial in self.config.trials if trial.combination == name]
        ended = [(trial, self.outcome(trial)) for trial in trials]
        done = [(trial, outcome) for trial, outcome in ended if outcome.state == "finished"]
        mean, half_width = over_seeds([outcome for _, outcome in done])
        speeds = [float(outcome.episodes_per_s or 0) for _, outcome in done]
        return Combination(
            name, trials[0].path.parent.name, [trial.config.seed for trial, _ in done],
            mean, half_width, float(np.mean(speeds)) if speeds else None,
        )  # fmt: skip

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
            "state": "stopped" if self.stopped else "finished" if self.is_over else "running",
            "trials": {state: states.count(state) for state in dict.fromkeys(states)},
            "seconds": self.seconds,
            "combinations": [one._asdict() for one in self.ranking()],
            "over": list(self.config.over),
            "config": None if self.config.base is None else str(self.config.base),
            "cpus_per_trial": self.config.cpus_per_trial,
            "versions": describe_versions(),
        }
        write_json(self.path / "summary.json", facts)

    @property
    def is_over(self) -> bool:
        return len(self.outcomes) == len(self.config.trials)


def over_seeds(outcomes: Sequence[Outcome]) -> tuple[float | None, float | None]:
    """Mean return and half the width of its 95 % interval.

    Over seeds, mean ± t₀.₉₇₅(n - 1) · s / √n: how much training depends on luck. Of one seed only
    how much its own episodes vary is known.
    """
    means = [outcome.mean for outcome in outcomes if outcome.mean is not None]
    if not means:
        return None, None
    if len(means) == 1:
        stderr = outcomes[0].stderr
        return means[0], None if stderr is None else HALF_WIDTH * stderr
    stderr = float(np.std(means, ddof=1)) / len(means) ** 0.5
    return float(np.mean(means)), float(student.ppf(0.975, len(means) - 1)) * stderr


def sweep(config: SweepConfig, heard: Callable[[Sweep], None] = lambda swept: None) -> Sweep:
    """Train all trials, until they are done, or SIGINT or SIGTERM.

    heard: is told of whatever a trial reports.
    """
    swept, began = Sweep(config), time.monotonic()
    desk = config.path.absolute() / ".tune"  # what Tune writes, and the sign to stop
    with (
        _folder(desk),
        connected_ray(config.ray_address, config.cpus_per_trial) as ray,
        _stopping(swept, desk / "stop"),
    ):
        with contextlib.suppress(_StopNow):
            _tuner(ray.tune, swept, desk, heard).fit()
        swept.seconds = time.monotonic() - began
        swept.write()
    return swept


def _tuner(tune: Any, swept: Sweep, desk: Path, heard: Callable[[Sweep], None]) -> Any:
    config = swept.config
    trials = [
        trial._replace(config=replace(trial.config, output_dir=trial.path.parent.absolute()))
        for trial in config.trials
    ]
    here, imports = os.getcwd(), [place or os.getcwd() for place in sys.path]

    def trial_of(chosen: dict[str, Any]) -> dict[str, Any]:
        sys.path.extend(place for place in imports if place not in sys.path)
        if os.path.isdir(here):
            os.chdir(here)
        return play(trials[chosen["trial"]], desk / "stop", tune.report)

    return tune.Tuner(
        tune.with_resources(trial_of, {"cpu": config.cpus_per_trial}),
        param_space={"trial": tune.grid_search(list(range(len(trials))))},
        tune_config=tune.TuneConfig(
            max_concurrent_trials=config.max_concurrent, reuse_actors=True
        ),
        run_config=tune.RunConfig(
            name="trials", storage_path=str(desk), verbose=0,
            callbacks=[_watcher(tune, swept, heard)],
        ),
    )  # fmt: skip


def play(trial: Trial, stop: Path, report: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """One trial, in a process of Ray: an ordinary training run."""
    if stop.exists():
        return {"outcome": Outcome("not begun")._asdict()}
    reported_at = 0.0

    def heard(run: Run) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= REPORT_S:
            reported_at = time.monotonic()
            report({"progress": run.progress})
            run.enough = stop.exists()

    try:
        run = train(trial.config, on_update=heard)
    except Exception as error:
        return {"outcome": Outcome("failed", error=_noted(error, trial.path))._asdict()}
    state = "stopped" if run.enough and run.progress < 1 else "finished"
    facts = summary(run, state)
    run.folder.write_summary(facts)
    returns = facts["returns"]["all"]
    return {
        "outcome": Outcome(
            state, returns["mean"], returns["stderr"], facts["episodes"], facts["episodes_per_s"],
            facts["seconds"],
        )._asdict()
    }  # fmt: skip


def _noted(error: Exception, path: Path) -> str:
    """An error in one line; all of it goes to error.txt in the run folder."""
    with contextlib.suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        (path / "error.txt").write_text("".join(traceback.format_exception(error)))
    return one_line(error)


def one_line(error: BaseException) -> str:
    words = " ".join(str(error).split())
    return words if isinstance(error, PhalanxError) else f"{type(error).__name__}: {words}"


def _watcher(tune: Any, swept: Sweep, heard: Callable[[Sweep], None]) -> Any:
    """What Tune tells of its trials, written into `swept`."""

    class Watcher(tune.Callback):  # type: ignore[misc]
        def __init__(self, swept: Sweep, heard: Callable[[Sweep], None]) -> None:
            self.swept, self.heard = swept, heard

        def __getstate__(self) -> dict[str, Any]:
            return {}  # Tune saves what it is given; a progress line cannot be

        def on_trial_start(self, *, trial: Any, **_unused_rest: Any) -> None:
            self.swept.running.add(trial.config["trial"])
            self.heard(self.swept)

        def on_trial_result(self, *, trial: Any, result: Any, **_unused_rest: Any) -> None:
            number = trial.config["trial"]
            if "outcome" in result:
                self.swept.record(number, Outcome(**result["outcome"]))
            else:
                self.swept.progress[number] = result.get("progress", 0.0)
            self.heard(self.swept)

        def on_trial_error(self, *, trial: Any, **_unused_rest: Any) -> None:
            """What a trial could not tell itself: its process died."""
            error = trial.get_error() or RunError("no reason known")
            died = Outcome("failed", error=f"its process died: {one_line(error)}")
            self.swept.record(trial.config["trial"], died)
            self.heard(self.swept)

    return Watcher(swept, heard)


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
    """Asked a second time: do not wait for the running trials."""


@contextlib.contextmanager
def _stopping(swept: Sweep, stop: Path) -> Iterator[None]:
    """Ctrl-C and SIGTERM let running trials save and stop; a second time, they are left alone."""

    def ask(number: int, frame: FrameType | None) -> None:
        if swept.stopped:
            raise _StopNow
        swept.stopped = True
        stop.touch()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- the command ----------------------------------------------------------------------------------


def main(config: SweepConfig) -> int:
    """Sweep with a progress line, then show the combinations, best first."""
    with progress_display(None) as progress:
        task = progress.add_task("sweep", total=len(config.trials), note="starting Ray")

        def heard(swept: Sweep) -> None:
            note = f"{len(swept.outcomes)} of {len(config.trials)} trials done"
            note += f", {len(swept.running)} running"
            best = swept.ranking()[0]
            if best.mean is not None:
                note += f" · best {best.mean:.2f} {best.name}"
            if swept.stopped:
                note = "stopping: running trials save what they have"
            progress.update(task, completed=sum(swept.progress.values()), note=note)

        swept = sweep(config, heard)
    done = sum(outcome.state == "finished" for outcome in swept.outcomes.values())
    print(
        f"{done} of {len(config.trials)} trials finished in {swept.seconds:.0f} s; folder "
        f"{swept.path}"
    )
    show(swept)
    if swept.stopped:
        print("stopped; phalanx train --resume continues a stopped trial", file=sys.stderr)
        return 130
    return 1 if swept.failed else 0


def show(swept: Sweep) -> None:
    """The combinations, best first, and below each the trials of it that did not finish."""
    table = Table(box=SIMPLE_HEAD)
    for name in ("combination", "seeds", "mean return", "episodes/s", "folder"):
        right = name in ("mean return", "episodes/s")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for one in swept.ranking():
        if one.seeds:
            table.add_row(
                _lines(one.name), ",".join(map(str, one.seeds)), _pair(one.mean, one.half_width),
                f"{one.episodes_per_s:,.0f}", Text(one.folder),
            )  # fmt: skip
        for trial in swept.config.trials:
            outcome = swept.outcome(trial)
            if trial.combination == one.name and outcome.state != "finished":
                what = outcome.error or str(trial.path.relative_to(swept.path))
                table.add_row(
                    _lines(one.name), str(trial.config.seed), outcome.state, "", Text(what)
                )
    Console(width=max(100, Console().width)).print(table)
    several = any(len(one.seeds) > 1 for one in swept.ranking())
    over = "over seeds (Student's t)" if several else "over the last episodes of the only seed"
    print(f"return of the last episodes in training ± its 95 % interval {over}")


def _lines(combination: str) -> Text:
    return Text(combination.replace(" ", "\n"))


def _pair(mean: float | None, half_width: float | None) -> str:
    return f"{mean:.2f}" + ("" if half_width is None else f" ± {half_width:.2f}")
