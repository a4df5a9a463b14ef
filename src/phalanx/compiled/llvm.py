"""What Numba hands to those who write machine code themselves, by the names that it has there."""

from collections.abc import Callable, Sequence

from llvmlite.ir import IRBuilder as Builder
from llvmlite.ir import Value
from numba.core.base import BaseContext as Context
from numba.core.types import Type
from numba.core.typing import Signature
from numba.core.typing.context import BaseContext as TypingContext

__all__ = [
    "Builder",
    "Context",
    "Intrinsic",
    "Signature",
    "Type",
    "Types",
    "TypingContext",
    "Value",
    "Values",
]

Types = tuple[Type, ...]
Values = Sequence[Value]
Intrinsic = tuple[Signature, Callable[[Context, Builder, Signature, Values], Value]]
"""the types of a function, and who writes its code"""
