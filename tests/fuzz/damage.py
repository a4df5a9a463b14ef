"""Damage to any file: bytes flipped, cut, put in, moved."""

from tests.fuzz.case import Dice, choose


def damage_bytes(dice: Dice, whole: bytes) -> tuple[bytes, str]:
    """Another file, and what was done to it."""
    way = choose(dice, (_flip, _flip, _flip_end, _cut, _insert, _remove, _repeat, _blank, _swap))
    return way(dice, whole), str(way.__name__.strip("_").replace("_", " "))


def _flip(dice: Dice, whole: bytes) -> bytes:
    changed = bytearray(whole)
    for at in dice.integers(len(whole), size=int(choose(dice, (1, 1, 1, 3, 30)))):
        changed[at] ^= int(dice.integers(1, 256))
    return bytes(changed)


def _flip_end(dice: Dice, whole: bytes) -> bytes:
    """Archives keep their list of members there."""
    last = min(len(whole), 1200)
    return whole[:-last] + _flip(dice, whole[-last:])


def _cut(dice: Dice, whole: bytes) -> bytes:
    return whole[: dice.integers(len(whole))]


def _insert(dice: Dice, whole: bytes) -> bytes:
    at = int(dice.integers(len(whole) + 1))
    return whole[:at] + dice.bytes(int(choose(dice, (1, 4, 100, 5000)))) + whole[at:]


def _remove(dice: Dice, whole: bytes) -> bytes:
    first, last = _span(dice, whole)
    return whole[:first] + whole[last:]


def _repeat(dice: Dice, whole: bytes) -> bytes:
    first, last = _span(dice, whole)
    return whole[:last] + whole[first:]


def _blank(dice: Dice, whole: bytes) -> bytes:
    first, last = _span(dice, whole)
    return whole[:first] + bytes([choose(dice, (0, 255))]) * (last - first) + whole[last:]


def _swap(dice: Dice, whole: bytes) -> bytes:
    a, b = _span(dice, whole)
    c = int(dice.integers(b, len(whole) + 1))
    return whole[:a] + whole[b:c] + whole[a:b] + whole[c:]


def _span(dice: Dice, whole: bytes) -> tuple[int, int]:
    first = int(dice.integers(len(whole)))
    return first, min(len(whole), first + int(choose(dice, (1, 2, 8, 100, 2000))))
