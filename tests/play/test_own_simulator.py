"""A simulator of the user's own: any defender plays in it, and orders are measured in it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.cage2 import Cage2Env
from phalanx.cage2.own_simulator import OwnSimulator
from phalanx.cage2.workflow import parse_order
from phalanx.cli.commands import main
from phalanx.errors import ConfigError
from phalanx.play.episodes import play_episodes
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.players import open_players
from phalanx.search.config import SearchConfig
from phalanx.search.search import search

SOURCE = '''
from phalanx.cage2 import Cage2Env

class Mine(Cage2Env):
    """Plays CAGE-2, but pays a point a turn: orders measured in it are behind by one a turn."""

    def step(self, action):
        obs, reward, *rest = super().step(action)
        return obs, reward - 1.0, *rest

    def infected(self):
        return self.batch.shown.access[0]

class AllHeld(Cage2Env):
    def infected(self):
        return [1] * 13

def make(red_agent, horizon):
    return Mine(red_agent=red_agent, horizon=horizon)

def all_held():
    return AllHeld()

def blind(red_agent):
    return Cage2Env(red_agent=red_agent)

def narrow():
    import gymnasium
    return gymnasium.make("CartPole-v1")

def nothing():
    return 7
'''


@pytest.fixture
def simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The module of a user's simulator in the current folder."""
    name = f"my_sim_{os.getpid()}_{abs(hash(tmp_path)) % 10**8}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return name


def play(config: EvaluateConfig, orders: Any = None) -> Any:
    (player,) = open_players(config)
    return play_episodes(config.games, player, config.red_agent[0], (20,), orders)


def test_a_defender_plays_there_as_it_does_by_hand(simulator: str) -> None:
    """The champion's belief is made of the simulator's bits alone."""
    config = EvaluateConfig(
        policy=("champion",), simulator=f"{simulator}:make", red_agent=("meander",),
        horizon=(20,), episodes=3, seed=5,
    )  # fmt: skip
    defender = phalanx.load_defender("champion")
    expected = []
    for episode in range(3):
        env = Cage2Env(red_agent="meander", horizon=100, observation="belief", prior=defender.prior)
        obs, info = env.reset(seed=5 + episode)
        total = 0.0
        for _ in range(20):
            mask = np.asarray(info["action_mask"])[None] != 0
            action = defender.act(obs[None], np.array([-1], np.int8), mask)
            obs, reward, _, _, info = env.step(int(action[0]))
            total += reward - 1.0
        expected.append(total)
    np.testing.assert_allclose(play(config).returns[:, 0], expected)


def test_fixes_are_judged_by_what_it_says_is_infected(simulator: str) -> None:
    told: dict[str, Any] = {
        "policy": ("random",), "red_agent": ("meander",), "horizon": (20,), "episodes": 9,
    }  # fmt: skip
    orders = np.full(9, parse_order("user,enterprise,op_host,op_server,defender"))
    played = play(EvaluateConfig(**told, simulator=f"{simulator}:all_held"), orders)
    assert 0 < played.compliant.sum() < played.fixes.sum()  # those of user hosts follow
    with pytest.raises(ConfigError, match=r"does not say which hosts red holds.*infected\(\)"):
        play(EvaluateConfig(**told, simulator=f"{simulator}:blind"), orders)
    play(EvaluateConfig(**told, simulator=f"{simulator}:blind"))  # without orders nobody asks


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("elsewhere", "unknown simulator 'elsewhere': choose from phalanx, cyborg, module:factory"),
        ("no_such:make", "cannot find --simulator no_such:make"),
        ("{}:no_such", "cannot find --simulator {}:no_such"),
        ("{}:narrow", "shows 4 numbers a turn"),
        ("{}:nothing", "gave a int: a simulator has reset(seed=) and step(action)"),
    ],
)
def test_what_is_none_is_refused_in_one_line(
    simulator: str, given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--simulator", given.format(simulator), "--red-agent", "b_line", "--horizon", "5"]
    assert main(["evaluate", "sleep", *flags, "--episodes", "2"]) == 2
    error = capsys.readouterr().err
    assert said.format(simulator) in error
    assert error.count("\n") == 1


def test_the_factory_is_told_what_it_takes() -> None:
    heard: list[dict[str, Any]] = []

    def make(**told: Any) -> Cage2Env:
        heard.append(told)
        return Cage2Env()

    OwnSimulator(make, "make", red_agent="mine", horizon=7, rules="2.1-final").close()
    assert heard == [{"red_agent": "mine", "horizon": 7, "rules": "2.1-final"}]


SMALL: dict[str, Any] = {
    "num_envs": 40, "horizon": 10, "update_steps": 10, "hidden": (8,), "observation": "bits",
    "total_episodes": 400, "measure_episodes": 4, "final_episodes": 4, "confirm_episodes": 6,
    "finalists": 2, "k_epochs": 1, "minibatch_size": 400, "compliance_threshold": 0.01,
    "max_episodes": 0, "school_share": 0.5, "finish_share": 0.2, "baseline": False,
}  # fmt: skip


@pytest.mark.slow
def test_orders_are_measured_where_asked(simulator: str, tmp_path: Path) -> None:
    """A simulator that costs a point more each turn is seen in what was measured; the budget too
    is that of searches whose evaluations are expensive.
    """
    config = SearchConfig(**SMALL, simulator=f"{simulator}:make", output_dir=tmp_path, name="s")
    assert not config.judges_all
    found = search(config)
    assert found.decision is not None
    assert all(visit.measured_return <= -10 for visit in found.visits)
    assert found.confirmed[0]["mean"] <= -10
    resumed = tmp_path / "s"
    assert main(["search", "--resume", str(resumed)]) == 2  # a file never decides what runs
    again = [*("search", "--resume", str(resumed)), "--simulator", f"{simulator}:make"]
    assert main(again) == 0


def test_searches_there_are_checked_before_anything_is_trained(
    simulator: str, tmp_path: Path
) -> None:
    told: dict[str, Any] = SMALL | {"output_dir": tmp_path, "name": "s"}
    with pytest.raises(ConfigError, match="cannot find --simulator"):
        search(SearchConfig(**told, simulator=f"{simulator}:no_such"))
    assert not (tmp_path / "s").exists()
    with pytest.raises(ConfigError, match="no red agent coin"):
        SearchConfig(**told, simulator="cyborg", red_agent="coin")
    with pytest.raises(ConfigError, match="not on a cluster"):
        SearchConfig(**told, simulator=f"{simulator}:make", runner="ray")
