"""`python -m tests.fuzz`: all of it; `python -m tests.fuzz checkpoints --seed 17`: one case."""

import shutil
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

from tests.fuzz.watch import GOOD, KINDS, VERDICTS, Fuzzer, Judged

COUNTS = {"checkpoints": 5000, "configs": 2000, "traces": 1000}
SHOWN = 400  # characters of why a case failed


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], help="all if not given")
    parser.add_argument("--count", type=int, help="cases of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, help="this case alone, and all that is known of it")
    parser.add_argument("--keep", action="store_true", help="leave the last case's files")
    asked = parser.parse_args()
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in asked.kinds or KINDS}
    folder = Path(tempfile.mkdtemp(prefix="phalanx-fuzz-"))
    began, failed = time.monotonic(), 0
    with Fuzzer(folder / "cases") as fuzzer:
        for kind, verdicts in counts.items():
            count = 1 if asked.seed is not None else asked.count or COUNTS[kind]
            first = asked.first if asked.seed is None else asked.seed
            for number in range(first, first + count):
                judged = fuzzer.judge(kind, number)
                verdicts[judged.verdict] += 1
                if judged.verdict not in GOOD or asked.seed is not None:
                    failed += judged.verdict not in GOOD
                    _tell(kind, number, judged, None if asked.seed is not None else SHOWN)
                if sum(verdicts.values()) % 500 == 0:
                    spent = time.monotonic() - began
                    print(
                        f"{kind}: {sum(verdicts.values())} of {count} after {spent:.0f} s",
                        flush=True,
                    )
    _print_table(counts)
    if asked.keep:
        print(f"files: {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if failed else 0


def _tell(kind: str, number: int, judged: Judged, longest: int | None) -> None:
    why = judged.why if longest is None else judged.why[-longest:]
    print(f"{judged.verdict}: python -m tests.fuzz {kind} --seed {number}")
    print(f"    {judged.case.what}\n    phalanx {' '.join(judged.case.command)}")
    print("    " + why.replace("\n", "\n    "), flush=True)


def _print_table(counts: dict[str, Counter[str]]) -> None:
    print("".join(f"{name:>18}" for name in ("", "cases", *VERDICTS)))
    for kind, verdicts in counts.items():
        numbers = (sum(verdicts.values()), *(verdicts[name] for name in VERDICTS))
        print(f"{kind:>18}" + "".join(f"{number:>18,}" for number in numbers))


if __name__ == "__main__":
    sys.exit(main())
