"""Compiled kernels are kept, and never outlive the rules that they were made from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.compiled.cache import PACKAGE, cache_folder

PROGRAM = """
import numpy as np
from phalanx.cage2 import Batch
batch = Batch(2, red_agent="sleep")
batch.play(np.array([144, 0]))
print(batch.shown.rewards.tolist())
"""


SMALL_PROGRAM = """
from phalanx.compiled.rule import kernel

@kernel
def doubled(x):
    return 2 * x

@kernel
def halved(x):
    return x / 2

print(doubled(2), halved(2.0))
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
def test_an_edited_rule_is_played_at_once_and_then_kept(tmp_path: Path) -> None:
    """Numba looks only at the kernel's own file; the price of Restore is in another one."""
    package, cache = tmp_path / "src", tmp_path / "cache"
    shutil.copytree(PACKAGE, package / "phalanx", ignore=shutil.ignore_patterns("__pycache__"))
    compiled = cache_folder()
    assert compiled is not None
    cache.mkdir(mode=0o700)
    unfinished = shutil.ignore_patterns("*.tmp")
    shutil.copytree(compiled, cache / compiled.name, ignore=unfinished)  # before the edit
    assert run(PROGRAM, package, cache).stdout == "[-1.0, 0.0]\n"
    assert run(PROGRAM, package, cache).stderr == ""  # the old rule is there for all to use

    scenario = package / "phalanx" / "cage2" / "rules" / "scenario.py"
    stamp = scenario.stat()
    text = scenario.read_text().replace("RESTORE_COST = 10\n", "RESTORE_COST = 70\n")
    scenario.write_text(text)
    os.utime(scenario, (stamp.st_atime, stamp.st_mtime))
    edited = run(PROGRAM, package, cache)
    assert edited.stdout == "[-7.0, 0.0]\n"
    assert "compiling the simulator" in edited.stderr

    kept = run(PROGRAM, package, cache)
    assert kept.stdout == edited.stdout
    assert kept.stderr == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_told_once(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    ran = run(SMALL_PROGRAM, PACKAGE.parent, closed)
    assert ran.stdout == "4 1.0\n"
    assert ran.stderr.count("cannot write to") == 1


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    ran = run(SMALL_PROGRAM, PACKAGE.parent, tmp_path / "file")
    assert ran.stdout == "4 1.0\n"
    assert ran.stderr.count("cannot write to") == 1
