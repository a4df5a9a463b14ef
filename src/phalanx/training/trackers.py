"""Where rows of updates.csv go besides: Weights & Biases, or trackio, which stays on the machine.

Both have the same three calls. A failure of theirs never ends a run.
"""

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from phalanx.errors import MissingError

PROJECT = "phalanx"


def check_tracker(name: str | None) -> None:
    """Refuse one that is not installed, before anything is started."""
    if name is not None and find_spec(name) is None:
        raise MissingError(f"--track {name} needs {name}: pip install 'phalanx[{name}]'")


class Tracker:
    """One run in a tracker; after its first failure it is left alone.

    tracker = Tracker("trackio", "first", settings)
    tracker.add(51_200, {"return": -40.2, ...})
    tracker.close()
    """

    def __init__(self, name: str, run_name: str, settings: Mapping[str, object]) -> None:
        self.name, self.failure = name, ""
        self._module: ModuleType | None = None
        project = os.environ.get("WANDB_PROJECT", PROJECT)
        self._do(self._begin, project=project, name=run_name, config=dict(settings))

    def _begin(self, **options: object) -> None:
        module = import_module(self.name)
        module.init(**options, resume="allow")
        self._module = module

    def add(self, step: int, row: Mapping[str, object]) -> None:
        """One point for each number; words go with them."""
        if self._module is not None:
            self._do(self._module.log, dict(row), step=step)

    def close(self) -> None:
        """Let it send what it still has."""
        if self._module is not None:
            self._do(self._module.finish)
            self._module = None

    def _do(self, call: Callable[..., object], *arguments: object, **options: object) -> None:
        try:
            call(*arguments, **options)
        except Exception as error:  # whatever a server, a login or a disk makes it raise
            self._module = None
            self.failure = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            print(
                f"phalanx: {self.name} hears no more of this run ({self.failure}); updates.csv has "
                "everything, training goes on",
                file=sys.stderr,
            )
