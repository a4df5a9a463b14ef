"""Vector instructions that the compiler would not find by itself.

Each is a plain function, and beside it the same in the compiler's own language: sums of many rows
of a matrix stay in registers from the first row to the last.
"""

from collections.abc import Callable

import llvmlite.ir as ir
import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, overload

from phalanx.compiled.llvm import (
    Builder,
    Context,
    Intrinsic,
    Signature,
    Type,
    TypingContext,
    Value,
    Values,
)
from phalanx.compiled.part import as_part

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]
SEEN_TOGETHER = 64  # numbers that are compared with zero at once
TOGETHER = 6  # rows of a product whose sums stay in registers, sixteen columns of each


def which_are_not_zero(row: Floats, first: int) -> int:
    """A bit for each of SEEN_TOGETHER numbers of a row."""
    return sum(1 << k for k in range(SEEN_TOGETHER) if row[first + k] != 0)


def add_up_rows(
    matrix: Floats, indices: Ints, factors: Floats, first: int, last: int, row: Floats
) -> None:
    """row = the sum of factors[n] * matrix[indices[n]], n from `first` to `last`."""
    row[:] = factors[first:last] @ matrix[indices[first:last]]


def add_to_rows(
    matrix: Floats, indices: Ints, factors: Floats, first: int, last: int, row: Floats
) -> None:
    """matrix[indices[n]] += factors[n] * row, n from `first` to `last`; no index comes twice."""
    matrix[indices[first:last]] += np.outer(factors[first:last], row)


def multiply(x: Floats, weights: Floats, y: Floats) -> None:
    """y = x @ weights, each row as if it were alone: its sums are taken in the same order wherever
    it stands. With a library's product a row's last digits depend on its place among the others.
    """
    y[:] = x @ weights


def fetch_soon(array: Floats | Ints, place: int) -> None:
    """Tell the processor what will be read in some microseconds; nothing waits for it."""


class _Lanes:
    """Numbers that lie beside each other in arrays, as one vector of registers."""

    def __init__(self, context: Context, builder: Builder, lanes: int) -> None:
        self._context, self._builder = context, builder
        self.vector = ir.VectorType(ir.FloatType(), lanes)
        self.zeros = ir.Constant(self.vector, [0.0] * lanes)
        self._first = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

    def item(self, of: Type, array: Value, at: Values) -> Value:
        made = self._context.make_array(of)(self._context, self._builder, array)
        return cgutils.get_item_pointer(self._context, self._builder, of, made, at)

    def pointer(self, of: Type, array: Value, at: Values) -> Value:
        return self._builder.bitcast(self.item(of, array, at), self.vector.as_pointer())

    def load(self, pointer: Value) -> Value:
        return self._builder.load(pointer, align=4)

    def store(self, value: Value, pointer: Value) -> None:
        self._builder.store(value, pointer, align=4)

    def add(self, sums: Value, factor: Value, row: Value) -> Value:
        """sums + factor * row."""
        nothing = ir.Constant(self.vector, ir.Undefined)
        one = self._builder.insert_element(nothing, factor, ir.Constant(ir.IntType(32), 0))
        factors = self._builder.shuffle_vector(one, nothing, self._first)
        product = self._builder.fmul(factors, row, flags=("contract",))
        return self._builder.fadd(sums, product, flags=("contract",))


def _check_beside(*arrays: types.Array) -> None:
    if any(array.layout != "C" for array in arrays):
        raise TypingError("numbers that are read together must lie beside each other")


