"""The examples run."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.leftovers import Marked

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def marked() -> Iterator[Marked]:
    with Marked() as marked:
        yield marked


def run_example(name: str, flags: str, marked: Marked) -> str:
    ran = subprocess.run(
        [sys.executable, EXAMPLES / name, *flags.split()],
        env=marked.env,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


@pytest.mark.parametrize("algo", ["ppo", "impala"])
def test_rllib_trains_on_the_game(algo: str, marked: Marked) -> None:
    for package in ("ray", "torch", "tree", "lz4", "ormsgpack"):
        if find_spec(package) is None:
            pytest.skip(f"RLlib needs {package}, which is not installed")
    flags = "--red-agent sleep --iterations 2 --batch-size 240 --envs-per-runner 8 --horizon 10"
    said = run_example("rllib_cage2.py", f"--algo {algo} {flags}", marked)
    means = re.findall(r"^iteration \d: mean return (-?\d+\.\d+) after", said, re.MULTILINE)
    assert len(means) == 2
    assert all(-15 < float(mean) <= 0 for mean in means)  # of ten turns: what blue's moves cost
    assert marked.left() == []


@pytest.mark.skipif(find_spec("stable_baselines3") is None, reason="SB3 is not installed")
def test_stable_baselines3_trains_on_the_game(marked: Marked) -> None:
    flags = "--steps 640 --num-envs 32 --horizon 10 --episodes 32"
    said = run_example("sb3_cage2.py", flags, marked)
    assert re.fullmatch(r"mean return -\d+\.\d+ ± \d+\.\d+ over 32 episodes\n", said)
