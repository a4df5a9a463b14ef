"""Which runners are measured with which work, and at how many environments."""

import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

from phalanx.bench import envs
from phalanx.bench.config import RUNNER_WORK
from phalanx.bench.spent import Spent
from phalanx.bench.stepping import Opened, our_pool, peer, training
from phalanx.cage2 import cyborg
from phalanx.envs import Pool
from phalanx.errors import MissingError
from phalanx.training.config import TrainConfig

OURS, FIRST, FIRST_EIGHTH = "phalanx", "phalanx, first n/4", "phalanx, first n/8"
GYMNASIUM, SB3 = "Gymnasium AsyncVectorEnv", "SB3 SubprocVecEnv"
PUFFERLIB, TIANSHOU = "PufferLib", "tianshou SubprocVectorEnv"
TIANSHOU_FIRST = f"{TIANSHOU}, first n/4"
BARE = "no runner, processes alone"
FIXED, BY_CLOCK = "computes, fixed work", "computes, by clock"
PEERS = {  # runner: its name in benchmarks/peers.py
    GYMNASIUM: "gymnasium",
    SB3: "sb3",
    PUFFERLIB: "pufferlib",
    TIANSHOU: "tianshou",
    TIANSHOU_FIRST: "tianshou",
    BARE: "bare",
}
NO_SLOW, ONE_SLOW = "none slow", "one slow"
SLOWED = 10  # times
SEQUENTIAL, PARALLEL = "sequential", "parallel"
UPDATE_STEPS, EPOCHS, MINIBATCH, LEARNING_RATE = 16, 4, 128, 0.01
LEARN_STEPS = 8_000  # after which returns are compared

NumWorkers = int | Literal["auto"]
WORKERS: tuple[NumWorkers, ...] = (0, 1, 2, 4, "auto")


@dataclass
class Case:
    """One runner with one kind of work, and what it did in each round."""

    work: str
    runner: str
    n_envs: int
    open: Callable[[], AbstractContextManager[Opened]]
    spent: list[Spent] = field(default_factory=list)

    def row(self, way: Opened) -> dict[str, Any]:
        """Medians over rounds; the return of the last episodes, where something was learnt."""

        def median(figure: Callable[[Spent], float]) -> float:
            return statistics.median(map(figure, self.spent))

        row = {
            "work": self.work,
            "runner": self.runner,
            "n_envs": self.n_envs,
            "workers": way.workers,
            "steps_per_s": round(median(lambda s: s.steps / s.seconds), 1),
            "cpu_us_per_step": round(median(lambda s: s.cpu_s / max(s.steps, 1) * 1e6), 2),
            "parent_cpu_share": round(median(lambda s: s.own_cpu_s / s.seconds), 4),
            "others_cores": round(median(lambda s: s.others_cores), 2),
        }
        if way.recent_return is not None:
            row["return"] = round(way.recent_return(), 2)
        return row


def ours(
    work: str, env: Any, n: int, workers: NumWorkers, *, first: int | None = None, **options: Any
) -> Case:
    """Our pool; `first` is how many rows it waits for, if not for all."""
    runner = OURS if first is None else FIRST_EIGHTH if 8 * first <= n else FIRST
    name = runner + (", auto" if workers == "auto" else "")
    options["wait_for"] = "all" if first is None else first
    return Case(work, name, n, partial(our_pool, env, n, workers, **options))


def theirs(
    runner: str, work: str, env: Any, n: int, workers: int | None = None, first: int | None = None
) -> Case:
    """A peer; most have a worker for each environment."""
    way = partial(peer, PEERS[runner], env, n, workers or n, first or n)
    return Case(work, runner, n, way)


def nothing(n: int) -> list[Case]:
    """What is left is the runner itself."""
    work, env = "nothing", envs.Nothing
    return [
        *(ours(work, env, n, workers) for workers in WORKERS),
        *(theirs(runner, work, env, n) for runner in (GYMNASIUM, SB3, TIANSHOU)),
        *(theirs(PUFFERLIB, work, env, n, workers) for workers in (1, 2)),
    ]


