"""Other runners of Gymnasium environments, behind one way to ask them.

`phalanx bench runners` runs this file beside its own pool, once for each peer, environment and
size. It answers with one line of JSON when all environments are ready (or says what is missing),
then waits for lines with a number of seconds, steps that long, and answers with what it did.

    echo 1 | python benchmarks/peers.py gymnasium phalanx.bench.envs:Nothing 8 8 8

The arguments: peer, module:environment, number of environments, of workers, and of the rows that
are waited for in each step.
"""

import importlib
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from typing import Any

import numpy as np

from phalanx.bench.spent import spend

Turn = Callable[[], int]  # one exchange with the environments; returns the rows that came back
SETS = 16  # of random actions, used in turn


def random_actions(space: Any, n: int) -> Iterator[Any]:
    """Batches of actions without end, drawn beforehand."""
    sets = np.random.default_rng(0).integers(space.n, size=(SETS, n))
    while True:
        yield from sets


@contextmanager
def gymnasium_async(factory: Any, n: int, workers: int, wait_for: int) -> Iterator[Turn]:
    """AsyncVectorEnv: a process for each environment, observations in shared memory."""
    from gymnasium.vector import AsyncVectorEnv

    envs = AsyncVectorEnv([factory] * n)
    envs.reset(seed=0)
    actions = random_actions(envs.single_action_space, n)
    yield lambda: len(envs.step(next(actions))[1])
    envs.close()


@contextmanager
def sb3_subproc(factory: Any, n: int, workers: int, wait_for: int) -> Iterator[Turn]:
    """SubprocVecEnv: a process and a pipe for each environment."""
    from stable_baselines3.common.vec_env import SubprocVecEnv

    envs = SubprocVecEnv([factory] * n, start_method="fork")
    envs.reset()
    actions = random_actions(envs.action_space, n)
    yield lambda: len(envs.step(next(actions))[1])
    envs.close()


@contextmanager
def pufferlib_workers(factory: Any, n: int, workers: int, wait_for: int) -> Iterator[Turn]:
    """PufferLib's multiprocessing: blocks of environments, shared memory, busy waiting."""
    with tempfile.TemporaryDirectory() as place, chdir(place):  # it leaves a link where it is
        import pufferlib.emulation
        import pufferlib.vector

    def creator(**buffers: Any) -> Any:
        return pufferlib.emulation.GymnasiumPufferEnv(env_creator=factory, **buffers)

    envs = pufferlib.vector.make(
        creator,
        num_envs=n,
        num_workers=workers,
        batch_size=wait_for,
        backend=pufferlib.vector.Multiprocessing,
        overwork=True,
    )
    envs.async_reset(seed=0)
    actions = random_actions(envs.single_action_space, wait_for)
    envs.recv()

    def turn() -> int:
        envs.send(next(actions))
        return len(envs.recv()[1])

    yield turn
    envs.close()


@contextmanager
def tianshou_subproc(factory: Any, n: int, workers: int, wait_for: int) -> Iterator[Turn]:
    """SubprocVectorEnv: a process and a pipe for each environment, the first rows that are ready"""
    from tianshou.env import SubprocVectorEnv

    envs = SubprocVectorEnv([factory] * n, wait_num=wait_for)
    envs.reset()
    actions = random_actions(envs.action_space[0], n)
    ids = np.arange(n)

    def turn() -> int:
        nonlocal ids
        answer = envs.step(next(actions)[: len(ids)], ids)
        ids = np.array([info["env_id"] for info in answer[-1]])
        return len(ids)

    yield turn
    envs.close()


@contextmanager
def bare(factory: Any, n: int, workers: int, wait_for: int) -> Iterator[Turn]:
    """No runner: each process steps an environment of its own; what the cores can do."""
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(workers)]
    for _, far in pipes:
        context.Process(target=step_alone, args=(factory, far), daemon=True).start()

    def turn() -> int:
        for near, _ in pipes:
            near.send(STEPS_ALONE)
        return sum(near.recv() for near, _ in pipes)

    yield turn


def step_alone(factory: Any, pipe: Any) -> None:
    env = factory()
    env.reset(seed=0)
    while True:
        steps = pipe.recv()
        for _ in range(steps):
            env.step(0)
        pipe.send(steps)


STEPS_ALONE = 16  # between two words with the parent
PEERS = {
    "bare": bare,
    "gymnasium": gymnasium_async,
    "sb3": sb3_subproc,
    "pufferlib": pufferlib_workers,
    "tianshou": tianshou_subproc,
}


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def main(peer: str, env: str, *numbers: str) -> None:
    module, _, name = env.partition(":")
    factory = getattr(importlib.import_module(module), name)
    try:
        with PEERS[peer](factory, *map(int, numbers)) as turn:
            turn()
            say(missing=None)
            for line in sys.stdin:
                say(**spend(float(line), turn)._asdict())
    except ImportError as error:
        say(missing=f"{peer} is not installed ({error})")


if __name__ == "__main__":
    main(*sys.argv[1:])
