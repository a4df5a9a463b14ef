"""`python -m tests.mutants`: change one token, run the nearest tests, list the changes that nobody
notices.

    python -m tests.mutants --modules checkpoint learn/returns --count 20 --seed 1

Works on a copy of the sources in a folder of its own; the checkout is only read.
"""

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
SOURCES = HERE.parent / "src" / "phalanx"
LONGEST_S = 600  # for tests whose time is not known
PATIENCE = 4  # times as long as without a change: what never ends is noticed, too

# The nearest tests of a module, the quickest first.
TESTS: dict[str, str] = {
    "checkpoint": "test_checkpoint test_run_folder",
    "arrays_file": "test_checkpoint",
    "facts": "test_checkpoint test_run_folder",
    "run_folder": "test_rows test_run_folder test_training",
    "results": "test_run_folder test_cli test_evaluate",
    "flags": "test_flags test_settings test_cli",
    "config": "test_settings test_cli test_training",
    "settings": "test_settings test_cli",
    "settings_file": "test_settings",
    "trust": "test_settings",
    "tally": "test_tally test_training test_training_workflows",
    "recipe": "test_recipe test_training test_training_workflows",
    "run": "test_training test_training_workflows",
    "training": "test_training test_run_folder",
    "sources": "learn/test_rollout test_training",
    "cage2/saved_games": "test_checkpoint cage2/test_batch test_run_folder",
    "learn/a3c": "learn/test_a3c test_a3c",
    "learn/actor": "learn/test_pool_sampler test_train_env",
    "learn/collect": "learn/test_collect learn/test_following",
    "learn/compiled": "learn/test_ppo learn/test_plain learn/test_a3c test_training",
    "learn/gate": "learn/test_gate learn/test_gate_steps test_training_workflows",
    "learn/gp_ucb": "learn/test_gp_ucb",
    "learn/heads": "learn/test_plain test_train_env",
    "learn/impala": "learn/test_metrics learn/test_impala test_training",
    "learn/mlp": "learn/test_mlp",
    "learn/networks": "test_train_env",
    "learn/own_network": "test_training test_train_env",
    "learn/plain": "learn/test_plain test_training test_train_env",
    "learn/playing": "learn/test_following test_evaluate",
    "learn/policy": "learn/test_policy learn/test_mlp learn/test_ppo",
    "learn/pool_sampler": "learn/test_pool_rows learn/test_pool_sampler test_train_env",
    "learn/ppo": "learn/test_metrics learn/test_ppo learn/test_impala test_training",
    "learn/ppo_kernel": "learn/test_ppo",
    "learn/returns": "learn/test_impala learn/test_ppo",
    "learn/rollout": "learn/test_rollout learn/test_collect learn/test_pool_sampler test_training",
    "learn/sampler": "learn/test_collect learn/test_following test_training",
    "learn/shared": "learn/test_a3c test_a3c",
    "learn/stepper": "learn/test_ppo learn/test_plain test_training",
}
ENVS = (
    "answers", "arrived", "auto", "block", "channel", "closing", "faults", "first_try", "layout",
    "nurse", "nursery", "places", "pool", "serial", "settings", "shared_memory", "staff", "trial",
    "vector", "waiting", "worker", "workers",
)  # fmt: skip
TESTS |= {
    f"envs/{name}": "envs/test_pool envs/test_trial envs/test_faults envs/test_vector"
    for name in ENVS
}
TESTS["envs/answers"] = "envs/test_answers envs/test_pool"
SWAPS = {
    "<": ("<=", ">"), "<=": ("<", ">"), ">": (">=", "<"), ">=": (">", "<"), "==": ("!=",),
    "!=": ("==",), "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "//": ("*",), "%": ("*",),
    "+=": ("-=",), "-=": ("+=",), "*=": ("/=",), "&": ("|",), "|": ("&",), "<<": (">>",),
    ">>": ("<<",), "and": ("or",), "or": ("and",), "not": ("",), "in": ("not in",),
    "True": ("False",), "False": ("True",), "min": ("max",), "max": ("min",), "any": ("all",),
    "all": ("any",), "break": ("continue",), "continue": ("break",),
}  # fmt: skip
COMPILED = {"kernel", "rule", "fast"}  # decorators
PADDING = 64  # so that a changed file stays as long as it was


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