@intrinsic  # type: ignore[untyped-decorator]
def _not_zero(typing_context: TypingContext, row: Type, first: Type) -> Intrinsic:
    _check_beside(row)

    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        lanes = _Lanes(context, builder, SEEN_TOGETHER)
        numbers = lanes.load(lanes.pointer(signature.args[0], args[0], [args[1]]))
        differ = builder.fcmp_unordered("!=", numbers, lanes.zeros)
        return builder.bitcast(differ, ir.IntType(SEEN_TOGETHER))

    return types.int64(row, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing_context: TypingContext, array: Type, place: Type) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        made = context.make_array(signature.args[0])(context, builder, args[0])
        at = cgutils.get_item_pointer(context, builder, signature.args[0], made, [args[1]])
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        read, near, data = (ir.Constant(word, value) for value in (0, 2, 1))
        builder.call(call, [builder.bitcast(at, byte), read, near, data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _tile(height: int, width: int) -> Callable[..., object]:
    """So many rows from `row` on and columns from `column` on of a product, kept in registers.

    panel: [K, width], these columns of the weights.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def compute(
        typing_context: TypingContext, x: Type, panel: Type, y: Type, row: Type, column: Type
    ) -> Intrinsic:
        _check_beside(x, panel, y)

        def generate(
            context: Context, builder: Builder, signature: Signature, args: Values
        ) -> Value:
            of_x, of_panel, of_y, _, _ = signature.args
            x, panel, y, row, column = args
            lanes, whole = _Lanes(context, builder, width), ir.IntType(64)
            depth = context.make_array(of_x)(context, builder, x).shape
            last = builder.extract_value(depth, 1)
            none, one = ir.Constant(whole, 0), ir.Constant(whole, 1)
            rows = [builder.add(row, ir.Constant(whole, r)) for r in range(height)]
            before = builder.block
            loop, end = map(builder.append_basic_block, ("each", "end"))
            builder.branch(loop)  # there is at least one input
            builder.position_at_end(loop)
            k, sums = builder.phi(whole), [builder.phi(lanes.vector) for _ in rows]
            beside = lanes.load(lanes.pointer(of_panel, panel, [k, none]))
            more = [
                lanes.add(total, builder.load(lanes.item(of_x, x, [r, k])), beside)
                for r, total in zip(rows, sums, strict=True)
            ]
            following, here = builder.add(k, one), builder.block
            builder.cbranch(builder.icmp_signed("<", following, last), loop, end)
            begun = [none, *[lanes.zeros] * height]
            for phi, at_first, later in zip([k, *sums], begun, [following, *more], strict=True):
                phi.add_incoming(at_first, before)
                phi.add_incoming(later, here)
            builder.position_at_end(end)
            for r, total in zip(rows, more, strict=True):
                lanes.store(total, lanes.pointer(of_y, y, [r, column]))
            return context.get_dummy_value()

        return types.void(x, panel, y, types.int64, types.int64), generate

    return compute


def _columns(width: int) -> Callable[..., object]:
    """So many columns of a product: TOGETHER rows at a time, then the others one by one."""
    several, one = _tile(TOGETHER, width), _tile(1, width)

    def compute(x, weights, panel, y, column):  # type: ignore[no-untyped-def]
        for k in range(weights.shape[0]):
            for c in range(width):
                panel[k, c] = weights[k, column + c]
        r = 0
        while r + TOGETHER <= len(x):
            several(x, panel, y, r, column)
            r += TOGETHER
        while r < len(x):
            one(x, panel, y, r, column)
            r += 1

    return as_part(compute)


@overload(multiply)
def _compiled_multiply(x, weights, y):  # type: ignore[no-untyped-def]
    columns_16, columns_4, columns_1 = (_columns(width) for width in (16, 4, 1))

    def compute(x, weights, y):  # type: ignore[no-untyped-def]
        room = np.empty(16 * weights.shape[0], np.float32)
        wide, narrow = room.reshape(-1, 16), room[: 4 * len(weights)].reshape(-1, 4)
        single, c = room[: len(weights)].reshape(-1, 1), 0
        while c + 16 <= weights.shape[1]:
            columns_16(x, weights, wide, y, c)
            c += 16
        while c + 4 <= weights.shape[1]:
            columns_4(x, weights, narrow, y, c)
            c += 4
        while c < weights.shape[1]:
            columns_1(x, weights, single, y, c)
            c += 1

    return compute


def _for_lanes(width: int, adds_up: bool) -> Callable[..., object]:
    """`add_up_rows` or `add_to_rows` for so many columns from `column` on, kept in registers."""

    @intrinsic  # type: ignore[untyped-decorator]
    def compute(
        typing_context: TypingContext,
        matrix: Type,
        column: Type,
        indices: Type,
        factors: Type,
        first: Type,
        last: Type,
        row: Type,
    ) -> Intrinsic:
        _check_beside(matrix, indices, factors, row)

        def generate(
            context: Context, builder: Builder, signature: Signature, args: Values
        ) -> Value:
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


def _for_all(adds_up: bool) -> Callable[..., object]:
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
