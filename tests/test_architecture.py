"""Imports point one way, and what is optional or foreign stays where it belongs."""

import ast
import os
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "phalanx"
FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


def imported(path: Path) -> set[str]:
    """Full names of all modules that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


# Who may import whom, anywhere in a file: below is what everybody may use.
ROOT = {
    "errors",
    "machine",
    "statistics",
    "files",
    "arrays",
    "arrays_file",
    "display",
    "importing",
    "trust",
    "system",
    "stopwatch",
    "reset_mask",
    "agents",
    "configs",
}
MAY_IMPORT: dict[str, set[str]] = {
    "settings": set(),
    "compiled": set(),
    "cage2": {"compiled"},
    "envs": set(),
    "learn": {"compiled", "cage2", "envs"},
    "training": {"settings", "compiled", "cage2", "envs", "learn"},
    "play": {"settings", "compiled", "cage2", "envs", "learn", "training"},
    "search": {"settings", "cage2", "learn", "training", "play", "cluster"},
    "cluster": {"settings", "compiled", "cage2", "envs", "learn", "training"},
    "show": {
        "settings",
        "compiled",
        "cage2",
        "learn",
        "training",
        "play",
        "search",
        "verify",
    },
    "verify": {"settings", "compiled", "cage2"},
    "ui": {"settings", "compiled", "cage2", "learn", "training", "play", "search", "show"},
    "bound": {"settings", "compiled", "cage2"},
    "bench": {"settings", "compiled", "cage2", "envs", "learn", "training", "cluster"},
}


# Within show/: web/ has no code.
SHOW_MAY_IMPORT: dict[str, set[str]] = {
    "runs": set(),
    "profile": set(),
    "drawing": {"runs"},
    "replay": {"runs", "drawing"},
    "compare": {"runs", "drawing"},
    "report": {"runs", "drawing", "replay", "compare"},
}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_import_only_what_lies_below_them(path: Path) -> None:
    room = room_of(path)
    if room in MAY_IMPORT:
        allowed = MAY_IMPORT[room] | ROOT | {room}
        ours = {name.split(".")[1] for name in imported(path) if name.startswith("phalanx.")}
        assert ours - {"__version__"} <= allowed
    elif room in ROOT:
        ours = {name.split(".")[1] for name in imported(path) if name.startswith("phalanx.")}
        assert ours - {"__version__"} <= ROOT


def test_no_files_import_each_other_in_a_circle() -> None:
    """Also by imports inside functions; what is imported for types alone does not count."""
    below = {name: imported_to_run(path) & MODULES.keys() for name, path in MODULES.items()}
    TopologicalSorter(below).prepare()  # a CycleError names them


def imported_to_run(path: Path) -> set[str]:
    """Modules that a file imports outside `if TYPE_CHECKING`; of a package, what is named of it."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                names.add(full if full in MODULES else node.module)
    return names


@pytest.mark.parametrize("room", SHOW_MAY_IMPORT)
def test_what_people_look_at_is_built_of_smaller_rooms(room: str) -> None:
    files = list((PACKAGE / "show" / room).glob("*.py"))
    assert files
    for path in files:
        ours = {n.split(".")[2] for n in imported(path) if n.startswith("phalanx.show.")}
        assert ours <= SHOW_MAY_IMPORT[room] | {room}, path


def test_nothing_lies_beside_the_rooms_of_what_people_look_at() -> None:
    there = {path.name for path in (PACKAGE / "show").iterdir()} - {"__init__.py", "__pycache__"}
    assert there == {*SHOW_MAY_IMPORT, "web"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_heavy_stays_where_it_is_needed(path: Path) -> None:
    used = {name.split(".")[0] for name in imported(path)}
    if room_of(path) == "cage2":
        assert not used & {"torch", "rich"}
    if room_of(path) == "envs":
        assert not used & {"torch", "ray", "rich", "numba"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_foreign_packages_stay_in_their_file(path: Path) -> None:
    homes = {
        "CybORG": {"cyborg.py"},
        "stable_baselines3": {"sb3.py"},
        "matplotlib": {"figure.py"},
        "vl_convert": {"chart.py"},
        "ray": {"ray.py", "rllib.py"},
        "uvicorn": {"serve.py"},
        "starlette": {"app.py", "asked.py"},
        "anyio": {"asked.py"},
    }
    for name in imported(path):
        assert path.name in homes.get(name.split(".")[0], {path.name})


# Lines with `Any`, each for one of the reasons in CONTRIBUTING.md. A number may fall, not grow.
ANY_LINES = {
    "bench": 6,
    "cage2": 18,
    "cli": 1,
    "cluster": 4,
    "compiled": 5,
    "envs": 14,
    "learn": 6,
    "play": 6,
    "search": 21,
    "settings": 8,
    "show": 6,
    "training": 14,
    "ui": 1,
}
ANY_LINES_OF_FILES_ABOVE = 9  # of those that everybody may use, all together


def lines_with_any(paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in paths
        for line in sorted(
            {
                node.lineno
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Name) and node.id == "Any"
            }
        )
    ]


@pytest.mark.parametrize("room", sorted(MAY_IMPORT.keys() | {"cli"}))
def test_a_room_hides_no_more_types_than_it_did(room: str) -> None:
    found = lines_with_any([path for path in FILES if room_of(path) == room])
    assert len(found) <= ANY_LINES.get(room, 0), found


def test_what_everybody_uses_hides_no_more_types_than_it_did() -> None:
    found = lines_with_any(sorted(PACKAGE.glob("*.py")))
    assert len(found) <= ANY_LINES_OF_FILES_ABOVE, found


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
        + [str(here / "cage2" / "rules" / f"test_{name}.py") for name in rules]
        + [str(here / "cage2" / "test_uncompiled.py")],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=here.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "skipped" not in ran.stdout
