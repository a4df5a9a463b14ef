"""What Ray costs: samplers as actors beside the same samplers as threads, in one run; and what that
means for clusters that are not here.
"""

import pickle
import statistics
import timeit
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial

from phalanx.bench.cases import (
    SPEED_COLUMNS,
    Case,
    measure,
    quotients,
    report,
    show_table,
    speed_row,
)
from phalanx.bench.config import BenchConfig
from phalanx.bench.scaling import Costs, plan, simulate
from phalanx.bench.stepping import sampling, training
from phalanx.cluster.ray import connected, import_ray
from phalanx.display import progress_display
from phalanx.learn.rollout import Rollout
from phalanx.training.config import TrainConfig
from phalanx.training.recipe import open_recipe

SAMPLERS = 2
TURNS = TrainConfig(
    algo="impala",
    num_samplers=SAMPLERS,
    num_envs=SAMPLERS * 256,
    update_steps=100,
    total_episodes=1_000_000_000,
)
SLOW = TrainConfig(
    env="phalanx.bench.envs:Computes",
    algo="impala",
    runner="ray",
    num_workers=0,
    update_steps=16,
    num_envs=4,
    num_samplers=1,
    cpus_per_sampler=0.1,
    total_steps=1_000_000_000,
)
# Samplers that sleep most of the time, so that two cores can hold many, and a learner that is busy.
SLEEPY = replace(
    SLOW,
    env="phalanx.bench.envs:Sleepy",
    num_envs=1,
    cpus_per_sampler=0.05,
    hidden=(512, 512),
    replay=16,
)
COUNTS = (1, 2, 4, 8)
KINDS = (("sampling", "steps", sampling), ("training", "episodes", training))


def compiled_game() -> list[Case]:
    far = replace(TURNS, runner="ray", cpus_per_sampler=0.1)  # all cases are open at once
    ways = {f"{SAMPLERS} threads": TURNS, f"{SAMPLERS} Ray actors": far}
    return [
        Case(f"{what} CAGE-2, {way} ({unit})", partial(opened, config))
        for what, unit, opened in KINDS
        for way, config in ways.items()
    ]


def slow_game() -> list[Case]:
    two = replace(SLOW, num_samplers=2, num_envs=8)
    return [
        Case("3 ms a step, 1 Ray actor (steps)", partial(sampling, SLOW)),
        Case("3 ms a step, 2 Ray actors (steps)", partial(sampling, two)),
    ]


def measure_costs(config: TrainConfig, rounds: int) -> Costs:
    """One sampler on Ray, and the learner, one after the other; medians."""
    with closing(open_recipe(config)) as recipe:
        shaped = recipe.extension.shaping(1.0)
        weights = recipe.learner.stepper.weights()
        (sampler,), ray = recipe.sampler.parts, import_ray()

        def play() -> Rollout:
            recipe.sampler.set_weights(weights, 0)
            return recipe.sampler.collect(shaped)

        def learn() -> None:
            recipe.learner.update(rollout, config.learning_rate, config.entropy)

        rollout = play()
        learn()
        return Costs(
            steps=rollout.rewards.size,
            play_s=median_s(play, rounds),
            learn_s=median_s(learn, rounds),
            ask_s=median_s(lambda: ray.get(sampler.actor.describe.remote()), rounds),
            rollout_bytes=sum(array.nbytes for array in rollout),
            weights_bytes=len(pickle.dumps(weights)),
        )


def median_s(work: Callable[[], object], rounds: int) -> float:
    return statistics.median(timeit.repeat(work, number=1, repeat=max(3, rounds)))


def check_the_model(config: BenchConfig) -> list[dict[str, float]]:
    """Rollouts a second of real runs with more and more samplers, beside those simulated."""
    costs, seconds = measure_costs(SLEEPY, 4 * config.rounds), config.rounds * (config.seconds or 0)
    rows = []
    for count in COUNTS:
        with training(replace(SLEEPY, num_samplers=count, num_envs=count), "steps") as opened:
            opened.measure(seconds)  # until there is enough to replay
            before = opened.facts()
            real = opened.measure(seconds).speed() / costs.steps
            after = opened.facts()
        if count == 1:  # what the learner is busy with, all that it replays and writes down
            busy = after["learn_s"] - before["learn_s"]
            costs = replace(costs, learn_s=busy / (after["updates"] - before["updates"]))
        simulated = simulate(costs, count).steps_per_s / costs.steps
        rows.append({"samplers": count, "measured": real, "simulated": simulated})
    return rows


def main(config: BenchConfig) -> int:
    """Measure in turn, print the table and the ratios, write JSON if asked for."""
    skipped: list[str] = []
    with connected(None):
        # Two groups: idle samplers of the one would slow the other.
        cases = measure([compiled_game(), slow_game()], config, skipped)
        with progress_display(None) as progress:
            task = progress.add_task("", total=None, note="")
            progress.update(task, description="costs of a rollout, and the model of them")
            one = replace(TURNS, runner="ray", num_samplers=1, num_envs=256)
            costs = measure_costs(one, 4 * config.rounds)
            checked = check_the_model(config)
    threads, actors, trained, trained_far, slow, slow_twice = (case.speed for case in cases)
    pairs = {
        "sampling, Ray actors / threads": (actors, threads),
        "training, Ray actors / threads": (trained_far, trained),
        "3 ms a step, 2 Ray actors / 1": (slow_twice, slow),
    }
    result = {
        "ratios": quotients(pairs),
        "rows": [speed_row(case) for case in cases],
        "costs": asdict(costs),
        "model": checked,
        "plan": plan(costs),
    }
    title, notes = "A second (median of rounds)", notes_on(costs, checked)
    report(config, title, SPEED_COLUMNS, result, notes=notes, skipped=skipped)
    columns = {name: name if name == "environment" else f"{name}:,.2f" for name in plan(costs)[0]}
    show_table("Simulated from these costs, one core per sampler", columns, plan(costs))
    return 0


def notes_on(costs: Costs, checked: list[dict[str, float]]) -> list[str]:
    return [
        f"a rollout of {costs.steps:,} turns: {1000 * costs.play_s:.1f} ms to play and hand over, "
        f"{1000 * costs.learn_s:.1f} ms to learn from, {costs.rollout_bytes / 1e6:.1f} MB; "
        f"weights {costs.weights_bytes / 1e3:.0f} kB; a question {1000 * costs.ask_s:.2f} ms",
        *(
            f"{one['samplers']:.0f} sleepy samplers: {one['measured']:.1f} rollouts/s measured, "
            f"{one['simulated']:.1f} simulated"
            for one in checked
        ),
    ]
