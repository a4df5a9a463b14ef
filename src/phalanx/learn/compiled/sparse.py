"""The first layer of networks whose inputs are mostly zeros: the zeros are not multiplied.

A row's inputs become a list of those that are not zero. The layer's product is then the sum of a
few rows of its weights, and only those rows of the gradient are added to. Sums are taken in the
order of the lists: a row's result depends on that row alone.
"""

from typing import Any, NamedTuple

import llvmlite.ir as ir
import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from phalanx.compiled.bits import lowest
from phalanx.learn.compiled.mlp import (
    Floats,
    Network,
    backward_to_first,
    fast,
    first_layer,
    forward_from,
)

Ints = npt.NDArray[np.int64]
SEEN_TOGETHER = 64  # inputs that are compared with zero at once
CACHE_LINE = 16  # numbers of 32 bits that it holds


class Lists(NamedTuple):
    """The inputs of rows that are not zero. Row r has those from starts[r] to ends[r]."""

    starts: Ints  # [rows]
    middles: Ints  # [rows] where what only the critic sees begins
    ends: Ints  # [rows]
    columns: npt.NDArray[np.int32]  # ascending in each row
    values: Floats


def room_for_lists(rows: int, inputs: int) -> Lists:
    """As much as rows without any zero take; memory is used only where something is written."""
    numbers = rows * inputs
    starts, middles, ends = np.zeros((3, rows), np.int64)
    return Lists(
        starts, middles, ends, np.empty(numbers, np.int32), np.empty(numbers, np.float32)
    )


# --- vector instructions --------------------------------------------------------------------------


def which_are_not_zero(row: Any, first: int) -> int:
    """A bit for each of SEEN_TOGETHER numbers of a row."""
    return sum(1 << k for k in range(SEEN_TOGETHER) if row[first + k] != 0)


def add_up_rows(matrix: Any, indices: Any, factors: Any, first: int, last: int, row: Any) -> None:
    """row = the sum of factors[n] * matrix[indices[n]], n from `first` to `last`."""
    row[:] = factors[first:last] @ matrix[indices[first:last]]


def add_to_rows(matrix: Any, indices: Any, factors: Any, first: int, last: int, row: Any) -> None:
    """matrix[indices[n]] += factors[n] * row, n from `first` to `last`; no index comes twice."""
    matrix[indices[first:last]] += np.outer(factors[first:last], row)


def fetch_soon(array: Any, place: int) -> None:
    """Tell the processor what will be read in some microseconds; nothing waits for it."""


class _Lanes:
    """Numbers that lie beside each other in arrays, as one vector of registers."""

    def __init__(self, context: Any, builder: Any, lanes: int) -> None:
        self._context, self._builder = context, builder
        self.vector = ir.VectorType(ir.FloatType(), lanes)
        self.zeros = ir.Constant(self.vector, [0.0] * lanes)
        self._first = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

    def item(self, of: Any, array: Any, at: Any) -> Any:
        made = self._context.make_array(of)(self._context, self._builder, array)
        return cgutils.get_item_pointer(self._context, self._builder, of, made, at)

    def pointer(self, of: Any, array: Any, at: Any) -> Any:
        return self._builder.bitcast(self.item(of, array, at), self.vector.as_pointer())

    def load(self, pointer: Any) -> Any:
        return self._builder.load(pointer, align=4)

    def store(self, value: Any, pointer: Any) -> None:
        self._builder.store(value, pointer, align=4)

    def add(self, sums: Any, factor: Any, row: Any) -> Any:
        """sums + factor * row."""
        nothing = ir.Constant(self.vector, ir.Undefined)
        one = self._builder.insert_element(nothing, factor, ir.Constant(ir.IntType(32), 0))
        factors = self._builder.shuffle_vector(one, nothing, self._first)
        product = self._builder.fmul(factors, row, flags=("contract",))
        return self._builder.fadd(sums, product, flags=("contract",))


def _check_beside(*arrays: Any) -> None:
    if any(array.layout != "C" for array in arrays):
        raise TypingError("numbers that are read together must lie beside each other")


