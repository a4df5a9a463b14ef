"""How a rule is compiled: as a part of kernels, which are optimised as a whole.

Left to itself, Numba makes machine code of every function and of two wrappers for Python, each with
all inside that it calls. Rules call rules: so every one would be optimised at each level above it,
in vain but for the last time, since only kernels are ever run.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import numba
from numba import types
from numba.core import config as numba_config
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder, StateDict
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaRuntimeError
from numba.core.typed_passes import NativeLowering

from phalanx.compiled.llvm import Type, Types

Function = TypeVar("Function", bound=Callable[..., object])
GetTemplate = Callable[[list[Type], dict[str, Type]], object]

# What Numba makes of arrays that are there already.
BORROWED = {"build_tuple", "cast", "exhaust_iter", "getattr", "getiter", "iternext"}
BORROWED |= {"null", "pair_first", "phi", "static_getitem", "undef"}
TRIED = (0, 68)  # what is below knows Numba from inside; other versions compile in their own way


def as_part(function: Function, **options: bool | set[str]) -> Function:
    """A function for kernels, and for other functions of this kind.

    Called from Python, it is compiled by itself, as Numba does it.
    """
    if tuple(numba.version_info[:2]) != TRIED:
        return numba.njit(function, inline="never", error_model="numpy", **options)
    part = numba.njit(
        function,
        pipeline_class=PartCompiler,
        inline="never",
        error_model="numpy",
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )
    if not numba_config.DISABLE_JIT:
        alone = numba.njit(function, error_model="numpy", **options)
        part.add_overload = partial(_add_overload, part)
        part.get_call_template = partial(_get_call_template, part.get_call_template)
        part._compile_for_args = lambda *_unused_args: alone  # which is called then
    return part


def _add_overload(part: Dispatcher, result: CompileResult) -> None:
    """Where kernels look for it; a call from Python finds nothing."""
    part.overloads[tuple(result.signature.args)] = result


def _get_call_template(get: GetTemplate, args: Types, keywords: Mapping[str, Type]) -> object:
    return get([_widest(t) for t in args], {name: _widest(t) for name, t in keywords.items()})


def _widest(t: Type) -> Type:
    """One type for all whole numbers, constants too: so a part is not compiled for each of them.

    Only dice have more bits than an int64 can hold; they stay what they are.
    """
    t = types.unliteral(t)
    return types.int64 if isinstance(t, types.Integer) and t.bitwidth < 64 else t


class Part(JITCodeLibrary):  # type: ignore[misc]
    """Code that kernels link, and optimise."""

    def _optimize_final_module(self) -> None:
        """Not here."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):  # type: ignore[misc]
    """To LLVM's language, and no further."""

    _name = "phalanx_part_lowering"

    def run_pass(self, state: StateDict) -> bool:
        state.flags.no_compile = True
        counting = state.targetctx
        if _only_borrows(state):
            state.targetctx = counting.subtarget(enable_nrt=False)
        try:
            self._lower(state)
        except NumbaRuntimeError:  # what it calls makes an array for a while: to copy another
            state.targetctx = counting
            self._lower(state)
        name = object()  # for Numba's tables, where a callable would stand
        state.targetctx.insert_user_function(name, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=name)
        return True

    def _lower(self, state: StateDict) -> None:
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        super().run_pass(state)


def _only_borrows(state: StateDict) -> bool:
    """Whether a function makes no array and returns none. Whoever calls it keeps all alive that it
    looks at, so it need not count who refers to what: each time that takes a locked instruction,
    and threads that look at the same arrays wait for each other.
    """

    def is_counted(t: Type) -> bool:
        return bool(state.targetctx.data_model_manager[t].contains_nrt_meminfo())

    def is_borrowed(made: ir.Expr) -> bool:
        if made.op == "call":
            return isinstance(state.typemap[made.func.name], types.NamedTupleClass)
        if made.op == "getitem":
            return not is_counted(state.typemap[made.index.name])  # which would choose elements
        return made.op in BORROWED

    made = (
        statement
        for block in state.func_ir.blocks.values()
        for statement in block.find_insts(ir.Assign)
        if isinstance(statement.value, ir.Expr)
    )
    return not is_counted(state.return_type) and all(
        is_borrowed(statement.value)
        for statement in made
        if is_counted(state.typemap[statement.target.name])
    )


class PartCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's own steps, but for the last."""

    def define_pipelines(self) -> list[PassManager]:
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state, "phalanx part")
        steps.passes = [
            (PartLowering if step is NativeLowering else step, about)
            for step, about in steps.passes
        ]
        steps.finalize()
        return [steps]
