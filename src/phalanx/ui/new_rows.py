"""What a table has grown by since somebody looked last: cheap, however long the table is."""

import csv
import os
import stat
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple

from phalanx.system import AT_ONCE, NO_LINK

MOST_BYTES = 256 * 1024  # of one answer; who asks gets the rest by asking again
LOOK_BACK = 256  # bytes before a position, by which it is known again
LONGEST_HEADER = 64 * 1024


class NewRows(NamedTuple):
    """Rows of a table as numbers (None: no number), and where the next ones begin."""

    names: list[str]
    rows: list[list[float | None]]
    at: str
    """ask for what comes after this"""
    anew: bool
    """these are from the beginning: what was given before is no longer in the table"""
    more: bool
    """there are more, now"""

    def as_dict(self) -> dict[str, object]:
        return self._asdict()


def new_rows(path: Path, at: str = "", most_bytes: int = MOST_BYTES) -> NewRows:
    """Whole rows after a position; OSError if there is no such file, or it is a link.

    at: "" for the beginning, else what was given with the rows before. A run that goes back to its
    checkpoint cuts its table and writes other rows: then `anew` is true, and all rows come again.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | NO_LINK | AT_ONCE), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is no file")
        header = file.readline(LONGEST_HEADER)
        if not header.endswith(b"\n"):  # it is on its way
            return NewRows([], [], "", True, False)
        first = file.tell()
        start = _known_position(file, at)
        anew = start is None
        begin = first if start is None else start
        file.seek(begin)
        content = file.read(most_bytes)
        whole = content[: content.rfind(b"\n") + 1]
        end = begin + len(whole)
        more = len(content) == most_bytes and bool(whole)
        names = next(csv.reader([header.decode(errors="replace")]), [])
        return NewRows(names, _numbers(whole, len(names)), _position(file, end), anew, more)


def _position(file: BinaryIO, end: int) -> str:
    """A place in a file, and what stands before it."""
    start = max(0, end - LOOK_BACK)
    file.seek(start)
    return f"{end}-{zlib.crc32(file.read(end - start)):08x}"


def _known_position(file: BinaryIO, at: str) -> int | None:
    """The place that was meant, if the same still stands before it."""
    word = at.partition("-")[0]
    if not (word.isascii() and word.isdigit() and len(word) < 19):
        return None
    end = int(word)
    is_same = end <= os.fstat(file.fileno()).st_size and _position(file, end) == at
    return end if is_same else None


def _numbers(content: bytes, width: int) -> list[list[float | None]]:
    """Rows of numbers; those that are damaged are left out."""
    lines = content.decode(errors="replace").replace("\0", "?").splitlines()
    try:
        rows = list(csv.reader(lines))
    except csv.Error:
        rows = [line.split(",") for line in lines]
    return [[_number(word) for word in row] for row in rows if len(row) == width]


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if value - value == 0 else None
