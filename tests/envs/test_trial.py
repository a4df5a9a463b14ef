"""The first environment is tried where it can do no harm, and nothing else is run on the way."""

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from phalanx.envs import make_pool
from phalanx.errors import ConfigError
from phalanx.importing import import_from
from tests import odd_envs as odd


@pytest.mark.parametrize("num_workers", [2, "auto"])
@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            odd.HangsInItsFirstReset,
            r"in reset\(seed=…\) it took longer than the step_timeout of 0.5 s",
        ),
        (odd.CrashesInItsFirstStep, "in its first step the process was killed by SIGSEGV"),
    ],
)
def test_an_environment_that_hangs_or_crashes_at_once_is_refused(
    env: Any, message: str, num_workers: Any
) -> None:
    gc.collect()  # the memory of pools before
    files = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ConfigError, match=message) as refused:
        make_pool(env, n_envs=4, num_workers=num_workers, step_timeout=0.5)
    assert "\n" not in str(refused.value)
    assert "odd_envs.py" in "".join(refused.value.__notes__)  # where it was
    assert len(os.listdir("/proc/self/fd")) == files


def test_a_factory_that_hangs_is_refused() -> None:
    def hangs() -> odd.Counting:
        time.sleep(1000)
        return odd.Counting()

    with pytest.raises(ConfigError, match="in building it it took longer than the start_timeout"):
        make_pool(hangs, n_envs=4, start_timeout=3)


def test_an_environment_that_does_not_close_can_be_used_all_the_same() -> None:
    began = time.monotonic()
    with make_pool(odd.HangsInClose, n_envs=4, num_workers=2) as pool:
        pool.reset()
        assert len(pool.recv().obs) == 4
    assert time.monotonic() - began < 30


def test_the_environment_that_is_tried_has_time_to_close(tmp_path: Path) -> None:
    def build() -> odd.Counting:
        class ClosesSlowly(odd.Counting):
            def close(self) -> None:
                time.sleep(0.2)
                (tmp_path / "closed").touch()

        return ClosesSlowly()

    with make_pool(build, n_envs=2, num_workers=1):
        assert (tmp_path / "closed").exists()


def test_an_environment_in_this_process_that_does_not_close_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("phalanx.envs.factories.CLOSE_S", 0.2)
    with pytest.warns(RuntimeWarning, match="did not close within"):
        make_pool(odd.HangsInClose, n_envs=2, num_workers=0).close()


def test_what_cannot_go_to_another_process_stays_here_and_says_why() -> None:
    lock = threading.Lock()

    def build() -> odd.Counting:
        with lock:
            return odd.Counting()

    with make_pool(build, n_envs=4) as pool:
        assert pool.num_workers == 0
        assert "cannot go to a worker" in pool.reason
    with pytest.raises(ConfigError, match="cannot go to a worker"):
        make_pool(build, n_envs=4, num_workers=2)


def test_an_id_that_only_this_process_has_registered_can_be_used() -> None:
    gymnasium.register("tests/Counting-v0", entry_point=odd.Counting)  # type: ignore[arg-type]
    try:
        with make_pool("tests/Counting-v0", n_envs=2, num_workers=2) as pool:
            pool.reset()
            assert pool.recv().obs.shape == (2, 3)
    finally:
        del gymnasium.registry["tests/Counting-v0"]


# --- whose code runs ------------------------------------------------------------------------------

MINE = """
import helper
from tests import odd_envs

def make():
    import late_helper
    assert late_helper.KIND
    return helper.Mine()
"""
HELPER = "from tests import odd_envs\nclass Mine(odd_envs.Counting): pass\n"
TRAP = "open({ran!r}, 'a').write(__name__)\nraise ImportError\n"
STANDARD = ("json", "socket", "pickle", "dataclasses", "select", "array", "numpy", "gymnasium")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One's own environment, and files that have the names of other people's modules."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "late_helper.py").write_text("KIND = 'late'\n")
    for name in (*STANDARD, "no_such_package"):
        (tmp_path / f"{name}.py").write_text(TRAP.format(ran=str(tmp_path / "ran")))
    return tmp_path


def phalanx(folder: Path, program: str) -> "subprocess.CompletedProcess[str]":
    """Run a program that lies elsewhere, as the command does."""
    root = Path(__file__).parent.parent.parent
    (folder / "bin").mkdir()
    (folder / "bin" / "phalanx").write_text(program)
    return subprocess.run(
        [sys.executable, folder / "bin" / "phalanx"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"},
    )


NAMED = """
import sys
from phalanx.envs import make_pool
with make_pool("mine:make", n_envs=2, num_workers=2) as pool:
    pool.reset()
    print(pool.recv().obs.shape)
    pool.close()
try:
    import no_such_package
except ModuleNotFoundError:
    print("not found")
assert sys.path.count({folder!r}) == 0
"""


def test_only_what_was_named_is_imported_from_the_current_folder(folder: Path) -> None:
    ran = phalanx(folder, NAMED.format(folder=str(folder)))
    assert ran.stdout == "(2, 3)\nnot found\n", ran.stderr
    assert not (folder / "ran").exists()


def test_workers_of_a3c_import_nothing_from_the_current_folder(folder: Path) -> None:
    ran = phalanx(
        folder,
        "from phalanx.cli.commands import main\n"
        "main('train --env mine:make --algo a3c --num-workers 1 --n-envs 2 --total-steps 20 "
        "--name x'.split())",
    )
    assert (folder / "runs" / "x" / "summary.json").exists(), ran.stderr
    assert not (folder / "ran").exists()


def test_a_path_with_the_current_folder_first_does_not_hide_the_standard_library(
    folder: Path,
) -> None:
    (folder / "numpy.py").unlink()
    (folder / "gymnasium.py").unlink()
    ran = phalanx(
        folder,
        "import sys\n"
        "from phalanx.envs import make_pool\n"
        "sys.path.insert(0, '')\n"
        "make_pool('CartPole-v1', n_envs=2, num_workers=2).close()\n",
    )
    assert ran.returncode == 0, ran.stderr
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("name", ["", "a b", "a\0b", ".a", "a..b", "-"])
def test_what_is_no_name_of_a_module_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is no name of a module"):
        import_from(os.getcwd(), name)
    for env in (f"{name}:make", "a\0"):
        with pytest.raises(ConfigError, match="give a Gymnasium id, or 'module:factory'"):
            make_pool(env, n_envs=2)
