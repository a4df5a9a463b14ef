"""Arrays in an .npz file, read without trust: sizes and kinds are known before memory is taken.

An .npz file is a zip archive of .npy members. What numpy would do with a hostile one (unpickle
objects, unfold 3 MB to 3 GB, evaluate a header) is not done here: a member is plain numbers of the
size that its header declares and that the archive has, or the file is refused.
"""

import math
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from phalanx.arrays import Array
from phalanx.files import open_plain

MOST_MEMBERS = 10_000
MOST_DIMENSIONS = 8
PIECE = 1 << 20

_MAGIC = b"\x93NUMPY\x01\x00"  # version 1.0: what numpy writes for plain numbers
_LONGEST_HEADER = 1024
_HEADER = re.compile(
    r"\{'descr': '(?P<dtype>[<|][biuf][1248])', 'fortran_order': (?P<fortran>False|True), "
    r"'shape': \((?P<shape>(?:\d{1,15}, ?)*(?:\d{1,15})?)\), \} *\n"
)


# What the standard library raises for archives that are cut, bent or made up.
_DAMAGED = (
    BadZipFile,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)


class BadArrays(Exception):
    """Why a file is none that can be read; whoever asked says which file, and what to do."""


class Declared(NamedTuple):
    """What the header of a member says."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    fortran: bool = False

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


class ArraysFile:
    """The members of an open file: what each declares, and its numbers when they are asked for."""

    def __init__(
        self, archive: ZipFile, is_known: Callable[[str], bool], max_bytes: int, packed: bool
    ) -> None:
        self._archive = archive
        self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        self._ways = (ZIP_STORED, ZIP_DEFLATED) if packed else (ZIP_STORED,)
        self._check_members(is_known, max_bytes)
        self.declared = {name: self._read_header(info) for name, info in self._members.items()}

    def _check_members(self, is_known: Callable[[str], bool], max_bytes: int) -> None:
        infos = self._archive.infolist()
        if not 0 < len(infos) == len(self._members) <= MOST_MEMBERS:
            raise BadArrays("a member is there twice, or there are too many or none")
        for name, info in self._members.items():
            if not info.filename.endswith(".npy") or not is_known(name):
                raise BadArrays(f"there is no member {info.filename[:60]!r} in such a file")
            if info.flag_bits & 1 or info.compress_type not in self._ways:
                raise BadArrays(f"{name} is encrypted, or packed in an unusual way")
        total = sum(info.file_size for info in infos)
        if total > max_bytes:
            raise BadArrays(f"it unfolds to {total / 1e6:,.0f} MB; {max_bytes / 1e6:,.0f} may be")

    def _read_header(self, info: ZipInfo) -> Declared:
        name = info.filename
        with self._archive.open(info) as file:
            declared, length = _parse_header(name, file)
        if declared.num_bytes != info.file_size - length:
            raise BadArrays(f"{name} declares {declared}, and has {info.file_size - length} bytes")
        return declared

    def pieces(self, name: str) -> Iterator[bytes]:
        """The numbers of a member as bytes, a megabyte at a time; its checksum is checked."""
        info, left = self._members[name], self.declared[name].num_bytes
        with self._archive.open(info) as file:
            _parse_header(name, file)
            while left:
                piece = file.read(min(PIECE, left))
                if not piece:
                    raise BadArrays(f"{name} ends too early")
                left -= len(piece)
                yield piece
            if file.read(1):  # also lets the archive compare its checksum
                raise BadArrays(f"{name} is longer than it declares")

    def read(self, name: str) -> Array:
        """A member as an array of its own; floats must be numbers."""
        shape, dtype, fortran = self.declared[name]
        flat = np.empty(math.prod(shape), dtype)
        room, at = memoryview(flat.view(np.uint8)), 0  # type: ignore[arg-type]
        for piece in self.pieces(name):
            room[at : at + len(piece)] = piece
            at += len(piece)
        if dtype.kind == "f" and not np.isfinite(flat).all():
            raise BadArrays(f"{name} holds what is no number (NaN or infinity)")
        return flat.reshape(shape, order="F" if fortran else "C")


@contextmanager
def open_arrays(
    path: Path, *, is_known: Callable[[str], bool], max_bytes: int, packed: bool = False
) -> Iterator[ArraysFile]:
    """Look into a file: names and sizes are checked, no numbers are read yet.

    is_known: whether a member of such a name may be there.
    max_bytes: how much all members together may unfold to.
    packed: whether members may be compressed; if not, no array is larger than the file.

    Raises BadArrays, or OSError if the file cannot be read.
    """
    try:
        with open_plain(path) as file, ZipFile(file) as archive:
            yield ArraysFile(archive, is_known, max_bytes, packed)
    except BadArrays:
        raise
    except _DAMAGED as error:
        raise BadArrays(f"{type(error).__name__}: {error!s:.200}") from None


def _parse_header(name: str, file: IO[bytes]) -> tuple[Declared, int]:
    """What an .npy header declares, and how long it is. It is matched, never evaluated."""
    start = file.read(len(_MAGIC) + 2)
    if not start.startswith(_MAGIC):
        raise BadArrays(f"{name} is no array of plain numbers")
    (length,) = struct.unpack("<H", start[-2:])
    text = file.read(length) if length <= _LONGEST_HEADER else b""
    match = _HEADER.fullmatch(text.decode("latin1"))
    if len(text) != length or match is None:
        raise BadArrays(f"{name} is no array of plain numbers")
    shape = tuple(int(size) for size in re.findall(r"\d+", match["shape"]))
    if len(shape) > MOST_DIMENSIONS:
        raise BadArrays(f"{name} has {len(shape)} dimensions")
    declared = Declared(shape, np.dtype(match["dtype"]), match["fortran"] == "True")
    return declared, len(start) + length
