"""The command and `phalanx.replay`: one file that says where an episode went wrong."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.cli.commands import main
from phalanx.show.replay.config import ReplayConfig
from phalanx.show.replay.replay import Replay
from phalanx.show.replay.story import headline, what_went_wrong
from phalanx.training.checkpoint import save_checkpoint

GOLDEN = Path(__file__).parent.parent.parent / "golden"
KB = 1000


def ran(flags: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """The trajectory that a command writes, and what it prints."""
    words = f"replay {flags} --out {folder}/it.html --json {folder}/it.json"
    assert main(words.split()) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return json.loads((folder / "it.json").read_text()), said.out


def data_of(html: str) -> dict[str, Any]:
    (found,) = re.findall(r'id="trajectory">(.*?)</script>', html, re.S)
    told: dict[str, Any] = json.loads(found)
    return told


# --- the command ----------------------------------------------------------------------------------


def test_a_page_and_its_data_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, said = ran("react-restore --seed 7 --horizon 40", tmp_path, capsys)
    html = (tmp_path / "it.html").read_text()
    assert data_of(html) == told
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org", "")
    (play,) = told["plays"]
    assert said.splitlines() == [
        f"{tmp_path}/it.html and {tmp_path}/it.json: react-restore against meander, seed 7, "
        f"episode 0: return {play['return']:.1f}; {what_went_wrong(told, play)}"
    ]
    assert play["turns"]["what_if"] is None
    assert play["turns"]["likely"] is None


def test_a_trained_policy_is_asked_what_if(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = "champion --red-agent b_line --horizon 15 --games 8"
    told, _said = ran(flags, tmp_path, capsys)
    turns = told["plays"][0]["turns"]
    assert all(turns["what_if"])
    assert all(len(regret) == 3 for regret in turns["regret"])
    assert all(value < 0 for value in turns["value"])
    for played, likely, answer in zip(
        turns["blue"], turns["likely"], turns["what_if"], strict=True
    ):
        assert played == likely[0][0] == answer["actions"][0][0]
        assert answer["games"] == max(row[7] for row in answer["actions"])
    without, _said = ran(f"{flags[:-10]} --what-if false", tmp_path, capsys)
    assert without["plays"][0]["turns"]["what_if"] is None
    assert without["plays"][0]["turns"]["blue"] == turns["blue"]


def test_two_defenders_play_on_the_same_dice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, said = ran("sleep --compare react-remove --seed 3 --horizon 30", tmp_path, capsys)
    first, second = told["plays"]
    assert (first["policy"], second["policy"]) == ("sleep", "react-remove")
    assert first["turns"]["blue"] != second["turns"]["blue"]
    parts = next(
        t
        for t in range(30)
        if first["states"]["access"][t + 1] != second["states"]["access"][t + 1]
    )
    assert first["turns"]["red_words"][:parts] == second["turns"]["red_words"][:parts]
    assert parts > 3
    assert len(said.splitlines()) == 2
    assert "beside it: react-remove against meander" in said
    alone, _said = ran("react-remove --seed 3 --horizon 30", tmp_path, capsys)
    assert alone["plays"][0] == second


def test_the_worst_of_many_is_picked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told, said = ran("react-restore --pick worst --of 60 --horizon 25", tmp_path, capsys)
    returns = (
        phalanx.evaluate("react-restore", red_agent="meander", horizon=25, episodes=60)
        .cells[0]
        .returns
    )
    (play,) = told["plays"]
    assert play["return"] == pytest.approx(returns.min())
    assert play["episode"] == int(returns.argmin())
    assert said.startswith(f"worst of 60 episodes, whose mean return is {returns.mean():.2f}\n")
    again, _said = ran(f"react-restore --episode {play['episode']} --horizon 25", tmp_path, capsys)
    assert again == told


def test_a_recorded_game_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told, said = ran(f"--trace {GOLDEN}/final --episode 12", tmp_path, capsys)
    (play,) = told["plays"]
    assert play["source"] == "trace"
    assert f"recorded against b_line, recorded episode 12: return {play['return']}" in said
    other, _said = ran(f"--trace {GOLDEN}/final --red-agent meander --episode 3", tmp_path, capsys)
    assert other["plays"][0]["attacker"] == "meander"


def test_planning_is_told_as_it_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--red-agent b_line --horizon 6 --seed 2"
    few = "--plan-screen 8 --plan-confirm 8 --plan-candidates 4"
    told, _said = ran(f"champion+plan {flags} {few} --what-if false", tmp_path, capsys)
    scores = phalanx.evaluate(
        "champion+plan",
        red_agent="b_line",
        horizon=6,
        episodes=2,
        seed=2,
        plan_screen=8,
        plan_confirm=8,
        plan_candidates=4,
    )
    assert told["plays"][0]["return"] == pytest.approx(scores.cells[0].returns[0])


# --- from Python ----------------------------------------------------------------------------------


class Mine:
    """A defender of one's own."""

    def act(self, obs: Any) -> int:
        return int(obs.sum()) % 145


