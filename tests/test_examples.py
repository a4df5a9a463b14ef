"""The examples run, and the game keeps its promises inside RLlib."""

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.cage2 import Cage2Env, Cage2VectorEnv
from phalanx.cluster.rllib import make_env, register
from phalanx.errors import ConfigError, MissingError
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
        timeout=300,
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


def test_without_ray_registering_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "ray.tune.registry", raising=False)
    with pytest.raises(MissingError, match=r"pip install 'phalanx\[ray\]'"):
        register()


def test_rllib_gets_the_settings_of_env_config() -> None:
    settings: dict[str, Any] = {"red_agent": "meander", "horizon": 7, "observation": "history"}
    one, batch = make_env(settings), make_env({**settings, "num_envs": 3})
    assert isinstance(one, Cage2Env)
    assert isinstance(batch, Cage2VectorEnv)
    assert one.batch.horizon == batch.batch.horizon == 7
    assert one.observation_space == batch.single_observation_space
    assert batch.num_envs == 3


def test_batches_of_different_runners_play_different_games() -> None:
    def game(envs: Any) -> Any:
        envs.reset()
        return np.concatenate([envs.step(np.zeros(64, np.int64))[1] for _ in range(20)])

    first, second = (make_env({"red_agent": "meander", "num_envs": 64}) for _ in range(2))
    assert not np.array_equal(game(first), game(second))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"horizn": 7}, "did you mean horizon?"), ({"seed": 7}, "same dice")],
)
def test_a_wrong_env_config_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        make_env(settings)
    assert message in str(error.value)