@intrinsic  # type: ignore[untyped-decorator]
def _not_zero(typing_context: Any, row: Any, first: Any) -> Any:
    _check_beside(row)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = _Lanes(context, builder, SEEN_TOGETHER)
        numbers = lanes.load(lanes.pointer(signature.args[0], args[0], [args[1]]))
        differ = builder.fcmp_unordered("!=", numbers, lanes.zeros)
        return builder.bitcast(differ, ir.IntType(SEEN_TOGETHER))

    return types.int64(row, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, args[0])
        at = cgutils.get_item_pointer(context, builder, signature.args[0], made, [args[1]])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        read, near, data = (ir.Constant(word, value) for value in (0, 2, 1))
        builder.call(call, [builder.bitcast(at, byte), read, near, data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _for_lanes(width: int, adds_up: bool) -> Any:
    """`add_up_rows` or `add_to_rows` for so many columns from `column` on, kept in registers."""

    @intrinsic  # type: ignore[untyped-decorator]
    def compute(
        typing_context: Any, matrix: Any, column: Any, indices: Any, factors: Any, first: Any,
        last: Any, row: Any,
    ) -> Any:  # fmt: skip
        _check_beside(matrix, indices, factors, row)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            of_matrix, _, of_indices, of_factors, _, _, of_row = signature.args
            matrix, column, indices, factors, first, last, row = args
            lanes, whole = _Lanes(context, builder, width), ir.IntType(64)
            own = lanes.pointer(of_row, row, [column])
            begun = lanes.zeros if adds_up else lanes.load(own)
            before = builder.block
            loop, end = map(builder.append_basic_block, ("each", "end"))
            builder.cbranch(builder.icmp_signed("<", first, last), loop, end)
            builder.position_at_end(loop)
            n, sums = builder.phi(whole), builder.phi(lanes.vector)
            index = builder.sext(builder.load(lanes.item(of_indices, indices, [n])), whole)
            factor = builder.load(lanes.item(of_factors, factors, [n]))
            other = lanes.pointer(of_matrix, matrix, [index, column])
            if adds_up:
                more = lanes.add(sums, factor, lanes.load(other))
            else:
                lanes.store(lanes.add(lanes.load(other), factor, sums), other)
                more = sums
            following, here = builder.add(n, ir.Constant(whole, 1)), builder.block
            builder.cbranch(builder.icmp_signed("<", following, last), loop, end)
            for phi, at_first, later in ((n, first, following), (sums, begun, more)):
                phi.add_incoming(at_first, before)
                phi.add_incoming(later, here)
            builder.position_at_end(end)
            if adds_up:
                total = builder.phi(lanes.vector)
                total.add_incoming(begun, before)
                total.add_incoming(more, here)
                lanes.store(total, own)
            return context.get_dummy_value()

        number = types.int64
        return types.void(matrix, number, indices, factors, number, number, row), generate

    return compute


def _for_all(adds_up: bool) -> Any:
    """For rows of any length: as many lanes at a time as possible."""
    lanes_64, lanes_16, lanes_1 = (_for_lanes(width, adds_up) for width in (64, 16, 1))

    def compute(matrix, indices, factors, first, last, row):  # type: ignore[no-untyped-def]
        c = 0
        while c + 64 <= len(row):
            lanes_64(matrix, c, indices, factors, first, last, row)
            c += 64
        while c + 16 <= len(row):
            lanes_16(matrix, c, indices, factors, first, last, row)
            c += 16
        while c < len(row):
            lanes_1(matrix, c, indices, factors, first, last, row)
            c += 1

    return lambda matrix, indices, factors, first, last, row: compute


@overload(which_are_not_zero)
def _compiled_which_are_not_zero(row, first):  # type: ignore[no-untyped-def]
    return lambda row, first: _not_zero(row, first)


@overload(fetch_soon)
def _compiled_fetch_soon(array, place):  # type: ignore[no-untyped-def]
    return lambda array, place: _prefetch(array, place)


overload(add_up_rows)(_for_all(True))
overload(add_to_rows)(_for_all(False))


# --- lists ----------------------------------------------------------------------------------------


@fast
def append_nonzeros(row: Any, first_column: int, lists: Lists, at: int) -> int:
    """List the numbers of a row that are not zero, from place `at` on; where the list ends."""
    done = 0
    while done < len(row):
        if len(row) < SEEN_TOGETHER:
            first, bits = done, np.int64(row[done] != 0)
            done += 1
        else:  # the last ones together with some that were seen before
            first = min(done, len(row) - SEEN_TOGETHER)
            bits = which_are_not_zero(row, first) >> (done - first) << (done - first)
            done = first + SEEN_TOGETHER
        while bits:
            c = first + lowest(bits)
            lists.columns[at] = first_column + c
            lists.values[at] = row[c]
            at += 1
            bits &= bits - 1
    return at


@fast
def list_row(obs: Any, truth: Any, lists: Lists, r: int, at: int) -> int:
    """What one row shows to the actor, and what only to the critic, from place `at` on."""
    lists.starts[r] = at
    lists.middles[r] = append_nonzeros(obs, 0, lists, at)
    lists.ends[r] = append_nonzeros(truth, len(obs), lists, lists.middles[r])
    return lists.ends[r]


@fast
def choose_lists(lists: Lists, chosen: Any) -> Lists:
    """Those of the chosen rows, where they lie; the processor begins to fetch them."""
    n = len(chosen)
    starts, middles, ends = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for k in range(n):
        row = chosen[k]
        starts[k], middles[k], ends[k] = lists.starts[row], lists.middles[row], lists.ends[row]
        for n in range(starts[k], ends[k], CACHE_LINE):
            fetch_soon(lists.columns, n)
            fetch_soon(lists.values, n)
        fetch_soon(lists.columns, ends[k] - 1)
        fetch_soon(lists.values, ends[k] - 1)
    return Lists(starts, middles, ends, lists.columns, lists.values)


# --- passes ---------------------------------------------------------------------------------------


@fast
def copy_first(network: Network) -> Floats:
    """The first layer's weights in memory of their own, which begins where vectors may begin: rows
    that lie across the borders of cache lines take half as long again.
    """
    n_in, n_out = network.sizes[0], network.sizes[1]
    first = np.empty((n_in, n_out), np.float32)
    first[:] = network.theta[: n_in * n_out].reshape(n_in, n_out)
    return first


@fast
def forward_lists(network: Network, first: Floats, lists: Lists, ends: Any, work: Floats) -> Floats:
    """As `forward`, for inputs in lists that end at `ends`: all of a row, or what the actor sees.

    first: as `copy_first` gives it.
    """
    _weights, y = first_layer(network, len(ends), work)
    for r in range(len(ends)):
        add_up_rows(first, lists.columns, lists.values, lists.starts[r], ends[r], y[r])
    return forward_from(network, y, work)


@fast
def backward_lists(
    network: Network, first: Floats, lists: Lists, ends: Any, work: Floats, d_out: Floats,
    grad: Floats,
) -> None:  # fmt: skip
    """As `backward`, after `forward_lists`; `first` is used up."""
    dy = backward_to_first(network, len(ends), work, d_out, grad)
    first[:] = 0
    for r in range(len(ends)):
        add_to_rows(first, lists.columns, lists.values, lists.starts[r], ends[r], dy[r])
    grad[: first.size].reshape(first.shape)[:] = first
