"""How fast the simulator is: figures and ratios, measured side by side in one run."""

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from phalanx.bench.attacker import meander
from phalanx.bench.cases import Case, Opened, in_words, measure, quotients, report
from phalanx.bench.config import BenchConfig
from phalanx.bench.spent import spend
from phalanx.cage2 import cyborg
from phalanx.cage2.batch import Batch
from phalanx.cage2.registration import ENV_ID
from phalanx.cage2.rules.batch_turn import play_turns
from phalanx.cage2.rules.scenario import NUM_ACTIONS, RED_AGENTS
from phalanx.cage2.rules.world import actions_of
from phalanx.cage2.settings import checked_threads, kinds_of_episodes
from phalanx.cage2.vector import Cage2VectorEnv
from phalanx.envs.factories import AnyEnv
from phalanx.files import Facts

KERNEL, BELIEVING, STEP = "kernel", "kernel, exact belief", "step()"
SINGLE, ORIGINAL, OWN_RED = "gymnasium.make", "original", "kernel, own attacker"
ONE, MANY, THIRTY = "kernel, 18 hosts", "kernel, 18 hosts, a network each", "kernel, 30 hosts"
NETWORKS = {
    ONE: ("random:users=8,enterprise=5,op=4,network=0", 18),
    MANY: ("random:users=8,enterprise=5,op=4,networks=4096", 18),
    THIRTY: ("random:users=17,enterprise=8,op=4,network=0", 30),
}  # other networks than CAGE-2's, and how many hosts they have
HORIZON = 100
ACTION_SETS = 16  # batches of random blue actions, used in turn
COLUMNS = {
    "how": "how",
    "red agent": "red_agent",
    "networks": "num_envs:,",
    "threads": "threads:d",
    "dtype": "dtype",
    "steps/s": "steps_per_s:,",
    "best": "best_steps_per_s:,",
}

Actions = npt.NDArray[np.int64]
Play = Callable[[Actions], object]  # a turn with these actions


def play_kernel(num_envs: int, threads: int, **game: Any) -> Play:
    """The kernel alone: all that a turn gives is written into the same arrays again."""
    batch = Batch(num_envs, num_threads=threads, **game)
    return lambda actions: batch.team.run(play_turns, batch.turn_arguments(actions, batch.shown))


def play_believing(num_envs: int, threads: int, **game: object) -> Play:
    """The kernel, and the belief of a defender after each turn."""
    return play_kernel(num_envs, threads, observation="belief", **game)


def play_own(num_envs: int, threads: int, *, red_agent: str, **game: object) -> Play:
    """The kernel with an attacker of the user's own kind in place of the one that is named."""
    return play_kernel(num_envs, threads, red_agent=meander, **game)


def play_step(num_envs: int, threads: int, **game: Any) -> Play:
    """`Cage2VectorEnv.step` as users call it: actions checked, new arrays returned."""
    envs = Cage2VectorEnv(num_envs, seed=0, num_threads=threads, **game)
    envs.reset()
    return envs.step


def play_single(_one_env: int, _one_thread: int, **game: Any) -> Play:
    """One network through `gymnasium.make`, with the wrappers that it puts on."""
    return _play_env(gymnasium.make(ENV_ID, **game))


def play_original(_one_env: int, _one_thread: int, *, dtype: str, **game: Any) -> Play:
    """The original simulator in the challenge's own wrapper."""
    return _play_env(cyborg.CyborgEnv(**game))


def _play_env(env: AnyEnv) -> Play:
    env.reset(seed=0)

    def play(actions: Actions) -> None:
        *_, truncated, _info = env.step(actions[0])
        if truncated:
            env.reset()

    return play


def play_network(scenario: str, num_envs: int, threads: int, **game: object) -> Play:
    """The kernel on other networks."""
    return play_kernel(num_envs, threads, scenario=scenario, **game)


WAYS: dict[str, Callable[..., Play]] = {
    KERNEL: play_kernel,
    **{how: partial(play_network, scenario) for how, (scenario, _hosts) in NETWORKS.items()},
    BELIEVING: play_believing,
    OWN_RED: play_own,
    STEP: play_step,
    SINGLE: play_single,
    ORIGINAL: play_original,
}


