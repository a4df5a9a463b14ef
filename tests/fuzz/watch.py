"""Plays cases in a process of their own, and judges what phalanx did with them."""

import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from tests.fuzz.archives import MARK
from tests.fuzz.case import Case, Dice, Places
from tests.fuzz.checkpoints import make_checkpoint, make_templates, warm_commands
from tests.fuzz.configs import make_config
from tests.fuzz.traces import make_trace, make_trace_template

KINDS: dict[str, Callable[[Dice, Places], Case]] = {
    "checkpoints": make_checkpoint,
    "configs": make_config,
    "traces": make_trace,
}
VERDICTS = (
    "accepted",
    "refused",
    "traceback",
    "hang",
    "memory",
    "foreign code",
    "changed outside",
    "not one line",
    "wrongly accepted",
)
GOOD = VERDICTS[:2]
BAIT = ("helper", "json", "numpy", "yaml", "gymnasium", "torch", "cloudpickle", "sitecustomize")
FOREIGN = {"helper", "http.server", "antigravity"}  # what hostile files name
MEMORY_MB = 500
BUSY = 5
DEADLY_MB, DEADLY = 2000, 10  # a player is killed above this, and after so many times the limit
LONGEST_LINE = 4000


class Judged(NamedTuple):
    case: Case
    verdict: str
    why: str


class Fuzzer:
    """with Fuzzer(folder) as fuzzer: fuzzer.judge("checkpoints", 17)

    seconds: that a command may work; it may take BUSY times as long where other programs run.
    """

    def __init__(self, root: Path, *, seconds: float = 2.0) -> None:
        self.places, self.seconds = Places(root), seconds
        self._player: subprocess.Popen[str] | None = None
        for folder in (self.places.outside, self.places.templates, self.places.case):
            folder.mkdir(parents=True)
        for name in BAIT:
            text = f"open({str(root / f'ran-{name}')!r}, 'w')\ndef make(*_a, **_k): pass\n"
            (root / f"{name}.py").write_text(text)
        for name in ("salary.csv", "salary", "updates.csv", "notes.txt"):
            (self.places.outside / name).write_text("1\n" * 100)
        self._start_player()
        make_templates(self.places, self._play_honest)
        make_trace_template(self.places)
        self._warm()

    def __enter__(self) -> "Fuzzer":
        return self

    def __exit__(
        self, *_exception: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        self._end_player()

    def judge(self, kind: str, number: int) -> Judged:
        """Make a case and play it; one that seems slow is played again in a warm process."""
        judged = self._judge(kind, number)
        return self._judge(kind, number) if judged.verdict == "hang" else judged

    def _judge(self, kind: str, number: int) -> Judged:
        if self._player is None:
            self._start_player()
            self._warm()
        shutil.rmtree(self.places.case)
        self.places.out.mkdir(parents=True)
        case = KINDS[kind](np.random.default_rng([list(KINDS).index(kind), number]), self.places)
        before = self._everything()
        answer = self._play(case.command)
        verdict, why = self._verdict(case, answer)
        changed = before ^ self._everything()
        if changed:
            verdict, why = "changed outside", str(sorted(changed)[0][0])
        ran = [path.name for path in self.places.root.glob("ran-*")]
        if ran:
            verdict, why = "foreign code", ran[0]
            for name in ran:
                (self.places.root / name).unlink()
        if verdict in ("hang", "memory", "foreign code"):
            self._end_player()
        return Judged(case, verdict, why)

    def _verdict(self, case: Case, answer: dict[str, Any]) -> tuple[str, str]:
        # A run that begins says so; of one that has, the line that ends it comes after that.
        lines = [one for one in answer["said"].splitlines() if not one.startswith("training with ")]
        foreign = FOREIGN.intersection(answer["imported"])
        if foreign:
            return "foreign code", f"imported {', '.join(sorted(foreign))}"
        if answer["written"]:
            return "changed outside", answer["written"][0]
        if answer["peak_mb"] > MEMORY_MB:
            return "memory", f"{answer['peak_mb']:.0f} MB"
        if answer["cpu_s"] > self.seconds or answer["seconds"] > BUSY * self.seconds:
            return "hang", f"{answer['seconds']:.1f} s"
        if answer["error"] or "Traceback" in answer["said"]:
            return "traceback", (answer["error"] or answer["said"]).strip()
        if answer["code"] == 0 and case.must_refuse:
            return "wrongly accepted", ""
        if answer["code"] == 0 or (answer["code"] == 1 and case.command[0] == "verify"):
            return "accepted", ""
        if answer["code"] != 2 or len(lines) != 1 or len(lines[0]) > LONGEST_LINE:
            return (
                "not one line",
                f"exit code {answer['code']}, {len(lines)} lines: {lines[:3]!r:.500}",
            )
        return "refused", lines[0]

    def _everything(self) -> set[tuple[str, Any]]:
        """Every file that no command may change, with what would tell."""
        root, found = str(self.places.root), set()
        may_change = {f"{root}/said", str(self.places.run), str(self.places.out)}
        folders = [root]
        while folders:
            for entry in os.scandir(folders.pop()):
                if entry.path in may_change:
                    continue
                status = entry.stat(follow_symlinks=False)
                told = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    found.add((entry.path, told))
        return found

    # --- the process --------------------------------------------------------------------------

    def _play_honest(self, command: list[str]) -> None:
        answer = self._play(command, deadly_s=300)
        if answer["code"] != 0:
            raise RuntimeError(f"phalanx {' '.join(command)} failed: {answer}")

    def _play(self, command: list[str], deadly_s: float | None = None) -> dict[str, Any]:
        player = self._player
        assert player is not None
        assert player.stdin is not None
        assert player.stdout is not None
        deadly_s = deadly_s or DEADLY * self.seconds
        began, peak = time.monotonic(), 0.0
        player.stdin.write(json.dumps(command) + "\n")
        player.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(player.stdout, selectors.EVENT_READ)
            while not selector.select(0.05):
                spent, peak = time.monotonic() - began, max(peak, _memory_mb(player.pid))
                if spent > deadly_s or peak > DEADLY_MB:
                    self._end_player()
                    return self._killed("", spent, peak)
        line = player.stdout.readline()
        if not line:
            self._player = None
            error = f"the process ended by itself, with exit code {player.wait()}"
            return self._killed(error, time.monotonic() - began, peak)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _killed(self, error: str, seconds: float, peak_mb: float) -> dict[str, Any]:
        return {
            "code": None,
            "error": error,
            "said": "",
            "seconds": seconds,
            "cpu_s": 0.0,
            "peak_mb": peak_mb,
            "imported": [],
            "written": [],
        }

    def _start_player(self) -> None:
        self._player = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.player", str(self.places.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent.parent,
        )

    def _warm(self) -> None:
        """Let it load, and compile if need be, what honest files make it load."""
        for command in [["verify", "templates/traces"], *warm_commands()]:
            self._play_honest(command)

    def _end_player(self) -> None:
        if self._player is not None:
            self._player.kill()
            self._player.communicate()
            self._player = None


def _memory_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20
    except (OSError, IndexError):
        return 0.0


assert MARK.startswith("ran-")
