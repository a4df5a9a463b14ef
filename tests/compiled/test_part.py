"""Rules are compiled into kernels, once for all whole numbers, and can be called by themselves."""

from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from phalanx.compiled.part import as_part
from phalanx.compiled.rule import COMPILED, kernel, large_rule, rule

needs_compiler = pytest.mark.skipif(not COMPILED, reason="compiles")


@rule
def double(x: Any) -> Any:
    return x + x


@large_rule
def double_and_more(x: Any) -> Any:
    return double(x) + 1


@kernel
def double_all(small: Any, wide: Any, out: Any) -> None:
    out[0] = double(small[0])  # uint8
    out[1] = double(300)  # a constant
    out[2] = double_and_more(small[0])
    wide[0] = double(wide[0])  # uint64: a die has bits that an int64 has no room for


def test_rules_give_the_same_for_numbers_of_all_sizes() -> None:
    small, wide = np.array([200], np.uint8), np.array([2**63 - 1], np.uint64)
    out = np.zeros(3, np.int64)
    double_all(small, wide, out)
    assert out.tolist() == [400, 600, 401]
    assert wide.tolist() == [2**64 - 2]


@needs_compiler
def test_a_rule_is_compiled_once_for_whole_numbers_and_once_for_dice() -> None:
    @rule
    def same(x: Any) -> Any:
        return x

    @numba.njit  # type: ignore[untyped-decorator]
    def call(small: Any, wide: Any) -> Any:
        return same(small[0]), same(300), same(-1), same(wide[0])

    assert call(np.array([7], np.uint8), np.array([2**63], np.uint64)) == (7, 300, -1, 2**63)
    kinds = {str(kind) for (kind,) in same.overloads}  # type: ignore[attr-defined]
    assert kinds == {"int64", "uint64"}


class Pair(NamedTuple):
    """Arrays, some of which may not be there."""

    one: Any
    other: Any


def look(pair: Any, i: Any) -> Any:
    total = 0.0
    for row in pair.one:
        kept = Pair(row, pair.other)
        if kept.one[0] > i:
            total += kept.other[i, 0]
    return total


def choose(pair: Any, i: Any) -> Any:
    total = 0.0
    for row in pair.one:
        if row[0] > i:
            total += pair.one[np.array([i])][0, 0]
    return total


def add(pair: Any, i: Any) -> Any:
    total = 0.0
    for row in pair.one:
        if row[0] > i:
            total += (row + pair.other[i])[0]
    return total


def give(pair: Any, i: Any) -> Any:
    for row in pair.one:
        if row[0] > i:
            return row
    return pair.one[i]


def fill(pair: Any, i: Any) -> Any:
    for row in pair.one:
        if row[0] > i:
            pair.other[i] = row  # by way of a copy, if they overlap
    return pair.other[i, 0]


@needs_compiler
@pytest.mark.parametrize(
    ("function", "counts"), [(look, False), (choose, True), (add, True), (give, True), (fill, True)]
)
def test_only_rules_that_make_or_return_arrays_count_references(
    function: Any, counts: bool
) -> None:
    part: Any = as_part(function)

    @numba.njit  # type: ignore[untyped-decorator]
    def call(pair: Any) -> Any:
        total = 0.0
        for i in range(len(pair.one)):
            total += np.sum(part(pair, i))
        return total

    pair = Pair(np.arange(6.0).reshape(3, 2), np.ones((3, 2)))
    assert call(pair) == sum(np.sum(function(pair, i)) for i in range(3))
    (compiled,) = part.overloads.values()
    assert ("NRT_incref" in compiled.library.get_llvm_str()) == counts


@needs_compiler
def test_another_version_of_numba_compiles_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phalanx.compiled.part.TRIED", (0, 0))
    plain: Any = as_part(lambda x: x + x)
    assert type(plain.add_overload).__name__ == "method"
    assert plain(21) == 42


def test_a_rule_can_be_called_from_python() -> None:
    assert double(21) == 42
    assert double(0.25) == 0.5
    assert double_and_more(1) == 3


def test_a_mistake_in_a_rule_is_told_as_numba_tells_it() -> None:
    @as_part
    def broken(x: Any) -> Any:
        return x + "one"

    with pytest.raises(Exception, match=r"str|unicode"):
        broken(1)
