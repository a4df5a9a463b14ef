"""Settings of `phalanx profile`: those of training, and how long it is watched."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from phalanx.errors import ConfigError
from phalanx.files import check_writable
from phalanx.settings.fields import Within, checked, section
from phalanx.training.config import TrainConfig

ENDLESS = 10**12  # episodes, or steps


@checked
@dataclass(frozen=True, kw_only=True)
class ProfileConfig(TrainConfig):
    """Show where the time of a training goes, in each thread and process, and what to try.

    Trains as phalanx train with the same flags does (--help-all has them), for a few seconds, in a
    folder that is removed afterwards.
    """

    section("profile")
    seconds: Annotated[float, Within(0.5, 3600)] = 15.0
    """how long: two thirds of it undisturbed, and one third with Python's calls counted"""
    json: Path | None = None
    """also write all figures to this file"""
    trace_file: Path | None = None
    """also write what each thread did when, for ui.perfetto.dev or speedscope.app"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resume is not None:
            raise ConfigError("phalanx profile begins a training of its own; leave out --resume")
        if self.trace_file is not None and self.algo == "a3c":
            raise ConfigError(
                "--trace-file cannot look into the worker processes of a3c, which do everything; "
                "leave it out"
            )
        check_writable(self.json)
        check_writable(self.trace_file)

    def training(self, folder: Path) -> TrainConfig:
        """The settings of the training that is watched: without an end, and in this folder."""
        names = [item.name for item in dataclasses.fields(TrainConfig)]
        given = {name: getattr(self, name) for name in names}
        budget = "total_episodes" if self.total_steps is None else "total_steps"
        given |= {budget: ENDLESS, "duration": None, "name": "run", "output_dir": folder}
        return TrainConfig(**given | {"config": None, "track": None, "quiet": True})
