"""What a Ray of our own leaves on this machine: nothing, whoever is killed."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.cluster.own_ray import IS_OURS, LAST_WORDS, MARK, OWNER, cleaned_up, remove_abandoned
from tests.leftovers import Marked

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 30
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(pid)


@pytest.fixture
def temp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files lie; its path is short enough for Ray."""
    with Marked() as marked, monkeypatch.context() as patched:
        patched.setattr("tempfile.tempdir", str(marked.temp))
        yield marked.temp


def test_the_folder_is_private_and_gone_at_the_end_with_all_who_are_marked(
    temp: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with cleaned_up() as folder:
        assert os.stat(folder).st_mode & 0o777 == 0o700
        ours = subprocess.Popen(SLEEPER, env=os.environ | {MARK: folder})
        other = subprocess.Popen(SLEEPER, env=os.environ | {MARK: folder + "x"})
    assert ours.wait(timeout=600) == -9
    assert other.poll() is None
    other.kill()
    other.wait()
    assert list(temp.iterdir()) == []
    assert capfd.readouterr().err == ""


def test_a_killed_owner_is_cleaned_up_after_and_one_line_says_so() -> None:
    code = (
        "import os, subprocess, sys\n"
        "from phalanx.cluster.own_ray import MARK, cleaned_up\n"
        "with cleaned_up() as folder:\n"
        f"    child = subprocess.Popen({SLEEPER!r}, env=os.environ | {{MARK: folder}},\n"
        "        start_new_session=True, stdout=2, stderr=subprocess.DEVNULL)\n"
        "    print(child.pid, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    with Marked() as marked:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=marked.env,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == -9
        assert done.stderr == LAST_WORDS + "\n"
        wait_until_gone(int(done.stdout))
        assert marked.left() == []
        assert list(marked.temp.iterdir()) == []


def test_only_abandoned_folders_of_our_own_are_removed(tmp_path: Path) -> None:
    for name in ("phalanxdead", "phalanxforeign", "phalanxother", "elsewhere", "dead"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "phalanxdead" / OWNER).write_text(IS_OURS)
    (tmp_path / "phalanxother" / OWNER).write_text(IS_OURS + "or not")
    for name in ("elsewhere", "dead"):
        (tmp_path / name / OWNER).write_text(IS_OURS)
    (tmp_path / "phalanxlink").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "phalanxlinked").mkdir()
    (tmp_path / "phalanxlinked" / OWNER).symlink_to(tmp_path / "elsewhere" / OWNER)
    (tmp_path / "phalanxfile").touch()
    before = {path.name for path in tmp_path.iterdir()}
    remove_abandoned(str(tmp_path))
    assert before - {path.name for path in tmp_path.iterdir()} == {"phalanxdead"}
    assert (tmp_path / "elsewhere" / "file").exists()


def test_a_folder_in_use_is_not_abandoned(temp: Path) -> None:
    with cleaned_up() as folder:
        remove_abandoned(str(temp))
        assert os.path.isdir(folder)
