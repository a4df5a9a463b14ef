"""How much faster A3C plays with more workers: steps/s on CartPole and on a slow environment.

python benchmarks/a3c_workers.py             # 1 and 2 workers, the best of three rounds in turns
python benchmarks/a3c_workers.py 1 2 4
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import phalanx
from phalanx.config import TrainConfig

ROUNDS, SECONDS = 3, 3.0
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


def steps_per_s(env: str, workers: int, **settings: Any) -> float:
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(
            env=env, algo="a3c", num_workers=workers, total_steps=10**9, duration=SECONDS / 3600,
            output_dir=Path(folder), name="run", **settings,
        )  # fmt: skip
        run = phalanx.train(config)
    return run.steps / run.spent_s


def main(counts: list[int]) -> None:
    for env, settings in (
        ("CartPole-v1", {"num_envs": 16 * max(counts)}),  # as many in all, however many workers
        ("CartPole-v1", {}),  # 16 for each worker
        ("a3c_workers:Busy", {"num_envs": 8}),
    ):
        speeds: dict[int, list[float]] = {workers: [] for workers in counts}
        for _ in range(ROUNDS):
            for workers in counts:
                speeds[workers].append(steps_per_s(env, workers, **settings))
        base = max(speeds[counts[0]])
        for workers, measured in speeds.items():
            speed = max(measured)
            in_all = settings.get("num_envs", 16 * workers)
            print(
                f"{env:18} {in_all:3} environments, {workers} workers: {speed:9,.0f} steps/s "
                f"({speed / base:.2f} x)",
                flush=True,
            )


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]] or [1, 2])
