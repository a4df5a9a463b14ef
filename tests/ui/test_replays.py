"""Replays over the wire: the episodes of an evaluation, by defenders that a page may name."""

import time
from pathlib import Path
from typing import Any

import pytest

from phalanx.agents import AGENTS
from phalanx.cli.commands import main
from phalanx.play.evaluate import evaluate
from phalanx.ui.live_game import GameSettings, LiveGame
from phalanx.ui.looked_back import looked_back
from tests.show.run_folders import make_run
from tests.ui.client import Client

MORE_USERS = Path(__file__).parent.parent / "scenarios" / "more_users.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    played = make_run(folder / "champion")  # it has the name of another defender
    (played / "checkpoints" / "last.npz").write_bytes(AGENTS["champion-final"].read_bytes())
    return folder


def ready(client: Client, **asked: Any) -> Any:
    answer = client.post("/api/replays", asked)
    assert answer.status == 200, answer.body
    job, end = answer.json, time.monotonic() + 300
    while job["state"] in ("waiting", "working"):
        assert time.monotonic() < end
        time.sleep(0.05)
        job = client.get(f"/api/jobs/{job['id']}").json
    assert job["state"] == "ready", job
    return job


def test_a_replay_is_the_episode_of_an_evaluation(client: Client) -> None:
    job = ready(client, policy="champion", red_agent="b_line", horizon=30, seed=4, what_if=False)
    told = client.get(f"/api/replays/{job['id']}").json
    (play,) = told["trajectory"]["plays"]
    scores = evaluate("champion", red_agent="b_line", horizon=30, seed=4, episodes=2)
    assert play["return"] == pytest.approx(scores.cells[0].returns[0])
    assert (play["policy"], len(play["turns"]["blue"])) == ("champion", 30)
    assert "return" in told["said"]


def test_a_pick_with_what_if_says_how_it_was_chosen(client: Client) -> None:
    job = ready(client, policy="champion", horizon=10, pick="worst", of=50)
    told = client.get(f"/api/replays/{job['id']}").json
    assert told["picked"].startswith("worst of 50 episodes")
    assert told["trajectory"]["plays"][0]["turns"]["what_if"] is not None
    page = client.get(f"/replays/{job['id']}")
    assert page.headers["content-disposition"] == 'attachment; filename="replay.html"'
    assert "sandbox" in page.headers["content-security-policy"]
    assert b"phalanx-trajectory" in page.body


def test_a_run_of_another_network_is_played_on_it(client: Client, folder: Path) -> None:
    small = "--total-episodes 32 --n-envs 16 --horizon 12 --hidden 16"
    words = f"train --scenario {MORE_USERS} {small} --output-dir {folder} --name elsewhere"
    assert main(words.split()) == 0
    job = ready(client, policy="run/elsewhere", horizon=6, what_if=False)
    told = client.get(f"/api/replays/{job['id']}").json
    assert told["trajectory"]["scenario"]["name"] == "more_users"
    assert len(told["trajectory"]["plays"][0]["states"]["access"][0]) == 17
    assert told["picked"] == ""  # nothing to remark: it is where it was trained


def test_a_run_and_an_agent_of_one_name_are_two_defenders(client: Client, folder: Path) -> None:
    job = ready(
        client,
        policy="run/champion",
        compare="champion",
        horizon=10,
        what_if=False,
        rules="2.1-leaderboard",
    )
    told = client.get(f"/api/replays/{job['id']}")
    assert len(told.json["trajectory"]["plays"]) == 2
    assert str(folder).encode() not in told.body


@pytest.mark.parametrize(
    "asked",
    [
        {"policy": "os:getcwd"},
        {"policy": "run/../champion"},
        {"policy": "run/nothing"},
        {"policy": "/etc/passwd"},
        {"policy": "champion", "compare": "this:that"},
        {},
        {"policy": "champion", "red_agent": "x"},
        {"policy": "champion", "horizon": 0},
        {"policy": "champion", "pick": "x"},
        {"policy": "champion", "pick": "worst", "of": 10**9},
        {"policy": "champion", "out": "x.html"},
        {"policy": "greedy"},
        {"policy": "Champion+plan"},
    ],
)
def test_what_a_page_may_not_ask_for_is_refused(client: Client, asked: Any) -> None:
    answer = client.post("/api/replays", asked)
    assert answer.status in (400, 404)
    assert "\n" not in answer.json["error"]


def test_what_is_no_replay_is_none(client: Client) -> None:
    assert client.get("/api/replays/nothing").status == 404
    assert client.get("/replays/nothing").status == 404


def test_looking_back_tells_what_each_move_cost() -> None:
    """Of twelve turns of sleep against B-line, some would surely have been better spent."""
    game = LiveGame(GameSettings(red_agent="b_line", horizon=14, seed=1))
    while not game.is_over:
        game.play(0)
    heard: list[float] = []
    told = looked_back(game, lambda share, _note: heard.append(share))
    (play,) = told["plays"]
    assert play["policy"] == "you"
    assert play["return"] == game.total
    assert play["turns"]["blue"] == game.actions
    assert play["turns"]["red_words"] == game.trajectory()["plays"][0]["turns"]["red_words"]
    assert max(regret[1] for regret in play["turns"]["regret"] if regret) > 1
    assert heard == sorted(heard)
    assert len(set(heard)) > 5
