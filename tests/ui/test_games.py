"""Games over the wire: what is sent is played, once, and what cannot be is one line."""

import json
import time
from typing import Any

import gymnasium
import numpy as np
import pytest

import phalanx  # noqa: F401  registers the environment
from phalanx.ui.games import MOST_GAMES
from tests.ui.client import Answer, Client


def begin(client: Client, **settings: Any) -> Any:
    answer = client.post("/api/games", settings)
    assert answer.status == 200, answer.body
    return answer.json


def move(client: Client, game: Any, turn: int, action: Any) -> Answer:
    return client.post(f"/api/games/{game['id']}/turns", {"turn": turn, "action": action})


def test_a_game_over_the_wire_is_that_of_gymnasium(client: Client) -> None:
    game = begin(client, red_agent="b_line", horizon=30, seed=11)
    actions = np.random.default_rng(2).integers(145, size=30).tolist()
    for turn, action in enumerate(actions, 1):
        told = move(client, game, turn, action).json
        hidden = set("".join(told["trajectory"]["plays"][0]["states"]["access"])) == {"?"}
        assert hidden == (turn < 30)
    env = gymnasium.make("phalanx/Cage2-v0", red_agent="b_line", horizon=30)
    env.reset(seed=11)
    total = sum(float(env.step(action)[1]) for action in actions)
    assert told["return"] == pytest.approx(total, abs=1e-9)
    assert told["is_over"]
    assert move(client, game, 31, 0).status == 409


def test_who_clicks_twice_has_moved_once(client: Client) -> None:
    game = begin(client, seed=1)
    assert move(client, game, 1, 0).json["turn"] == 1
    answer = move(client, game, 1, 0)
    assert (answer.status, answer.json["error"][:30]) == (409, "turn 1 is not the next one: 1 ")
    assert client.get(f"/api/games/{game['id']}").json["turn"] == 1


@pytest.mark.parametrize("action", [145, -1, "Sleep", 1.5, None, True, [0], 10**40])
def test_what_is_no_action_is_refused(client: Client, action: Any) -> None:
    game = begin(client, seed=1)
    answer = move(client, game, 1, action)
    assert answer.status == 400
    assert "action" in answer.json["error"]
    assert client.get(f"/api/games/{game['id']}").json["turn"] == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"red_agent": "blue"},
        {"red_agent": 3},
        {"horizon": 0},
        {"horizon": 10**9},
        {"seed": -1},
        {"rules": "x"},
        {"seed": "x"},
        {"folder": "/etc"},
        {"red_agent": "b_line,meander"},
    ],
)
def test_settings_that_cannot_work_are_one_line(client: Client, settings: Any) -> None:
    answer = client.post("/api/games", settings)
    assert answer.status == 400
    assert "\n" not in answer.json["error"]


def test_only_so_many_games_are_kept_and_the_oldest_goes_first(client: Client) -> None:
    first, second = begin(client, seed=1), begin(client, seed=2)
    for seed in range(MOST_GAMES - 2):
        begin(client, seed=seed)
    assert client.get(f"/api/games/{first['id']}").status == 200  # touched: the other is older now
    begin(client, seed=3)
    assert client.get(f"/api/games/{second['id']}").status == 404
    assert move(client, second, 1, 0).json["error"].startswith("this game is not there any more")
    assert client.get(f"/api/games/{first['id']}").status == 200


def test_open_cards_are_marked(client: Client) -> None:
    game = begin(client, seed=1)
    move(client, game, 1, 0)
    told = client.post(f"/api/games/{game['id']}/open").json
    assert told["opened"] == 1
    assert "2" in told["trajectory"]["plays"][0]["states"]["access"][0]


def test_hints_are_those_of_the_turn(client: Client) -> None:
    game = begin(client, red_agent="meander", seed=5)
    url = f"/api/games/{game['id']}"
    hint = client.get(f"{url}/hint?turn=0").json
    assert hint["champion"] == "champion"
    assert hint["likely"][0][1] > 0
    asked = client.post(f"{url}/what-if", {"turn": 0, "actions": [0]}).json
    assert [row[0] for row in asked["actions"]] == list(dict.fromkeys([hint["likely"][0][0], 0]))
    move(client, game, 1, 0)
    stale = {"turn": 0, "stale": True}
    assert client.get(f"{url}/hint?turn=0").json == stale
    assert client.post(f"{url}/what-if", {"turn": 0, "actions": [0]}).json == stale
    assert "likely" in client.get(f"{url}/hint?turn=1").json


def test_after_the_end_a_score_is_set_beside_others(client: Client) -> None:
    game = begin(client, red_agent="b_line", horizon=30, seed=9)
    url = f"/api/games/{game['id']}"
    assert client.post(f"{url}/beside").status == 409
    for turn in range(1, 31):
        told = move(client, game, turn, 0).json
    found = client.post(f"{url}/beside").json
    assert [one["return"] for one in found["published"]] == [-3.47, -3.48, -3.53]
    job = found["job"]
    end = time.monotonic() + 120
    while job["state"] in ("waiting", "working"):
        assert time.monotonic() < end
        job = client.get(f"/api/jobs/{job['id']}").json
    result = client.get(f"/api/jobs/{job['id']}/result").json
    assert result["champion"] == "champion"
    assert result["same_dice"] > told["return"]
    assert result["better_than"] == 0


@pytest.mark.parametrize("actions", [[145], ["x"], "x", [[0]]])
def test_questions_about_no_action_are_refused(client: Client, actions: Any) -> None:
    game = begin(client, seed=5)
    sent = {"turn": 0, "actions": actions}
    assert client.post(f"/api/games/{game['id']}/what-if", sent).status == 400


@pytest.mark.parametrize("sent", [b"", b"[1]", b"{", b"\xff", b"[" * 60_000, b"null", b"1e999"])
def test_what_is_no_json_object_is_one_line(client: Client, sent: bytes) -> None:
    answer = client.post("/api/games/x/turns", sent)
    assert answer.status == 400
    assert json.loads(answer.body)["error"]


def test_choices_are_told(client: Client) -> None:
    told = client.get("/api/choices").json
    assert [one["name"] for one in told["attackers"]][:3] == ["b_line", "meander", "sleep"]
    cell = {"red_agent": "b_line", "horizon": 30}
    found = [one["return"] for one in told["published"] if cell.items() <= one.items()]
    assert found == [-3.47, -3.48, -3.53]
