"""Ways to step many environments that are measured: our pool, other people's runners, training."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium import spaces

import phalanx
from phalanx.bench.spent import Spent, spend
from phalanx.envs import Pool, make_pool
from phalanx.errors import MissingError
from phalanx.training.config import TrainConfig
from phalanx.training.folder import RunFolder

PEERS = Path(phalanx.__file__).parents[2] / "benchmarks" / "peers.py"
ACTION_SETS = 16  # batches of random actions, used in turn
RECENT = 100  # episodes that returns are taken from


class Opened(NamedTuple):
    """Environments that are ready to be stepped."""

    measure: Callable[[float], Spent]  # seconds to spend
    workers: int
    recent_return: Callable[[], float] | None = None  # of episodes, where something is learnt


@contextmanager
def our_pool(
    env: Any,
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
        turns = 0
        pool.reset()
        pool.recv()

        def turn() -> int:
            nonlocal turns
            turns += 1
            pool.send(sets[turns % ACTION_SETS])
            return len(pool.recv().env_ids)

        yield Opened(partial(spend, step=turn), pool.num_workers)


@contextmanager
def peer(name: str, env: Any, n_envs: int, workers: int, wait_for: int) -> Iterator[Opened]:
    """A runner of benchmarks/peers.py, in a process of its own that is stopped between rounds."""
    if not PEERS.exists():
        raise MissingError("benchmarks/peers.py is only in the source tree")
    place = f"{env.__module__}:{env.__qualname__}"
    numbers = map(str, (n_envs, workers, wait_for))
    with subprocess.Popen(
        [sys.executable, str(PEERS), name, place, *numbers],
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
            missing = json.loads(first)["missing"] if first else f"{name} cannot run here"
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

            yield Opened(measure, workers)
        finally:
            end(child)


def end(child: "subprocess.Popen[str]") -> None:
    """Let a peer close its environments; if it does not, end it with all its workers."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGCONT)
    if child.stdin is not None:
        child.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        child.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


@contextmanager
def training(config: TrainConfig, learn_steps: int) -> Iterator[Opened]:
    """A run as users start it, with its folder and all its logs.

    Its return, if `learn_steps` are given, is that of the last episodes after so many at least.
    """
    from phalanx.training.run import Run

    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(Path(place) / "run")
        run = Run(config, folder)

        def update() -> int:
            before = run.steps
            run.step()
            return run.steps - before

        def measure(seconds: float) -> Spent:
            update()  # as in the middle of a run: the next rollout is under way, if any ever is
            spent = spend(seconds, update)
            wait(getattr(run.source, "_pending", ()))  # samplers ahead would play on
            return spent

        def recent_return() -> float:
            while run.steps < learn_steps:
                update()
            recent = [episode.total for episode in run.recent]
            return float(np.mean(recent[-RECENT:])) if recent else np.nan

        try:
            measure(0.0)
            yield Opened(
                measure, run.sampler.pool.num_workers, recent_return if learn_steps else None
            )
        finally:
            run.recipe.close()
            folder.close()
