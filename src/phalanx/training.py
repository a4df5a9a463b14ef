"""Train a defender: collect, learn, record, until the budget is spent. Read this file first."""

import dataclasses
import math
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from itertools import repeat
from types import FrameType
from typing import Any

import numpy as np

from phalanx.cage2.scenario import HORIZONS, RED_AGENTS
from phalanx.checkpoint import load_checkpoint, save_checkpoint
from phalanx.config import EvaluateConfig, TrainConfig
from phalanx.display import progress_display
from phalanx.errors import CheckpointError, RunError
from phalanx.evaluate import evaluate, interval, show_beside_winner
from phalanx.machine import describe_versions, peak_memory_mb
from phalanx.recipe import (
    Network,
    choose_num_envs,
    open_recipe,
    restore_price,
    shaping,
    turn_weights,
)
from phalanx.run_folder import RunFolder
from phalanx.trained import defender_of

UPDATE_COLUMNS = (
    "update", "episodes", "steps", "return", *(f"return_{red}" for red in RED_AGENTS),
    "learning_rate", "entropy_weight", "restore_price", "policy_loss", "value_loss", "entropy",
    "kl", "clip_fraction", "explained_variance", "grad_norm", "epochs", "collect_s", "learn_s",
)  # fmt: skip
MAY_CHANGE = ("total_episodes", "total_steps", "duration", "num_threads", "checkpoint_every")
EPISODE_COLUMNS = ("update", "env", "red_agent", "length", "return")
RECENT = 2000  # episodes that the summary's returns are taken from