def test_any_defender_can_be_replayed_from_python(tmp_path: Path) -> None:
    told = phalanx.replay(Mine, compare="sleep", red_agent="b_line", horizon=12, seed=4)
    assert [play["policy"] for play in told.trajectory["plays"]] == ["Mine", "sleep"]
    told.save(tmp_path / "mine.html")
    assert data_of((tmp_path / "mine.html").read_text()) == told.trajectory
    told.save_json(tmp_path / "mine.json")
    assert json.loads((tmp_path / "mine.json").read_text()) == told.trajectory
    assert str(told).startswith("Mine against b_line, seed 4, episode 0: return")


def test_a_policy_in_memory_is_that_of_its_file() -> None:
    settings: dict[str, Any] = {"red_agent": "b_line", "horizon": 8, "games": 8}
    memory = phalanx.replay(phalanx.load_defender("champion"), **settings).trajectory
    file = phalanx.replay("champion", **settings).trajectory
    assert memory["plays"][0].pop("policy") == "policy"
    assert file["plays"][0].pop("policy") == "champion"
    assert memory == file


def test_in_a_notebook_it_is_a_frame_of_its_own() -> None:
    shown = phalanx.replay("sleep", horizon=2)._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert 'sandbox="allow-scripts"' in shown
    assert shown.count("<") == 2


def test_a_policy_that_is_told_an_order_is_told_it_in_what_if(tmp_path: Path) -> None:
    flags = "--total-episodes 64 --n-envs 32 --horizon 12 --hidden 16 --workflow all"
    assert main(["train", *flags.split(), "--output-dir", str(tmp_path), "--name", "told"]) == 0
    order = "defender,op_server,enterprise,op_host,user"
    told = phalanx.replay(str(tmp_path / "told"), workflow=order, horizon=12, games=8)
    assert all(told.trajectory["plays"][0]["turns"]["what_if"])


# --- what is promised -----------------------------------------------------------------------------


def test_pages_are_small() -> None:
    """What happens most fills most: all actions in turn, and every turn asked what if."""
    busy = phalanx.replay("random", red_agent="meander", seed=1)
    assert len(busy.page().encode()) <= 400 * KB
    asked = phalanx.replay("champion", red_agent="b_line", games=8)
    assert len(asked.page().encode()) <= 1000 * KB
    for one in (busy, asked):
        assert len(json.dumps(one.trajectory, separators=(",", ":")).encode()) <= 200 * KB


def test_hostile_names_stay_data(tmp_path: Path) -> None:
    nasty = "</script><script>alert(1)</script>"
    told = phalanx.replay("sleep", horizon=2).trajectory
    told["plays"][0]["policy"] = nasty
    html = Replay(told).page()
    assert "<script>alert" not in html
    assert data_of(html)["plays"][0]["policy"] == nasty


