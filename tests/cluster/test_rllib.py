"""The game keeps its promises inside RLlib."""

import sys
from typing import Any

import numpy as np
import pytest

from phalanx.cage2 import Cage2Env, Cage2VectorEnv
from phalanx.cluster.rllib import make_env, register
from phalanx.errors import ConfigError, MissingError


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
