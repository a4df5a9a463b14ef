"""Compiled kernels are kept, and never outlive the rules that they were made from."""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from phalanx.cage2 import rule
from phalanx.cage2.rule import HERE, source_hash

PROGRAM = """
import numpy as np
from phalanx.cage2 import Batch
batch = Batch(2, red_agent="sleep")
batch.play(np.array([144, 0]))
print(batch.shown.rewards.tolist())
"""


def run(program: str, package: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(package),
        "PHALANX_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="compiles")
def test_an_edited_rule_is_played_at_once(tmp_path: Path) -> None:
    """Numba looks only at the kernel's own file; the price of Restore is in another one."""
    package, cache = tmp_path / "src", tmp_path / "cache"
    shutil.copytree(HERE.parent, package / "phalanx", ignore=shutil.ignore_patterns("__pycache__"))
    first = run(PROGRAM, package, cache)
    assert first.stdout == "[-1.0, 0.0]\n"
    assert "compiling the simulator" in first.stderr

    kept = run(PROGRAM, package, cache)
    assert kept.stdout == first.stdout
    assert kept.stderr == ""

    scenario = package / "phalanx" / "cage2" / "scenario.py"
    stamp = scenario.stat()
    text = scenario.read_text().replace("RESTORE_COST = 10\n", "RESTORE_COST = 70\n")
    scenario.write_text(text)
    os.utime(scenario, (stamp.st_atime, stamp.st_mtime))
    assert run(PROGRAM, package, cache).stdout == "[-7.0, 0.0]\n"


def test_the_hash_is_that_of_all_files() -> None:
    assert len(source_hash()) == 16
    assert source_hash() == source_hash()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_told_once(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    ran = run(PROGRAM, HERE.parent.parent, closed)
    assert ran.stdout == "[-1.0, 0.0]\n"
    assert ran.stderr.count("cannot write to") == 1


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    ran = run(PROGRAM, HERE.parent.parent, tmp_path / "file")
    assert ran.stdout == "[-1.0, 0.0]\n"
    assert ran.stderr.count("cannot write to") == 1


def test_one_compiles_and_the_others_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule, "cache_folder", lambda: tmp_path)

    def some_kernel() -> None: ...

    compiling, found = Barrier(3), []

    def begin() -> None:
        compiling.wait()
        with rule.compiled_by_one(some_kernel):
            kept = tmp_path / "file.some_kernel-1.nbc"
            found.append(kept.exists())
            time.sleep(0.2)
            kept.touch()

    with ThreadPoolExecutor(3) as threads:
        for done in [threads.submit(begin) for _ in range(3)]:
            done.result()
    assert found == [False, True, True]
