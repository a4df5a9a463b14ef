"""A run folder touches what phalanx has made there, and nothing else."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from phalanx.cli.commands import main
from phalanx.compiled.cache import cache_folder
from phalanx.errors import CheckpointError, RunError
from phalanx.training.checkpoint import load_checkpoint, save_checkpoint
from phalanx.training.folder import RunFolder, open_new

TINY = ["--total-steps", "2400", "--n-envs", "24", "--update-steps", "25", "--horizon", "25"]


def everything(folder: Path) -> dict[str, Any]:
    """Every name below a folder, with what a change of it would change."""
    return {
        str(path): (
            path.lstat().st_mtime_ns,
            path.is_symlink() or path.is_dir() or path.read_bytes(),
        )
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("name", ["mine.csv", "updates.csv", "notes.txt", ".lock", "checkpoints"])
def test_a_folder_that_holds_anything_else_is_refused_untouched(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / name).write_text("1\n")
    before = everything(tmp_path)
    assert main(["train", "--output-dir", str(tmp_path), "--name", "d", *TINY]) == 2
    assert f"holds '{name}', which is no part of a run" in capsys.readouterr().err
    assert everything(tmp_path) == before


@pytest.mark.parametrize("env", [[], ["--env", "CartPole-v1", "--num-workers", "2"]])
def test_a_run_touches_only_its_own_folder(
    tmp_path: Path, env: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "home", "temporary", "runs/other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "mine.csv").write_text("1\n")
    cache_folder()  # compiled code has a place of its own, which is known from here on
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    before = everything(tmp_path)
    tiny = TINY if not env else TINY[:-2]  # a horizon is one of the game
    assert main(["train", "--output-dir", "../runs", "--name", "run", *tiny, *env]) == 0
    run = tmp_path / "runs" / "run"
    assert (run / "checkpoints" / "last.npz").exists()
    own = (str(run), str(run.parent))  # the folder above has one name more
    after = {k: v for k, v in everything(tmp_path).items() if not k.startswith(own[0])}
    assert {**after, own[1]: 0} == {**before, own[1]: 0}


def test_only_our_own_tables_are_begun_anew(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", goes_on=True)
    (folder.path / "mine.csv").write_text("1\n")
    (folder.path / "updates.csv").write_text("1\n")
    folder.forget_rows()
    folder.close()
    assert (folder.path / "mine.csv").read_text() == "1\n"
    assert (folder.path / "updates.csv").read_text() == ""


@pytest.mark.parametrize("kind", ["symlink", "hard link"])
@pytest.mark.parametrize(
    "name",
    [
        *("updates.csv", "episodes.csv", "faults.csv", "config.yaml", "summary.json", ".lock"),
        "checkpoints",
    ],
)
def test_a_link_in_a_run_folder_leads_nowhere(tmp_path: Path, kind: str, name: str) -> None:
    salary = tmp_path / "salary"
    salary.write_text("1\n")
    RunFolder(tmp_path / "run").close()
    link = tmp_path / "run" / name
    if link.is_dir():
        link.rmdir()
    link.unlink(missing_ok=True)
    (link.symlink_to if kind == "symlink" else link.hardlink_to)(salary)
    with pytest.raises(RunError, match="is a link to a file elsewhere"):
        RunFolder(tmp_path / "run", goes_on=True)
    assert salary.read_text() == "1\n"


def test_a_linked_folder_is_no_place_for_a_new_run(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="is a link"):
        RunFolder(tmp_path / "run")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_files_are_replaced_never_written_through_a_link(tmp_path: Path) -> None:
    salary = tmp_path / "salary"
    salary.write_text("1\n")
    folder = RunFolder(tmp_path / "run")
    for name in ("summary.json", f".summary.json.{os.getpid()}.tmp"):
        (folder.path / name).symlink_to(salary)
    folder.write_summary({"state": "finished"})
    folder.close()
    assert salary.read_text() == "1\n"
    assert "finished" in (folder.path / "summary.json").read_text()


def test_a_checkpoint_is_never_written_through_a_link(tmp_path: Path) -> None:
    salary = tmp_path / "salary"
    salary.write_text("1\n")
    (tmp_path / ".last.npz.tmp").symlink_to(salary)
    save_checkpoint(tmp_path / "last.npz", {}, {})
    assert salary.read_text() == "1\n"


def test_a_checkpoint_names_no_files_to_cut(tmp_path: Path) -> None:
    salary = tmp_path / "salary.csv"
    salary.write_text("1\n" * 100)
    assert main(["train", "--output-dir", str(tmp_path), "--name", "run", *TINY]) == 0
    last = tmp_path / "run" / "checkpoints" / "last.npz"
    arrays, facts = load_checkpoint(last, None)
    for name in (str(salary.with_suffix("")), "../salary"):
        save_checkpoint(last, arrays, facts | {"tables": {name: 0}})
        more = ["--resume", str(tmp_path / "run"), "--total-steps", "9600"]
        assert main(["train", *more]) == 2
        with pytest.raises(CheckpointError, match="tables"):
            load_checkpoint(last)
    assert salary.read_text() == "1\n" * 100


def test_runs_without_a_name_that_begin_in_the_same_second_do_not_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "strftime", lambda _form: "now")
    folders = [open_new(tmp_path, None) for _ in range(3)]
    assert [folder.path.name for folder in folders] == ["now", "now-2", "now-3"]
    for folder in folders:
        folder.close()


@pytest.mark.parametrize("was_there", [False, True])
def test_a_run_that_could_not_begin_leaves_what_was_there(tmp_path: Path, was_there: bool) -> None:
    path = tmp_path / "run"
    if was_there:
        path.mkdir()
    folder = RunFolder(path)
    folder.close()
    folder.remove_if_empty()
    assert path.exists() == was_there
    assert not was_there or list(path.iterdir()) == []


@pytest.mark.parametrize("left", ["checkpoints/last.npz", "config.yaml"])
def test_a_run_that_began_is_never_removed(tmp_path: Path, left: str) -> None:
    folder = RunFolder(tmp_path / "run")
    (folder.path / left).write_text("kept")
    folder.close()
    folder.remove_if_empty()
    assert (folder.path / left).read_text() == "kept"


def test_a_run_does_not_begin_in_the_folder_of_a_search(tmp_path: Path) -> None:
    search = RunFolder(tmp_path / "s", for_search=True)
    (search.path / "policies").mkdir()
    search.write("search.csv", "iteration\n")
    search.close()
    before = everything(tmp_path)
    with pytest.raises(RunError, match="holds 'policies', which is no part of a run"):
        open_new(tmp_path, "s")
    assert everything(tmp_path) == before
    open_new(tmp_path, "s", for_search=True).close()  # one that was killed can be begun anew


def test_settings_are_written_in_the_order_in_which_they_are_given(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_config({"env": "cage2", "algo": "ppo"}, ["chosen\nhere"])
    folder.close()
    text = (folder.path / "config.yaml").read_text()
    assert text == "# chosen here\nenv: cage2\nalgo: ppo\n"


def test_of_a_run_that_could_not_begin_only_what_was_made_for_it_is_removed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for place, left in (
        ("a/b/run", ["there"]),
        ("there/run", ["there"]),
        ("used/run", ["there", "used"]),
    ):
        folder = RunFolder(tmp_path / place)
        if place.startswith("used"):
            (tmp_path / "used" / "mine.txt").write_text("")
        folder.remove_if_empty()
        folder.close()
        assert not (tmp_path / place).exists()
        assert sorted(path.name for path in tmp_path.iterdir()) == left
