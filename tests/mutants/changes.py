"""Changes of one token."""

import ast
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parents[2] / "src" / "phalanx"
# A table of pairs, several a line: hence `fmt: skip`.
SWAPS = {
    "<": ("<=", ">"), "<=": ("<", ">"), ">": (">=", "<"), ">=": (">", "<"), "==": ("!=",),
    "!=": ("==",), "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "//": ("*",), "%": ("*",),
    "+=": ("-=",), "-=": ("+=",), "*=": ("/=",), "&": ("|",), "|": ("&",), "<<": (">>",),
    ">>": ("<<",), "and": ("or",), "or": ("and",), "not": ("",), "in": ("not in",),
    "True": ("False",), "False": ("True",), "min": ("max",), "max": ("min",), "any": ("all",),
    "all": ("any",), "break": ("continue",), "continue": ("break",),
}  # fmt: skip
COMPILED = {"kernel", "rule", "fast"}  # decorators


class Mutant(NamedTuple):
    module: str
    line: int
    column: int
    old: str
    new: str
    is_compiled: bool

    def __str__(self) -> str:
        text = (SOURCES / f"{self.module}.py").read_text().splitlines()[self.line - 1].strip()
        return f"{self.module}.py:{self.line}: {self.old} -> {self.new or 'nothing'}    | {text}"


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every change of one token that leaves a module of the same form."""
    path = SOURCES / f"{module}.py"
    tree = ast.parse(path.read_text())
    left_out, compiled = _spans(tree)
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            line, column = token.start
            if any(first <= (line, column) < last for first, last in left_out):
                continue
            for new in _changes(token):
                if not _has_another_form(path, token, new):
                    continue
                is_compiled = any(first <= (line, column) < last for first, last in compiled)
                yield Mutant(module, line, column, token.string, new, is_compiled)


def _has_another_form(path: Path, token: tokenize.TokenInfo, new: str) -> bool:
    """Not so the * of `*names`, or what is no Python any more."""
    lines, (line, column) = path.read_text().splitlines(), token.start
    lines[line - 1] = lines[line - 1][:column] + new + lines[line - 1][token.end[1] :]
    try:
        changed = ast.dump(ast.parse("\n".join(lines)))
    except SyntaxError:
        return False
    return token.string != "*" or changed.count("Mult()") < _dump(path).count("Mult()")


@cache
def _dump(path: Path) -> str:
    return ast.dump(ast.parse(path.read_text()))


def _changes(token: tokenize.TokenInfo) -> tuple[str, ...]:
    if token.type == tokenize.NUMBER and token.string.isdecimal():
        return (str(int(token.string) + 1),)
    if token.type in (tokenize.OP, tokenize.NAME):
        return SWAPS.get(token.string, ())
    return ()


Span = tuple[tuple[int, int], tuple[int, int]]


def _spans(tree: ast.Module) -> tuple[list[Span], list[Span]]:
    """Where changes mean nothing (types, imports, messages, `for x in`), and what is compiled."""
    left_out, compiled = [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Raise):
            left_out.append(_span(node))
        elif isinstance(node, ast.AnnAssign):
            left_out.append(_span(node.annotation))
        elif isinstance(node, ast.FunctionDef):
            hints = [a.annotation for a in (*node.args.args, *node.args.kwonlyargs) if a.annotation]
            left_out += [_span(hint) for hint in (*hints, *filter(None, [node.returns]))]
            if COMPILED.intersection(ast.unparse(one) for one in node.decorator_list):
                compiled.append(_span(node))
        elif isinstance(node, ast.For | ast.comprehension):
            left_out.append((_span(node.target)[1], _span(node.iter)[0]))
    constants = [one for one in tree.body if isinstance(one, ast.Assign | ast.AnnAssign)]
    return left_out, compiled + [_span(one) for one in constants]


def _span(node: ast.AST) -> Span:
    where = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
    return where
