"""Bounds, and the command that prints them."""

import json
from pathlib import Path

import numpy as np
import pytest

from phalanx.bound.bounds import blind_openings, find_bounds
from phalanx.cage2.rules.scenario import NUM_ACTIONS, action_index
from phalanx.cli.commands import main
from tests.bound.test_game import game_of


def test_all_blind_openings_are_tried_against_every_target() -> None:
    """With Restore and all decoys, Vsftpd too."""
    game = game_of("b_line", "2.1-leaderboard")
    openings = blind_openings(game)
    assert openings.positions.shape == (NUM_ACTIONS**2, 4)
    assert openings.positions.min() >= 0
    assert len(np.unique(openings.actions, axis=0)) == NUM_ACTIONS**2

    def of(first: int, second: int) -> list[int]:
        return openings.positions[first * NUM_ACTIONS + second].tolist()

    spoil = action_index("Restore", "User3")
    femitter = action_index("DecoyFemitter", "User2")
    vsftpd = action_index("DecoyVsftpd", "User3")
    nothing = of(0, 0)
    assert [a != b for a, b in zip(of(spoil, 0), nothing, strict=True)] == [
        False,
        False,
        True,
        False,
    ]
    assert [a != b for a, b in zip(of(0, femitter), nothing, strict=True)] == [
        False,
        True,
        False,
        False,
    ]
    assert of(vsftpd, 0) == nothing  # it opens a port that is open
    assert openings.spent[:, spoil * NUM_ACTIONS + spoil].tolist() == [[0] * 4, [10] * 4, [20] * 4]


def test_a_longer_game_has_a_lower_bound_and_the_shortest_costs_nothing() -> None:
    bounds = find_bounds("b_line", (1, 2, 3, 5, 10), "2.1-leaderboard")
    values = [one.value for one in bounds]
    assert values[:2] == [0, 0]
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[2] < 0
    assert all(one.value <= one.at_once + 1e-9 for one in bounds)
    assert [len(one.opening) for one in bounds] == [1, 2, 2, 2, 2]


def test_the_command_prints_and_writes_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "bounds.json"
    given = ["--red-agent", "SleepAgent", "--horizon", "3", "4", "--json", str(report)]
    assert main(["bound", *given]) == 0
    assert "sleep" in capsys.readouterr().out
    written = json.loads(report.read_text())["bounds"]
    assert [(one["horizon"], one["value"]) for one in written] == [(3, 0.0), (4, 0.0)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--red-agent", "coin"], "there is no bound for red agent coin"),
        (["--red-agent", "blne"], "red agent"),
        (["--horizon", "0"], "horizon"),
        (["--rules", "3"], "rule set"),
    ],
)
def test_what_cannot_be_bounded_is_refused_in_one_line(
    given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bound", *given]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
