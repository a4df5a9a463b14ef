"""Where Linux's own calls are missing, all can be imported, played and trained as well."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"
FILES = sorted((SOURCE / "phalanx").rglob("*.py"))
MISSING = {
    "os": "memfd_create eventfd eventfd_read eventfd_write pidfd_open sched_getaffinity "
    "sched_yield geteuid getuid fchmod killpg setpgid pread "
    "O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK",
    "select": "epoll poll",
    "signal": "SIGSTOP SIGUSR1 SIGALRM setitimer",
    "socket": "MSG_DONTWAIT",
}

# Run by Python at its start, in every process: what Windows does not have is gone. Python's own
# modules have seen it before, and other packages may still import fcntl.
TAKE_AWAY = f"""
import asyncio, builtins, io, multiprocessing.connection, multiprocessing.heap
import multiprocessing.popen_spawn_posix, multiprocessing.resource_tracker, os, random, select
import shutil, signal, socket, subprocess, sys, tempfile

for module, names in {MISSING!r}.items():
    for name in names.split():
        delattr(sys.modules[module], name)

def without(call, name_of):
    def instead(*args, **kwargs):
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if name_of(*args) and caller.startswith("phalanx"):
            raise ImportError(args[0]) if call is builtins_import else FileNotFoundError(args[0])
        return call(*args, **kwargs)
    return instead

builtins_import = builtins.__import__
builtins.__import__ = without(builtins_import, lambda name, *_: name in ("fcntl", "resource"))
builtins.open = without(open, lambda file, *_: str(file).startswith(("/proc", "/sys")))
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    """Environment variables for a Python that has only what every system has."""
    (tmp_path / "sitecustomize.py").write_text(TAKE_AWAY)
    path = os.pathsep.join([str(tmp_path), str(SOURCE), str(SOURCE.parent)])
    return {**os.environ, "PHALANX_PORTABLE": "1", "PYTHONPATH": path}


def run(program: str, variables: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_all_can_be_imported_elsewhere(elsewhere: dict[str, str], tmp_path: Path) -> None:
    optional = {"sb3", "rllib", "plots"}
    names = [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for path in FILES
        if path.stem not in {"__main__", "fork_server", *optional}
    ]
    run(
        f"import importlib\nfor name in {names}: importlib.import_module(name)", elsewhere, tmp_path
    )


PLAY = """
import os, signal
import numpy as np
import phalanx
from phalanx.cage2.vector import Cage2VectorEnv

envs = Cage2VectorEnv(4)
envs.reset(seed=1)
for _ in range(3):
    envs.step(np.zeros(4, np.int64))
small = dict(num_envs=4, update_steps=8, minibatch_size=32, total_steps=64, num_threads=1)
phalanx.train(phalanx.TrainConfig(name="game", **small))
phalanx.train(phalanx.TrainConfig(name="env", env="CartPole-v1", num_workers=0, **small))
rows = []
for workers in (0, 2):
    pool = phalanx.make_pool("CartPole-v1", n_envs=4, num_workers=workers)
    pool.reset()
    pool.send(np.zeros(4, np.int64), pool.recv().env_ids)
    rows.append(pool.recv().obs)
os.kill(pool.worker_pids[0], signal.SIGTERM)
pool.send(np.zeros(4, np.int64))
lost = pool.recv().lost.tolist()
print(f"{pool.reason}, same rows: {np.array_equal(*rows)}, lost: {lost}")
pool.close()
phalanx.train(phalanx.TrainConfig(name="workers", env="CartPole-v1", num_workers=2, **small))
print(phalanx.evaluate("champion", episodes=2))
"""


def test_the_game_and_other_environments_are_trained_elsewhere(
    elsewhere: dict[str, str], tmp_path: Path
) -> None:
    said = run(PLAY, elsewhere, tmp_path)
    assert "2 workers: as asked for; each starts from nothing" in said
    assert "same rows: True, lost: [True, True, False, False]" in said
