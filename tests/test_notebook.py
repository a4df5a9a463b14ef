"""A real Jupyter kernel: progress, tables and pictures appear below the cell.

Runs where nbclient and ipykernel are installed; they bring thirty packages, so nothing asks for
them: pip install nbclient ipykernel.
"""

import os
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason="no nbclient here")
pytest.importorskip("ipykernel", reason="no ipykernel here")
nbformat = pytest.importorskip("nbformat")

TRAIN = """
import phalanx
config = phalanx.TrainConfig(num_envs=16, total_steps=16 * 20 * 40, update_steps=20, horizon=20,
                             hidden=(8,), observation="bits", output_dir="runs", name="<b>first")
run = phalanx.train(config)
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[list[dict[str, Any]]]:
    """What stands below each cell of a notebook that was run in a kernel of its own."""
    sources = [TRAIN, "run.history()", "run.plot()", 'phalanx.open_run("runs/<b>first")']
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in sources])
    folder = tmp_path_factory.mktemp("book")
    package = str(Path(__file__).parents[1] / "src")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]))
        run_options = {"metadata": {"path": str(folder)}}
        nbclient.NotebookClient(book, timeout=600, resources=run_options).execute()
    return [[dict(output) for output in cell.outputs] for cell in book.cells]


def shown(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one["data"] for one in outputs if one["output_type"] != "stream"]


def test_training_shows_one_output_that_is_written_over(
    cells: list[list[dict[str, Any]]],
) -> None:
    (data,) = shown(cells[0])
    assert "<progress value='1.0000' max='1'>" in data["text/html"]
    assert "100 %" in data["text/html"]
    assert "&lt;b&gt;first · ppo" in data["text/html"]
    assert "<b>first" not in data["text/html"]
    assert data["text/plain"].startswith("training with ppo on cage2")


def test_tables_and_pictures_are_shown(cells: list[list[dict[str, Any]]]) -> None:
    (table,) = shown(cells[1])
    assert "learn_s" in str(table["text/plain"])
    (picture,) = shown(cells[2])
    assert len(picture["image/png"]) > 10_000
    (saved,) = shown(cells[3])
    assert "finished · 640 episodes" in saved["text/html"]
