"""Commands and Python in the documents, and how a test runs them.

Every block that shows commands or Python is run as it stands, unless a comment right above it says
otherwise:

    <!-- run: with --episodes 20 -->                          the same flags, but these
    <!-- run: train with --total-steps 640; evaluate with --episodes 4 -->
    <!-- run: with 20_000 -> 64; n_steps=100 -> n_steps=10 -->    Python: one text for another
    <!-- not run: needs a cluster -->                         and why

A block of Python that begins with a comment such as `# mine.py` is also kept as that file, for the
commands below it.
"""

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from phalanx.cli.commands import COMMANDS

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
PROGRAMS = ("phalanx", "make", "python", "pip", "ray", "pytest", "source", ".venv/bin/", "NUMBA_")
SHELL = ("", "bash", "console", "sh")
FENCE = re.compile(r"^( *)```(\w*)$")
MARK = re.compile(r"^ *<!-- (run|not run): (.+) -->$")


class Block(NamedTuple):
    """One block of code, and what the comment above it says."""

    document: str
    line: int
    language: str
    text: str
    is_run: bool
    words: str
    """of the comment: what to change, or why it is not run"""

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def is_python(self) -> bool:
        return self.language == "python"

    @property
    def commands(self) -> list[str]:
        """The command lines of a block, if it has such: those after $, else all of them."""
        if self.language not in SHELL:
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        if any(line.startswith("$ ") for line in lines):
            return [line[2:] for line in lines if line.startswith("$ ")]
        lines = [line for line in lines if line.strip() and not line.startswith("#")]
        return lines if lines and lines[0].startswith(PROGRAMS) else []

    @property
    def file(self) -> str | None:
        """The name of the file that it shows."""
        named = re.match(r"# (\w+\.py)\n", self.text)
        return named[1] if named else None

    @property
    def python(self) -> str:
        """Its text with one thing for another; each of these must be in it."""
        text = self.text
        for old, new in _pairs(self.words.removeprefix("with ")):
            assert old in text, f"{self}: there is no {old!r} to put something else for"
            text = text.replace(old, new)
        return text

    def arguments(self, command: str) -> list[str]:
        """What `phalanx` is given, with the flags that the comment wants."""
        program, *given = shlex.split(command, comments=True)
        assert program == "phalanx", f"{self}: {command!r} cannot be run here; mark it, and say why"
        for flag, values in self._flags(given[0]):
            given = [*_without(given, flag), flag, *values]
        return given

    def _flags(self, command: str) -> Iterator[tuple[str, list[str]]]:
        for part in filter(None, self.words.split("; ")):
            which, _, flags = part.partition("with ")
            assert not which or which.strip() in COMMANDS, f"{self}: no command {which!r}"
            if which.strip() not in ("", command):
                continue
            words = flags.split()
            starts = [k for k, word in enumerate(words) if word.startswith("--")]
            for first, end in zip(starts, [*starts[1:], len(words)], strict=True):
                yield words[first], words[first + 1 : end]


def _pairs(words: str) -> Iterator[tuple[str, str]]:
    for part in filter(None, words.split("; ")):
        old, _, new = part.partition(" -> ")
        yield old, new


def _without(words: list[str], flag: str) -> list[str]:
    """The words without a flag and its values."""
    kept, skipping = [], False
    for word in words:
        skipping = word == flag or (skipping and not word.startswith("--"))
        if not skipping:
            kept.append(word)
    return kept


def blocks_of(path: Path) -> list[Block]:
    """All blocks of a document in order, fenced and indented ones."""
    lines, k, found = path.read_text().splitlines(), 0, []
    while k < len(lines):
        first, fence = k, FENCE.match(lines[k])
        if fence:
            k += 1
            while lines[k].strip() != "```":
                k += 1
            inner, language = lines[first + 1 : k], fence[2]
        elif _is_indented(lines[k]) and not lines[k - 1].strip():
            while k + 1 < len(lines) and (_is_indented(lines[k + 1]) or not lines[k + 1]):
                k += 1
            inner, language = lines[first : k + 1], ""
        else:
            k += 1
            continue
        k += 1
        above = next((line for line in reversed(lines[:first]) if line.strip()), "")
        mark = MARK.match(above)
        text = textwrap.dedent("\n".join(inner)).strip() + "\n"
        is_run, words = (mark[1] == "run", mark[2]) if mark else (True, "")
        name = str(path.relative_to(ROOT))
        found.append(Block(name, first + 1, language, text, is_run, words))
    return found


def _is_indented(line: str) -> bool:
    return line.startswith("    ") and not FENCE.match(line) and not MARK.match(line)


def marks_of(path: Path) -> int:
    """How many comments of a document say how a block is run."""
    return sum(1 for line in path.read_text().splitlines() if MARK.match(line))
