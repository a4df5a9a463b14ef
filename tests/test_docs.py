"""What the documents name is there."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.fuzz.__main__ import COUNTS

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_every_test_that_holds_a_rule_is_there() -> None:
    names = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    rules = (ROOT / "docs" / "cage2-rules.md").read_text()
    promised = re.findall(r"`(test_[\w*]+)`", rules)
    assert len(promised) > 20
    assert [name for name in promised if not any(fnmatch(known, name) for known in names)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_a_document_names_is_there(document: Path) -> None:
    words = document.read_text()
    named = re.findall(r"`((?:tests|examples|benchmarks)/[\w/.]*)`", words)
    linked = [link for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", words)]
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert [link for link in linked if not (document.parent / link).exists()] == []


def test_as_many_files_are_damaged_as_is_said() -> None:
    words = " ".join((ROOT / "docs" / "how-it-works.md").read_text().split())
    said = "{checkpoints:,} checkpoints, {configs:,} configs and {traces:,} recordings"
    assert said.format(**COUNTS) in words
