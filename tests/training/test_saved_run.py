"""A run as tables and facts, the one just trained and any on disk."""

import json
from pathlib import Path
from typing import Any

import pytest

import phalanx
from phalanx.errors import RunError
from phalanx.training import saved_run
from phalanx.training.config import TrainConfig
from phalanx.training.loop import train
from phalanx.training.run import Run

SMALL: dict[str, Any] = {
    "num_envs": 16,
    "total_steps": 16 * 20 * 3,
    "update_steps": 20,
    "horizon": 20,
    "hidden": (8,),
    "observation": "bits",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(TrainConfig(output_dir=tmp_path_factory.mktemp("runs"), name="run", **SMALL))


def test_tables_are_frames_where_pandas_is_installed(trained: Run) -> None:
    pandas = pytest.importorskip("pandas")
    for run in (trained, phalanx.open_run(trained.path)):
        history, episodes = run.history(), run.episode_table()
        assert isinstance(history, pandas.DataFrame)
        assert history["steps"].tolist() == [320, 640, 960]
        assert len(episodes) == trained.episodes == 48
        assert set(episodes["kind"]) <= {"b_line", "meander", "sleep", *trained.extension.kinds}


def test_without_pandas_they_are_arrays(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_run, "find_spec", lambda name: None)
    assert trained.history()["steps"].tolist() == [320, 640, 960]
    assert trained.episode_table()["length"].tolist() == [20] * 48


def test_a_run_on_disk_tells_how_it_went(trained: Run) -> None:
    run = phalanx.open_run(str(trained.path))
    assert run.state == "finished"
    assert run.summary["episodes"] == 48
    assert run.config["num_envs"] == "16"
    assert repr(run).startswith("<SavedRun: finished, 48 episodes, mean return ")
    assert "48 episodes" in run._repr_html_()


def test_a_run_under_way_has_its_tables_but_no_summary(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    def look(run: Run) -> None:
        run.folder.flush()
        saved = phalanx.open_run(tmp_path / "run")
        seen.append((saved.state, len(saved.history())))

    train(TrainConfig(output_dir=tmp_path, name="run", **SMALL), on_update=look)
    assert seen == [("running", 1), ("running", 2), ("running", 3)]


def test_where_there_is_no_run_one_line_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no run in"):
        phalanx.open_run(tmp_path)


@pytest.mark.parametrize(
    ("text", "state"), [("[1, 2]", "running"), ('{"returns": 3, "episodes": "x"}', "running")]
)
def test_a_summary_of_somebodys_own_is_no_accident(tmp_path: Path, text: str, state: str) -> None:
    (tmp_path / "config.yaml").write_text("env: cage2\n")
    (tmp_path / "summary.json").write_text(text)
    assert repr(phalanx.open_run(tmp_path)).startswith(f"<SavedRun: {state}, ")
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(RunError, match="cannot read"):
        repr(phalanx.open_run(tmp_path))


def test_names_stay_text_in_a_notebook(tmp_path: Path) -> None:
    folder = tmp_path / "<script>"
    folder.mkdir()
    (folder / "config.yaml").write_text("env: cage2\n")
    (folder / "summary.json").write_text(json.dumps({"state": "<b>"}))
    page = phalanx.open_run(folder)._repr_html_()
    assert "<script>" not in page
    assert "&lt;b&gt;" in page
