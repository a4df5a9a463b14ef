"""The tables of a run as they lie on disk: long ones quickly, damaged ones as far as they go."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from phalanx.arrays import Arrays
from phalanx.files import open_plain

LAST_BYTES = 1 << 18  # of a table: more than the last 2,000 episodes take
LONGEST_HEADER = 1 << 16
BLOCK_BYTES = 1 << 23
LONGEST_WORD = 64  # characters of a word that are looked at
Block = Arrays


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


def read_blocks(path: Path, wanted: Sequence[str], words: Sequence[str] = ()) -> Iterator[Block]:
    """Columns of a table, some hundred thousand rows at a time; OSError if it cannot be read.

    wanted: names of columns; those that the table does not have are left out. Numbers are float64,
        NaN where there is none; columns of `words` are strings. Damaged rows are left out.
    """
    with open_plain(path) as file:
        names = next(_parsed(file.readline(LONGEST_HEADER)), [])
        kinds = {
            name: f"U{LONGEST_WORD}" if name in words else "f8" for name in wanted if name in names
        }
        if not kinds:
            return
        for block in _blocks(file):
            yield _as_columns(block, names, kinds)


def read_numbers(path: Path) -> Block:
    """All columns of numbers of a table, as its first row has them."""
    with open_plain(path) as file:
        names, first = (
            next(_parsed(file.readline(LONGEST_HEADER)), []) for _unused_line in range(2)
        )
    numbers = [
        name
        for name, word in zip(names, first, strict=False)
        if number(word) is not None or word in ("", "nan")
    ]
    blocks = list(read_blocks(path, numbers))
    if not blocks:
        return {}
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """The rest of a file in blocks of whole rows; half a row at the end is left out."""
    rest = b""
    while block := file.read(BLOCK_BYTES):
        block = rest + block
        cut = block.rfind(b"\n") + 1
        block, rest = block[:cut], block[cut:]
        if block:
            yield block


def _as_columns(block: bytes, names: Sequence[str], kinds: dict[str, str]) -> Block:
    """By numpy, which takes a second for a million rows; one by one if any is not as it should."""
    lines = block.decode(errors="replace").replace("\0", "?").splitlines()
    places = [names.index(name) for name in kinds]
    try:
        table = np.loadtxt(
            lines,
            list(kinds.items()),
            delimiter=",",
            comments=None,
            quotechar='"',
            usecols=places,
            ndmin=1,
        )
        return {name: table[name] for name in kinds}
    except ValueError:
        rows = [row for row in _parsed(block) if len(row) == len(names)]
    return {
        name: np.array(
            [row[at][:LONGEST_WORD] if kind != "f8" else _or_nan(row[at]) for row in rows],
            kind,
        )
        for at, (name, kind) in zip(places, kinds.items(), strict=True)
    }


def _or_nan(word: str) -> float:
    value = number(word)
    return np.nan if value is None else value


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