class Copy:
    """The sources in a folder of their own, where one token at a time is changed.

    Compiled kernels of the copy are kept from one change to the next, unless the change is in what
    is compiled: then the copy says so in its hash of the sources, and all is compiled anew.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = {}  # that tests take without a change
        shutil.copytree(SOURCES, folder / "src" / "phalanx")
        for path in (folder / "src").rglob("*.py"):
            path.write_text(path.read_text() + "#" * PADDING)
        kept = folder / "src" / "phalanx" / "cage2" / "kept.py"
        text, own = kept.read_text(), 'os.environ["PHALANX_MUTANT"]'
        assert "return digest.hexdigest()[:16]" in text
        kept.write_text(text.replace("return digest.hexdigest()[:16]", f"return {own}"))

    def check(self, modules: list[str]) -> None:
        """Without a change every test must pass, or nothing could be learnt."""
        for tests in sorted({TESTS[module] for module in modules}):
            began = time.monotonic()
            if failed := self._fails(tests, "none"):
                raise SystemExit(f"{failed} fails already, without any change")
            self.seconds[tests] = time.monotonic() - began

    def notices(self, mutant: Mutant) -> bool:
        """Whether a test fails, and fails again: on a busy machine one may do so by chance."""
        path = self.folder / "src" / "phalanx" / f"{mutant.module}.py"
        whole, when = path.read_text(), path.stat().st_mtime_ns
        lines = whole.splitlines()
        line, at = lines[mutant.line - 1], mutant.column
        lines[mutant.line - 1] = line[:at] + mutant.new + line[at + len(mutant.old) :]
        try:
            path.write_text("\n".join(lines)[: len(whole)].ljust(len(whole), "#"))
            os.utime(path, ns=(when, when))
            kept = "none" if not mutant.is_compiled else "one"
            failed = self._fails(TESTS[mutant.module], kept)
            return bool(failed) and bool(self._fails(failed, kept))
        finally:
            path.write_text(whole)
            os.utime(path, ns=(when, when))
            shutil.rmtree(self.folder / "cache" / "cage2-one", ignore_errors=True)

    def _fails(self, tests: str, kept: str) -> str:
        """The test that fails, or all if that is not told; "" if none does."""
        own = {"PHALANX_CACHE_DIR": str(self.folder / "cache"), "PHALANX_MUTANT": kept}
        limit = 30 + PATIENCE * self.seconds.get(tests, LONGEST_S / PATIENCE)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        try:
            ran = subprocess.run(
                [*command, *(_place(name) for name in tests.split())],
                env={
                    **os.environ, **own, "PYTHONPATH": str(self.folder / "src"),
                    "PYTHONDONTWRITEBYTECODE": "1",
                },
                cwd=HERE.parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                timeout=limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return tests
        if ran.returncode == 0:
            return ""
        told = re.search(r"^FAILED (tests/\S+)", ran.stdout, re.M)
        return told[1] if told and "[" not in told[1] else tests


def _place(test: str) -> str:
    return test if "::" in test else str(HERE / f"{test}.py")


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--modules", nargs="+", default=list(TESTS), choices=list(TESTS))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="1/1", help="i/n: every n-th of these, for many cores")
    parser.add_argument("--unchecked", action="store_true", help="tests are known to pass now")
    parser.add_argument("--plain", action="store_true", help="nothing that is compiled: quicker")
    parser.add_argument("--tests", nargs="+", help="these instead, such as learn/test_gate")
    parser.add_argument("--line", type=int, help="all changes of this line of the module")
    asked = parser.parse_args()
    if asked.tests:
        TESTS.update(dict.fromkeys(asked.modules, " ".join(asked.tests)))
    every = [one for name in asked.modules for one in mutants_of(name)]
    every = [one for one in every if not (asked.plain and one.is_compiled)]
    chosen = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    if asked.line is not None:
        chosen = [one for one in every if one.line == asked.line]
    part, parts = map(int, asked.part.split("/"))
    chosen, survivors = chosen[part - 1 :: parts], []
    with tempfile.TemporaryDirectory(prefix="phalanx-mutants-") as folder:
        copy = Copy(Path(folder))
        if not asked.unchecked:
            copy.check(sorted({one.module for one in chosen}))
        for number, mutant in enumerate(chosen, 1):
            began = time.monotonic()
            noticed = copy.notices(mutant)
            survivors += [] if noticed else [mutant]
            word = "noticed " if noticed else "SURVIVED"
            print(f"{number:>3} {word} {time.monotonic() - began:4.0f} s  {mutant}", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} noticed; survivors:")
    print("\n".join(f"  {one}" for one in survivors) or "  none")
    return 0


if __name__ == "__main__":
    sys.exit(main())
