"""Train a defender: collect, learn, record, until the budget is spent. Read this file first."""

import math
import platform
import resource
import signal
import sys
import time
from collections.abc import Callable
from itertools import repeat
from types import FrameType
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import phalanx
from phalanx.cage2.batch import Batch
from phalanx.cage2.rule import announce_compilation
from phalanx.cage2.scenario import HORIZONS, LEADERS_SCORES, NUM_ACTIONS, RED_AGENTS, useful_actions
from phalanx.cage2.settings import count_cores
from phalanx.checkpoint import Arrays, load_checkpoint, save_checkpoint
from phalanx.config import TrainConfig
from phalanx.display import progress_display
from phalanx.errors import CheckpointError, RunError
from phalanx.learn.blas import use_one_thread_per_product
from phalanx.learn.collect import TRUTH_SIZE, Shaping, collect_blocks, empty_rollout
from phalanx.learn.policy import Policy
from phalanx.learn.ppo import PPO, PPOSettings
from phalanx.run_folder import RunFolder

UPDATE_COLUMNS = (
    "update", "episodes", "steps", "return", *(f"return_{red}" for red in RED_AGENTS),
    "learning_rate", "entropy_weight", "restore_price", "policy_loss", "value_loss", "entropy",
    "kl", "clip_fraction", "explained_variance", "grad_norm", "epochs", "collect_s", "learn_s",
)  # fmt: skip
MAY_CHANGE = ("total_episodes", "total_steps", "duration", "num_threads", "checkpoint_every")
EPISODE_COLUMNS = ("update", "env", "red_agent", "length", "return")


