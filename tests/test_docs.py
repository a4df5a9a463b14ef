"""What the documents name is there."""

import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from tests.docs.blocks import DOCUMENTS
from tests.fuzz.__main__ import COUNTS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "phalanx"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
# Files of users, and of other projects, that documents speak of.
NOT_OURS = {
    "mine.py",
    "yaml.py",
    "my_module.py",
    "my_simulator.py",
    "my_red.py",
    "my_agent.py",
    "my_file.py",
    "quiet.py",
    "patrol.py",
    "guard.py",
    "evaluation.py",
    "train_timed.py",
    "workflow_rl/parallel_train_workflow_rl.py",
    "workflow_rl/executor_async_train_workflow_rl.py",
}


def is_there(name: str) -> bool:
    """Whether a document may name this file: by its way from the root, from src or src/phalanx."""
    places = (ROOT, PACKAGE, PACKAGE.parent)
    return name in NOT_OURS or any((place / name).exists() for place in places)


@pytest.mark.parametrize("document", ["docs/cage2-rules.md", "CONTRIBUTING.md"])
def test_every_test_that_a_document_names_is_there(document: str) -> None:
    names = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    promised = re.findall(r"(?:`|^def )(test_[\w*]+)[`(]", (ROOT / document).read_text(), re.M)
    assert len(promised) > (20 if "rules" in document else 2)
    assert [name for name in promised if not any(fnmatch(known, name) for known in names)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_document_names_is_there(document: Path) -> None:
    words = document.read_text()
    named = re.findall(r"(?<![\w/.*])((?:[\w-]+/)*[\w-]+\.py)\b", words)
    named += re.findall(r"`((?:src|tests|examples|benchmarks|\.ci|\.github)/[\w/.]*)`", words)
    linked = [link for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", words)]
    assert sorted({name for name in named if not is_there(name)}) == []
    assert [link for link in linked if not (document.parent / link).exists()] == []


@cache
def places_of(document: Path) -> set[str]:
    """The headings of a document, as links name them in the repository and on the site."""
    text = re.sub(r"^ *```.*?^ *```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.strip().lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_place_that_a_document_links_to_is_there(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]*)#([^)]+)\)", document.read_text())
    for link, place in links:
        aim = (document.parent / link).resolve() if link else document
        assert aim.suffix != ".md" or place in places_of(aim), f"{link}#{place}"


def test_the_layout_shows_every_room() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    layout = (ROOT / "docs" / "layout.md").read_text()
    shown = set(re.findall(r"── (\w+)/", layout))
    assert shown == rooms


def test_where_is_answers_by_at_most_two_files_that_hold_it() -> None:
    """A row of the table: a question, and `file.py`: `name` of what is in it, once or twice."""
    table = CONTRIBUTING.read_text().partition("\n## Where is")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|`]+) \| (.*`.*) \|$", table, re.M)
    assert len(rows) >= 15
    for question, answer in rows:
        files = re.findall(r"`([\w/]+\.py)`(?:: ((?:`[\w.]+`(?:, )?)+))?", answer)
        assert 1 <= len(files) <= 2, question
        for path, names in files:
            text = ((ROOT if path.startswith("tests/") else PACKAGE) / path).read_text()
            missing = [name for name in re.findall(r"[\w.]+", names) if name not in text]
            assert missing == [], f"{question}: {path} has no {missing}"


def test_as_many_files_are_damaged_as_is_said() -> None:
    words = " ".join((ROOT / "docs" / "files-and-trust.md").read_text().split())
    said = "{checkpoints:,} checkpoints, {configs:,} configs and {traces:,} recordings"
    assert said.format(**COUNTS) in words
