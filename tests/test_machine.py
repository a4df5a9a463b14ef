"""What a figure depends on: the commit of the source, by git's own files."""

import subprocess
from pathlib import Path

import pytest

from phalanx.machine import describe_machine, describe_versions, find_commit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_the_commit_is_read_from_a_branch_a_packed_branch_or_head_itself(tmp_path: Path) -> None:
    git, source = tmp_path / ".git", tmp_path
    assert find_commit(source) is None
    git.mkdir()
    (git / "HEAD").write_text(f"{COMMIT}\n")
    assert find_commit(source) == "0123456789"
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(
        f"# pack-refs\n{'f' * 40} refs/tags/main\n{COMMIT} refs/heads/main\n"
    )
    assert find_commit(source) == "0123456789"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "refs" / "heads" / "main").write_text("f" * 40)
    assert find_commit(source) == "f" * 10


def test_a_second_work_tree_has_its_own_commit(tmp_path: Path) -> None:
    git = tmp_path / "main" / ".git"
    own = git / "worktrees" / "other"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/side\n")
    (own / "commondir").write_text("../..\n")
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "refs" / "heads" / "side").write_text(COMMIT)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".git").write_text(f"gitdir: {own}\n")
    assert find_commit(tmp_path / "other") == "0123456789"


def test_it_is_what_git_says() -> None:
    here = Path(__file__).parents[1]
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False
    )
    if asked.returncode or not (here / ".git").exists():
        pytest.skip("this is no checkout of git")
    assert find_commit(here) == asked.stdout[:10]


def test_versions_and_hardware_make_a_machine() -> None:
    assert {"phalanx", "python", "numpy"} <= describe_versions().keys()
    assert {"phalanx", "cores", "processor", "system"} <= describe_machine().keys()
