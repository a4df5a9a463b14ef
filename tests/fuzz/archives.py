"""Archives of arrays that no honest program would write: bombs, wrong headers, odd members."""

import bz2
import io
import lzma
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.case import Dice, choose

MARK = "ran-from-a-pickle"
# Odd values, several a line: hence `fmt: skip` here and below.
NAMES = (
    "../theta.npy", "/theta.npy", "..", "", "theta", "theta.npy/", "a" * 60_000, "theta.npy\0x",
    "C:\\theta.npy", "helper.py", "théta.npy", "facts.npy.npy", "\u202eyp.npy", "extra.npy",
)  # fmt: skip
DTYPES = (
    "'|O'", "'>f4'", "'<f8'", "'<f2'", "'<i8'", "'|u1'", "'<U9'", "'|V100000000'", "'<c16'",
    "'<M8[s]'",
    "[('a', '<f4'), ('b', '|O')]", "'<f99'", "''", "None", "__import__('helper')", "[" * 300,
    "'<f4'" + "+ ''" * 100, "'|S2147483647'", "9" * 5000,
)  # fmt: skip
SHAPES = (
    "()", "(0,)", "(-1,)", "(1,)", "(999999999999,)", "(9223372036854775807,)", "(2147483648, 4)",
    "(" + "1, " * 40 + ")", "(1.5,)", "('a',)", "(" * 300, "(10**9,)", "(" + "9" * 5000 + ",)",
    "None",
)  # fmt: skip


