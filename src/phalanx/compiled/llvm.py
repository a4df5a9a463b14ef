"""What Numba hands to those who write machine code themselves, by the names that it has there."""

from collections.abc import Callable, Sequence

from llvmlite.ir import IRBuilder as Builder
from llvmlite.ir import Value
from numba import types
from numba.core.base import BaseContext as Context
from numba.core.types import Record as RecordType
from numba.core.types import Type
from numba.core.typing import Signature
from numba.core.typing.context import BaseContext as TypingContext
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template

__all__ = [
    "Builder",
    "Context",
    "Intrinsic",
    "RecordType",
    "Signature",
    "Type",
    "Types",
    "TypingContext",
    "Value",
    "Values",
    "itself_or_none",
    "machine_code_of",
]

Types = tuple[Type, ...]
Values = Sequence[Value]
Intrinsic = tuple[Signature, Callable[[Context, Builder, Signature, Values], Value]]
"""the types of a function, and who writes its code"""
Write = Callable[..., Intrinsic]
"""(typing context, types of arguments): what Numba calls an intrinsic"""


def itself_or_none(record: RecordType, is_itself: bool) -> Intrinsic:
    """Of a function that returns its record, or None: the compiler knows which."""

    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        return args[0] if is_itself else context.get_dummy_value()

    return (record if is_itself else types.none)(record), generate


def machine_code_of(function: Callable[..., object]) -> Callable[[Write], Write]:
    """What stands for a plain function inside rules.

    Numba's `overload` would do it by a function of its own, compiled by itself for all arguments.
    """

    def register(write: Write) -> Write:
        template = make_intrinsic_template(function, write, function.__name__)
        infer(template)
        infer_global(function, types.Function(template))
        return write

    return register
