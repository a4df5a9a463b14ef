"""mini_CAGE beside phalanx on one core: steps a second with random blue actions against Meander.

    PYTHONPATH=path/to/CybORG_plus_plus python benchmarks/mini_cage.py

mini_CAGE (alan-turing-institute/CybORG_plus_plus) plays an abstraction of the same game, with 53
actions and 78 observations. The cases are measured in turn, in rounds, and the medians compared.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from phalanx.cage2 import Batch

try:
    from mini_CAGE import Meander_minimal, SimplifiedCAGE  # type: ignore[import-not-found]
except ImportError:
    sys.exit("mini_CAGE is not on PYTHONPATH: get alan-turing-institute/CybORG_plus_plus")

ROUNDS, SECONDS = 5, 1.0


def mini_cage(num_envs: int) -> Callable[[], None]:
    env, red = SimplifiedCAGE(num_envs=num_envs), Meander_minimal()
    random = np.random.default_rng(0)
    state = [env.reset()[0]]
    turns = [0]

    def play() -> None:
        blue_action = random.integers(53, size=(num_envs, 1))
        red_action = red.get_action(observation=state[0]["Red"])
        state[0] = env.step(blue_action=blue_action, red_action=red_action)[0]
        turns[0] += 1
        if turns[0] % 100 == 0:
            state[0] = env.reset()[0]

    return play


def phalanx(num_envs: int) -> Callable[[], None]:
    batch = Batch(num_envs, red_agent="meander", num_threads=1)
    random = np.random.default_rng(0)
    return lambda: batch.play(random.integers(145, size=num_envs)) and None


def main() -> None:
    cases = {f"mini_CAGE, {n} networks": (mini_cage(n), n) for n in (100, 1000)}
    cases["phalanx, 4096 networks"] = (phalanx(4096), 4096)
    speeds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, (play, num_envs) in cases.items():
            calls, began = 0, time.perf_counter()
            while time.perf_counter() - began < SECONDS:
                play()
                calls += 1
            speeds[name].append(calls * num_envs / (time.perf_counter() - began))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    for name, speed in medians.items():
        print(f"{name}: {speed:,.0f} steps/s")
    *theirs, ours = medians.values()
    print(f"phalanx / mini_CAGE's best: {ours / max(theirs):,.0f}")


if __name__ == "__main__":
    main()
