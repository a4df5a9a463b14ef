"""Sets of hosts, ports, exploits or decoys as bit masks: bit k set means that k is a member."""

from typing import SupportsInt

import numpy as np
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
from phalanx.compiled.rule import rule

ALL = np.int64(-1)  # up to 64 members


@rule
def number(x: SupportsInt) -> int:
    """A small number out of a table or record, wide enough to shift and to add."""
    return np.int64(x)  # type: ignore[return-value]


@rule
def has(members: int, member: int) -> bool:
    """Is it in the set?"""
    return (number(members) >> number(member)) & 1 != 0


@rule
def only(member: int) -> int:
    """The set of this one."""
    return number(1) << number(member)


@rule
def all_but(member: int) -> int:
    """The set of all others."""
    return ALL ^ only(member)  # type: ignore[return-value]


def count(members: int) -> int:
    """How many members."""
    return int(members).bit_count()


def lowest(members: int) -> int:
    """The first member of a set that has one."""
    members = int(members)
    return (members & -members).bit_length() - 1


# The same two as single machine instructions, where the rules are compiled.


@machine_code_of(count)
def _ctpop(typing_context: TypingContext, members: Type) -> Intrinsic:
    return types.int64(types.int64), lambda context, builder, signature, args: builder.ctpop(
        args[0]
    )


@machine_code_of(lowest)
def _cttz(typing_context: TypingContext, members: Type) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.int64), generate
