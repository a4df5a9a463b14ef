"""`python -m tests.mutants`: change one token, run the tests that reach it, list the changes that
nobody notices.

    python -m tests.mutants --modules checkpoint learn/returns --count 20 --seed 1

Works on a copy of the sources in a folder of its own; the checkout is only read.
"""

import random
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

from tests.mutants.changes import mutants_of
from tests.mutants.copied import Copy
from tests.mutants.nearest import TESTS


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--modules", nargs="+", default=list(TESTS), choices=list(TESTS))
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="1/1", help="i/n: every n-th of these, for many cores")
    parser.add_argument("--begin", type=int, default=1, help="with this one of them")
    parser.add_argument("--seconds", type=float, default=40.0, help="of tests for one change")
    parser.add_argument("--known", type=Path, help="keep here which tests reach which line")
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
    chosen, survivors = chosen[part - 1 :: parts][asked.begin - 1 :], []
    with tempfile.TemporaryDirectory(prefix="phalanx-mutants-") as folder:
        copy, began = Copy(Path(folder)), time.monotonic()
        reach = copy.learn(sorted({one.module for one in chosen}), asked.known)
        print(f"which tests reach which line: {time.monotonic() - began:.0f} s", flush=True)
        for number, mutant in enumerate(chosen, asked.begin):
            began = time.monotonic()
            tests = reach.tests_for(mutant, asked.seconds)
            by = copy.notices(mutant, tests)
            survivors += [] if by else [mutant]
            word = "noticed " if by else "SURVIVED"
            print(f"{number:>3} {word} {time.monotonic() - began:4.0f} s  {mutant}")
            print(f"    {by or f'{len(tests)} tests'}", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} noticed; survivors:")
    print("\n".join(f"  {one}" for one in survivors) or "  none")
    return 0


if __name__ == "__main__":
    sys.exit(main())
