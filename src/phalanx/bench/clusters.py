"""What Ray costs: samplers as actors beside the same samplers as threads, in one run; and what that
means for clusters that are not here.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from phalanx.bench.config import BenchConfig
from phalanx.bench.learning import Case, Measure, measure_in_turn, paced, show_cases, whole
from phalanx.bench.scaling import Costs, plan, simulate
from phalanx.cluster.ray import connect, import_ray
from phalanx.display import progress_display
from phalanx.files import write_json
from phalanx.machine import describe_machine
from phalanx.training.config import TrainConfig
from phalanx.training.recipe import open_recipe

SAMPLERS = 2
TURNS = TrainConfig(
    algo="impala", num_samplers=SAMPLERS, num_envs=SAMPLERS * 256, update_steps=100,
    total_episodes=1_000_000_000,
)  # fmt: skip
SLOW = TrainConfig(
    env="phalanx.bench.envs:Computes", algo="impala", runner="ray", num_workers=0, update_steps=16,
    num_envs=4, num_samplers=1, cpus_per_sampler=0.1, total_steps=1_000_000_000,
)  # fmt: skip


# Samplers that sleep most of the time, so that two cores can hold many, and a learner that is busy.
SLEEPY = TrainConfig(
    env="phalanx.bench.envs:Sleepy", algo="impala", runner="ray", num_workers=0, update_steps=16,
    num_envs=1, num_samplers=1, cpus_per_sampler=0.05, hidden=(512, 512), replay=16,
    total_steps=1_000_000_000,
)  # fmt: skip
COUNTS = (1, 2, 4, 8)


@contextmanager
def sampling(config: TrainConfig) -> Iterator[Measure]:
    """Rollouts taken as fast as they come, nothing learnt; steps a second."""
    recipe = open_recipe(config)
    shaped = recipe.extension.shaping(1.0)
    weights, version = recipe.learner.stepper.weights, 0

    def take() -> float:
        nonlocal version
        version += 1
        return float(recipe.source.next(weights, version, shaped).rewards.size)

    for _ in range(2 * SAMPLERS):
        take()
    yield paced(take)
    recipe.close()


def compiled_game(stack: ExitStack) -> dict[str, Case]:
    far = replace(TURNS, runner="ray", cpus_per_sampler=0.1)  # all cases are open at once
    ways: dict[str, Any] = {
        f"sampling CAGE-2, {SAMPLERS} threads (steps)": sampling(TURNS),
        f"sampling CAGE-2, {SAMPLERS} Ray actors (steps)": sampling(far),
        f"training CAGE-2, {SAMPLERS} threads (episodes)": whole(TURNS),
        f"training CAGE-2, {SAMPLERS} Ray actors (episodes)": whole(far),
    }
    return {name: Case(name, stack.enter_context(way)) for name, way in ways.items()}


def slow_game(stack: ExitStack) -> dict[str, Case]:
    two = replace(SLOW, num_samplers=2, num_envs=8)
    ways = {
        "3 ms a step, 1 Ray actor (steps)": sampling(SLOW),
        "3 ms a step, 2 Ray actors (steps)": sampling(two),
    }
    return {name: Case(name, stack.enter_context(way)) for name, way in ways.items()}


def measure_costs(config: TrainConfig, rounds: int) -> Costs:
    """One sampler on Ray, and the learner, one after the other; medians."""
    recipe = open_recipe(config)
    shaped = recipe.extension.shaping(1.0)
    weights = recipe.learner.stepper.weights()
    sampler, ray = recipe.sampler, import_ray()

    def play() -> Any:
        sampler.set_weights(weights, 0)
        return sampler.collect(shaped)

    def learn() -> None:
        recipe.learner.update(rollout, config.learning_rate, config.entropy)

    rollout = play()
    learn()
    costs = Costs(
        steps=rollout.rewards.size,
        play_s=median_s(play, rounds),
        learn_s=median_s(learn, rounds),
        ask_s=median_s(lambda: ray.get(sampler.actor.describe.remote()), rounds),
        rollout_bytes=sum(array.nbytes for array in rollout),
        weights_bytes=sum(array.nbytes for array in _arrays(weights)),
    )
    recipe.close()
    return costs


def _arrays(weights: Any) -> list[Any]:
    return list(weights.values()) if isinstance(weights, dict) else [weights]


def median_s(work: Callable[[], object], rounds: int) -> float:
    spent = []
    for _ in range(max(3, rounds)):
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent)


def check_the_model(config: BenchConfig) -> list[dict[str, float]]:
    """Rollouts a second of real runs with more and more samplers, beside those simulated."""
    costs, seconds = measure_costs(SLEEPY, 4 * config.rounds), config.rounds * (config.seconds or 0)
    rows = []
    for count in COUNTS:
        with whole(replace(SLEEPY, num_samplers=count, num_envs=count)) as measure:
            run = measure.run  # type: ignore[attr-defined]
            measure(seconds)  # until there is enough to replay
            before, spent, began = run.updates, dict(run.seconds), time.perf_counter()
            measure(seconds)
            updates, took = run.updates - before, time.perf_counter() - began
        if count == 1:  # what the learner is busy with, all that it replays and writes down
            busy = sum(run.seconds[name] - spent[name] for name in ("learn", "other"))
            costs = replace(costs, learn_s=busy / updates)
        real = updates / took
        simulated = simulate(costs, count).steps_per_s / costs.steps
        rows.append({"samplers": count, "measured": real, "simulated": simulated})
    return rows


def main(config: BenchConfig) -> int:
    """Measure in turn, print the table and the ratios, write JSON if asked for."""
    leave = connect(None)
    try:
        cases: dict[str, Case] = {}
        for group in (compiled_game, slow_game):  # idle samplers of the one would slow the other
            with ExitStack() as stack, progress_display("cases") as progress:
                task = progress.add_task("", total=None, note="")
                progress.update(task, description="starting")
                opened = group(stack)
                measure_in_turn(opened, config, progress, task)
                cases |= opened
        with progress_display(None) as progress:
            task = progress.add_task("", total=None, note="")
            progress.update(task, description="costs of a rollout, and the model of them")
            one = replace(TURNS, runner="ray", num_samplers=1, num_envs=256)
            costs = measure_costs(one, 4 * config.rounds)
            checked = check_the_model(config)
    finally:
        leave()
    speeds = [case.speed for case in cases.values()]
    ratios = {
        "sampling, Ray actors / threads": speeds[1] / speeds[0],
        "training, Ray actors / threads": speeds[3] / speeds[2],
        "3 ms a step, 2 Ray actors / 1": speeds[5] / speeds[4],
    }
    show_cases(cases, ratios, "A second (median of rounds)")
    show_plan(costs, checked)
    machine = describe_machine()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    if config.json is not None:
        rows = [case.row() for case in cases.values()]
        write_json(config.json, {
            "machine": machine, "ratios": ratios, "rows": rows, "costs": asdict(costs),
            "model": checked, "plan": plan(costs),
        })  # fmt: skip
    return 0


def show_plan(costs: Costs, checked: list[dict[str, float]]) -> None:
    print(
        f"a rollout of {costs.steps:,} turns: {1000 * costs.play_s:.1f} ms to play and hand over, "
        f"{1000 * costs.learn_s:.1f} ms to learn from, {costs.rollout_bytes / 1e6:.1f} MB; "
        f"weights {costs.weights_bytes / 1e3:.0f} kB; a question {1000 * costs.ask_s:.2f} ms"
    )
    for one in checked:
        print(
            f"{one['samplers']:.0f} sleepy samplers: {one['measured']:.1f} rollouts/s measured, "
            f"{one['simulated']:.1f} simulated"
        )
    rows = plan(costs)
    table = Table(box=SIMPLE_HEAD, title="Simulated from these costs, one core per sampler")
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "environment" else "right")
    for row in rows:
        table.add_row(*(f"{x:,.2f}" if isinstance(x, float) else str(x) for x in row.values()))
    Console(width=160).print(table)
