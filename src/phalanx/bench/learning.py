"""How fast training is: beside its matrix products alone, and beside a plain torch loop."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from phalanx.bench.cases import (
    SPEED_COLUMNS,
    Case,
    Opened,
    in_words,
    measure,
    quotients,
    report,
    speed_row,
)
from phalanx.bench.config import BenchConfig
from phalanx.bench.spent import spend
from phalanx.bench.stepping import program, sampling, training
from phalanx.bench.watching import unwatched, watched
from phalanx.compiled.rule import kernel
from phalanx.compiled.team import Board, ThreadTeam, join, leave, next_piece
from phalanx.learn.compiled.mlp import Floats, Sizes, fast
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.compiled.stepper import CompiledStepper
from phalanx.machine import count_cores
from phalanx.training.config import TrainConfig
from phalanx.training.recipe import choose_num_envs, open_recipe

REFERENCE = TrainConfig(
    red_agent="b_line=0.5,meander=0.5",
    observation="bits",
    condition=(1.0, *[0.0] * 24),
    critic_truth=False,
    actions="all",
    turn_weights="flat",
    restore_curriculum=0.0,
    minibatch_size=4096,
    total_episodes=1_000_000_000,
)
SIZES = (256, 512, 1024, 2048, 4096)
MINIBATCHES = (1024, 4096, 25600)
PLAIN, TORCH = "plain torch loop", "training, --learner torch"
FOLLOWING = "training, --workflow all"
WATCHED, UNWATCHED = "training, live view and all sinks", "training, nobody watches"
SMALLEST = "8 CartPoles, live view and all sinks (steps)"  # where being watched costs most
CARTPOLES = TrainConfig(env="CartPole-v1", num_envs=8, num_workers=0, total_episodes=1_000_000_000)
PRODUCT_ROWS = (256, 512, 1024, 2048)


# --- what is measured -----------------------------------------------------------------------------


def cases_of(what: str) -> list[Case]:
    cores = count_cores()

    def run(name: str, **changes: Any) -> Case:
        return Case(name, partial(training, replace(REFERENCE, **changes)))

    cases = [
        run(f"training, {cores} threads", num_threads=cores),
        Case(f"matrix products alone, {cores} threads", partial(products, REFERENCE, cores)),
        Case(PLAIN, partial(program, "plain_torch.py")),
        Case(
            f"collecting, {cores} threads (turns)",
            partial(sampling, replace(REFERENCE, num_threads=cores)),
        ),
        run("training, 1 thread", num_threads=1),
        Case("matrix products alone, 1 thread", partial(products, REFERENCE, 1)),
    ]
    if what == "learner":
        sizes = [run(f"training, minibatches of {n}", minibatch_size=n) for n in MINIBATCHES]
        return [*cases, *sizes, run(TORCH, learner="torch")]
    return [
        *cases,
        *(run(f"training, {n} networks", num_envs=n) for n in SIZES),
        run("training, critic sees the truth", critic_truth=True),
        Case(WATCHED, partial(training, REFERENCE, watching=watched)),
        Case(UNWATCHED, partial(training, REFERENCE, watching=unwatched)),
        Case(SMALLEST, partial(training, CARTPOLES, "steps", watching=watched)),
        run(FOLLOWING, condition=(), workflow="all"),  # as many inputs: an order has 25
    ]


@contextmanager
def products(config: TrainConfig, threads: int) -> Iterator[Opened]:
    """Just the matrix products: a forward pass for acting, then the epochs; episodes a second."""
    stepper = open_recipe(replace(config, num_envs=1)).learner.stepper
    assert isinstance(stepper, CompiledStepper)
    with closing(ThreadTeam(threads)) as team:
        works = [_products(config, stepper.policy, team, rows) for rows in PRODUCT_ROWS]
        yield Opened(partial(spend, step=max(works, key=lambda work: spend(0.3, work).speed())))


def _products(
    config: TrainConfig, policy: Policy, team: ThreadTeam, rows: int
) -> Callable[[], float]:
    """Multiplies blocks of so many rows; returns to how many episodes that comes."""
    random = np.random.default_rng(0)
    x = random.random((rows, int(policy.actor_sizes[0]))).astype(np.float32)
    room = 2 * rows * int(max(policy.actor_sizes.sum(), policy.critic_sizes.sum()))
    spaces = random.random((team.num_threads, room)).astype(np.float32)
    grads = np.empty((team.num_threads, len(policy.theta)), np.float32)
    pieces = 16 * team.num_threads
    arguments = (
        policy.actor,
        policy.actor_sizes,
        policy.critic,
        policy.critic_sizes,
        x,
        spaces,
        grads,
        config.k_epochs,
        pieces,
    )

    def work() -> float:
        team.run(multiply_pieces, arguments)
        return pieces * rows / config.horizon

    work()  # compiles
    return work


@kernel
def multiply_pieces(
    actor: Floats,
    actor_sizes: Sizes,
    critic: Floats,
    critic_sizes: Sizes,
    x: Floats,
    spaces: Floats,
    grads: Floats,
    epochs: int,
    pieces: int,
    board: Board,
    task: int,
    thread: int,
) -> bool:
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
def multiply(
    theta: Floats, sizes: Sizes, x: Floats, work: Floats, grad: Floats, back: bool
) -> None:
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


# --- the command ----------------------------------------------------------------------------------


def main(config: BenchConfig) -> int:
    """Measure, print the table, write JSON if asked for."""
    skipped: list[str] = []
    cases = {case.name: case for case in measure([cases_of(config.what)], config, skipped)}
    speeds = {name: case.speed for name, case in cases.items()}
    result = summarise(cases, speeds)
    if config.what == "train":
        result |= measure_start_up() | measure_auto(speeds)
    title = "Episodes of 100 turns a second (median of rounds)"
    facts = (
        "first_update_s",
        "peak_memory_mb",
        "logging_share",
        "watching_share",
        "watching_share_of_cartpoles",
        "auto_num_envs",
        "auto_of_best",
    )
    notes = [in_words({name: result[name] for name in facts if result.get(name) is not None})]
    report(config, title, SPEED_COLUMNS, result, notes=notes, skipped=skipped)
    return 0


def summarise(cases: dict[str, Case], speeds: dict[str, float]) -> dict[str, object]:
    cores, speed = count_cores(), speeds.get
    ours, bound = (speeds[f"{n}, {cores} threads"] for n in ("training", "matrix products alone"))
    one, bound_of_one = (speeds[f"{n}, 1 thread"] for n in ("training", "matrix products alone"))
    by_size = [speeds[name] for n in SIZES if (name := f"training, {n} networks") in speeds]
    pairs = {
        f"training / matrix products alone, {cores} threads": (ours, bound),
        "training / matrix products alone, 1 thread": (one, bound_of_one),
        f"training, {cores} threads / 1 thread": (ours, one),
        "training / plain torch loop": (ours, speed(PLAIN)),
        "slowest / fastest number of networks": (
            min(by_size, default=None),
            max(by_size, default=None),
        ),
        "with workflows / without": (speed(FOLLOWING), ours),
        "training / --learner torch": (ours, speed(TORCH)),
        "live view, split and sinks / nobody watches": (speed(WATCHED), speed(UNWATCHED)),
    }
    watching = [
        cases[name].facts["watching_share"] if name in cases else None
        for name in (WATCHED, SMALLEST)
    ]
    return {
        "watching_share": watching[0],
        "watching_share_of_cartpoles": watching[1],
        "logging_share": round(cases[f"training, {cores} threads"].facts["logging_share"], 4),
        "episodes_per_s": ours,
        "gemm_bound_episodes_per_s": bound,
        "plain_torch_episodes_per_s": speed(PLAIN),
        "collect_steps_per_s": speeds[f"collecting, {cores} threads (turns)"],
        "ratios": quotients(pairs),
        "rows": [speed_row(case) for case in cases.values()],
    }


def measure_start_up() -> dict[str, float]:
    """Seconds from the command to the end of its first update, and the memory of a short run."""
    with tempfile.TemporaryDirectory() as place:
        folder, settings = Path(place) / "run", Path(place) / "reference.yaml"
        config = replace(REFERENCE, num_envs=512, total_episodes=4096)
        settings.write_text(yaml.safe_dump(config.as_dict()))
        command = [sys.executable, "-P", "-m", "phalanx.cli.commands", "train"]
        flags = ["--config", str(settings), "--output-dir", place, "--name", "run"]
        began = time.time()
        subprocess.run([*command, *flags], capture_output=True, check=False)
        summary = json.loads((folder / "summary.json").read_text())
        # The run says how long its updates took; all else before its last save was starting up.
        saved = os.path.getmtime(folder / "checkpoints" / "last.npz")
        started = saved - began - summary["seconds"]
        first = started + summary["seconds"] / summary["updates"]
        return {
            "first_update_s": round(first, 2),
            "peak_memory_mb": round(summary["peak_memory_mb"]),
        }


def measure_auto(speeds: dict[str, float]) -> dict[str, float]:
    """What `--n-envs auto` chooses, and how fast that was in the rounds beside the best."""
    size, _ = choose_num_envs(REFERENCE)
    by_size = {n: speeds[f"training, {n} networks"] for n in SIZES}
    return {"auto_num_envs": size, "auto_of_best": round(by_size[size] / max(by_size.values()), 3)}
