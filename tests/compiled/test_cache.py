"""Compiled kernels are kept where no other user can write, and damage to them is noticed."""

import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from phalanx.compiled import cache as kept
from phalanx.compiled import rule
from phalanx.compiled.cache import cache_folder, source_hash, taking_turns

pytestmark = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="compiles")
ANOTHER = 12345  # user
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def plus_one(x: Any) -> Any:
    return x + 1


def call_anew(x: int) -> int:
    """Call the kernel as a new process would: it is read from disk, or compiled."""
    return int(rule.kernel(plus_one)(x))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What PHALANX_CACHE_DIR names; not made yet."""
    monkeypatch.setenv("PHALANX_CACHE_DIR", str(tmp_path / "root"))
    cache_folder.cache_clear()
    yield tmp_path / "root"
    cache_folder.cache_clear()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_all_that_is_made_is_for_this_user_alone(root: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        folder = cache_folder()
        call_anew(1)
    finally:
        os.umask(before)
    assert folder is not None
    assert mode_of(root) == mode_of(folder) == 0o700
    files = list(folder.iterdir())
    assert len(files) == 3  # the kernel, its lock, and one that shows that others can be written
    assert not any(mode_of(file) & 0o077 for file in files)


def make_world_writable(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)


def make_group_writable(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o770)


def make_link(folder: Path) -> None:
    (folder.parent.parent / "elsewhere").mkdir()
    folder.parent.mkdir()
    folder.symlink_to(folder.parent.parent / "elsewhere")


def make_open_root(folder: Path) -> None:
    folder.parent.mkdir()
    folder.parent.chmod(0o777)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (make_world_writable, "other users can write to it"),
        (make_group_writable, "other users can write to it"),
        (make_link, "it is a link"),
        (make_open_root, "everybody can write to the folder above"),
    ],
)
def test_a_folder_that_others_may_have_written_is_refused_in_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None], why: str
) -> None:
    make(root / f"cage2-{source_hash()}")
    assert cache_folder() is None
    assert cache_folder() is None
    (said,) = capsys.readouterr().err.splitlines()
    assert "will not load code from" in said
    assert why in said
    assert "PHALANX_CACHE_DIR" in said
    assert call_anew(41) == 42
    assert not list(root.rglob("*.nbc"))


@needs_root
def test_what_another_user_has_put_into_a_shared_folder_is_not_loaded(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root.mkdir()
    root.chmod(0o1777)
    folder = cache_folder()
    assert folder is not None  # a shared folder is fine, as long as what lies there is ours
    call_anew(1)
    os.chown(folder, ANOTHER, ANOTHER)
    cache_folder.cache_clear()
    assert cache_folder() is None
    (said,) = capsys.readouterr().err.splitlines()
    assert "it belongs to another user" in said


@needs_root
def test_a_folder_below_that_of_another_user_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root.mkdir()
    os.chown(root, ANOTHER, ANOTHER)
    assert cache_folder() is None
    assert "the folder above belongs to another user" in capsys.readouterr().err


@needs_root
def test_a_folder_that_is_taken_over_meanwhile_is_not_used(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever is asked is looked at anew: an answer of a minute ago is nobody's word."""
    folder = cache_folder()
    assert folder is not None
    call_anew(1)
    (file,) = folder.glob("*.nbc")
    before = file.read_bytes()
    os.chown(folder, ANOTHER, ANOTHER)
    assert call_anew(41) == 42
    assert file.read_bytes() == before
    said = capsys.readouterr().err.splitlines()
    assert [line.split(" /")[0] for line in said] == ["phalanx: cannot use", "phalanx: cannot keep"]


