"""What Ray costs: samplers as actors beside the same samplers as threads, in one run."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from phalanx.bench.learning import Case, Measure, measure_in_turn, paced, show_cases, whole
from phalanx.cluster import connect
from phalanx.config import BenchConfig, TrainConfig
from phalanx.display import progress_display
from phalanx.machine import describe_machine
from phalanx.recipe import open_recipe, shaping, turn_weights
from phalanx.results import write_json

SAMPLERS = 2
TURNS = TrainConfig(
    algo="impala", num_samplers=SAMPLERS, num_envs=SAMPLERS * 256, update_steps=100,
    total_episodes=1_000_000_000,
)  # fmt: skip
SLOW = TrainConfig(
    env="phalanx.bench.envs:Computes", algo="impala", runner="ray", num_workers=0, update_steps=16,
    num_envs=4, num_samplers=1, cpus_per_sampler=0.1, total_steps=1_000_000_000,
)  # fmt: skip


@contextmanager
def sampling(config: TrainConfig) -> Iterator[Measure]:
    """Rollouts taken as fast as they come, nothing learnt; steps a second."""
    recipe = open_recipe(config)
    shaped = shaping(config, turn_weights(config), 1.0)
    weights, version = recipe.learner.stepper.weights, 0

    def take() -> float:
        nonlocal version
        version += 1
        return float(recipe.source.next(weights, version, shaped).rewards.size)

    for _ in range(2 * SAMPLERS):
        take()
    yield paced(take)
    recipe.close()


def open_cases(stack: ExitStack) -> dict[str, Case]:
    far = replace(TURNS, runner="ray", cpus_per_sampler=0.1)  # all cases are open at once
    ways: dict[str, Any] = {
        f"sampling CAGE-2, {SAMPLERS} threads (steps)": sampling(TURNS),
        f"sampling CAGE-2, {SAMPLERS} Ray actors (steps)": sampling(far),
        f"training CAGE-2, {SAMPLERS} threads (episodes)": whole(TURNS),
        f"training CAGE-2, {SAMPLERS} Ray actors (episodes)": whole(far),
        "3 ms a step, 1 Ray actor (steps)": sampling(SLOW),
        "3 ms a step, 2 Ray actors (steps)": sampling(replace(SLOW, num_samplers=2, num_envs=8)),
    }
    return {name: Case(name, stack.enter_context(way)) for name, way in ways.items()}


def main(config: BenchConfig) -> int:
    """Measure in turn, print the table and the ratios, write JSON if asked for."""
    leave = connect(None)
    try:
        with ExitStack() as stack, progress_display("cases") as progress:
            task = progress.add_task("starting", total=None, note="")
            cases = open_cases(stack)
            measure_in_turn(cases, config, progress, task)
    finally:
        leave()
    speeds = [case.speed for case in cases.values()]
    ratios = {
        "sampling, Ray actors / threads": speeds[1] / speeds[0],
        "training, Ray actors / threads": speeds[3] / speeds[2],
        "3 ms a step, 2 Ray actors / 1": speeds[5] / speeds[4],
    }
    show_cases(cases, ratios, "A second (median of rounds)")
    machine = describe_machine()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    if config.json is not None:
        rows = [case.row() for case in cases.values()]
        write_json(config.json, {"machine": machine, "ratios": ratios, "rows": rows})
    return 0