def test_large_seeds_are_not_rounded_by_javascript() -> None:
    seed = 2**64 - 1
    told = phalanx.replay("sleep", horizon=2, seed=seed).trajectory
    assert told["plays"][0]["seed"] == str(seed)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("", "give a defender, such as champion, or --trace FOLDER"),
        ("runs/nowhere", "there is no run or checkpoint runs/nowhere"),
        ("sleep --compare nobody", "there is no run or checkpoint nobody"),
        ("sleep --compare sleep", "--compare sleep is the first defender"),
        ("greedy", "greedy repairs in an order: give --workflow"),
        ("sleep --red-agent blin", "did you mean b_line?"),
        ("sleep --horizon 0", "horizon must be from 1 to 1,000"),
        ("sleep --horizon 1001", "horizon must be from 1 to 1,000"),
        ("sleep --seed -1", "seed must be from 0"),
        ("sleep --pick worse", "did you mean worst?"),
        ("sleep --pick worst --episode 3", "--pick chooses the episode; leave out --episode"),
        ("sleep --of 10", "--of has no effect here, it is for --pick"),
        ("sleep --what-if", "--what-if plays on with a trained policy, and sleep is none"),
        ("champion --what-if false --games 100", "--games has no effect here"),
        ("sleep --plan-screen 10", "--plan-screen has no effect here"),
        ("sleep --workflow named", "one workflow at a time"),
        ("sleep --rules 3", "unknown rule"),
        ("sleep --out /nowhere/it.html", "cannot write /nowhere/it.html"),
        ("sleep --json /nowhere/it.json", "cannot write /nowhere/it.json"),
        ("sleep --out it.html --json it.html", "--out and --json are both it.html"),
        ("sleep --trace tests/golden/final", "in which sleep cannot play; leave it out"),
        ("--trace nowhere", "nowhere is not a folder"),
        (f"--trace {GOLDEN}/final --episode 100000", "episodes, numbered from 0"),
        (f"--trace {GOLDEN}/final --seed 3", "--seed has no effect here"),
        (f"--trace {GOLDEN}/final --compare sleep", "--compare has no effect here"),
        (f"--trace {GOLDEN}/final --red-agent b_line=0.5,meander=0.5", "unknown red agent"),
    ],
)
def test_bad_input_gets_one_line(
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


def test_a_policy_of_another_environment_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    save_checkpoint(tmp_path / "pole.npz", {}, {"config": {"env": "CartPole-v1"}})
    assert main(["replay", str(tmp_path / "pole.npz")]) == 2
    said = capsys.readouterr().err
    assert "was trained on CartPole-v1; replay shows defenders of cage2" in said


def test_settings_need_no_compiler() -> None:
    import subprocess
    import sys

    code = "import sys, phalanx.show.replay.config; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert ReplayConfig(target="sleep").attacker == "meander"


# --- where it went wrong --------------------------------------------------------------------------


def told_of(regrets: list[Any], rewards: list[float]) -> tuple[dict[str, Any], dict[str, Any]]:
    rows = [
        [3, -9.0, -9, -9, 0.0, 0, 0, 800],
        [5, -8.5, -9, -8, 0.5, 0.4, 0.6, 800],
        [7, -8, -9, -7, 1.0, -1, 3, 50],
    ]
    play = {
        "policy": "mine",
        "attacker": "meander",
        "seed": 1,
        "episode": 2,
        "source": "phalanx",
        "return": -12.34,
        "turns": {
            "regret": regrets,
            "what_if": [{"games": 800, "actions": rows}] * len(rewards),
            "reward": rewards,
            "costs": [[["root", 1, -0.1], ["restore", 0, -1.0]]] * len(rewards),
        },
    }
    hosts = [{"name": "First"}, {"name": "Second"}]
    names = [f"action {number}" for number in range(9)]
    return {"scenario": {"hosts": hosts, "actions": names}, "plays": [play]}, play


def test_the_costliest_decision_is_named() -> None:
    told, play = told_of([[0.9, 0, 2.0], [0.2, 0.1, 0.3], [0.5, 0.4, 0.6], None], [-1.0] * 4)
    assert what_went_wrong(told, play) == (
        "turn 3: action 5 would have gained 0.50 ± 0.10, and 1 more such turn"
    )
    assert headline(play) == "mine against meander, seed 1, episode 2: return -12.3"


def test_without_a_sure_regret_it_says_so() -> None:
    told, play = told_of([[0.9, 0, 2.0], None], [-1.0] * 2)
    assert "no other action that was tried would surely have done better" in what_went_wrong(
        told, play
    )


def test_without_what_if_the_costliest_turn_is_named() -> None:
    told, play = told_of([], [0.0, -1.1, -0.3])
    play["turns"]["regret"] = None
    assert what_went_wrong(told, play) == "turn 2 cost most: -1.1, Restore of First"
    play["turns"]["reward"] = [0.0] * 3
    assert what_went_wrong(told, play) == "it lost nothing"
    assert np.isfinite(play["return"])
