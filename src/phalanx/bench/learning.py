"""How fast training is: beside its matrix products alone, and beside a plain torch loop.

All cases are measured in turn, once a round, so that a noisy machine is noisy for all of them; the
medians over rounds are compared.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import phalanx
from phalanx.bench.config import BenchConfig
from phalanx.compiled.rule import kernel
from phalanx.compiled.team import ThreadTeam, join, leave, next_piece
from phalanx.display import progress_display
from phalanx.files import write_json
from phalanx.learn.compiled.mlp import fast
from phalanx.learn.compiled.policy import Policy
from phalanx.machine import count_cores, describe_machine
from phalanx.training.config import TrainConfig
from phalanx.training.folder import RunFolder
from phalanx.training.recipe import choose_num_envs, open_recipe
from phalanx.training.run import Run

REFERENCE = TrainConfig(
    observation="bits", condition=(1.0, *[0.0] * 24), critic_truth=False, actions="all",
    turn_weights="flat", restore_curriculum=0.0, total_episodes=1_000_000_000,
)  # fmt: skip
PLAIN_TORCH = Path(phalanx.__file__).parents[2] / "benchmarks" / "plain_torch.py"
SIZES = (256, 512, 1024, 2048, 4096)
MINIBATCHES = (1024, 4096, 25600)
FOLLOWING = "training, --workflow all"
PRODUCT_ROWS = (256, 512, 1024, 2048)

Measure = Callable[[float], float]  # seconds to spend -> speed


@dataclass
class Case:
    """One way to spend the time, and how fast it was in each round."""

    name: str
    measure: Measure
    speeds: list[float] = field(default_factory=list)

    @property
    def speed(self) -> float:
        return statistics.median(self.speeds)

    def row(self) -> dict[str, Any]:
        return {"case": self.name, "median": self.speed, "best": max(self.speeds)}


def paced(work: Callable[[], float]) -> Measure:
    """Repeat some work until the time is spent; `work` returns how much it did."""

    def measure(seconds: float) -> float:
        done, began = 0.0, time.perf_counter()
        while (spent := time.perf_counter() - began) < seconds:
            done += work()
        return done / spent

    return measure


# --- what is measured -----------------------------------------------------------------------------


@contextmanager
def whole(config: TrainConfig) -> Iterator[Measure]:
    """A run as users start it, with its folder and all its logs; episodes a second."""
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(Path(place) / "run")
        run = Run(config, folder)

        def update() -> float:
            before = run.episodes
            run.step()
            return run.episodes - before

        update()
        run.seconds = dict.fromkeys(run.seconds, 0.0)
        measure = paced(update)
        measure.run = run  # type: ignore[attr-defined]
        yield measure
        folder.close()
        run.recipe.close()


@contextmanager
def collecting(config: TrainConfig) -> Iterator[Measure]:
    """Policy and simulator without learning; turns a second."""
    recipe = open_recipe(config)
    shaped = recipe.extension.shaping(1.0)
    recipe.sampler.collect(shaped)
    yield paced(lambda: recipe.sampler.collect(shaped).rewards.size)
    recipe.close()


@contextmanager
def products(config: TrainConfig, threads: int) -> Iterator[Measure]:
    """Just the matrix products: a forward pass for acting, then the epochs; episodes a second."""
    policy = open_recipe(replace(config, num_envs=1)).learner.stepper.policy
    team = ThreadTeam(threads)
    speeds = {rows: _products(config, policy, team, rows)(0.3) for rows in PRODUCT_ROWS}
    best = max(speeds, key=lambda rows: speeds[rows])
    yield _products(config, policy, team, best)
    team.close()


def _products(config: TrainConfig, policy: Policy, team: ThreadTeam, rows: int) -> Measure:
    random = np.random.default_rng(0)
    x = random.random((rows, int(policy.actor_sizes[0]))).astype(np.float32)
    room = 2 * rows * int(max(policy.actor_sizes.sum(), policy.critic_sizes.sum()))
    spaces = random.random((team.num_threads, room)).astype(np.float32)
    grads = np.empty((team.num_threads, len(policy.theta)), np.float32)
    pieces = 16 * team.num_threads
    arguments = (
        policy.actor, policy.actor_sizes, policy.critic, policy.critic_sizes,
        x, spaces, grads, config.k_epochs, pieces,
    )  # fmt: skip
    team.run(multiply_pieces, arguments)

    def work() -> float:
        team.run(multiply_pieces, arguments)
        return pieces * rows / config.horizon

    return paced(work)


@kernel
def multiply_pieces(
    actor: Any, actor_sizes: Any, critic: Any, critic_sizes: Any, x: Any, spaces: Any, grads: Any,
    epochs: int, pieces: int, board: Any, task: int, thread: int,
) -> bool:  # fmt: skip
    """The products of so many blocks of rows, shared by threads; the results are thrown away."""
    if not join(board, task, thread):
        return True
    piece, helped = next_piece(board, pieces, thread, 0)
    while piece >= 0:
        for k in range(epochs + 1):
            multiply(actor, actor_sizes, x, spaces[thread], grads[thread], k > 0)
            multiply(critic, critic_sizes, x, spaces[thread], grads[thread], k > 0)
        piece, helped = next_piece(board, pieces, thread, helped)
    return leave(board, task, thread)


@fast
def multiply(theta: Any, sizes: Any, x: Any, work: Any, grad: Any, back: bool) -> None:
    """The products of `forward`, and of `backward` if asked for, and nothing else."""
    rows, layers, at, used = x.shape[0], len(sizes) - 1, 0, 0
    below = x
    for layer in range(layers):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        y = work[used : used + rows * n_out].reshape(rows, n_out)
        np.dot(below, theta[at : at + n_in * n_out].reshape(n_in, n_out), y)
        at += (n_in + 1) * n_out
        used += rows * n_out
        below = y
    if back:
        spare = used
        dy = below
        for layer in range(layers - 1, -1, -1):
            n_in, n_out = sizes[layer], sizes[layer + 1]
            at -= (n_in + 1) * n_out
            used -= rows * n_out
            if layer > 0:
                below = work[used - rows * n_in : used].reshape(rows, n_in)
            else:
                below = x
            np.dot(below.T, dy, grad[at : at + n_in * n_out].reshape(n_in, n_out))
            if layer > 0:
                dx = work[spare : spare + rows * n_in].reshape(rows, n_in)
                np.dot(dy, theta[at : at + n_in * n_out].reshape(n_in, n_out).T, dx)
                spare += rows * n_in
                dy = dx


@contextmanager
def plain_torch() -> Iterator[Measure]:
    """The loop of benchmarks/plain_torch.py, in a process of its own; episodes a second."""
    with subprocess.Popen(
        [sys.executable, str(PLAIN_TORCH)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        answers, questions = child.stdout, child.stdin
        settings = json.loads(answers.readline())

        def measure(seconds: float) -> float:
            questions.write(f"{seconds}\n")
            questions.flush()
            return float(answers.readline())

        measure.settings = settings  # type: ignore[attr-defined]
        yield measure
        questions.close()


def why_no_plain_torch() -> str | None:
    if find_spec("torch") is None:
        return "torch is not installed: pip install 'phalanx[torch]'"
    if not PLAIN_TORCH.exists():
        return "benchmarks/plain_torch.py is only in the source tree"
    return None


# --- the run --------------------------------------------------------------------------------------


def open_cases(
    config: BenchConfig, stack: ExitStack, opening: Callable[[str], None]
) -> dict[str, Case]:
    """All cases, ready to be measured. `opening` hears: the next one's name."""
    cores = count_cores()
    cases: dict[str, Case] = {}

    def add(name: str, way: Any) -> None:
        opening(name)
        cases[name] = Case(name, stack.enter_context(way))

    add(f"training, {cores} threads", whole(replace(REFERENCE, num_threads=cores)))
    add(f"matrix products alone, {cores} threads", products(REFERENCE, cores))
    if why_no_plain_torch() is None:
        add("plain torch loop", plain_torch())
    add(f"collecting, {cores} threads (turns)", collecting(replace(REFERENCE, num_threads=cores)))
    add("training, 1 thread", whole(replace(REFERENCE, num_threads=1)))
    add("matrix products alone, 1 thread", products(REFERENCE, 1))
    if config.what == "train":
        for size in SIZES:
            add(f"training, {size} networks", whole(replace(REFERENCE, num_envs=size)))
        add("training, critic sees the truth", whole(replace(REFERENCE, critic_truth=True)))
        # As many inputs as the reference: an order has 25.
        add(FOLLOWING, whole(replace(REFERENCE, condition=(), workflow="all")))
    else:
        for size in MINIBATCHES:
            add(f"training, minibatches of {size}", whole(replace(REFERENCE, minibatch_size=size)))
        if find_spec("torch") is not None:
            add("training, --learner torch", whole(replace(REFERENCE, learner="torch")))
    return cases


