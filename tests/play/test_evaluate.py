"""Returns of the scripted defenders: those of the original, whatever the number of threads."""

import json
from pathlib import Path
from typing import Any

import pytest

from phalanx.cli.commands import main
from phalanx.play.cells import play_cells
from phalanx.play.episodes import play_episodes
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.players import open_players

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = {
    f"2.1-{name}": {
        key: row
        for key, row in json.loads((GOLDEN / name / "returns.json").read_text()).items()
        if "|" in key
    }
    for name in ("final", "leaderboard")
}
# The original's laws, from seed-exact models of it over many more episodes.
SHARPER: dict[tuple[str, str], tuple[float, float]] = {
    ("2.1-final", "B_lineAgent|random|100"): (-748.5, 7.1),
    ("2.1-leaderboard", "B_lineAgent|random|100"): (-739.8, 7.2),
    ("2.1-final", "RedMeanderAgent|random|100"): (-582.9, 10.2),
    ("2.1-leaderboard", "RedMeanderAgent|random|100"): (-578.6, 10.1),
}


@pytest.mark.parametrize("rules", RECORDED)
@pytest.mark.parametrize("policy", ["sleep", "random", "react_remove", "react_restore"])
def test_returns_agree_with_the_original(rules: str, policy: str) -> None:
    reds = ("B_lineAgent", "RedMeanderAgent", "SleepAgent")
    config = EvaluateConfig(policy=(policy,), red_agent=reds, rules=rules, episodes=4000, seed=1)
    for cell in play_cells(config):
        key = f"{cell.red_agent}|{policy}|{cell.horizon}"
        row = RECORDED[rules][key]
        mean, stderr = SHARPER.get((rules, key), (row["mean"], row["stderr"]))
        error = (stderr**2 + cell.stderr**2) ** 0.5
        assert abs(cell.mean - mean) <= 4 * error + 1e-9, f"{key}: {cell.mean} against {mean}"


def test_results_do_not_depend_on_threads() -> None:
    def returns(threads: int) -> Any:
        config = EvaluateConfig(policy=("random",), episodes=5000, num_threads=threads, seed=3)
        (player,) = open_players(config)
        played = play_episodes(config.games, player, "b_line=0.5,meander=0.5", (30,))
        return played.returns.tolist()

    assert returns(1) == returns(2) == returns(5)


def test_a_longer_run_begins_with_the_shorter_one() -> None:
    def returns(policy: str, episodes: int) -> Any:
        config = EvaluateConfig(policy=(policy,), episodes=episodes)
        (player,) = open_players(config)
        return play_episodes(config.games, player, "meander", (30,)).returns.tolist()

    for policy in ("random", "react-restore"):
        assert returns(policy, 5000)[:100] == returns(policy, 100)


def test_the_command_prints_a_table_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "cells.json"
    flags = "--policy react-restore --red-agent b_line,meander --horizon 30 50 --episodes 50"
    assert main(["evaluate", *flags.split(), "--json", str(report)]) == 0
    said = capsys.readouterr()
    assert "react-restore" in said.out
    assert said.err == ""
    result = json.loads(report.read_text())
    assert result["complete"]
    cells = result["cells"]
    assert [(c["red_agent"], c["horizon"]) for c in cells] == [
        ("b_line", 30),
        ("b_line", 50),
        ("meander", 30),
        ("meander", 50),
    ]
    assert all(c["episodes"] == 50 and c["stderr"] > 0 for c in cells)
    assert all(c["min"] <= c["quantiles"]["0.5"] <= c["max"] <= 0 for c in cells)


