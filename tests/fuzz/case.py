"""A hostile file and the command that a user would give it to."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Dice = np.random.Generator


@dataclass
class Case:
    what: str
    """the damage in words"""
    command: list[str]
    """paths are relative to the folder of all cases, where `phalanx` is started"""
    must_refuse: bool = False
    """whether exit code 0 would be wrong, whatever else happens"""


@dataclass(frozen=True)
class Places:
    """Folders of the fuzzer. Only `run` and `out` may change while a case is played."""

    root: Path
    """where phalanx is started; beside what may be imported by mistake"""

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    @property
    def templates(self) -> Path:
        return self.root / "templates"

    @property
    def case(self) -> Path:
        return self.root / "case"

    @property
    def run(self) -> Path:
        """A run folder that is continued."""
        return self.case / "run"

    @property
    def out(self) -> Path:
        return self.case / "out"


def choose(dice: Dice, options: Any) -> Any:
    """One of them; numpy's own `choice` would make arrays of lists."""
    options = list(options)
    return options[int(dice.integers(len(options)))]