class Payload:
    """What a file must never bring to life."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(MARK),)


@dataclass
class Member:
    """As it is written: what it says of itself may be untrue."""

    name: str
    packed: bytes
    size: int
    method: int = zipfile.ZIP_STORED
    crc: int = 0
    flags: int = 0
    packed_size: int | None = None
    extra: bytes = b""


def read_members(whole: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def plain(name: str, content: bytes) -> Member:
    return Member(name, content, len(content), crc=zlib.crc32(content))


def write(members: list[Member]) -> bytes:
    """A zip archive, byte by byte."""
    body, directory = b"", b""
    for one in members:
        name = one.name.encode()[:65_535]
        packed_size = len(one.packed) if one.packed_size is None else one.packed_size
        both = struct.pack(
            "<HHHHHIIIHH",
            20,
            one.flags,
            one.method,
            0,
            0x21,
            one.crc,
            packed_size & 0xFFFFFFFF,
            one.size & 0xFFFFFFFF,
            len(name),
            len(one.extra),
        )
        place = struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        directory += b"PK\1\2" + struct.pack("<H", 20) + both + place + name + one.extra
        body += b"PK\3\4" + both + name + one.extra + one.packed
    count = min(len(members), 65_535)
    sizes = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), len(body), 0)
    return body + directory + b"PK\5\6" + sizes


def npy(descr: str, shape: str, numbers: bytes, order: str = "False", version: int = 1) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode("latin1", "replace") + numbers


def numbers_of(content: bytes) -> tuple[str, str, bytes]:
    """The kind, shape and numbers of an .npy file."""
    array = np.load(io.BytesIO(content))
    return repr(array.dtype.str), str(array.shape), array.tobytes()


# --- ways to write them wrong ---------------------------------------------------------------------


def damage_archive(dice: Dice, whole: bytes) -> tuple[bytes, str]:
    """Another archive with the members of this one, and what was done to it."""
    contents = read_members(whole)
    way: Callable[[Dice, dict[str, bytes], str], list[Member]] = choose(dice, WAYS)
    victim = choose(dice, contents)
    what = f"{way.__name__.strip('_').replace('_', ' ')} ({victim})"
    return write(way(dice, contents, victim)), what


def _all(contents: dict[str, bytes], **changed: Member) -> list[Member]:
    return [
        changed.get("it", plain(n, c)) if n == changed["it"].name else plain(n, c)
        for n, c in contents.items()
    ]


def _missing(_dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    return [plain(n, c) for n, c in contents.items() if n != victim]


def _swapped(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    other = choose(dice, contents)
    swapped = contents | {victim: contents[other], other: contents[victim]}
    return [plain(n, c) for n, c in swapped.items()]


def _twice(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    return [
        *(plain(n, c) for n, c in contents.items()),
        plain(victim, contents[choose(dice, contents)]),
    ]


def _renamed(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    new = choose(dice, NAMES)
    return [plain(new if n == victim else n, c) for n, c in contents.items()]


def _many_members(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    count = int(choose(dice, (300, 12_000)))
    more = [plain(f"weights_{i}.npy", contents[victim][:200]) for i in range(count)]
    return [*(plain(n, c) for n, c in contents.items()), *more]


def _packed(dice: Dice, contents: dict[str, bytes], _victim: str) -> list[Member]:
    method = choose(dice, (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
        infos = archive.infolist()
    whole = file.getvalue()
    return [
        Member(
            one.filename,
            _data_at(whole, one),
            one.file_size,
            method,
            one.CRC,
            one.flag_bits,
        )
        for one in infos
    ]


def _data_at(whole: bytes, one: zipfile.ZipInfo) -> bytes:
    begin = one.header_offset + 30 + sum(struct.unpack_from("<HH", whole, one.header_offset + 26))
    return whole[begin : begin + one.compress_size]


def _bomb(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    """Few bytes that unfold to many: zeros of the kind that the member has."""
    method = choose(
        dice, (zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    )
    size = 1 << (30 if method == zipfile.ZIP_DEFLATED else 25)
    descr, _, _ = numbers_of(contents[victim])
    items = size // np.dtype(descr.strip("'")).itemsize
    head = npy(descr, f"({items},)", b"")
    declared = len(head) + size if dice.random() < 0.7 else len(contents[victim])
    packed, crc = _zeros(method, head, size), _checksum(head, size)
    return _all(contents, it=Member(victim, packed, declared, method, crc))


@cache
def _zeros(method: int, head: bytes, size: int) -> bytes:
    if method == zipfile.ZIP_BZIP2:
        return bz2.compress(head + bytes(size))
    if method == zipfile.ZIP_LZMA:
        one = {"id": lzma.FILTER_LZMA1, "preset": 0}
        packed = lzma.compress(head + bytes(size), lzma.FORMAT_RAW, filters=[one])
        return struct.pack("<BBH", 9, 4, 5) + bytes([93, 0, 0, 4, 0]) + packed
    packer = zlib.compressobj(wbits=-15)
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    megabyte = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + megabyte * (size >> 20) + packer.flush()


@cache
def _checksum(head: bytes, size: int) -> int:
    """Of what a bomb unfolds to: it is whole in itself."""
    crc, megabyte = zlib.crc32(head), bytes(1 << 20)
    for _ in range(size >> 20):
        crc = zlib.crc32(megabyte, crc)
    return crc


def _other_header(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    descr, shape, numbers = numbers_of(contents[victim])
    if dice.random() < 0.5:
        descr = choose(dice, DTYPES)
    else:
        shape = choose(dice, SHAPES)
    order = choose(dice, ("False", "False", "True", "1", "helper"))
    try:
        content = npy(descr, shape, numbers, order, choose(dice, (1, 1, 1, 2, 3, 9)))
    except struct.error:  # longer than version 1 can say
        content = npy(descr, shape, numbers, order, 2)
    return _all(contents, it=plain(victim, content))


def _long_header(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    content = b"\x93NUMPY\x02\x00" + struct.pack("<I", choose(dice, (0xFFFFFFFF, 1 << 20)))
    return _all(contents, it=plain(victim, content + b" " * 70_000))


def _pickled(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    evil = pickle.dumps(Payload())
    if dice.random() < 0.7:
        file = io.BytesIO()
        np.save(file, np.array([Payload()], object), allow_pickle=True)
        evil = file.getvalue()
    return _all(contents, it=plain(victim, evil))


def _other_sizes(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    member = plain(victim, contents[victim])
    odd = choose(dice, (0, 1, len(member.packed) + 1, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF))
    if dice.random() < 0.5:
        member.size = odd
    else:
        member.packed_size = odd
    if dice.random() < 0.4:  # zip64: the true sizes stand elsewhere
        huge = [int(one) for one in dice.integers(0, 2**63, size=int(dice.integers(4)))]
        member.extra = struct.pack(f"<HH{len(huge)}Q", 1, 8 * len(huge), *huge)
    return _all(contents, it=member)


def _odd_flags(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    """Encrypted, patched, with its sizes behind it, or packed in a way that nobody knows."""
    member = plain(victim, contents[victim])
    if dice.random() < 0.6:
        member.flags = int(choose(dice, (1, 8, 0x20, 0x40, 0x41, 0x800, 0x2000, 0xFFFF)))
    else:
        member.method = int(choose(dice, (1, 6, 8, 9, 12, 14, 93, 95, 97, 99, 65_535)))
    return _all(contents, it=member)


def _odd_extra(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    member = plain(victim, contents[victim])
    member.extra = struct.pack("<HH", int(choose(dice, (1, 0x7075, 0x9901))), 60_000) + dice.bytes(
        9
    )
    return _all(contents, it=member)


def _other_numbers(dice: Dice, contents: dict[str, bytes], victim: str) -> list[Member]:
    """A whole member of its kind and size, with other numbers."""
    descr, shape, numbers = numbers_of(contents[victim])
    return _all(contents, it=plain(victim, npy(descr, shape, dice.bytes(len(numbers)))))


def _empty(_dice: Dice, _contents: dict[str, bytes], _victim: str) -> list[Member]:
    return []


WAYS = (
    _missing, _swapped, _twice, _renamed, _many_members, _packed, _bomb, _other_header,
    _other_header,
    _long_header, _pickled, _other_sizes, _other_sizes, _odd_flags, _odd_extra, _other_numbers,
    _empty,
)  # fmt: skip