class Run:
    """One training run: what it plays with, where it keeps things, and how far it has come."""

    def __init__(
        self, config: TrainConfig, folder: RunFolder, network: Network | None = None
    ) -> None:
        self.config, self.folder = config, folder
        recipe = open_recipe(config, network)
        self.sampler, self.learner, self.device = recipe.sampler, recipe.learner, recipe.device
        self.weights = turn_weights(config)
        self.updates = self.episodes = 0
        self.seconds = {"collect": 0.0, "learn": 0.0, "other": 0.0}
        self.recent: deque[tuple[str, float]] = deque(maxlen=RECENT)  # attacker, return
        self.stopped = False

    @property
    def steps(self) -> int:
        return self.updates * int(self.config.num_envs) * self.config.update_steps

    @property
    def progress(self) -> float:
        """How much of the run is done, 0 to 1."""
        return min(1.0, self.updates / self.config.total_updates)

    @property
    def spent_s(self) -> float:
        """Seconds spent on updates; never 0, so that a run stopped at once can be summed up too."""
        return max(sum(self.seconds.values()), 1e-9)

    def step(self) -> None:
        """One update: sample, learn, record."""
        began = time.perf_counter()
        c, f = self.config, self.progress
        rollout = self.sampler.collect(shaping(c, self.weights, f))
        collected = time.perf_counter()
        rate = c.learning_rate + (c.final_learning_rate - c.learning_rate) * f
        entropy_weight = c.entropy + (c.final_entropy - c.entropy) * f
        metrics = self.learner.update(rollout, rate, entropy_weight)
        learnt = time.perf_counter()
        self.updates += 1
        self._check(metrics)
        times = {"collect_s": collected - began, "learn_s": learnt - collected}
        returns = self._record_episodes(rollout)
        row = {
            "update": self.updates, "episodes": self.episodes, "steps": self.steps, **returns,
            "learning_rate": rate, "entropy_weight": entropy_weight,
            "restore_price": restore_price(c, f), **metrics, **times,
        }  # fmt: skip
        self.folder.table("updates").add(
            UPDATE_COLUMNS, [[_short(row[name]) for name in UPDATE_COLUMNS]]
        )
        self.folder.events.add(self.steps, row)
        self.seconds["collect"] += times["collect_s"]
        self.seconds["learn"] += times["learn_s"]
        self.seconds["other"] += time.perf_counter() - learnt

    def _check(self, metrics: dict[str, float]) -> None:
        """Stop at a loss that is no number; the weights that gave it are kept beside the last."""
        wrong = [name for name, value in metrics.items() if not math.isfinite(value)]
        if wrong:
            failed = self.folder.checkpoint.with_name("failed.npz")
            self.save(failed)
            self.folder.write_summary(summary(self, "failed"))
            raise RunError(
                f"update {self.updates} gave a {wrong[0]} that is no number; {failed} holds the "
                f"weights after it, {self.folder.checkpoint.name} those of the last checkpoint "
                "before it; try a lower --learning-rate"
            )

    def _record_episodes(self, rollout: Any) -> dict[str, float]:
        """Log the episodes that ended in this rollout; mean returns, in all and by attacker."""
        turns, envs = np.nonzero(rollout.ended)
        returns = rollout.returns[turns, envs].astype(np.float64)
        self.episodes += len(returns)
        names = [RED_AGENTS[number] for number in rollout.kinds[turns, envs]]
        values = np.round(returns, 1).tolist()
        rows = zip(
            repeat(self.updates), envs.tolist(), names, repeat(self.config.horizon), values,
            strict=False,
        )  # fmt: skip
        self.folder.table("episodes").add(EPISODE_COLUMNS, rows)
        self.recent.extend(zip(names, values, strict=True))
        means = {"return": float(returns.mean()) if len(returns) else math.nan}
        chosen = np.array(names)
        for name in RED_AGENTS:
            own = returns[chosen == name] if len(returns) else returns
            means[f"return_{name}"] = float(own.mean()) if len(own) else math.nan
        return means

    # --- continuing -------------------------------------------------------------------------------

    def save(self, path: Any = None) -> None:
        """A checkpoint from which `load` continues bit for bit."""
        arrays, facts = self.learner.save()
        for name, array in self.sampler.save().items():
            arrays[f"sampler_{name}"] = array
        facts |= {
            "config": self.config.as_dict(),
            "updates": self.updates,
            "episodes": self.episodes,
            "seconds": self.seconds,
            "recent": list(self.recent),
            "tables": {name: self.folder.table(name).size() for name in ("updates", "episodes")},
        }
        save_checkpoint(path or self.folder.checkpoint, arrays, facts)

    def load(self) -> None:
        """Continue from the last checkpoint; one that does not fit is refused in one line."""
        arrays, facts = load_checkpoint(self.folder.checkpoint)
        try:
            self._load(arrays, facts)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self.folder.checkpoint} does not fit this run ({error})"
            ) from None

    def _load(self, arrays: Any, facts: dict[str, Any]) -> None:
        mine, saved_with = self.config.as_dict(), facts["config"]
        differ = [k for k in mine if k not in MAY_CHANGE and mine[k] != saved_with.get(k)]
        if differ:
            raise RunError(
                f"{self.folder.path} was trained with another {', '.join(differ)}; leave that out, "
                "or begin a new run"
            )
        prefix = "sampler_"
        games = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        self.learner.load(arrays, facts)
        self.sampler.load(games)
        self.updates, self.episodes = facts["updates"], facts["episodes"]
        self.seconds = facts["seconds"]
        self.recent.extend((str(name), float(value)) for name, value in facts["recent"])
        for name, size in facts["tables"].items():
            self.folder.table(name).cut(size)
        self.folder.events.forget_after(self.steps)


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