def main(config: BenchConfig) -> int:
    """Measure, print the table, write JSON if asked for."""
    with ExitStack() as stack, progress_display("cases") as progress:
        task = progress.add_task("starting", total=None, note="")
        cases = open_cases(
            config, stack, lambda name: progress.update(task, description=f"preparing {name}")
        )
        measure_in_turn(cases, config, progress, task)
        result = summarise(cases)
        if config.what == "train":
            progress.update(task, description="starting fresh processes")
            result |= measure_start_up() | measure_auto(cases)
    show(cases, result)
    if config.json is not None:
        write_json(config.json, result)
    return 0


def measure_in_turn(cases: dict[str, Case], config: BenchConfig, progress: Any, task: Any) -> None:
    """Every case once a round."""
    progress.update(task, total=config.rounds * len(cases))
    for _ in range(config.rounds):
        for case in cases.values():
            progress.update(task, description=case.name)
            case.speeds.append(case.measure(config.seconds or 0.0))
            progress.advance(task)


def summarise(cases: dict[str, Case]) -> dict[str, Any]:
    cores = count_cores()
    speeds = {name: case.speed for name, case in cases.items()}
    ours, bound = (speeds[f"{n}, {cores} threads"] for n in ("training", "matrix products alone"))
    one, bound_of_one = (speeds[f"{n}, 1 thread"] for n in ("training", "matrix products alone"))
    ratios = {
        f"training / matrix products alone, {cores} threads": ours / bound,
        "training / matrix products alone, 1 thread": one / bound_of_one,
        f"training, {cores} threads / 1 thread": ours / one,
    }
    plain = speeds.get("plain torch loop")
    if plain is not None:
        ratios["training / plain torch loop"] = ours / plain
    by_size = [speeds[name] for n in SIZES if (name := f"training, {n} networks") in cases]
    if by_size:
        ratios["slowest / fastest number of networks"] = min(by_size) / max(by_size)
    if FOLLOWING in cases:
        ratios["with workflows / without"] = speeds[FOLLOWING] / ours
    if "training, --learner torch" in cases:
        ratios["training / --learner torch"] = ours / speeds["training, --learner torch"]
    run = cases[f"training, {cores} threads"].measure.run  # type: ignore[attr-defined]
    return {
        "machine": describe_machine(),
        "logging_share": round(run.seconds["other"] / run.spent_s, 4),
        "episodes_per_s": ours,
        "gemm_bound_episodes_per_s": bound,
        "plain_torch_episodes_per_s": plain,
        "collect_steps_per_s": speeds[f"collecting, {cores} threads (turns)"],
        "ratios": {name: round(ratio, 3) for name, ratio in ratios.items()},
        "rows": [case.row() for case in cases.values()],
    }