class Run:
    """One training run: what it plays with, where it keeps things, and how far it has come."""

    def __init__(self, config: TrainConfig, folder: RunFolder) -> None:
        use_one_thread_per_product()
        announce_compilation(collect_blocks)
        self.config, self.folder = config, folder
        self.batch = Batch(
            config.num_envs,
            red_agent=config.red_agent,
            horizon=config.horizon,
            rules=config.rules,
            observation=config.observation,
            seed=config.seed,
            num_threads=count_cores() if config.num_threads == "auto" else config.num_threads,
        )
        truth_size = TRUTH_SIZE if config.critic_truth else 0
        width = self.batch.shown.obs.shape[1]
        self.policy = Policy(
            width, NUM_ACTIONS, hidden=config.hidden, truth_size=truth_size, seed=config.seed
        )
        self.learner = PPO(self.policy, _ppo_settings(config), self.batch.crew, config.seed)
        self.rollout = empty_rollout(config.update_steps, self.batch, truth_size)
        self.useful = (
            useful_actions() if config.actions == "useful" else np.ones(NUM_ACTIONS, np.bool_)
        )
        self.weights = turn_weights(config)
        self.updates = self.episodes = 0
        self.seconds = {"collect": 0.0, "learn": 0.0, "other": 0.0}
        self.recent: dict[str, float] = {}
        self.stopped = False

    @property
    def steps(self) -> int:
        return self.updates * self.config.num_envs * self.config.update_steps

    @property
    def progress(self) -> float:
        """How much of the run is done, 0 to 1."""
        return min(1.0, self.updates / self.config.total_updates)

    @property
    def spent_s(self) -> float:
        """Seconds spent on updates; never 0, so that a run stopped at once can be summed up too."""
        return max(sum(self.seconds.values()), 1e-9)

    def collect(self) -> float:
        """Fill the rollout; returns the share of Restore's price that is charged."""
        price = restore_price(self.config, self.progress)
        shaping = Shaping(self.weights, 1 - price, self.config.reward_scale)
        batch, policy = self.batch, self.policy
        batch.crew.run(
            collect_blocks,
            (
                batch.nets, batch.memories, batch.history, batch.odds, self.useful, shaping,
                policy.actor, policy.actor_sizes, policy.critic, policy.critic_sizes, self.rollout,
            ),
        )  # fmt: skip
        return price

    def step(self) -> None:
        """One update: sample, learn, record."""
        began = time.perf_counter()
        c, f = self.config, self.progress
        price = self.collect()
        collected = time.perf_counter()
        rate = c.learning_rate + (c.final_learning_rate - c.learning_rate) * f
        entropy_weight = c.entropy + (c.final_entropy - c.entropy) * f
        metrics = self.learner.update(self.rollout, rate, entropy_weight)
        learnt = time.perf_counter()
        self.updates += 1
        if not all(math.isfinite(value) for value in metrics.values()):
            raise RunError(
                f"update {self.updates} gave a loss that is no number; the last checkpoint is kept "
                f"in {self.folder.path}; try a lower --learning-rate"
            )
        returns = self._record_episodes()
        self.recent |= {name: value for name, value in returns.items() if not math.isnan(value)}
        times = {"collect_s": collected - began, "learn_s": learnt - collected}
        row = {
            "update": self.updates, "episodes": self.episodes, "steps": self.steps, **returns,
            "learning_rate": rate, "entropy_weight": entropy_weight, "restore_price": price,
            **metrics, **times,
        }  # fmt: skip
        self.folder.table("updates").add(
            UPDATE_COLUMNS, [[_short(row[name]) for name in UPDATE_COLUMNS]]
        )
        self.seconds["collect"] += times["collect_s"]
        self.seconds["learn"] += times["learn_s"]
        self.seconds["other"] += time.perf_counter() - learnt

    def _record_episodes(self) -> dict[str, float]:
        """Log the episodes that ended in this rollout; mean returns, in all and by attacker."""
        r = self.rollout
        turns, envs = np.nonzero(r.ended)
        red, returns = r.red[turns, envs], r.returns[turns, envs]
        self.episodes += len(returns)
        names = [RED_AGENTS[number] for number in red]
        values = np.round(returns.astype(np.float64), 1).tolist()
        rows = zip(
            repeat(self.updates), envs.tolist(), names, repeat(self.config.horizon), values,
            strict=False,
        )  # fmt: skip
        self.folder.table("episodes").add(EPISODE_COLUMNS, rows)
        by_red = {
            f"return_{name}": float(returns[red == number].mean())
            if (red == number).any()
            else math.nan
            for number, name in enumerate(RED_AGENTS)
        }
        return {"return": float(returns.mean()) if len(returns) else math.nan, **by_red}

    # --- continuing -------------------------------------------------------------------------------

    def save(self) -> None:
        """A checkpoint from which `load` continues bit for bit."""
        tables = {name: self.folder.table(name).size() for name in ("updates", "episodes")}
        saved = self.batch.save()
        arrays: Arrays = {
            "theta": self.policy.theta,
            "adam_mean": self.learner.mean,
            "adam_square": self.learner.square,
            "next_obs": self.rollout.next_obs,
        }
        arrays |= {f"batch_{name}": _plain(value) for name, value in saved.items()}
        facts = {
            "config": self.config.as_dict(),
            "updates": self.updates,
            "episodes": self.episodes,
            "adam_steps": self.learner.steps,
            "shuffle": self.learner.shuffle.bit_generator.state,
            "seconds": self.seconds,
            "tables": tables,
        }
        save_checkpoint(self.folder.checkpoint, arrays, facts)

    def load(self) -> None:
        """Continue from the last checkpoint; one that does not fit is refused in one line."""
        try:
            self._load()
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self.folder.checkpoint} does not fit this run ({error})"
            ) from None

    def _load(self) -> None:
        arrays, facts = load_checkpoint(self.folder.checkpoint)
        mine, saved_with = self.config.as_dict(), facts["config"]
        differ = [k for k in mine if k not in MAY_CHANGE and mine[k] != saved_with.get(k)]
        if differ:
            raise RunError(
                f"{self.folder.path} was trained with another {', '.join(differ)}; leave that out, "
                "or begin a new run"
            )
        self.policy.theta[:] = arrays["theta"]
        self.learner.mean[:], self.learner.square[:] = arrays["adam_mean"], arrays["adam_square"]
        self.rollout.next_obs[:] = arrays["next_obs"]
        prefix = "batch_"
        saved = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        for name, own in (("nets", self.batch.nets), ("memories", self.batch.memories)):
            saved[name] = saved[name].view(own.dtype).reshape(own.shape)
        self.batch.restore(saved)
        self.updates, self.episodes = facts["updates"], facts["episodes"]
        self.learner.steps = facts["adam_steps"]
        self.learner.shuffle.bit_generator.state = facts["shuffle"]
        self.seconds = facts["seconds"]
        for name, size in facts["tables"].items():
            self.folder.table(name).cut(size)


def turn_weights(config: TrainConfig) -> Any:
    """What a reward counts in each turn: for the leaderboard, once per horizon that includes it."""
    turns = np.arange(config.horizon)
    if config.turn_weights == "leaderboard":
        return np.sum([turns < horizon for horizon in HORIZONS], axis=0).astype(np.float32)
    return np.ones(config.horizon, np.float32)


def restore_price(config: TrainConfig, progress: float) -> float:
    """Restore is cheap at first, so that the learner tries it; its true price comes in time."""
    if progress >= config.restore_curriculum:
        return 1.0
    return 0.2 + 0.8 * progress / config.restore_curriculum


def _ppo_settings(config: TrainConfig) -> PPOSettings:
    return PPOSettings(
        epochs=config.k_epochs,
        minibatch_size=config.minibatch_size,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip=config.clip,
        value_weight=config.value_weight,
        max_grad_norm=config.max_grad_norm,
        target_kl=config.target_kl,
        # Under the leaderboard's weights nothing counts after the last horizon: there it is over.
        bootstrap=config.turn_weights != "leaderboard" or config.horizon < max(HORIZONS),
    )


