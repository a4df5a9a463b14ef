"""The same games by another checkout of phalanx, in turn with this one: what a change costs.

Each plays in a process of its own on one thread, and CPU time counts: on a busy machine that still
compares.
"""

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import phalanx
from phalanx.bench.cases import Case, Opened, in_words, measure, quotients, report
from phalanx.bench.config import BenchConfig
from phalanx.bench.spent import Spent
from phalanx.errors import ConfigError
from phalanx.files import Facts

OURS, THEIRS = "this one", "the other"
OBSERVATIONS = ("bits", "memory", "belief")
NUM_ENVS = 4096
COLUMNS = {
    "checkout": "checkout",
    "red agent": "red_agent",
    "observation": "observation",
    "steps a CPU second": "steps_per_s:,",
    "best": "best_steps_per_s:,",
}

PLAY = """
import sys, time
import numpy as np
from phalanx.cage2 import Batch
red_agent, observation, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
batch = Batch(size, red_agent=red_agent, observation=observation, num_threads=1)
batch.begin()
actions = np.random.default_rng(0).integers(145, size=(16, size))
for turn in range(16):
    batch.play(actions[turn])
print("ready", flush=True)
for line in sys.stdin:
    steps, began = 0, time.process_time()
    while time.process_time() - began < float(line):
        for turn in range(4):
            batch.play(actions[(steps // size) % 16])
            steps += size
    print(steps, time.process_time() - began, flush=True)
"""

FIRST_STEP = """
import time
import gymnasium, phalanx
env = gymnasium.make("phalanx/Cage2-v0")
env.reset(seed=0)
env.step(0)
print(time.process_time())
"""


def sources(folder: Path) -> dict[str, Path]:
    """Where the modules of both are."""
    theirs = folder / "src"
    if not (theirs / "phalanx" / "__init__.py").is_file():
        raise ConfigError(
            f"--beside {folder} holds no src/phalanx; give the folder of another checkout, "
            "such as git worktree add makes"
        )
    return {OURS: Path(phalanx.__file__).parent.parent, THEIRS: theirs}


def python(program: str, source: Path, *words: str, **folders: str) -> subprocess.Popen[str]:
    """A process that plays with the modules in `source`."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program, *words],
        env={**os.environ, "PYTHONPATH": str(source), **folders},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def playing(source: Path, red_agent: str, observation: str) -> Iterator[Opened]:
    """One game of one checkout."""
    with python(PLAY, source, red_agent, observation, str(NUM_ENVS)) as player:
        assert player.stdin is not None
        assert player.stdout is not None
        asked, answers = player.stdin, player.stdout

        def answer() -> list[str]:
            words = answers.readline().split()
            if not words:
                raise ConfigError(f"the checkout in {source} cannot play {red_agent} {observation}")
            return words

        def spend(seconds: float) -> Spent:
            print(seconds, file=asked, flush=True)
            steps, cpu_s = map(float, answer())
            return Spent(steps, cpu_s, cpu_s, cpu_s, 0.0)

        answer()  # compiled, and all memory touched
        yield Opened(spend)
        asked.close()


def compile_s(source: Path) -> float:
    """CPU seconds from the start of Python to the first turn where nothing is compiled yet."""
    with (
        tempfile.TemporaryDirectory() as cache,
        python(FIRST_STEP, source, PHALANX_CACHE_DIR=cache) as player,
    ):
        said, _ = player.communicate()
        return float(said)


def main(config: BenchConfig) -> int:
    """Measure both, print the table and the ratios, write JSON if asked for."""
    assert config.beside is not None
    both = sources(config.beside)
    groups = [
        [
            Case(
                f"{red_agent}, {observation}",
                partial(playing, source, red_agent, observation),
                {"checkout": which, "red_agent": red_agent, "observation": observation},
            )
            for which, source in both.items()
        ]
        for red_agent, observation in itertools.product(config.red_agent, OBSERVATIONS)
    ]
    rows: list[Facts] = [
        case.labels | {"steps_per_s": round(case.speed), "best_steps_per_s": round(case.best_speed)}
        for case in measure(groups, config, [])
    ]
    compiling = {which: round(compile_s(source), 1) for which, source in both.items()}
    pairs = {
        f"{ours['red_agent']}, {ours['observation']}: {OURS} / {THEIRS}": (
            ours["steps_per_s"],
            theirs["steps_per_s"],
        )
        for ours, theirs in zip(rows[::2], rows[1::2], strict=True)
    }
    pairs[f"compiling: {OURS} / {THEIRS}"] = compiling[OURS], compiling[THEIRS]
    result = {"rows": rows, "ratios": quotients(pairs), "first_step_compiling_cpu_s": compiling}
    title = f"Steps a CPU second, {NUM_ENVS:,} networks, random blue actions (median of rounds)"
    report(config, title, COLUMNS, result, notes=[f"CPU s to a first turn: {in_words(compiling)}"])
    return 0
