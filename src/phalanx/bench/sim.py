"""How fast the simulator is: figures and ratios, measured side by side in one run."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from phalanx.bench.config import BenchConfig
from phalanx.cage2 import cyborg
from phalanx.cage2.batch import Batch
from phalanx.cage2.registration import ENV_ID
from phalanx.cage2.rules.batch_turn import play_turns
from phalanx.cage2.rules.scenario import NUM_ACTIONS, RED_AGENTS
from phalanx.cage2.settings import checked_threads, kinds_of_episodes
from phalanx.cage2.vector import Cage2VectorEnv
from phalanx.display import progress_display
from phalanx.files import write_json
from phalanx.machine import describe_machine

KERNEL, STEP, SINGLE, ORIGINAL = "kernel", "step()", "gymnasium.make", "original"
HORIZON = 100
ACTION_SETS = 16  # batches of random blue actions, used in turn


@dataclass
class Case:
    """One way to play with random blue actions, and how fast it was in each round."""

    how: str
    num_envs: int
    threads: int
    red_agent: str
    dtype: str
    prepare: Callable[["Case"], Callable[[int], None]]
    speeds: list[float] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        return {
            "how": self.how,
            "num_envs": self.num_envs,
            "threads": self.threads,
            "red_agent": self.red_agent,
            "dtype": self.dtype,
            "steps_per_s": round(statistics.median(self.speeds)),
            "best_steps_per_s": round(max(self.speeds)),
        }


def play_kernel(case: Case) -> Callable[[int], None]:
    """The kernel alone: all that a turn gives is written into the same arrays again."""
    batch, actions = _batch(case), _actions(case)

    def play(turn: int) -> None:
        arguments = batch.turn_arguments(actions[turn % ACTION_SETS], batch.shown)
        batch.team.run(play_turns, arguments)

    return play


def play_step(case: Case) -> Callable[[int], None]:
    """`Cage2VectorEnv.step` as users call it: actions checked, new arrays returned."""
    envs, actions = (
        Cage2VectorEnv(
            case.num_envs,
            red_agent=case.red_agent,
            horizon=HORIZON,
            dtype=case.dtype,
            seed=0,
            num_threads=case.threads,
        ),
        _actions(case),
    )
    envs.reset()
    return lambda turn: envs.step(actions[turn % ACTION_SETS]) and None


def play_single(case: Case) -> Callable[[int], None]:
    """One network through `gymnasium.make`, with the wrappers that it puts on."""
    env = gymnasium.make(ENV_ID, red_agent=case.red_agent, horizon=HORIZON, dtype=case.dtype)
    return _play_env(env, _actions(case)[:, 0])


def play_original(case: Case) -> Callable[[int], None]:
    """The original simulator in the challenge's own wrapper."""
    env = cyborg.CyborgEnv(red_agent=case.red_agent, horizon=HORIZON)
    return _play_env(env, _actions(case)[:, 0])


def _play_env(env: gymnasium.Env[Any, Any], actions: Any) -> Callable[[int], None]:
    env.reset(seed=0)

    def play(turn: int) -> None:
        *_, truncated, _info = env.step(actions[turn % ACTION_SETS])
        if truncated:
            env.reset()

    return play


def _batch(case: Case) -> Batch:
    return Batch(
        case.num_envs,
        red_agent=case.red_agent,
        horizon=HORIZON,
        dtype=case.dtype,
        num_threads=case.threads,
    )


def _actions(case: Case) -> Any:
    return np.random.default_rng(0).integers(NUM_ACTIONS, size=(ACTION_SETS, case.num_envs))


# --- measuring ----------------------------------------------------------------------------------


def groups(config: BenchConfig) -> Iterator[list[Case]]:
    """Cases that are measured in turn with each other, so that noise falls on all of them."""
    for red_agent in config.red_agent:
        original = cyborg.is_installed() and kinds_of_episodes(red_agent) == RED_AGENTS
        for num_envs in config.num_envs:
            threads = sorted({1, checked_threads("auto", num_envs)})
            group = [
                Case(KERNEL, num_envs, n, red_agent, dtype, play_kernel)
                for n in threads
                for dtype in ("uint8", "float32")
            ]
            group += [Case(STEP, num_envs, n, red_agent, "float32", play_step) for n in threads]
            if num_envs == 1:
                group.append(Case(SINGLE, 1, 1, red_agent, "float32", play_single))
            if num_envs == nearest(config.num_envs, 4096) and original:
                group.append(Case(ORIGINAL, 1, 1, red_agent, "int64", play_original))
            yield group


def nearest(sizes: Iterable[int], wanted: int) -> int:
    return min(sizes, key=lambda size: abs(size - wanted))


