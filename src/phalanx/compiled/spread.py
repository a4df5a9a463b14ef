"""Eight bits as eight values: how rows of observations are written."""

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

from phalanx.compiled.llvm import (
    Builder,
    Context,
    Intrinsic,
    Signature,
    Type,
    TypingContext,
    Value,
    Values,
    machine_code_of,
)

BytesOrFloats = npt.NDArray[np.uint8] | npt.NDArray[np.float32]


def spread(bits: int, row: BytesOrFloats, first: int) -> None:
    """Write the lowest eight bits to row[first] and on, the lowest first."""
    for k in range(8):
        row[first + k] = (int(bits) >> k) & 1


@machine_code_of(spread)
def _spread(typing_context: TypingContext, bits: Type, row: types.Array, first: Type) -> Intrinsic:
    """All eight together: copies of the bits, of which each value looks at its own."""
    if row.layout != "C":
        raise TypingError("values that are written together must lie beside each other")
    is_float = row.dtype == types.float32

    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        bits, row, first = args
        whole = ir.IntType(32 if is_float else 8)
        eight = ir.VectorType(whole, 8)
        nothing, place = ir.Constant(eight, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(nothing, builder.trunc(bits, whole), place)
        same = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
        copies = builder.shuffle_vector(one, nothing, same)
        own = builder.and_(copies, ir.Constant(eight, [1 << k for k in range(8)]))
        is_set = builder.icmp_unsigned("!=", own, ir.Constant(eight, [0] * 8))
        kind = ir.VectorType(ir.FloatType(), 8) if is_float else eight
        values = builder.uitofp(is_set, kind) if is_float else builder.zext(is_set, kind)
        of = signature.args[1]
        made = context.make_array(of)(context, builder, row)
        at = cgutils.get_item_pointer(context, builder, of, made, [first])
        builder.store(values, builder.bitcast(at, kind.as_pointer()), align=4 if is_float else 1)
        return context.get_dummy_value()

    return types.void(types.int64, row, types.int64), generate