def computes(n: int) -> list[Case]:
    """3 ms of Python in each step: fixed work, beside processes alone; and by the clock."""
    cases = []
    for work, env in ((FIXED, envs.Works), (BY_CLOCK, envs.Computes)):
        cases += [ours(work, env, n, workers) for workers in WORKERS]
        cases += [theirs(runner, work, env, n) for runner in (GYMNASIUM, SB3)]
        cases += [theirs(BARE, work, env, n, workers) for workers in (1, 2)]
    return cases


def waits(n: int) -> list[Case]:
    """A heavy tail of sleep: who takes the first rows that are ready does not wait for it."""
    work, env, first = "waits", envs.Waits, max(1, n // 4)
    return [
        ours(work, env, n, "auto", first=first),
        ours(work, env, n, "auto"),
        theirs(GYMNASIUM, work, env, n),
        theirs(TIANSHOU, work, env, n),
        theirs(TIANSHOU_FIRST, work, env, n, first=first),
    ]


def one_slow(n: int) -> list[Case]:
    """Sleeps of 1 ms everywhere, and then of 10 ms in one environment.

    Of 31 that are fast, batches of n/4 = 8 leave 7 rows waiting; small batches do not.
    """
    return [
        ours(work, envs.Paced, n, "auto", first=first, prepare=prepare)
        for first in (max(1, n // 8), max(1, n // 4), None)
        for work, prepare in ((NO_SLOW, _leave_alone), (ONE_SLOW, _slow_down_one))
    ]


def _leave_alone(pool: Pool) -> None:
    """All are equally fast."""


def _slow_down_one(pool: Pool) -> None:
    pool.call("sleep_s=", SLOWED * envs.Paced.sleep_s, env_ids=[0])


def original(n: int) -> list[Case]:
    """The original simulator of CAGE-2, where it is installed."""
    if not cyborg.is_installed():
        raise MissingError(cyborg.HOW_TO_GET_IT)
    return [ours("cyborg", cyborg.CyborgEnv, n, workers) for workers in (0, 1, 2)]


def images(n: int) -> list[Case]:
    """PPO on pictures of 64 x 64 pixels."""
    return [learns("images", "ppo", "Pictures", n, layout, 0) for layout in (SEQUENTIAL, PARALLEL)]


def signals(n: int) -> list[Case]:
    """IMPALA and PPO on an environment of 2 ms a step, in which something can be learnt."""
    return [
        learns("signals", algo, "Signals", n, layout, LEARN_STEPS if layout == PARALLEL else 0)
        for algo in ("ppo", "impala")
        for layout in (SEQUENTIAL, PARALLEL)
    ]


def learns(work: str, algo: str, env: str, n: int, layout: str, learn_steps: int) -> Case:
    """Training in this process alone, or with two workers and collecting while learning."""
    if find_spec("torch") is None:
        raise MissingError("training needs torch: pip install 'phalanx[torch]'")
    parallel = layout == PARALLEL
    config = TrainConfig(
        env=f"{envs.__name__}:{env}", algo=algo, num_envs=n, num_workers=2 if parallel else 0,
        overlap=parallel, update_steps=UPDATE_STEPS, k_epochs=EPOCHS, minibatch_size=MINIBATCH,
        learning_rate=LEARNING_RATE, total_steps=1_000_000_000,
    )  # fmt: skip
    return Case(work, f"{algo}, {layout}", n, partial(training, config, learn_steps))


class Group(NamedTuple):
    """Cases that are measured in turn with each other, for each number of environments."""

    cases: Callable[[int], list[Case]]
    sizes: tuple[int, ...]


GROUPS = {
    "nothing": Group(nothing, (8, 32, 100)),
    "computes": Group(computes, (8,)),
    "waits": Group(waits, (8, 32)),
    "one-slow": Group(one_slow, (32,)),
    "cyborg": Group(original, (8,)),
    "images": Group(images, (32,)),
    "signals": Group(signals, (32,)),
}
assert tuple(GROUPS) == RUNNER_WORK
