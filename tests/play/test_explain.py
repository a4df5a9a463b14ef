"""What is told of a defender: the loss split exactly, openings, decoys and Restores as played."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.cage2.rules.scenario import (
    DECOYS,
    ENTERPRISE1,
    HOSTS,
    RED_AGENTS,
    USER0,
    USER1,
    USER2,
    USER3,
    USER4,
    action_index,
    hosts,
)
from phalanx.cli.commands import main
from phalanx.cli.explain import explanations
from phalanx.errors import ConfigError
from phalanx.play.episodes import play_episodes
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.explain import (
    DRAWN_TURNS,
    KINDS,
    OPENING,
    Record,
    by_turn,
    decoy_use,
    explain,
    host_acts,
    record_episodes,
    split_loss,
)
from phalanx.play.explain_config import ExplainConfig
from phalanx.play.players import open_players
from phalanx.training.checkpoint import save_checkpoint


def recorded(target: str, red_agent: str, begin: Any = None, **settings: Any) -> Record:
    config = ExplainConfig(target=target, **settings)
    (player,) = open_players(config.played)
    return record_episodes(config, red_agent, replace(player, begin=begin or player.begin))


# --- where the loss comes from --------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["2.1-final", "2.1-leaderboard"])
@pytest.mark.parametrize("red_agent", ["b_line", "meander"])
@pytest.mark.parametrize("target", ["random", "react-restore", "sleep"])
def test_the_loss_splits_exactly(target: str, red_agent: str, rules: str) -> None:
    record = recorded(target, red_agent, rules=rules, episodes=300, seed=5)
    root, restore, service = split_loss(record)
    assert record.returns.min() < -5
    total = root.sum(axis=1) + restore.sum(axis=1) + service
    assert np.abs(total + record.returns).max() <= 1e-9
    told = explain(red_agent, record)
    parts = sum(loss.total for loss in told.losses) + told.service_loss
    assert parts == pytest.approx(-told.mean, abs=1e-9)


def test_the_episodes_are_those_of_evaluate() -> None:
    for target in ("random", "react-remove"):
        record = recorded(target, "meander", episodes=50, horizon=40, seed=2)
        config = EvaluateConfig(target=(target,), episodes=50, seed=2)
        (player,) = open_players(config)
        played = play_episodes(config.games, player, "meander", (40,))
        assert record.returns.tolist() == played.returns[:, 0].tolist()


def test_a_longer_recording_begins_with_the_shorter_one() -> None:
    short = recorded("react-restore", "b_line", episodes=30, horizon=20)
    config = ExplainConfig(target="react-restore", episodes=40, horizon=20)
    (player,) = open_players(config.played)
    long = record_episodes(config, "b_line", replace(player, at_once=16))
    assert (long.scored_root[:, :30] == short.scored_root).all()
    assert (long.returns[:30] == short.returns).all()


def test_other_networks_are_told_of_by_their_own_names_and_prices() -> None:
    scenario = str(Path(__file__).parents[1] / "scenarios" / "other_values.yaml")
    config = ExplainConfig(
        target="react-restore", episodes=40, horizon=30, scenario=scenario, red_agent=("meander",)
    )
    (player,) = open_players(config.played)
    record = record_episodes(config, "meander", player)
    parts = split_loss(record)
    assert np.allclose(parts[0].sum(axis=1) + parts[1].sum(axis=1) + parts[2], -record.returns)
    assert record.returns.min() < 0
    assert [one.host for one in explain("meander", record).losses] == list(record.hosts)
    many = ExplainConfig(target="sleep", episodes=2, scenario="random:seed=1")
    with pytest.raises(ConfigError, match="is 256; give one of them"):
        list(explanations(many))


def test_each_cause_has_its_price() -> None:
    record = Record(3, 1)
    record.scored_root[:, 0] = hosts(USER0, USER1), hosts(ENTERPRISE1), 0
    record.service_down[2] = True
    record.actions[1] = action_index("Restore", "User2")
    root, restore, service = split_loss(record)
    assert root[0].nonzero()[0].tolist() == [ENTERPRISE1, USER1]
    assert root[0, [ENTERPRISE1, USER1]].tolist() == [1.0, 0.1]
    assert restore[0, USER2] == restore.sum() == 1
    assert service.tolist() == [10]


def test_b_line_is_told_by_its_target() -> None:
    (b_line, meander) = explanations(ExplainConfig(target="react-remove", episodes=400))
    assert [target.host for target in b_line.targets] == ["User1", "User2", "User3", "User4"]
    mean = sum(target.share * target.mean for target in b_line.targets)
    assert mean == pytest.approx(b_line.mean, abs=1e-9)
    assert meander.targets == []


def test_of_a_mixture_only_b_lines_episodes_have_a_target() -> None:
    record = recorded("sleep", "b_line=0.5,meander=0.5", episodes=200)
    told = explain("both", record)
    is_b_line = record.red == RED_AGENTS.index("b_line")
    assert 0 < is_b_line.sum() < 200
    assert sum(target.share for target in told.targets) == pytest.approx(1)
    mean = sum(target.share * target.mean for target in told.targets)
    assert mean == pytest.approx(record.returns[is_b_line].mean())


# --- what it does ---------------------------------------------------------------------------------


class Scripted:
    """Plays its lines by turn; every fourth network leaves them in turn 3."""

    observation = "bits"
    lines = ("DecoyApache User2", "Analyse User1", "DecoyApache User2", "Restore User2")

    def __init__(self) -> None:
        self.turn = 0

    def act(self, obs: Any, alerts: Any, masks: Any) -> Any:
        line = self.lines[self.turn] if self.turn < len(self.lines) else None
        self.turn += 1
        actions = np.full(len(obs), 0 if line is None else action_index(*line.split()))
        if self.turn == 3:
            actions[::4] = action_index("Monitor")
        return actions


@pytest.fixture
def scripted() -> Record:
    return recorded("sleep", "meander", lambda *_: Scripted(), episodes=40, horizon=12)


def test_the_opening_is_told_as_scripted(scripted: Record) -> None:
    told = explain("meander", scripted).opening
    assert [turn.turn for turn in told] == list(range(1, OPENING + 1))
    assert [turn.first.action for turn in told] == [*Scripted.lines, *["Sleep"] * 6]
    assert [turn.first.share for turn in told] == [1, 1, 0.75, *[1.0] * 7]
    assert [turn.turn for turn in told if turn.second] == [3]
    assert told[2].second is not None
    assert (told[2].second.action, told[2].second.share) == ("Monitor", 0.25)


def test_only_a_decoy_that_was_placed_counts(scripted: Record) -> None:
    assert scripted.placed.sum(axis=1).tolist() == [
        40,
        *[0] * 11,
    ]  # the second finds its port taken
    (use,) = decoy_use(scripted)
    assert (use.host, use.decoy, use.placed, use.first_turn) == ("User2", "DecoyApache", 1, 1)
    assert use.stands == 0  # Restore took it away


def test_the_first_placement_is_averaged_over_episodes_that_have_one() -> None:
    record = Record(9, 4)
    for episode, turns in enumerate(([2], [4, 7], [], [])):
        record.actions[turns, episode] = action_index(DECOYS[1].name, "User4")
        record.placed[turns, episode] = True
    record.decoys[0, USER4] = 0b10
    (use,) = decoy_use(record)
    assert (use.host, use.decoy) == ("User4", DECOYS[1].name)
    assert (use.placed, use.stands, use.first_turn) == (0.5, 0.25, 4.0)


def test_wasted_restores_are_counted() -> None:
    record = Record(4, 2)
    record.actions[:] = action_index("Restore", "User3")
    record.actions[3, 1] = action_index("Analyse", "User3")
    record.sessions[:, 0] = hosts(USER3), hosts(USER3, USER1), hosts(USER3), hosts(USER1)
    record.root[:, 0] = hosts(USER3), hosts(USER1), 0, hosts(USER1)
    record.sessions[0, 1] = record.root[0, 1] = hosts(USER3)
    *each, in_all = host_acts(record)
    acts = each[USER3]
    assert (acts.analyse, acts.remove, acts.restore) == (0.5, 0, 3.5)
    assert acts.restore_of_root == 2 / 7
    assert acts.restore_of_user == 2 / 7
    assert acts.wasted == 3 / 7
    assert (in_all.restore, in_all.wasted) == (3.5, 3 / 7)
    assert each[USER1].wasted is None


def test_a_restore_is_judged_by_what_was_true_before_it() -> None:
    """Blue restores User0 in every turn: red is root there, and stays."""

    class Stubborn(Scripted):
        def act(self, obs: Any, alerts: Any, masks: Any) -> Any:
            return np.full(len(obs), action_index("Restore", "User0"))

    record = recorded("sleep", "b_line", lambda *_: Stubborn(), episodes=5, horizon=30)
    in_all = host_acts(record)[-1]
    assert (in_all.restore, in_all.restore_of_root, in_all.wasted) == (30, 1, 0)


def test_shares_by_turn_cover_every_episode() -> None:
    record = recorded("random", "b_line", episodes=100, horizon=20)
    kinds, acted_upon = by_turn(record, len(record.actions))
    assert list(kinds) == list(KINDS)
    assert np.sum(list(kinds.values()), axis=0) == pytest.approx(1)
    acting = 1 - np.array(kinds["wait"])
    assert np.sum(list(acted_upon.values()), axis=0) == pytest.approx(acting)


# --- the command ----------------------------------------------------------------------------------


def test_the_command_prints_tables_and_writes_json_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, picture = tmp_path / "why.json", tmp_path / "why.png"
    flags = f"react-restore --episodes 40 --json {report} --plot {picture}"
    assert main(["explain", *flags.split()]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    for words in (
        "against b_line",
        "against meander",
        "Its opening",
        "Its decoys",
        "When it acts",
        "Where the loss comes from",
        "B-line goes for",
        "How it ends",
    ):
        assert words in said.out
    assert "\x1b" not in said.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    result = json.loads(report.read_text())
    for attacker in result["attackers"]:
        lost = sum(row["root"] + row["restore"] for row in attacker["losses"])
        assert lost + attacker["service_loss"] == pytest.approx(-attacker["mean"])
        assert len(attacker["opening"]) == OPENING
        assert set(attacker["hosts_by_turn"]) == set(HOSTS)
        assert {len(row) for row in attacker["kinds_by_turn"].values()} == {DRAWN_TURNS}
        assert list(attacker["quantiles"].values()) == sorted(attacker["quantiles"].values())


def test_who_never_loses_has_nothing_to_split(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "sleep --red-agent sleep --episodes 5 --horizon 3"
    assert main(["explain", *flags.split()]) == 0
    said = capsys.readouterr().out
    assert "mean return 0.00" in said
    assert "100.0%" in said


def test_a_trained_policy_is_explained(tmp_path: Path) -> None:
    flags = "--total-episodes 64 --n-envs 32 --horizon 20 --hidden 16 --rules 2.1-leaderboard"
    assert main(["train", *flags.split(), "--output-dir", str(tmp_path), "--name", "short"]) == 0
    run = tmp_path / "short"
    config = ExplainConfig(target=str(run), red_agent=("meander",), episodes=20)
    assert config.played.rules == "2.1-leaderboard"
    (told,) = explanations(config)
    turn_by_turn = EvaluateConfig(target=(str(run),), episodes=20, true_state="off")
    (player,) = open_players(turn_by_turn)
    played = play_episodes(turn_by_turn.games, player, "meander", (100,))
    assert told.mean == played.returns.mean() < 0


def test_a_policy_of_another_environment_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    save_checkpoint(tmp_path / "pole.npz", {}, {"config": {"env": "CartPole-v1"}})
    assert main(["explain", str(tmp_path / "pole.npz")]) == 2
    assert (
        "was trained on CartPole-v1; explain tells of defenders of cage2" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("", "the following arguments are required: TARGET"),
        ("runs/nowhere", "there is no run or checkpoint runs/nowhere"),
        ("greedy", "greedy repairs in an order: give --workflow"),
        ("sleep --red-agent blin", "did you mean b_line?"),
        ("sleep --episodes 1", "episodes must be from 2"),
        ("sleep --horizon 0", "horizon"),
        ("sleep --episodes 1000000", "try --episodes 200000"),
        ("sleep --rules 3", "unknown rule"),
        ("sleep --workflow named", "one workflow at a time"),
        ("sleep --plot why.pdf", "plots are PNG files, got why.pdf; name it why.png"),
        ("sleep --plot /nowhere/why.png", "cannot write /nowhere/why.png"),
        ("sleep --json /nowhere/why.json", "cannot write /nowhere/why.json"),
    ],
)
def test_bad_input_gets_one_line(flags: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *flags.split()]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_missing_matplotlib_is_named_before_anything_is_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["explain", "sleep", "--plot", str(tmp_path / "why.png")]) == 2
    said = capsys.readouterr()
    assert "pip install 'phalanx[plots]'" in said.err
    assert said.out == ""