def measure_start_up() -> dict[str, Any]:
    """Seconds from the command to the end of its first update, and the memory of a short run."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        flags = [
            "train", "--n-envs", "512", "--total-episodes", "4096", "--observation", "bits",
            "--condition", ",".join(map(str, REFERENCE.condition)), "--critic-truth", "false",
            "--actions", "all", "--turn-weights", "flat", "--restore-curriculum", "0",
            "--output-dir", place, "--name", "run",
        ]  # fmt: skip
        began = time.time()
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "phalanx.cli.commands", *flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        child.wait()
        summary = json.loads((folder / "summary.json").read_text())
        # The run says how long its updates took; all else before its last save was starting up.
        saved = os.path.getmtime(folder / "checkpoints" / "last.npz")
        started = saved - began - summary["seconds"]
        first = started + summary["seconds"] / summary["updates"]
        return {
            "first_update_s": round(first, 2),
            "peak_memory_mb": round(summary["peak_memory_mb"]),
        }


def measure_auto(cases: dict[str, Case]) -> dict[str, Any]:
    """What `--n-envs auto` chooses, and how fast that was in the rounds beside the best."""
    size, _ = choose_num_envs(REFERENCE)
    speeds = {n: cases[f"training, {n} networks"].speed for n in SIZES}
    return {"auto_num_envs": size, "auto_of_best": round(speeds[size] / max(speeds.values()), 3)}


def show_cases(cases: dict[str, Case], ratios: dict[str, float], title: str) -> None:
    table = Table(box=SIMPLE_HEAD, title=title)
    for name in ("case", "median", "best"):
        table.add_column(name, justify="left" if name == "case" else "right")
    for case in cases.values():
        table.add_row(case.name, f"{case.speed:,.0f}", f"{max(case.speeds):,.0f}")
    Console(width=100).print(table)
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.2f}")


def show(cases: dict[str, Case], result: dict[str, Any]) -> None:
    show_cases(cases, result["ratios"], "Episodes of 100 turns a second (median of rounds)")
    facts = ("first_update_s", "peak_memory_mb", "logging_share", "auto_num_envs", "auto_of_best")
    print(", ".join(f"{name} {result[name]}" for name in facts if name in result))
    print(", ".join(f"{name} {value}" for name, value in result["machine"].items()))
    if (missing := why_no_plain_torch()) is not None:
        print(f"not compared with a plain torch loop: {missing}")
