"""The copy of the sources that changes are made in."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.mutants.changes import SOURCES, Mutant
from tests.mutants.nearest import TESTS

HERE = Path(__file__).parents[1]
LONGEST_S = 600  # for tests whose time is not known
PATIENCE = 4  # times as long as without a change: what never ends is noticed, too
PADDING = 64  # so that a changed file stays as long as it was


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
