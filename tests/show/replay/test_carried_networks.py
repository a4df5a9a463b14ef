"""Policies that were trained on a network of one's own: played on it, and asked what if there."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.scenario import RESTORE
from phalanx.cage2.settings import DEFAULT_PRIOR
from phalanx.cli.commands import main
from phalanx.errors import ConfigError
from phalanx.learn.compiled.policy import Policy
from phalanx.play.trained import TrainedDefender
from phalanx.show.replay.episode import Episode
from phalanx.show.replay.regret import candidates, look_back

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
SMALL = "--total-episodes 32 --n-envs 16 --horizon 12 --hidden 16"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a network whose file is gone since."""
    folder = tmp_path_factory.mktemp("carried")
    file = folder / "mine.yaml"
    shutil.copy(SCENARIOS / "other_values.yaml", file)
    words = f"train --scenario {file} {SMALL} --output-dir {folder} --name run"
    assert main(words.split()) == 0
    file.unlink()
    return folder / "run"


def test_a_policy_is_played_on_the_network_of_its_file(trained: Path) -> None:
    told = phalanx.replay(str(trained), seed=5, episode=1, horizon=12, games=8).trajectory
    scores = phalanx.evaluate(str(trained), red_agent="meander", horizon=12, episodes=2, seed=5)
    (play,) = told["plays"]
    assert told["scenario"]["name"] == "mine"
    costs = {host["name"]: host["cost"] for host in told["scenario"]["hosts"]}
    assert (costs["User2"], costs["Enterprise1"]) == (10, 0.1)  # in CAGE-2, 0.1 and 1
    assert play["return"] == pytest.approx(scores.cells[0].returns[1])
    assert "notes" not in play
    assert all(play["turns"]["what_if"])
    assert all(len(regret) == 3 for regret in play["turns"]["regret"])
    assert all(value is not None for value in play["turns"]["value"])
    for played, answer in zip(play["turns"]["blue"], play["turns"]["what_if"], strict=True):
        assert answer["actions"][0][0] == played


def test_one_in_memory_brings_its_network_along(trained: Path) -> None:
    policy = phalanx.load_defender(str(trained))
    settings: dict[str, Any] = {"horizon": 12, "what_if": False}
    alone = phalanx.replay(policy, **settings).trajectory
    assert alone["scenario"]["name"] == "mine"
    both = phalanx.replay(policy, compare="react-restore", **settings).trajectory
    assert both["plays"][0] == alone["plays"][0]
    with pytest.raises(ConfigError, match=r"trained on mine, cage2: give scenario="):
        phalanx.replay(policy, compare="champion", **settings)


def test_torch_networks_are_shown_without_what_if(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    networks = "random:seed=5,users=2-5,enterprise=3,op=2-4,networks=2"  # 13 hosts, as CAGE-2 has
    words = f"train --scenario {networks} --network hosts {SMALL}"
    assert main([*words.split(), "--output-dir", str(tmp_path), "--name", "run"]) == 0
    out = tmp_path / "it.html"
    flags = f"--scenario {SCENARIOS}/more_users.yaml --horizon 5 --out {out}"
    capsys.readouterr()
    assert main(["replay", str(tmp_path / "run"), *flags.split()]) == 0
    said, why = capsys.readouterr().err, "What if is left out: games are played on with phalanx's"
    assert f"phalanx: {why}" in said
    assert why in out.read_text().replace("\\u0027", "'")


# --- what if, where the answer is known -----------------------------------------------------------


def sleeper(batch: Batch) -> TrainedDefender:
    """A policy that sleeps, whatever it sees."""
    policy = Policy(batch.shown.obs.shape[1], batch.num_actions, hidden=(4,), truth_size=0, seed=0)
    policy.actor[:] = 0
    policy.actor[len(policy.actor) - batch.num_actions] = 9.0
    return TrainedDefender(
        policy.logits,
        "bits",
        100,
        "2.1-leaderboard",
        DEFAULT_PRIOR,
        np.ones(batch.num_actions, np.bool_),
        policy=policy,
        shown_size=batch.shown.obs.shape[1],
    )


@pytest.mark.parametrize(("name", "turns"), [("other_values", 10), ("more_users", 6)])
def test_a_root_session_is_worth_what_it_costs_there(name: str, turns: int) -> None:
    batch = Batch(
        1, scenario=SCENARIOS / f"{name}.yaml", red_agent="sleep", horizon=turns, same_step=False
    )
    host = batch.scenario.host_names.index("Enterprise1")
    for held in ("sessions", "root"):
        batch.nets[held] |= np.array(1 << host).astype(batch.nets[held].dtype)
    episode = Episode(batch, name="sleeper", seed=3, policy=sleeper(batch), prior=None)
    episode.look()
    batch.play(np.zeros(1, np.int64))
    episode.note(0)
    restore = batch.scenario.action_index("Restore", "Enterprise1")
    assert restore in candidates(episode, 0)
    look_back(episode, games=8)
    rows = {row[0]: row for row in episode.recorder.as_play()["turns"]["what_if"][0]["actions"]}
    price = batch.scenario.hosts[host].price / 10
    first = batch.scenario.host(batch.scenario.start).price / 10  # red never leaves it
    paid = int(batch.worlds["action_costs"][0, RESTORE]) / 10
    assert rows[0][1] == pytest.approx(-turns * (price + first))
    assert rows[restore][4] == pytest.approx(turns * price - paid)
