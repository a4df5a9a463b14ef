"""An episode on a network of one's own is told by that network: its hosts, prices, ways, green."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.cage2 import Cage2VectorEnv
from phalanx.cage2.batch import Batch
from phalanx.cage2.belief import Belief
from phalanx.cage2.rules.scenario import NUM_ACTIONS
from phalanx.cage2.scenario.read import CAGE2, read_scenario
from phalanx.cli.commands import main
from phalanx.errors import ConfigError
from phalanx.show.replay.config import ReplayConfig
from phalanx.show.replay.place import Place
from phalanx.show.replay.scenario_facts import scenario_facts
from phalanx.show.replay.trajectory import Recorder

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
MORE_USERS = str(SCENARIOS / "more_users.yaml")
PRICED = """\
red_starts_on: Gate
blue_actions: [Monitor, Analyse, Remove, DecoyApache, Restore, Shuffle, Sleep]
action_costs: {Restore: 2, Remove: 0.3, DecoyApache: 0.2, Shuffle: 0.5, Monitor: 0.1}
hosts:
  Gate: {image: windows_user_host1, value: 0}
  Desk: {image: linux_user_host2, value: 0.4, points_to: [Vault]}
  Vault: {image: linux_user_host1, value: 3}
subnets:
  Hall: {hosts: [Gate, Desk]}
  Cellar: {hosts: [Vault]}
