"""Runs on other networks than CAGE-2's: they carry it, go on exactly, and play others."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.errors import ConfigError, RunError
from phalanx.play.evaluate import evaluate
from phalanx.play.export import export
from phalanx.play.trained import load_defender
from phalanx.training.checkpoint import load_checkpoint
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.run import Run

SCENARIOS = Path(__file__).parents[1] / "scenarios"
SMALL = "random:seed=5,users=2-5,enterprise=3,op=2-4,networks=20"  # 13 hosts, as CAGE-2 has
TINY: dict[str, Any] = {
    "num_envs": 4,
    "update_steps": 10,
    "horizon": 10,
    "num_threads": 1,
    "k_epochs": 1,
}
WEIGHTS = ("theta", "weights_", "sampler_")


def small_run(folder: Path, name: str, updates: int = 1, **settings: Any) -> Path:
    """Of four updates, the first ones."""
    told = TINY | settings | {"output_dir": folder, "name": name}

    def watch(run: Run) -> None:
        run.enough = run.updates >= updates

    return train(TrainConfig(total_steps=160, quiet=True, **told), on_update=watch).folder.path


def go_on(run: Path, **settings: Any) -> None:
    train(TrainConfig(resume=run, total_steps=160, quiet=True, **TINY | settings))


def learnt(run: Path) -> dict[str, Any]:
    arrays, _facts = load_checkpoint(run / "checkpoints" / "last.npz")
    return {name: one for name, one in arrays.items() if name.startswith(WEIGHTS)}


def test_a_policy_carries_its_network_and_goes_on_exactly(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    shutil.copyfile(SCENARIOS / "other_values.yaml", file)
    settings: dict[str, Any] = {
        "scenario": str(file),
        "observation": "memory",
        "red_agent": "meander",
    }
    whole = small_run(tmp_path, "whole", 4, **settings)
    half = small_run(tmp_path, "half", 2, **settings)
    file.write_text("hosts: [changed]")
    go_on(half, **settings)
    for name, array in learnt(whole).items():
        assert np.array_equal(array, learnt(half)[name]), name
    file.unlink()
    export(whole, tmp_path / "mine.npz")
    scores = evaluate(str(tmp_path / "mine.npz"), red_agent="meander", horizon=10, episodes=4)
    assert scores.as_dict()["scenario"] == str(file)
    assert "mine" in repr(scores)


def test_a_policy_of_one_network_is_refused_on_another(tmp_path: Path) -> None:
    run = small_run(tmp_path, "one", observation="memory", red_agent="meander")
    other = SCENARIOS / "fewer_users.yaml"
    with pytest.raises(ConfigError, match=r"trained on cage2 \(13 hosts, 145 actions\) and cannot"):
        evaluate(str(run), scenario=str(other), red_agent="meander", horizon=10, episodes=4)
    with pytest.raises(ConfigError, match="plays CAGE-2 only"):
        evaluate("champion+plan", scenario=str(other), red_agent="meander", horizon=10, episodes=4)


def test_other_attackers_and_values_on_hosts_that_are_alike_are_played(tmp_path: Path) -> None:
    run = small_run(tmp_path, "one", observation="bits", red_agent="meander")
    other = str(SCENARIOS / "other_values.yaml")
    with pytest.warns(UserWarning, match="trained on cage2 and is played on other_values"):
        evaluate(str(run), scenario=other, red_agent="meander", horizon=10, episodes=4)


@pytest.mark.parametrize("observation", ["memory", "belief"])
def test_shared_weights_play_networks_that_they_have_not_seen(
    tmp_path: Path, observation: str
) -> None:
    pytest.importorskip("torch")
    settings: dict[str, Any] = {"scenario": SMALL, "network": "hosts", "hidden": (8, 8)}
    whole = small_run(tmp_path, "whole", 4, observation=observation, **settings)
    half = small_run(tmp_path, "half", 2, observation=observation, **settings)
    go_on(half, observation=observation, **settings)
    for name, array in learnt(whole).items():
        assert np.array_equal(array, learnt(half)[name]), name
    game: dict[str, Any] = {"red_agent": "meander", "horizon": 10, "episodes": 4}
    own = evaluate(str(whole), **game)
    assert own.as_dict()["scenario"] == SMALL
    with pytest.warns(UserWarning, match="is played on cage2"):
        evaluate(str(whole), scenario="cage2", **game)
    export(whole, tmp_path / "shared.npz")
    assert load_defender(tmp_path / "shared.npz").env_settings["by_host"] is True
    again = evaluate(str(tmp_path / "shared.npz"), **game)
    assert again.cells[0].mean == own.cells[0].mean


def test_what_does_not_go_with_other_networks_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="orders of the kinds of hosts of CAGE-2 itself"):
        TrainConfig(scenario=SMALL, workflow="critical_first")
    with pytest.raises(ConfigError, match="--teacher is for CAGE-2 itself"):
        TrainConfig(scenario=SMALL, teacher="champion")
    with pytest.raises(ConfigError, match="--scenario is for the compiled cage2"):
        TrainConfig(scenario=SMALL, env="CartPole-v1")
    with pytest.raises(ConfigError, match="--network hosts is for --observation history"):
        TrainConfig(network="hosts", observation="bits")
    with pytest.raises(ConfigError, match="cannot read"):
        small_run(tmp_path, "none", scenario=str(tmp_path / "none.yaml"))
    assert not (tmp_path / "none").exists()
    run = small_run(tmp_path, "one", observation="bits", red_agent="meander")
    with pytest.raises(RunError, match="trained with another scenario"):
        go_on(run, scenario=SMALL, observation="bits", red_agent="meander")
