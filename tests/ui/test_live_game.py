"""A person's game is the game of Gymnasium, and hides what no defender is shown."""

import json
from typing import Any

import gymnasium
import numpy as np
import pytest

import phalanx  # noqa: F401  registers the environment
from phalanx.cage2 import ALL_RED_AGENTS, RULE_SETS, action_index
from phalanx.errors import ActionError, ConfigError
from phalanx.ui.live_game import GameSettings, LiveGame, move_words

MIXTURE = "b_line=0.5,meander=0.5"


def played(settings: GameSettings, seed: int = 0) -> tuple[LiveGame, list[int]]:
    game, dice = LiveGame(settings), np.random.default_rng(seed)
    actions = dice.integers(145, size=settings.horizon).tolist()
    for action in actions:
        game.play(action)
    return game, actions


@pytest.mark.parametrize("rules", RULE_SETS)
@pytest.mark.parametrize("red_agent", [*ALL_RED_AGENTS, MIXTURE])
def test_a_game_is_that_of_gymnasium_with_the_same_seed(red_agent: str, rules: str) -> None:
    settings = GameSettings(red_agent=red_agent, rules=rules, horizon=20, seed=7)
    game, actions = played(settings)
    env = gymnasium.make("phalanx/Cage2-v0", red_agent=red_agent, rules=rules, horizon=20)
    obs, _info = env.reset(seed=7)
    total = 0.0
    for turn, action in enumerate(actions):
        assert np.array_equal(obs, game.bits[turn])
        obs, reward, _terminated, truncated, _info = env.step(action)
        total += float(reward)
    assert truncated
    assert np.array_equal(obs, game.bits[-1])
    assert game.total == pytest.approx(total, abs=1e-9)
    (play,) = game.trajectory()["plays"]
    assert play["return"] == game.total
    assert play["turns"]["blue"] == actions
    assert sum(play["turns"]["reward"]) == pytest.approx(total, abs=1e-9)


def rows_of(trajectory: dict[str, Any]) -> tuple[Any, Any]:
    return trajectory["plays"][0]["states"], trajectory["plays"][0]["turns"]


def test_the_truth_is_hidden_until_the_end() -> None:
    settings = GameSettings(red_agent=MIXTURE, horizon=20, seed=3)
    game = LiveGame(settings)
    for _ in range(19):
        game.play(action_index("Restore", "User1"))
    trajectory = game.trajectory()
    states, turns = rows_of(trajectory)
    assert trajectory["plays"][0]["attacker"] == MIXTURE
    for name in ("access", "known", "files"):
        assert set("".join(states[name])) == {"?"}
    assert set(states["service"]) == {"?"}
    assert set(turns["red_words"]) == {None}
    assert set(turns["red_kind"]) == {"hidden"}
    for reward, costs in zip(turns["reward"], turns["costs"], strict=True):
        assert costs[0] == ["restore", 9, -1.0]
        assert [cost[:2] for cost in costs[1:]] == [["red", -1]] * (reward < -1)
        assert sum(cost[2] for cost in costs) == pytest.approx(reward)
    assert set(turns["blue_words"]) == {"restores User1"}  # not whether red was there
    assert len(states["activity"]) == len(states["belief"]["root"]) == 20
    game.play(0)
    states, turns = rows_of(game.trajectory())
    assert "2" in "".join(states["access"])
    assert any("exploits" in words for words in turns["red_words"])


def test_nothing_hidden_can_be_told_from_what_is_sent() -> None:
    """Games that look alike to blue are sent alike, whatever is true in them."""
    sent: dict[Any, list[tuple[Any, str]]] = {}
    for seed in range(60):
        game = LiveGame(GameSettings(red_agent=MIXTURE, horizon=20, seed=seed))
        for _ in range(1 + seed % 4):
            game.play(0)
        shown = (np.array(game.bits).tobytes(), game.total)
        told = game.trajectory()
        told["plays"][0]["seed"] = 0
        truth = tuple(int(game.nets[-1][name]) for name in ("red", "sessions", "root", "known"))
        sent.setdefault(shown, []).append((truth, json.dumps(told)))
    alike = [games for games in sent.values() if len({truth for truth, _ in games}) > 1]
    assert alike, "no two games look alike and differ: take more seeds"
    assert all(len({told for _, told in games}) == 1 for games in alike)


def test_open_cards_show_the_truth_at_once() -> None:
    game = LiveGame(GameSettings(horizon=20))
    game.play(0)
    assert set(rows_of(game.trajectory())[0]["access"][0]) == {"?"}
    game.open_cards()
    states, turns = rows_of(game.trajectory())
    assert states["access"][0] == "0000000020000"
    assert turns["red_words"][0].startswith("Meander")
    game.play(0)
    game.open_cards()
    assert game.facts()["opened"] == 1


def test_looking_after_the_end_is_no_cheating() -> None:
    game, _actions = played(GameSettings(horizon=2))
    game.open_cards()
    assert game.facts()["opened"] is None


def test_after_the_last_turn_nothing_is_played() -> None:
    game, _actions = played(GameSettings(horizon=2))
    assert game.is_over
    with pytest.raises(gymnasium.error.ResetNeeded):
        game.play(0)
    assert game.turn == 2


@pytest.mark.parametrize("action", [-1, 145, 10**30])
def test_an_action_that_does_not_exist_changes_nothing(action: int) -> None:
    game = LiveGame(GameSettings())
    with pytest.raises(ActionError):
        game.play(action)
    assert (game.turn, len(game.bits), len(game.nets)) == (0, 1, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"red_agent": "blue"},
        {"horizon": 0},
        {"horizon": 501},
        {"rules": "3"},
        {"seed": -1},
        {"seed": 2**64},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        LiveGame(GameSettings(**wrong))


def test_moves_are_told_without_their_outcome() -> None:
    assert move_words(0) == "sleeps"
    assert move_words(1) == "monitors"
    assert move_words(action_index("Remove", "User2")) == "removes red from User2"
    assert move_words(action_index("DecoySSHD", "User2")) == "places a decoy SSHD on User2"
