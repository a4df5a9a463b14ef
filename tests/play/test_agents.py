"""Agents that come with phalanx, and how a policy becomes one file."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import phalanx
from phalanx.agents import AGENTS, agent_path
from phalanx.cage2.cyborg import CyborgAgent
from phalanx.cli.commands import main
from phalanx.play.cells import play_cells
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.export import export
from phalanx.training.checkpoint import load_checkpoint
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train


def test_the_champion_beats_every_published_total() -> None:
    config = EvaluateConfig(policy=("champion",), leaderboard=True, episodes=400)
    cells = list(play_cells(config))
    assert len(cells) == 9
    assert sum(cell.mean for cell in cells) > -45  # -42.7 over more episodes


def test_an_agent_is_played_beside_others() -> None:
    config = EvaluateConfig(
        target=("champion", "sleep"), policy=("Champion_Final",), episodes=50, red_agent=("b_line",)
    )
    cells = list(play_cells(config))
    assert [cell.policy for cell in cells[::3]] == ["champion", "sleep", "Champion_Final"]
    assert cells[2].mean > cells[8].mean > cells[5].mean  # under the champion's rules


def test_a_file_of_a_scripted_defenders_name_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random").write_text("notes")
    monkeypatch.chdir(tmp_path)
    assert EvaluateConfig(policy=("random",)).checkpoints == {}


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_an_agent_is_one_small_file_of_numbers(name: str) -> None:
    path = agent_path(name)
    assert path.stat().st_size < 1_000_000
    arrays, facts = load_checkpoint(path)
    assert set(arrays) == {"theta"}
    assert facts["config"]["rules"] == ("2.1-final" if "final" in name else "2.1-leaderboard")


def test_the_champion_plays_through_the_challenges_interface() -> None:
    agent = CyborgAgent(phalanx.load_defender("champion"))
    actions = [agent.get_action(np.zeros(52)) for _ in range(10)]
    agent.end_episode()
    assert agent.get_action(np.zeros(52)) == actions[0]
    assert len(set(actions)) > 3  # it prepares, though nothing is seen yet


def test_a_run_becomes_one_file_that_plays_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(TrainConfig(num_envs=20, total_episodes=40, hidden=(8,), output_dir=tmp_path, name="run"))
    run, file = tmp_path / "run", tmp_path / "agent.npz"
    assert main(["export", str(run), str(file)]) == 0
    assert file.stat().st_size < (run / "checkpoints" / "last.npz").stat().st_size
    capsys.readouterr()

    def returns(target: Path) -> list[float]:
        config = EvaluateConfig(target=(str(target),), episodes=20, red_agent=("meander",))
        return [cell.mean for cell in play_cells(config)]

    assert returns(run) == returns(file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "agent.npz"], "there is no run or checkpoint nowhere"),
        (["{run}", "agent.txt"], "must end in .npz"),
        (["{run}", "no/such/folder/agent.npz"], "no/such/folder"),
    ],
)
def test_bad_input_gets_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(agent_path("champion"))
    assert main(["export", *(one.format(run=run) for one in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_exported_policy_can_expect_other_attackers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "wide.npz")
    assert main(["export", "champion", file, "--prior", "b_line=0.9,coin=0.1"]) == 0
    defender = phalanx.load_defender(file)
    assert defender.prior == "b_line=0.9,coin=0.1"
    known = defender.env_settings
    assert known["prior"] == defender.prior
    capsys.readouterr()
    for run, prior, said in (
        ("champion", "b_line=0.9", "must be 0 or more and sum to 1"),
        ("champion", "nobody", "unknown red agent 'nobody'"),
        (str(blind_run(tmp_path)), "b_line", "sees no belief"),
    ):
        assert main(["export", run, file, "--prior", prior]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1


def blind_run(folder: Path) -> Path:
    config = TrainConfig(
        num_envs=20,
        total_episodes=20,
        hidden=(8,),
        observation="bits",
        output_dir=folder,
        name="blind",
    )
    return train(config, progress=False).folder.path


def test_an_agent_can_be_exported(tmp_path: Path) -> None:
    export(Path("champion"), tmp_path / "own.npz")
    ours, theirs = (load_checkpoint(path)[0] for path in (tmp_path / "own.npz", AGENTS["champion"]))
    assert np.array_equal(ours["theta"], theirs["theta"])


def test_playing_an_agent_starts_no_threads_in_matrix_products() -> None:
    code = """if True:
        import phalanx
        phalanx.load_defender("champion")
        from threadpoolctl import threadpool_info
        print({one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})
    """
    unlimited = {name: value for name, value in os.environ.items() if "OPENBLAS" not in name}
    done = subprocess.run(
        [sys.executable, "-c", code], env=unlimited, capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "{1}"
