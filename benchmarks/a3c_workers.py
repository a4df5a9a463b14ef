"""How much faster A3C plays with more workers: steps/s on CartPole and on a slow environment.

python benchmarks/a3c_workers.py             # 1 and 2 workers, the calmest of three rounds
python benchmarks/a3c_workers.py 1 2 4
"""

import resource
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import phalanx
from phalanx.machine import busy_s
from phalanx.training.config import TrainConfig

ROUNDS, SECONDS = 3, 2.0
WORK_S = 1e-3


class Busy(gymnasium.Env[Any, Any]):
    """Computes for a millisecond of CPU time in each step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (8,), np.float32)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, **options: Any) -> Any:
        super().reset(**options)
        self.turn = 0
        return np.zeros(8, np.float32), {}

    def step(self, action: Any) -> Any:
        self.turn += 1
        until = time.thread_time() + WORK_S
        while time.thread_time() < until:
            pass
        return np.zeros(8, np.float32), 0.0, False, self.turn == 100, {}


class Measured(NamedTuple):
    others: float
    """cores that other people's processes kept busy meanwhile"""
    steps_per_s: float
    cpu_us: float
    """of all our processes, for a step"""


def measure(env: str, workers: int, **settings: Any) -> Measured:
    began, busy, own = time.perf_counter(), busy_s(), own_cpu_s()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(None):
        config = TrainConfig(
            env=env,
            algo="a3c",
            num_workers=workers,
            total_steps=10**9,
            duration=SECONDS / 3600,
            output_dir=Path(folder),
            name="run",
            **settings,
        )
        run = phalanx.train(config)
    own = own_cpu_s() - own
    others = max(0.0, busy_s() - busy - own) / (time.perf_counter() - began)
    return Measured(others, run.steps / run.spent_s, 1e6 * own / run.steps)


def own_cpu_s() -> float:
    """Of this process and of those that it has started and ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main(counts: list[int]) -> None:
    for env, settings in (
        ("CartPole-v1", {"num_envs": 16 * max(counts)}),  # as many in all, however many workers
        ("CartPole-v1", {}),  # 16 for each worker
        ("a3c_workers:Busy", {"num_envs": 8}),
    ):
        rounds = [[measure(env, workers, **settings) for workers in counts] for _ in range(ROUNDS)]
        calmest = min(rounds, key=lambda row: sum(one.others for one in row))
        for workers, one in zip(counts, calmest, strict=True):
            print(
                f"{env:17} {settings.get('num_envs', 16 * workers):3} environments, {workers} "
                f"workers: {one.steps_per_s:8,.0f} steps/s "
                f"({one.steps_per_s / calmest[0].steps_per_s:.2f} x), {one.cpu_us:,.0f} µs CPU a "
                f"step with the start; others used {one.others:.1f} cores",
                flush=True,
            )


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]] or [1, 2])
