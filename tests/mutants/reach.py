"""Which tests reach which line, so that a change is shown only to tests that can notice it."""

import ast
from collections import defaultdict
from functools import cache

from tests.mutants.changes import SOURCES, Mutant
from tests.mutants.nearest import TESTS, place_of

IMPORT = 0  # in place of a test's number


class Reach:
    """What one run of all tests has told.

    order, seconds: the tests as they were numbered from 1 on, and what each of them took.
    always: those that failed only while they were followed: nobody knows what they reach.
    never: those that fail anyway.
    reached: a line for each "test path line".
    """

    def __init__(
        self,
        order: list[str],
        seconds: dict[str, float],
        always: list[str],
        never: list[str],
        reached: str,
    ) -> None:
        self._order, self._seconds, self._always, self._never = order, seconds, always, never
        self._tests: dict[tuple[str, int], set[int]] = defaultdict(set)
        for entry in reached.splitlines():
            test, path, line = entry.split()
            self._tests[path, int(line)].add(int(test))

    def tests_for(self, mutant: Mutant, most_s: float) -> list[str]:
        """Those that reach the statement: nearest first, then quickest, for `most_s` in all.

        What runs at import, is compiled or is reached by nobody is shown to all nearest tests, too.
        """
        first, last = statement_at(mutant.module, mutant.line)
        reaching = {
            number
            for line in range(first, last + 1)
            for number in self._tests[f"{mutant.module}.py", line]
        }
        surely = {self._order[number - 1] for number in reaching - {IMPORT}}
        near = tuple(place_of(name) for name in TESTS[mutant.module].split())
        names = surely.union(name for name in self._always if name.startswith(near))
        if IMPORT in reaching or mutant.is_compiled or not reaching:
            names |= {name for name in self._order if name.startswith(near)}
        chosen: list[str] = []
        left_s = most_s
        for name in sorted(
            names.difference(self._never),
            key=lambda one: (one not in surely, not one.startswith(near), self._seconds[one]),
        ):
            left_s -= self._seconds[name]
            if chosen and left_s < 0:
                break
            chosen.append(name)
        return chosen


@cache
def _statements(module: str) -> list[tuple[int, int]]:
    """First and last line of each; of one that holds others (no function), those before them."""
    tree = ast.parse((SOURCES / f"{module}.py").read_text())
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = None if isinstance(node, ast.FunctionDef) else getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            spans.append((node.lineno, last))
    return spans


def statement_at(module: str, line: int) -> tuple[int, int]:
    """The smallest statement that holds a line."""
    around = [span for span in _statements(module) if span[0] <= line <= span[1]]
    return min(around, key=lambda span: span[1] - span[0], default=(line, line))
