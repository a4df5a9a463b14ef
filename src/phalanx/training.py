"""Train a defender: collect, learn, record, until the budget is spent. Read this file first."""

import contextlib
import dataclasses
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from phalanx.agents import AGENTS, agent_path
from phalanx.cage2.scenario import HORIZONS
from phalanx.checkpoint import last_checkpoint, read_facts
from phalanx.config import TrainConfig
from phalanx.display import progress_display
from phalanx.errors import RunError, WorkerError
from phalanx.evaluate_config import EvaluateConfig
from phalanx.evaluation import evaluate, interval, show_beside_published
from phalanx.evaluation import show as show_table
from phalanx.learn.sampler import Stopped
from phalanx.recipe import Network, choose_num_envs, progress_of
from phalanx.run import Run, check_same_settings, summary
from phalanx.run_folder import RunFolder, open_new
from phalanx.settings import without_effect
from phalanx.tally import compliance_of, in_words
from phalanx.trained import defender_of


def train(
    config: TrainConfig,
    network: Network | None = None,
    on_update: Callable[[Run], None] = lambda run: None,
) -> Run:
    """Train until the budget is spent, or SIGINT or SIGTERM.

    run = phalanx.train(TrainConfig(red_agent="meander", total_episodes=20_000))

    network: factory(obs_size, truth_size, num_actions) of your own torch module, whose forward
        takes obs [rows, obs_size] and truth [rows, truth_size] and gives logits and values.
    on_update: is told of each update.
    """
    if config.resume is not None and not last_checkpoint(config.resume).is_file():
        raise RunError(
            f"there is no run with a checkpoint in {config.resume}; give a run folder to --resume"
        )
    for name, what in without_effect(config).items():
        print(f"phalanx: {name} has no effect here, it is for {what}", file=sys.stderr)
    start = None if config.resume is not None else find_start(config.start_from)
    folder = (
        RunFolder(config.resume, goes_on=True)
        if config.resume is not None
        else open_new(config.output_dir, config.name)
    )
    path, run = folder.path, None
    try:
        if config.resume is None and folder.checkpoint.exists():
            raise RunError(f"{path} holds a run already; give another --name, or --resume {path}")
        if config.resume is not None:
            _check_that_it_can_go_on(config, folder)
        if config.num_envs == "auto" and config.env == "cage2":
            size, speeds = choose_num_envs(config, network)
            config = dataclasses.replace(config, num_envs=size)
            measured = ", ".join(f"{n}: {speed / 1000:,.0f}" for n, speed in speeds.items())
            print(f"--n-envs {size}, by thousand turns/s measured here ({measured})")
        run = Run(config, folder, network)
        if run.recipe.note:
            print(run.recipe.note)
        if config.resume is None:
            if start is not None:
                run.begin_with(start)
            folder.forget_rows()
            folder.write_config(config.as_dict())
        else:
            run.load()
        _loop(run, on_update)
    finally:
        if run is not None:
            run.recipe.close()
        folder.close()
        folder.remove_if_empty()
    return run


def _check_that_it_can_go_on(config: TrainConfig, folder: RunFolder) -> None:
    """Before anything is started or written."""
    facts, _declared = read_facts(folder.checkpoint)
    check_same_settings(folder.path, config, facts)
    done = [int(facts.get(name, 0)) for name in ("updates", "episodes", "steps")]
    if progress_of(config, *done) >= 1:
        budget = "--total-episodes" if config.total_steps is None else "--total-steps"
        raise RunError(f"{folder.path} is finished: {done[0]} updates; raise {budget}")


def find_start(name: str | None) -> Path | None:
    """The run, checkpoint or agent to start from."""
    if name is None:
        return None
    path = agent_path(name)
    if not last_checkpoint(path).is_file():
        agents = ", ".join(AGENTS)
        raise RunError(f"there is no run or checkpoint {path} to start from, nor one of {agents}")
    return path


def _loop(run: Run, on_update: Callable[[Run], None]) -> None:
    """Sample, learn, sample, learn."""
    began, stopped = time.monotonic(), _Stop()
    seconds = math.inf if run.config.duration is None else run.config.duration * 3600

    def over() -> bool:
        return stopped.asked or time.monotonic() - began >= seconds

    for sampler in run.source.samplers:
        sampler.stop = over
    with stopped, _saved_if_workers_fail(run):
        while run.progress < 1 and not run.enough and not over():
            before = run.updates // run.config.checkpoint_every
            try:
                if run.step() is not False:
                    on_update(run)
            except Stopped:
                break
            if run.updates // run.config.checkpoint_every > before:
                run.save()
        run.rest()
        run.record_faults()
        run.save()
    run.stopped = stopped.asked and run.progress < 1
    run.folder.write_summary(summary(run, "stopped" if run.stopped else "finished"))


@contextlib.contextmanager
def _saved_if_workers_fail(run: Run) -> Iterator[None]:
    """What was learnt before environments failed too often is kept."""
    try:
        yield
    except WorkerError:
        run.record_faults()
        run.save()
        run.folder.write_summary(summary(run, "failed"))
        raise


class _Stop:
    """Ctrl-C and SIGTERM end the run after the update that is under way."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        except ValueError:  # not the main thread: nobody can ask
            pass

    def __exit__(self, *_exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


# --- the command ----------------------------------------------------------------------------------


def main(config: TrainConfig) -> int:
    """Train with a progress line, then play the nine cells of the leaderboard."""
    with progress_display(None) as progress:
        task = progress.add_task("training", total=None, note="")

        def show(run: Run) -> None:
            done = run.spent_s
            means = {
                name: np.mean([e.total for e in run.recent if e.kind == name])
                for name in dict.fromkeys(e.kind for e in run.recent)
            }
            reds = ", ".join(f"{name} {mean:.1f}" for name, mean in sorted(means.items()))
            share = run.seconds["learn"] / done
            note = f"{run.episodes / done:,.0f} episodes/s · {reds} · learning {share:.0%}"
            if config.workflow is not None:
                note += f" · {in_words(compliance_of(run.recent))}"
            progress.update(task, completed=run.progress, total=1.0, note=note)

        run = train(config, on_update=show)
    seconds = run.spent_s
    print(
        f"{run.episodes:,} episodes in {seconds:.0f} s ({run.episodes / seconds:,.0f} a second); "
        f"run folder {run.folder.path}"
    )
    if run.stopped:
        print(f"stopped; continue with phalanx train --resume {run.folder.path}", file=sys.stderr)
        return 130
    if config.env == "cage2":
        show_results(run)
    else:
        last = interval([e.total for e in run.recent] or [math.nan])
        print(f"return of the last {last['episodes']} episodes: {last['mean']:.2f}")
    return 0


def show_results(run: Run, episodes: int = 1000) -> None:
    """The policy's returns on fresh episodes, beside the scores of the challenge's best."""
    horizons = tuple(h for h in HORIZONS if h <= run.config.horizon) or (run.config.horizon,)
    settings = EvaluateConfig(
        target=str(run.folder.path), rules=run.config.rules, horizon=horizons,
        episodes=episodes, seed=EVALUATION_SEED,
    )  # fmt: skip
    cells = list(evaluate(settings, defender=defender_of(run)))
    (show_beside_published if run.config.workflow is None else show_table)(settings, cells)


EVALUATION_SEED = 1_000_000  # far from any that one trains with