def measure(group: list[Case], rounds: int, seconds: float) -> None:
    """Every case once a round, for about `seconds` each."""
    plays = [case.prepare(case) for case in group]
    for play in plays:
        play(0)  # compiles, and touches all memory
    for _ in range(rounds):
        for case, play in zip(group, plays, strict=True):
            turn, began = 0, time.perf_counter()
            while (spent := time.perf_counter() - began) < seconds:
                for _ in range(10 if case.num_envs < 65536 and case.how != ORIGINAL else 1):
                    play(turn)
                    turn += 1
            case.speeds.append(turn * case.num_envs / spent)


FIRST_STEP = """
import time
began = time.perf_counter()
import gymnasium, phalanx
env = gymnasium.make("phalanx/Cage2-v0")
env.reset(seed=0)
env.step(0)
print(time.perf_counter() - began)
"""

MILLION = """
import numpy as np
from phalanx.cage2 import Batch
batch = Batch(1_000_000, red_agent="meander", dtype="%s")
for _ in range(3):
    batch.play(np.zeros(1_000_000, np.uint8))
lines = open("/proc/self/status").read().splitlines()
print(int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024)
"""


def run_child(program: str, cache: str) -> float:
    """What a fresh process prints, with its own folder for compiled kernels."""
    child = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "PHALANX_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(child.stdout)


def measure_start_up() -> dict[str, float]:
    """Seconds from import to first step, compiling and not, and the memory of 1 M networks."""
    with tempfile.TemporaryDirectory() as cache:
        start_up = {
            "first_step_compiling_s": round(run_child(FIRST_STEP, cache), 2),
            "first_step_compiled_s": round(run_child(FIRST_STEP, cache), 2),
        }
        if sys.platform == "linux":
            for dtype in ("uint8", "float32"):
                run_child(MILLION % dtype, cache)  # compiles
                start_up[f"million_networks_{dtype}_mb"] = round(run_child(MILLION % dtype, cache))
        return start_up


# --- the command --------------------------------------------------------------------------------


def main(config: BenchConfig) -> int:
    """Measure, print the tables, write JSON if asked for."""
    cases: list[Case] = []
    everything = list(groups(config))
    with progress_display("groups") as progress:
        task = progress.add_task("measuring", total=len(everything) + 1, note="")
        for group in everything:
            what = f"{group[0].red_agent}, {group[0].num_envs:,} networks"
            progress.update(task, description=what)
            measure(group, config.rounds, config.seconds or 0.0)
            cases += group
            progress.advance(task)
        progress.update(task, description="starting fresh processes")
        start_up = measure_start_up()
    rows = [case.row() for case in cases]
    machine = describe_machine()
    ratios = side_by_side(rows)
    show(rows, ratios, start_up, machine)
    if config.json is not None:
        result = {"machine": machine, "rows": rows, "ratios": ratios, "start_up": start_up}
        write_json(config.json, result)
    return 0


def side_by_side(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Ratios of cases that were measured in turn with each other (and of sizes, in one run)."""

    def speed(how: str, red_agent: str, **wanted: object) -> dict[int, float]:
        wanted |= {"how": how, "red_agent": red_agent}
        chosen = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
        return {row["num_envs"]: row["steps_per_s"] for row in chosen}

    ratios: dict[str, float] = {}
    for red in dict.fromkeys(row["red_agent"] for row in rows):
        threads = max(row["threads"] for row in rows)
        for how in (KERNEL, STEP):
            one = speed(how, red, threads=1, dtype="float32")
            more = speed(how, red, threads=threads, dtype="float32") if threads > 1 else {}
            for n in more:
                ratios[f"{red}: {how}, {n:,} networks, {threads} threads / 1"] = more[n] / one[n]
        one = speed(KERNEL, red, threads=1, dtype="float32")
        large = [n for n in one if n >= 1000]
        if len(large) > 1:
            few, many = min(large), max(large)
            name = f"{red}: cost of a step at {many:,} networks / at {few:,}"
            ratios[name] = one[few] / one[many]
        for _, original in speed(ORIGINAL, red).items():
            n = nearest(one, 4096)
            ratios[f"{red}: kernel, {n:,} networks, 1 thread / original"] = one[n] / original
    return {name: round(ratio, 2) for name, ratio in ratios.items()}


def show(
    rows: list[dict[str, Any]],
    ratios: dict[str, float],
    start_up: dict[str, float],
    machine: dict[str, str],
) -> None:
    table = Table(box=SIMPLE_HEAD, title="Steps a second, random blue actions (median of rounds)")
    for name in ("how", "red agent", "networks", "threads", "dtype", "steps/s", "best"):
        table.add_column(name, justify="left" if name in ("how", "red agent", "dtype") else "right")
    for row in rows:
        table.add_row(
            row["how"],
            row["red_agent"],
            f"{row['num_envs']:,}",
            str(row["threads"]),
            row["dtype"],
            f"{row['steps_per_s']:,}",
            f"{row['best_steps_per_s']:,}",
        )
    Console(width=100).print(table)
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:,.2f}")
    for facts in (start_up, machine):
        print(", ".join(f"{name} {value}" for name, value in facts.items()))
    if not cyborg.is_installed():
        print(f"not compared: {cyborg.HOW_TO_GET_IT}")
