"""Lies in the copy of the package, as its first import, and tells which lines each test reaches.

Every process that imports the package gets functions that say which of their statements are about
to run: workers, samplers and commands, too. It looks up the number of the present test and writes
down each statement that it reaches for the first time in it. Compiled functions stay as they are.
"""

import ast
import builtins
import mmap
import os
from importlib.machinery import SourceFileLoader
from typing import Any

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
COMPILED = {"kernel", "rule", "fast"}  # decorators
NUMBER = 4  # bytes
MOST = 20  # bits of a place's number


class Told(ast.NodeTransformer):
    """A call before each statement of a function. `places` gets what the calls' numbers mean."""

    def __init__(self, module: str, places: list[str]) -> None:
        self._module, self._places, self._depth = module, places, 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if COMPILED.intersection(ast.unparse(one) for one in node.decorator_list):
            return node
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self._depth and not isinstance(node, ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list):
                    setattr(node, name, [one for two in statements for one in self._with_call(two)])
        return node

    def _with_call(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return [statement]  # a docstring must stay the first
        self._places.append(f"{self._module} {statement.lineno}")
        number = ast.Constant(len(self._places) - 1)
        call = ast.Expr(ast.Call(ast.Name("__reached__", ast.Load()), [number], []))
        for node in ast.walk(call):
            ast.copy_location(node, statement)
        return [call, statement]


def follow(folder: str) -> None:
    log, places, seen = os.path.join(folder, "reached"), list[str](), set[int]()
    with open(os.path.join(folder, "now"), "rb") as file:
        now = memoryview(mmap.mmap(file.fileno(), NUMBER, access=mmap.ACCESS_READ)).cast("I")

    def reached(place: int) -> None:
        test = now[0]
        if (test << MOST) + place not in seen:
            seen.add((test << MOST) + place)
            with open(log, "a") as file:  # never kept open: tests close and count files
                file.write(f"{test} {places[place]}\n")

    def source_to_code(self: Any, data: Any, path: Any, **options: Any) -> Any:
        tree = data
        if str(path).startswith(PACKAGE):
            tree = Told(str(path)[len(PACKAGE) :], places).visit(ast.parse(data))
        return compile(tree, path, "exec", dont_inherit=True, optimize=options.get("_optimize", -1))

    builtins.__reached__ = reached  # type: ignore[attr-defined]
    SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign]


if "PHALANX_FOLLOW" in os.environ:
    follow(os.environ["PHALANX_FOLLOW"])
