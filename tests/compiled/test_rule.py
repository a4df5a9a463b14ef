"""Compiled kernels are kept, and never outlive the rules that they were made from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.compiled.cache import PACKAGE

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
    shutil.copytree(PACKAGE, package / "phalanx", ignore=shutil.ignore_patterns("__pycache__"))
    first = run(PROGRAM, package, cache)
    assert first.stdout == "[-1.0, 0.0]\n"
    assert "compiling the simulator" in first.stderr

    kept = run(PROGRAM, package, cache)
    assert kept.stdout == first.stdout
    assert kept.stderr == ""

    scenario = package / "phalanx" / "cage2" / "rules" / "scenario.py"
    stamp = scenario.stat()
    text = scenario.read_text().replace("RESTORE_COST = 10\n", "RESTORE_COST = 70\n")
    scenario.write_text(text)
    os.utime(scenario, (stamp.st_atime, stamp.st_mtime))
    assert run(PROGRAM, package, cache).stdout == "[-7.0, 0.0]\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_told_once(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    ran = run(PROGRAM, PACKAGE.parent, closed)
    assert ran.stdout == "[-1.0, 0.0]\n"
    assert ran.stderr.count("cannot write to") == 1


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    ran = run(PROGRAM, PACKAGE.parent, tmp_path / "file")
    assert ran.stdout == "[-1.0, 0.0]\n"
    assert ran.stderr.count("cannot write to") == 1
