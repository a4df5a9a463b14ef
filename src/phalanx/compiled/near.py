"""Have a record brought near before it is needed: memory is slow, and can be asked ahead."""

from llvmlite import ir
from numba import types

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
from phalanx.compiled.rule import Record

LINE = 64  # bytes that come together
MOST = 1536  # bytes at the beginning of a record that are asked for


def bring_near(record: Record) -> None:
    """Ask for the beginning of a record; nothing changes but the time that it takes to read it."""


@machine_code_of(bring_near)
def _prefetch(typing_context: TypingContext, record: Type) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        start = builder.bitcast(args[0], byte)
        to_read, keep, data = (ir.Constant(number, value) for value in (0, 3, 1))
        for offset in range(0, min(signature.args[0].size, MOST), LINE):
            place = builder.gep(start, [ir.Constant(number, offset)])
            builder.call(ask, [place, to_read, keep, data])
        return context.get_dummy_value()

    return types.void(record), generate
