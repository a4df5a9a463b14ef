"""The tables of a run as they lie on disk: long ones quickly, damaged ones as far as they go."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from phalanx.files import open_plain

LAST_BYTES = 1 << 18  # of a table: more than the last 2,000 episodes take
LONGEST_HEADER = 1 << 16


class Rows(NamedTuple):
    """Some rows of a table, as words."""

    names: tuple[str, ...]
    rows: list[list[str]]
    spoilt: int
    """rows that were left out, because they have more or fewer words than names"""

    def column(self, name: str) -> list[str]:
        """The words of one column; none if the table has no such."""
        if name not in self.names:
            return []
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    def last(self, name: str) -> str | None:
        words = self.column(name)
        return words[-1] if words else None


def last_rows(path: Path, most_bytes: int = LAST_BYTES) -> Rows:
    """The last rows of a table, whatever its length; OSError if it cannot be read.

    Of the last row half may be on its way: it is left out.
    """
    with open_plain(path) as file:
        header = file.readline(LONGEST_HEADER)
        begin = file.tell()
        size = file.seek(0, io.SEEK_END)
        start = max(begin, size - most_bytes)
        file.seek(start)
        content = file.read(most_bytes)
    if start > begin:
        content = content[content.find(b"\n") + 1 :]
    content = content[: content.rfind(b"\n") + 1]
    names = tuple(next(_parsed(header), []))
    rows = list(_parsed(content))
    whole = [row for row in rows if len(row) == len(names)]
    return Rows(names, whole, len(rows) - len(whole))


def number(word: str | None) -> float | None:
    """A finite number, or None."""
    try:
        value = float(word or "")
    except ValueError:
        return None
    return value if value - value == 0 else None


def _parsed(content: bytes) -> Iterator[list[str]]:
    lines = content.decode(errors="replace").replace("\0", "?").splitlines(keepends=True)
    return csv.reader(lines)
