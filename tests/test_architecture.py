"""Imports point one way, and what is optional or foreign stays where it belongs."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "phalanx"
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Full names of all modules that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_game_knows_nothing_of_the_rest(path: Path) -> None:
    if path.parent.name == "cage2":
        ours = {name for name in imported(path) if name.startswith("phalanx")}
        assert all(name.startswith(("phalanx.cage2", "phalanx.errors")) for name in ours)
        assert not {name for name in imported(path) if name.split(".")[0] in ("torch", "rich")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_running_environments_knows_nothing_of_learning(path: Path) -> None:
    if path.parent.name == "envs":
        ours = {name for name in imported(path) if name.startswith("phalanx")}
        assert all(name.startswith(("phalanx.envs", "phalanx.errors")) for name in ours)
        foreign = {"torch", "ray", "rich", "numba", "multiprocessing"}
        used = {name for name in imported(path) if name.split(".")[0] in foreign}
        assert used in (set(), {"multiprocessing", "multiprocessing.TimeoutError"})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_learning_knows_nothing_of_the_commands(path: Path) -> None:
    if path.parent.name == "learn":
        ours = {name for name in imported(path) if name.startswith("phalanx")}
        allowed = ("phalanx.cage2", "phalanx.envs", "phalanx.learn", "phalanx.errors")
        assert all(name.startswith(allowed) for name in ours)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_foreign_packages_stay_in_their_file(path: Path) -> None:
    homes = {
        "CybORG": {"cyborg.py"},
        "stable_baselines3": {"sb3.py"},
        "matplotlib": {"plots.py"},
        "ray": {"cluster.py", "rllib.py"},
    }
    for name in imported(path):
        assert path.name in homes.get(name.split(".")[0], {path.name})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_says_why_it_exists(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_chance_comes_from_seeds_only(path: Path) -> None:
    if path.name != "cyborg.py":  # the original has only Python's global generator
        assert "random" not in imported(path)
        assert "os.urandom" not in path.read_text()


def test_the_rules_play_the_same_without_compilation() -> None:
    """The rule tests and two hundred recorded steps, with readable tracebacks instead of speed."""
    here = Path(__file__).parent
    rules = ("blue", "red", "attackers", "scoring", "scenario")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        + [str(here / "cage2" / f"test_{name}.py") for name in rules]
        + [str(here / "cage2" / "test_uncompiled.py")],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=here.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "skipped" not in ran.stdout