def test_a_kept_kernel_is_not_compiled_again(root: Path) -> None:
    call_anew(1)
    (file,) = root.rglob("*.nbc")
    before = file.stat()
    assert call_anew(41) == 42
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "only the checksum": lambda content: content[:32],
    "cut": lambda content: content[:-1],
    "longer": lambda content: content + b"\0",
    "a bit of the checksum": lambda content: bytes([content[0] ^ 1]) + content[1:],
    "a bit of the code": lambda content: (
        content[:-900] + bytes([content[-900] ^ 1]) + content[-899:]
    ),
    "something else": lambda content: b"\x80\x04N." * 50,
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_file_is_compiled_anew_and_said_in_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    call_anew(1)
    (file,) = root.rglob("*.nbc")
    whole = file.read_bytes()
    file.write_bytes(DAMAGES[how](whole))
    capsys.readouterr()
    assert call_anew(41) == 42
    (said,) = capsys.readouterr().err.splitlines()
    assert said == f"phalanx: cannot use {file} (its checksum is wrong); it is compiled again"
    assert call_anew(41) == 42
    assert capsys.readouterr().err == ""


def test_a_file_under_the_name_of_another_is_not_loaded(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_anew(1)
    (of_ints,) = root.rglob("*.nbc")
    assert rule.kernel(plus_one)(1.5) == 2.5
    (of_floats,) = set(root.rglob("*.nbc")) - {of_ints}
    shutil.copy(of_ints, of_floats)
    capsys.readouterr()
    assert rule.kernel(plus_one)(1.5) == 2.5
    assert "its checksum is wrong" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_said_and_does_without(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_anew(1)
    (file,) = root.rglob("*.nbc")
    file.unlink()
    file.with_name(f"{file.name}.tmp").mkdir()
    capsys.readouterr()
    assert call_anew(41) == 42
    (said,) = capsys.readouterr().err.splitlines()
    assert "cannot keep" in said


def test_what_a_killed_process_has_left_is_written_over(root: Path) -> None:
    call_anew(1)
    (file,) = root.rglob("*.nbc")
    file.rename(f"{file}.tmp")
    assert call_anew(41) == 42
    assert [path.name for path in root.rglob("*.nbc*")] == [file.name]


def test_one_compiles_and_the_others_wait_for_it(root: Path) -> None:
    done, found = threading.Event(), []
    starting = threading.Barrier(3)

    def begin() -> None:
        starting.wait()
        with taking_turns("one.lock", done.is_set):
            found.append(done.is_set())
            time.sleep(0.2)
            done.set()

    with ThreadPoolExecutor(3) as threads:
        for one in [threads.submit(begin) for _ in range(3)]:
            one.result()
    assert sorted(found) == [False, True, True]


def test_nobody_waits_for_who_compiles_something_else(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(_seconds: float) -> None:
        pytest.fail("waits")

    monkeypatch.setattr(kept, "sleep", wait)
    with taking_turns("one.lock", lambda: False), taking_turns("other.lock", lambda: False):
        assert {path.name for path in root.rglob("*.lock")} == {"one.lock", "other.lock"}


def test_a_process_that_was_stopped_is_not_waited_for_for_ever(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "TURN_S", 0.2)
    never: Any = lambda: False  # noqa: E731
    with taking_turns("one.lock", never), taking_turns("one.lock", never):
        pass


def test_the_hash_is_that_of_the_folders_that_hold_compiled_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hash_of(package: Path) -> str:
        monkeypatch.setattr(kept, "PACKAGE", package)
        source_hash.cache_clear()
        return source_hash()

    package, own = tmp_path / "phalanx", source_hash()
    try:
        shutil.copytree(kept.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        assert hash_of(package) == own
        for folder, is_compiled in {
            "bench": True,
            "bound": True,
            "cage2": True,
            "compiled": True,
            "learn": True,
            "envs": False,
            ".": False,
        }.items():
            before = hash_of(package)
            with (package / folder / "__init__.py").open("a") as file:
                file.write("\n")
            assert (hash_of(package) != before) == is_compiled
        before = hash_of(package)
        (package / "cage2" / "nested").mkdir()
        (package / "cage2" / "nested" / "rule.py").write_text("RESTORE_COST = 10\n")
        assert hash_of(package) != before
    finally:
        monkeypatch.undo()
        source_hash.cache_clear()