"""


def digits(text: str) -> list[int]:
    return [int(digit) for digit in text]


def recorded(scenario: str | Path, turns: int = 40, seed: int = 3, **game: Any) -> Recorder:
    """Whoever plays anything, so that much happens."""
    batch = Batch(1, scenario=scenario, seed=seed, horizon=turns, red_agent="meander", **game)
    recorder = Recorder(
        batch.nets, policy="anything", seed=seed, scenario=batch.scenario, worlds=batch.worlds
    )
    for action in np.random.default_rng(seed).integers(batch.num_actions, size=turns):
        recorder.play(int(action))
    return recorder


@pytest.fixture
def priced(tmp_path: Path) -> Path:
    path = tmp_path / "priced.yaml"
    path.write_text(PRICED)
    return path


def ran(flags: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """The trajectory that a command writes, and what it says besides."""
    words = f"replay {flags} --out {folder}/it.html --json {folder}/it.json"
    capsys.readouterr()
    assert main(words.split()) == 0
    return json.loads((folder / "it.json").read_text()), capsys.readouterr().err


# --- a trajectory is the game ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["more_users", "thirty_hosts", "other_values"])
def test_every_number_equals_that_of_the_environment(name: str) -> None:
    path, turns, seed = SCENARIOS / f"{name}.yaml", 40, 3
    told = recorded(path, turns, seed).trajectory()
    play, hosts = told["plays"][0], len(told["scenario"]["hosts"])
    envs = Cage2VectorEnv(1, scenario=path, seed=seed, horizon=turns, red_agent="meander")
    envs.reset()
    for turn, action in enumerate(play["turns"]["blue"], 1):
        obs, rewards, *_ = envs.step(np.array([action]))
        if turn == turns:  # the next episode has begun
            break
        bits = obs[0].reshape(hosts, 4).astype(int)
        states = {key: of[turn] for key, of in play["states"].items() if isinstance(of, list)}
        assert digits(states["access"]) == envs.access[0].tolist()
        assert digits(states["activity"]) == (bits[:, 0] + 2 * bits[:, 1]).tolist()
        assert digits(states["compromised"]) == (bits[:, 2] + 2 * bits[:, 3]).tolist()
        assert play["turns"]["reward"][turn - 1] == pytest.approx(rewards[0])
        parts = play["turns"]["costs"][turn - 1]
        assert sum(part[2] for part in parts) == pytest.approx(rewards[0])


def test_cage2_is_told_by_the_same_words_whoever_reads_it() -> None:
    facts = scenario_facts("2.1-final", 100, Place())
    assert [host["name"] for host in facts["hosts"]] == list(CAGE2.host_names)  # type: ignore[attr-defined]
    assert facts["links"] == [[0, 1], [1, 2]]
    assert facts["points"] == [[3, 7], [9, 2], [10, 2], [11, 1], [12, 1]]
    assert len(facts["actions"]) == NUM_ACTIONS  # type: ignore[arg-type]
    assert not {"name", "green"} & set(facts)


def test_the_network_of_the_scenario_is_drawn() -> None:
    scenario = read_scenario(SCENARIOS / "thirty_hosts.yaml")
    facts = recorded(SCENARIOS / "thirty_hosts.yaml", 2).trajectory()["scenario"]
    assert facts["name"] == "thirty_hosts"
    assert [host["name"] for host in facts["hosts"]] == list(scenario.host_names)
    assert facts["subnets"][0]["name"] == "User"
    for subnet in facts["subnets"]:
        names = {facts["hosts"][h]["name"] for h in subnet["hosts"]}
        assert names == set(scenario.subnets[subnet["name"]])
    for a, b in facts["points"]:
        assert scenario.host_names[b] in scenario.hosts[a].addresses
    assert facts["actions"] == [scenario.action_name(k) for k in range(len(scenario.actions))]


def test_costs_are_those_of_the_network(priced: Path) -> None:
    recorder = recorded(priced, turns=200)
    causes = {cause: 0 for cause in ("root", "restore", "remove", "decoy", "shuffle", "monitor")}
    for turn in recorder.turns:
        assert sum(tenths for *_, tenths in turn.costs) == turn.tenths
        for cause, host, tenths in turn.costs:
            causes[cause] += 1
            if cause == "root":
                assert tenths == {"Desk": 4, "Vault": 30}[recorder.place.hosts[host]]
    assert all(causes.values())


def test_moves_are_told_by_names_of_the_network(priced: Path) -> None:
    turns = recorded(priced, turns=200).as_play()["turns"]
    blue, red = " ".join(turns["blue_words"]), " ".join(turns["red_words"])
    assert "shuffles the ports of Desk, " in blue
    assert "restores Vault, " in blue
    assert "Meander scans the Hall subnet: finds" in red
    assert "Meander escalates on Desk: becomes root, finds Vault" in red
    assert not [word for word in ("User", "Enterprise", "Op_") if word in blue + red]


def test_a_belief_is_about_the_network_that_is_played() -> None:
    """In CAGE-2 as ever; elsewhere it holds the truth, and never more hosts than there are."""
    here = recorded("cage2", 20)
    belief = Belief(rules="2.1-leaderboard")
    for turn in here.turns:
        seen = int(turn.after["seen"][0]) >> np.arange(52) & 1
        belief.observe(turn.action, seen)
    told = here.as_play()["states"]["belief"]
    assert told["session"][-1] == np.rint(1000 * belief.marginals()["session"]).tolist()
    play = recorded(SCENARIOS / "thirty_hosts.yaml").as_play()
    for access, session, exact in zip(
        play["states"]["access"],
        play["states"]["belief"]["session"],
        play["states"]["belief"]["exact"],
        strict=True,
    ):
        assert len(session) == 30
        if exact == "1":
            assert all(
                chance > 0 for chance, held in zip(session, access, strict=True) if held > "0"
            )


# --- the command ----------------------------------------------------------------------------------


def test_an_episode_on_a_file_is_that_of_an_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, err = ran(f"react-restore --scenario {MORE_USERS} --episode 3", tmp_path, capsys)
    scores = phalanx.evaluate(
        "react-restore", scenario=MORE_USERS, red_agent="meander", horizon=100, episodes=4
    )
    assert told["plays"][0]["return"] == pytest.approx(scores.cells[0].returns[3])
    assert "notes" not in told["plays"][0]
    assert "left out" not in err
    assert "react-restore against meander on more_users" in (tmp_path / "it.html").read_text()


def test_of_many_networks_the_one_is_shown_that_the_episode_drew(tmp_path: Path) -> None:
    spec = "random:seed=2,users=3-7,networks=8"  # of up to 17 hosts, as more_users.yaml has
    names = set()
    for episode in (0, 1, 2):
        told = phalanx.replay("react-restore", scenario=spec, episode=episode, horizon=15)
        scenario, (play,) = told.trajectory["scenario"], told.trajectory["plays"]
        names.add(scenario["name"])
        assert len(play["states"]["access"][0]) == len(scenario["hosts"])
        assert len(play["states"]["decoys"][0]) == len(scenario["hosts"])
        assert len(play["states"]["belief"]["root"][0]) == len(scenario["hosts"])
    assert len(names) > 1
    scores = phalanx.evaluate(
        "react-restore", scenario=spec, red_agent="meander", horizon=15, episodes=3
    )
    assert play["return"] == pytest.approx(scores.cells[0].returns[2])


def test_green_is_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told, _ = ran("react-restore --green 1 --red-agent sleep --horizon 60", tmp_path, capsys)
    turns, names = told["plays"][0]["turns"], [one["name"] for one in told["scenario"]["hosts"]]
    assert told["scenario"]["green"] == 1
    scans = [(t, host) for t, host in enumerate(turns["green_host"]) if host >= 0]
    assert 15 < len(scans) < 45
    for t, host in scans:
        assert turns["green_words"][t].startswith(f"scans {names[host]}: seen as a")
        assert told["plays"][0]["states"]["activity"][t + 1][host] in "13"
    assert turns["green_words"][turns["green_host"].index(-1)] == "does nothing"
    quiet, _ = ran("react-restore --red-agent sleep --horizon 5", tmp_path, capsys)
    assert "green_words" not in quiet["plays"][0]["turns"]
    assert "green" not in quiet["scenario"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("sleep --scenario nowhere.yaml", "there is no scenario nowhere.yaml"),
        ("sleep --scenario random:frogs=3", "unknown key 'frogs'"),
        ("sleep --green 2", "green must be from 0 to 1"),
        (f"champion --scenario {MORE_USERS}", "cannot play a network of 17 hosts, 189 actions"),
        (f"champion+plan --scenario {MORE_USERS}", "champion+plan plays CAGE-2 only"),
        ("champion+plan --green 1", "+plan looks ahead without green; leave out --green"),
        (f"sleep --workflow all --scenario {MORE_USERS}", "--workflow is for CAGE-2 itself"),
        (
            f"sleep --red-agent b_line --scenario {SCENARIOS}/other_start.yaml",
            "b_line cannot play on scenario other_start",
        ),
        ("--trace traces --scenario cage2", "--scenario has no effect here"),
        ("--trace traces --green 1", "--green has no effect here"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(
    flags: str,
    says: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["replay", *flags.split()]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_settings_refuse_to_plan_where_green_acts() -> None:
    with pytest.raises(ConfigError, match="looks ahead without green"):
        ReplayConfig(target="champion+plan", green=0.5)
    assert ReplayConfig(target="champion+plan", green=0).green == 0