def test_an_interrupt_keeps_the_cells_that_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def play(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return play_episodes(*arguments)

    monkeypatch.setattr("phalanx.play.cells.play_episodes", play)
    report = tmp_path / "cells.json"
    flags = "--policy sleep --red-agent b_line,meander --horizon 30 --episodes 10"
    assert main(["evaluate", *flags.split(), "--json", str(report)]) == 130
    result = json.loads(report.read_text())
    assert not result["complete"]
    assert len(result["cells"]) == 1


# --- orders of repair -----------------------------------------------------------------------------


def cells_of(**settings: Any) -> Any:
    given = {"red_agent": ("meander",), "horizon": (30,), "episodes": 200, **settings}
    return {(cell.policy, cell.workflow): cell for cell in play_cells(EvaluateConfig(**given))}


def test_compliance_is_pooled_over_all_fixes_and_undefined_without_any() -> None:
    cells = cells_of(workflow="critical_first")
    assert cells["sleep", "critical_first"].compliance is None
    assert cells["sleep", "critical_first"].share_without_fix == 1
    random, greedy = (cells[name, "critical_first"] for name in ("random", "greedy"))
    assert 0 < random.compliance < 0.5
    assert greedy.compliance == 1
    assert greedy.fixes_per_episode > 5


def test_the_orders_that_have_names_are_played_together() -> None:
    cells = cells_of(workflow="named", policy=("greedy",))
    assert len(cells) == 6
    assert all(cell.compliance == 1 for cell in cells.values())


def test_a_grid_plays_all_orders(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--policy", "random", "--red-agent", "meander", "--horizon", "30"]
    assert main(["evaluate", "--workflow-grid", "--episodes", "20", *flags]) == 0
    shown = capsys.readouterr().out
    assert shown.count("meander") == 120
    assert "U,H,S,E,D" in shown


def test_a_policy_can_be_judged_by_another_order_than_it_was_told() -> None:
    def random(**settings: Any) -> Any:
        (cell,) = cells_of(policy=("random",), horizon=(100,), **settings).values()
        return cell.mean, cell.compliance

    first, last = random(workflow="critical_first"), random(workflow="reverse")
    assert random(workflow="critical_first", judged_by="reverse") == last != first
    assert first[0] == last[0]


def test_who_is_told_no_order_is_not_judged_by_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ["random", "--judged-by", "reverse", "--episodes", "2"]
    assert main(["evaluate", *flags]) == 2
    assert "give --workflow instead of --judged-by" in capsys.readouterr().err
    assert main(["evaluate", *flags, "--workflow", "critical_first", "--horizon", "3"]) == 0
    assert "by the rule 'host' and the order reverse" in capsys.readouterr().out


def test_an_episode_ends_at_its_own_horizon_whichever_others_are_played() -> None:
    given: Any = {"workflow": "critical_first", "policy": ("random",), "true_state": "episode_end"}
    alone = cells_of(**given, horizon=(60,))["random", "critical_first"]
    beside = cells_of(**given, horizon=(30, 60))["random", "critical_first"]
    assert beside.horizon == 60
    assert beside.compliance == alone.compliance


@pytest.mark.parametrize("mode", ["every:1", "every:4", "episode_end", "off"])
def test_saving_on_the_true_state_says_what_it_costs_in_truth(mode: str) -> None:
    settings: Any = {"workflow": "critical_first", "policy": ("random",)}
    exact = cells_of(**settings)["random", "critical_first"]
    saving = cells_of(**settings, true_state=mode)["random", "critical_first"]
    figures = saving.true_state
    assert exact.true_state is None
    assert figures["exact_compliance"] == pytest.approx(exact.compliance)
    assert saving.fixes_per_episode == exact.fixes_per_episode
    if mode == "off":
        assert saving.compliance is None
        assert figures["fetches_per_episode"] == 0
    else:
        assert figures["error"] == pytest.approx(saving.compliance - exact.compliance)
        fewer = figures["fetches_per_episode"] < figures["exact_fetches_per_episode"]
        assert fewer == (mode != "every:1")
        assert (figures["mean_age"] == 0) == (mode == "every:1")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--workflow", "defender,enterprise"], "lacks op_server, op_host, user"),
        (["--workflow", "user,user,op_host,op_server,defender"], "repeats user"),
        (["--workflow", "critcal_first"], "did you mean critical_first"),
        (["--workflow-grid", "--workflow", "reverse"], "leave out --workflow"),
        (["greedy"], "greedy repairs in an order"),
        (["--workflow", "reverse", "--true-state", "every:0"], "true state 'every:0' is unknown"),
        (["--workflow", "reverse", "--compliance-rule", "hosts"], "did you mean host"),
    ],
)
def test_bad_orders_get_one_line(
    flags: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *flags]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
