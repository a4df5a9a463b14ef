"""The copy of the sources that changes are made in."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.compiled import cache as kept
from tests.mutants import follow
from tests.mutants.changes import SOURCES, Mutant
from tests.mutants.nearest import TESTS, place_of
from tests.mutants.reach import Reach

ROOT = Path(__file__).parents[2]
LEARN_S = 3600
LONGEST_S = 900  # for one change; the plugin ends single tests much earlier
NOT_FOUND = 4  # what pytest returns if it does not know a test by its name
PADDING = 64  # so that a changed file stays as long as it was
HASH = "return digest.hexdigest()[:16]"


class Copy:
    """The sources in a folder of their own, where one token at a time is changed.

    Compiled kernels of the copy are kept from one change to the next, unless the change is in what
    is compiled: then the copy says so in its hash of the sources, and all is compiled anew.
    """

    def __init__(self, folder: Path) -> None:
        assert kept.PACKAGE == SOURCES, f"phalanx is imported from {kept.PACKAGE}, not {SOURCES}"
        self._folder, self._package = folder, folder / "src" / "phalanx"
        shutil.copytree(SOURCES, self._package)
        for path in self._package.rglob("*.py"):
            path.write_text(path.read_text() + "#" * PADDING)
        shutil.copy(follow.__file__, self._package / "follow.py")
        first = self._package / "__init__.py"
        first.write_text("import phalanx.follow\n" + first.read_text())
        hashed = self._package / "compiled" / "cache.py"
        assert HASH in hashed.read_text()
        own = 'return os.environ["PHALANX_SOURCES"]'
        hashed.write_text(hashed.read_text().replace(HASH, own))
        if (compiled := kept.cache_folder()) is not None:
            shutil.copytree(compiled, folder / "cache" / compiled.name)
        (folder / "now").write_bytes(bytes(follow.NUMBER))

    def learn(self, modules: list[str], known: Path | None) -> Reach:
        """Run the nearest tests of all modules once. What fails without a change is left out.

        known: where that is kept, if it was learnt before.
        """
        if known is not None and known.exists():
            told = json.loads(known.read_text())
        else:
            told = self._learn(modules)
            if known is not None:
                known.write_text(json.dumps(told))
        for name in told["never"]:
            print(f"{name} fails already, without any change: it is left out")
        (self._folder / "seconds.json").write_text(json.dumps(told["seconds"]))
        return Reach(**told)

    def _learn(self, modules: list[str]) -> dict[str, Any]:
        files = sorted({place_of(name) for module in modules for name in TESTS[module].split()})
        self._run(files, kept.source_hash(), LEARN_S, {"PHALANX_FOLLOW": str(self._folder)})
        order = json.loads((self._folder / "order.json").read_text())
        took = json.loads((self._folder / "took.json").read_text())
        never = [name for name in took["failed"] if self._fails([name], kept.source_hash())]
        return {
            "order": order,
            "seconds": took["seconds"],
            "always": [name for name in took["failed"] if name not in never],
            "never": never,
            "reached": (self._folder / "reached").read_text(),
        }

    def notices(self, mutant: Mutant, tests: list[str]) -> str:
        """The test that fails, and fails again: on a busy machine one may do so by chance."""
        path = self._package / f"{mutant.module}.py"
        whole, when = path.read_text(), path.stat().st_mtime_ns
        lines = whole.splitlines()
        line, at = lines[mutant.line - 1], mutant.column
        lines[mutant.line - 1] = line[:at] + mutant.new + line[at + len(mutant.old) :]
        try:
            path.write_text("\n".join(lines)[: len(whole)].ljust(len(whole), "#"))
            os.utime(path, ns=(when, when))
            sources = "changed" if mutant.is_compiled else kept.source_hash()
            failed = self._fails(tests, sources)
            if not failed or not self._fails(failed, sources):
                return ""
            has_ended = (self._folder / "took.json").exists()
            return failed[0] + ("" if has_ended else " (crashed, or took too long)")
        finally:
            path.write_text(whole)
            os.utime(path, ns=(when, when))
            shutil.rmtree(self._folder / "cache" / "cage2-changed", ignore_errors=True)

    def _fails(self, tests: list[str], sources: str) -> list[str]:
        """The test that failed or never ended; all, if they could not even be collected.

        Files come one after the other: most changes are noticed in the first, and importing all of
        them takes longer than that.
        """
        by_file: dict[str, list[str]] = {}
        for name in tests:
            by_file.setdefault(name.split("::")[0], []).append(name)
        return next(filter(None, (self._fails_in(some, sources) for some in by_file.values())), [])

    def _fails_in(self, tests: list[str], sources: str) -> list[str]:
        returned = self._run(["-x", *tests], sources, LONGEST_S)
        if returned == NOT_FOUND:  # the change has renamed a case of a test: that is no failure
            tests = [tests[0].split("::")[0]]
            returned = self._run(["-x", *tests], sources, LONGEST_S)
        if returned == 0:
            return []
        number = int.from_bytes((self._folder / "now").read_bytes(), "little")
        order = json.loads((self._folder / "order.json").read_text())
        return [order[number - 1]] if number else tests

    def _run(
        self, tests: list[str], sources: str, limit_s: float, own: Mapping[str, str] | None = None
    ) -> int:
        options = ["-q", "-p", "no:cacheprovider", "-p", "tests.mutants.plugin"]
        examples = self._folder / "hypothesis"
        shutil.rmtree(examples, ignore_errors=True)  # what failed for another change
        (self._folder / "took.json").unlink(missing_ok=True)
        ours = {
            "HYPOTHESIS_STORAGE_DIRECTORY": str(examples),
            "OPENBLAS_NUM_THREADS": "1",  # several wait for each other where other programs run
            "PHALANX_CACHE_DIR": str(self._folder / "cache"),
            "PHALANX_SOURCES": sources,
            "PHALANX_TESTED": str(self._folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(self._folder / "src"),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            env={**os.environ, **ours, **(own or {})},
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a change may end all of its group
        )
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return 1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it has left behind, too
            process.wait()