# --- the run --------------------------------------------------------------------------------------


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
    path = config.resume or config.output_dir / (config.name or time.strftime("%Y%m%d-%H%M%S"))
    if config.resume is not None and not (path / "checkpoints" / "last.npz").exists():
        raise RunError(
            f"there is no run with a checkpoint in {path}; give a run folder to --resume"
        )
    folder = RunFolder(path)
    try:
        if config.resume is None and folder.checkpoint.exists():
            raise RunError(f"{path} holds a run already; give another --name, or --resume {path}")
        if config.num_envs == "auto":
            size, speeds = choose_num_envs(config, network)
            config = dataclasses.replace(config, num_envs=size)
            measured = ", ".join(f"{n}: {speed / 1000:,.0f}" for n, speed in speeds.items())
            print(f"--n-envs {size}, by thousand turns/s measured here ({measured})")
        run = Run(config, folder, network)
        if config.resume is None:
            folder.write_config(config.as_dict())
        else:
            run.load()
            if run.progress >= 1:
                raise RunError(f"{path} is finished: {run.updates} updates; raise --total-episodes")
        _loop(run, on_update)
    finally:
        folder.close()
    return run


def _loop(run: Run, on_update: Callable[[Run], None]) -> None:
    """Sample, learn, sample, learn."""
    began, stopped = time.monotonic(), _Stop()
    with stopped:
        while run.progress < 1 and not stopped.asked:
            run.step()
            on_update(run)
            if run.updates % run.config.checkpoint_every == 0:
                run.save()
            hours = run.config.duration
            if hours is not None and time.monotonic() - began >= hours * 3600:
                break
        run.save()
    run.stopped = stopped.asked and run.progress < 1
    run.folder.write_summary(summary(run, "stopped" if run.stopped else "finished"))


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


def summary(run: Run, state: str) -> dict[str, Any]:
    """The facts of a run, as summary.json has them."""
    seconds = run.spent_s
    returns = {"all": [value for _, value in run.recent]}
    for name in RED_AGENTS:
        returns[name] = [value for red, value in run.recent if red == name]
    return {
        "algorithm": "ppo",
        "state": state,
        "steps": run.steps,
        "episodes": run.episodes,
        "updates": run.updates,
        "seconds": seconds,
        "steps_per_s": run.steps / seconds,
        "episodes_per_s": run.episodes / seconds,
        "time_split": {name: spent / seconds for name, spent in run.seconds.items()},
        "peak_memory_mb": peak_memory_mb(),
        "returns": {name: interval(values) for name, values in returns.items() if values},
        "seed": run.config.seed,
        "device": run.device,
        "threads": run.sampler.batch.crew.num_threads,
        "versions": describe_versions(),
    }


# --- the command ----------------------------------------------------------------------------------


def main(config: TrainConfig) -> int:
    """Train with a progress line, then play the nine cells of the leaderboard."""
    with progress_display("updates") as progress:
        task = progress.add_task("training", total=None, note="")

        def show(run: Run) -> None:
            done = run.spent_s
            means = {
                name: np.mean([value for red, value in run.recent if red == name])
                for name in dict.fromkeys(red for red, _ in run.recent)
            }
            reds = ", ".join(f"{name} {mean:.1f}" for name, mean in sorted(means.items()))
            share = run.seconds["learn"] / done
            note = f"{run.episodes / done:,.0f} episodes/s · {reds} · learning {share:.0%}"
            total = run.config.total_updates
            progress.update(task, completed=run.updates, total=total, note=note)

        run = train(config, on_update=show)
    seconds = run.spent_s
    print(
        f"{run.episodes:,} episodes in {seconds:.0f} s ({run.episodes / seconds:,.0f} a second); "
        f"run folder {run.folder.path}"
    )
    if run.stopped:
        print(f"stopped; continue with phalanx train --resume {run.folder.path}", file=sys.stderr)
        return 130
    show_results(run)
    return 0


def show_results(run: Run, episodes: int = 1000) -> None:
    """The policy's returns on fresh episodes, beside the scores of the challenge's winner."""
    horizons = tuple(h for h in HORIZONS if h <= run.config.horizon) or (run.config.horizon,)
    settings = EvaluateConfig(
        target=str(run.folder.path), rules=run.config.rules, horizon=horizons,
        episodes=episodes, seed=EVALUATION_SEED,
    )  # fmt: skip
    show_beside_winner(settings, list(evaluate(settings, defender=defender_of(run))))


EVALUATION_SEED = 1_000_000  # far from any that one trains with