@contextmanager
def playing(how: str, num_envs: int, threads: int, red_agent: str, dtype: str) -> Iterator[Opened]:
    """One way to play with random blue actions."""
    play = WAYS[how](num_envs, threads, red_agent=red_agent, horizon=HORIZON, dtype=dtype)
    random = np.random.default_rng(0)
    count = actions_of(NETWORKS[how][1]) if how in NETWORKS else NUM_ACTIONS
    actions = itertools.cycle(random.integers(count, size=(ACTION_SETS, num_envs)))
    turns = 10 if num_envs < 65536 and how != ORIGINAL else 1  # between two looks at the clock

    def step() -> int:
        for _ in range(turns):
            play(next(actions))
        return turns * num_envs

    step()  # compiles, and touches all memory
    yield Opened(partial(spend, step=step))


# --- measuring ----------------------------------------------------------------------------------


def groups(config: BenchConfig) -> Iterator[list[Case]]:
    """Cases that are measured in turn with each other, so that noise falls on all of them."""
    for red_agent, num_envs in itertools.product(config.red_agent, config.num_envs):
        original = cyborg.is_installed() and kinds_of_episodes(red_agent) == RED_AGENTS
        threads = sorted({1, checked_threads("auto", num_envs)})
        ways = [(KERNEL, num_envs, n, dtype) for n in threads for dtype in ("uint8", "float32")]
        ways += [(STEP, num_envs, n, "float32") for n in threads]
        if num_envs == 1:
            ways.append((SINGLE, 1, 1, "float32"))
        if num_envs == nearest(config.num_envs, 4096):
            ways.append((BELIEVING, num_envs, 1, "float32"))
            ways += [(how, num_envs, 1, "uint8") for how in NETWORKS]
            if red_agent == "meander":
                ways.append((OWN_RED, num_envs, 1, "float32"))
            if original:
                ways.append((ORIGINAL, 1, 1, "int64"))
        labels: list[Facts] = [
            {"how": how, "num_envs": size, "threads": n, "red_agent": red_agent, "dtype": dtype}
            for how, size, n, dtype in ways
        ]
        name = f"{red_agent}, {num_envs:,} networks"
        yield [Case(name, partial(playing, **each), each) for each in labels]


def nearest(sizes: Iterable[int], wanted: int) -> int:
    return min(sizes, key=lambda size: abs(size - wanted))


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
    skipped = [] if cyborg.is_installed() else [cyborg.HOW_TO_GET_IT]
    rows = [
        case.labels | {"steps_per_s": round(case.speed), "best_steps_per_s": round(case.best_speed)}
        for case in measure(list(groups(config)), config, skipped)
    ]
    start_up = measure_start_up()
    title = "Steps a second, random blue actions (median of rounds)"
    result = {"rows": rows, "ratios": side_by_side(rows), "start_up": start_up}
    report(config, title, COLUMNS, result, notes=[in_words(start_up)], skipped=skipped)
    return 0


def side_by_side(rows: list[Facts]) -> dict[str, float]:
    """Ratios of cases that were measured in turn with each other (and of sizes, in one run)."""

    def speed(**wanted: object) -> dict[int, float]:
        chosen = [row for row in rows if wanted.items() <= row.items()]
        return {row["num_envs"]: row["steps_per_s"] for row in chosen}

    pairs: dict[str, tuple[float | None, float | None]] = {}
    threads = max(row["threads"] for row in rows)
    for red in dict.fromkeys(row["red_agent"] for row in rows):
        for how in (STEP, KERNEL):  # `one` is the kernel's from then on
            one = speed(how=how, red_agent=red, threads=1, dtype="float32")
            more = speed(how=how, red_agent=red, threads=threads, dtype="float32")
            for n in more if threads > 1 else ():
                pairs[f"{red}: {how}, {n:,} networks, {threads} threads / 1"] = more[n], one[n]
        large = [n for n in one if n >= 1000]
        if len(large) > 1:
            few, many = min(large), max(large)
            pairs[f"{red}: cost of a step at {many:,} networks / at {few:,}"] = one[few], one[many]
        for n, believing in speed(how=BELIEVING, red_agent=red).items():
            pairs[f"{red}: kernel, {n:,} networks, 1 thread / with a belief"] = one[n], believing
        one_network = speed(how=ONE, red_agent=red)
        for n, many_networks in speed(how=MANY, red_agent=red).items():
            name = f"{red}: {n:,} networks of 18 hosts, each its own / all the same"
            pairs[name] = many_networks, one_network[n]
        for n, own in speed(how=OWN_RED, red_agent=red).items():
            pairs[f"own attacker / {red}: kernel, {n:,} networks, 1 thread"] = own, one[n]
        for original in speed(how=ORIGINAL, red_agent=red).values():
            n = nearest(one, 4096)
            pairs[f"{red}: kernel, {n:,} networks, 1 thread / original"] = one[n], original
    return quotients(pairs)
