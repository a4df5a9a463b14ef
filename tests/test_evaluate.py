"""Returns of the scripted defenders: those of the original, whatever the number of threads."""

import json
from pathlib import Path
from typing import Any

import pytest

from phalanx.cli import main
from phalanx.config import EvaluateConfig
from phalanx.evaluate import evaluate
from phalanx.play import play_episodes

GOLDEN = Path(__file__).parent / "golden"
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
    for cell in evaluate(config):
        key = f"{cell.red_agent}|{policy}|{cell.horizon}"
        row = RECORDED[rules][key]
        mean, stderr = SHARPER.get((rules, key), (row["mean"], row["stderr"]))
        error = (stderr**2 + cell.stderr**2) ** 0.5
        assert abs(cell.mean - mean) <= 4 * error + 1e-9, f"{key}: {cell.mean} against {mean}"


def test_results_do_not_depend_on_threads() -> None:
    def returns(threads: int) -> Any:
        config = EvaluateConfig(episodes=5000, num_threads=threads, seed=3)
        played = play_episodes(config, "random", "b_line=0.5,meander=0.5", (30,))
        return played.returns.tolist()

    assert returns(1) == returns(2) == returns(5)


def test_a_longer_run_begins_with_the_shorter_one() -> None:
    def returns(policy: str, episodes: int) -> Any:
        config = EvaluateConfig(episodes=episodes)
        return play_episodes(config, policy, "meander", (30,)).returns.tolist()

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

    monkeypatch.setattr("phalanx.evaluate.play_episodes", play)
    report = tmp_path / "cells.json"
    flags = "--policy sleep --red-agent b_line,meander --horizon 30 --episodes 10"
    assert main(["evaluate", *flags.split(), "--json", str(report)]) == 130
    result = json.loads(report.read_text())
    assert not result["complete"]
    assert len(result["cells"]) == 1
