"""What is measured in several ways: our pool, training, and programs of other people."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Literal

import numpy as np
from gymnasium import spaces

import phalanx
from phalanx.bench.cases import Opened
from phalanx.bench.spent import Spent, spend
from phalanx.envs import Pool, make_pool
from phalanx.envs.factories import Factory
from phalanx.errors import MissingError
from phalanx.files import Facts
from phalanx.stopwatch import LEARNING, LOGGING
from phalanx.training.config import TrainConfig
from phalanx.training.folder import RunFolder
from phalanx.training.recipe import open_recipe
from phalanx.training.run import Run

BENCHMARKS = Path(phalanx.__file__).parents[2] / "benchmarks"
ACTION_SETS = 16  # batches of random actions, used in turn
RECENT = 100  # episodes that returns are taken from


@contextmanager
def our_pool(
    env: Factory,
    n_envs: int,
    num_workers: int | Literal["auto"],
    wait_for: int | Literal["all"] = "all",
    prepare: Callable[[Pool], object] = lambda pool: None,
) -> Iterator[Opened]:
    """The pool, with random actions for whoever is ready."""
    with make_pool(env, n_envs=n_envs, num_workers=num_workers, wait_for=wait_for) as pool:
        prepare(pool)
        assert isinstance(pool.single_action_space, spaces.Discrete)
        random = np.random.default_rng(0)
        sets = random.integers(pool.single_action_space.n, size=(ACTION_SETS, pool.wait_for))
        actions = cycle(sets)
        pool.reset()
        pool.recv()

        def turn() -> int:
            pool.send(next(actions))
            return len(pool.recv().env_ids)

        yield Opened(partial(spend, step=turn), lambda: {"workers": pool.num_workers})


@contextmanager
def program(name: str, *arguments: object) -> Iterator[Opened]:
    """One of benchmarks/, in a process of its own that is stopped between rounds.

    When it is ready it says so, or what is missing, in a line of JSON; from then on it is given
    seconds to spend, and answers with what it did.
    """
    if not (BENCHMARKS / name).exists():
        raise MissingError(f"benchmarks/{name} is only in the source tree")
    with subprocess.Popen(
        [sys.executable, str(BENCHMARKS / name), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        answers, questions = child.stdout, child.stdin
        try:
            first = answers.readline()
            missing = json.loads(first)["missing"] if first else "it cannot run here"
            if missing is not None:
                raise MissingError(missing)
            os.killpg(child.pid, signal.SIGSTOP)  # some spin while they wait

            def measure(seconds: float) -> Spent:
                os.killpg(child.pid, signal.SIGCONT)
                questions.write(f"{seconds}\n")
                questions.flush()
                spent = Spent(**json.loads(answers.readline()))
                os.killpg(child.pid, signal.SIGSTOP)
                return spent

            yield Opened(measure)
        finally:
            with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(child.pid, signal.SIGCONT)
                questions.close()  # then it closes its environments
                child.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # with all its workers


@contextmanager
def training(
    config: TrainConfig,
    counted: str = "episodes",
    learn_steps: int = 0,
    watching: Callable[[Run], AbstractContextManager[object]] = nullcontext,
) -> Iterator[Opened]:
    """A run as users start it, with its folder and all its logs.

    counted: what its speed is of, `episodes` or `steps`.
    learn_steps: its return, if asked for, is that of the last episodes after so many at least.
    watching: who looks at it meanwhile; what that gives tells which share of the time it took.
    """
    with tempfile.TemporaryDirectory() as place, closing(RunFolder(Path(place) / "run")) as folder:
        run = Run(config, folder)

        def update() -> int:
            before = getattr(run, counted)
            run.step()
            return int(getattr(run, counted) - before)

        def measure(seconds: float) -> Spent:
            update()  # as in the middle of a run: the next rollout is under way, if any ever is
            spent = spend(seconds, update)
            wait(getattr(run.source, "_pending", ()))  # samplers ahead would play on
            return spent

        def facts() -> Facts:
            known = {
                "workers": run.recipe.num_workers,
                "updates": run.updates,
                "learn_s": run.seconds[LEARNING] + run.seconds[LOGGING],
                "logging_share": run.seconds[LOGGING] / run.spent_s,
            }
            if learn_steps:
                while run.steps < learn_steps:
                    update()
                recent = [episode.total for episode in run.recent]
                known["return"] = round(float(np.mean(recent[-RECENT:] or [np.nan])), 2)
            return known

        try:
            measure(0.0)
            run.watch.seconds = dict.fromkeys(run.seconds, 0.0)
            with watching(run) as told:
                yield Opened(measure, lambda: facts() | watching_share(told))
        finally:
            run.recipe.close()


def watching_share(told: object) -> dict[str, float]:
    return {"watching_share": round(told(), 5)} if callable(told) else {}


@contextmanager
def sampling(config: TrainConfig) -> Iterator[Opened]:
    """Rollouts taken as fast as they come, nothing learnt; steps a second."""
    with closing(open_recipe(config)) as recipe:
        shaped = recipe.extension.shaping(1.0)
        weights, version = recipe.learner.stepper.weights, 0

        def take() -> int:
            nonlocal version
            version += 1
            return int(recipe.source.next(weights, version, shaped).rewards.size)

        for _ in range(2 * config.num_samplers):
            take()
        yield Opened(partial(spend, step=take))