def _plain(array: Any) -> Any:
    """Records as bytes: files hold plain numbers only."""
    return array.view(np.uint8) if array.dtype.names else array


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


# --- the run --------------------------------------------------------------------------------------


def train(config: TrainConfig, heard: Callable[[Run], None] = lambda run: None) -> Run:
    """Train until the budget is spent, or SIGINT or SIGTERM; `heard` is told of each update."""
    path = config.resume or config.output_dir / (config.name or time.strftime("%Y%m%d-%H%M%S"))
    if config.resume is not None and not (path / "checkpoints" / "last.npz").exists():
        raise RunError(
            f"there is no run with a checkpoint in {path}; give a run folder to --resume"
        )
    folder = RunFolder(path)
    try:
        run = Run(config, folder)
        if config.resume is not None:
            run.load()
            if run.progress >= 1:
                raise RunError(f"{path} is finished: {run.updates} updates; raise --total-episodes")
        else:
            if folder.checkpoint.exists():
                raise RunError(
                    f"{path} holds a run already; give another --name, or --resume {path}"
                )
            folder.write_config(config.as_dict())
        _loop(run, heard)
    finally:
        folder.close()
    return run


def _loop(run: Run, heard: Callable[[Run], None]) -> None:
    """Sample, learn, sample, learn."""
    began, stopped = time.monotonic(), _Stop()
    with stopped:
        while run.progress < 1 and not stopped.asked:
            run.step()
            heard(run)
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
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
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
        "peak_memory_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + children) / 1024,
        "returns": run.recent,
        "seed": run.config.seed,
        "device": "cpu",
        "threads": run.batch.crew.num_threads,
        "versions": {
            "phalanx": phalanx.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
    }


# --- the command ----------------------------------------------------------------------------------


def main(config: TrainConfig) -> int:
    """Train with a progress line, then play the nine cells of the leaderboard."""
    with progress_display("updates") as progress:
        task = progress.add_task("training", total=config.total_updates, note="")

        def heard(run: Run) -> None:
            spent = run.spent_s
            reds = ", ".join(
                f"{name.removeprefix('return_')} {value:.1f}"
                for name, value in run.recent.items()
                if name != "return"
            )
            share = run.seconds["learn"] / spent
            note = f"{run.episodes / spent:,.0f} episodes/s · {reds} · learning {share:.0%}"
            progress.update(task, completed=run.updates, note=note)

        run = train(config, heard)
    seconds = run.spent_s
    print(
        f"{run.episodes:,} episodes in {seconds:.0f} s ({run.episodes / seconds:,.0f} a second); "
        f"run folder {run.folder.path}"
    )
    if run.stopped:
        print(f"stopped; continue with phalanx train --resume {run.folder.path}", file=sys.stderr)
        return 130
    show_leaderboard(evaluate_policy(run.policy, config, run.useful), config.rules)
    return 0


def evaluate_policy(
    policy: Policy, config: TrainConfig, useful: Any, episodes: int = 1000, seed: int = 1_000_000
) -> dict[tuple[str, int], tuple[float, float]]:
    """Mean return and standard error against each attacker at each horizon, most likely actions."""
    cells = {}
    for red in RED_AGENTS:
        batch = Batch(
            episodes,
            red_agent=red,
            horizon=config.horizon,
            rules=config.rules,
            observation=config.observation,
            seed=seed,
            same_step=False,
        )
        totals = np.zeros(episodes)
        for turn in range(1, config.horizon + 1):
            batch.play(policy.act(batch.shown.obs, batch.action_masks() & useful))
            totals += batch.shown.rewards
            if turn in HORIZONS:
                cells[red, turn] = (float(totals.mean()), float(totals.std(ddof=1) / episodes**0.5))
        batch.close()
    return cells


def show_leaderboard(cells: dict[tuple[str, int], tuple[float, float]], rules: str) -> None:
    """The cells beside the published scores of the challenge's winner."""
    table = Table(box=SIMPLE_HEAD, title=f"Mean return ± standard error, rules {rules}")
    for name in ("red agent", "turns", "this policy", "challenge's winner"):
        table.add_column(name, justify="left" if name == "red agent" else "right")
    for (red, turns), (mean, error) in cells.items():
        table.add_row(
            red, str(turns), f"{mean:.2f} ± {error:.2f}", f"{LEADERS_SCORES[red, turns]:.2f}"
        )
    if len(cells) == len(LEADERS_SCORES):
        total = sum(mean for mean, _ in cells.values())
        table.add_row("all nine", "", f"{total:.2f}", f"{sum(LEADERS_SCORES.values()):.2f}")
    Console(width=100).print(table)
