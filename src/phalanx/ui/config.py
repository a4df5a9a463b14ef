"""Settings of `phalanx ui`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from phalanx.errors import ConfigError
from phalanx.settings.fields import Within, checked


@checked
@dataclass(frozen=True, kw_only=True)
class UiConfig:
    """Look at runs, replay episodes and play the defender yourself, in a browser.

    A small web server on this machine alone: it listens on 127.0.0.1, answers only those who hold
    the token in the address that it prints, and fetches nothing. Ctrl-C ends it.
    """

    folder: Path = field(default=Path("runs"), metadata={"positional": True, "metavar": "DIR"})
    """the folder that holds the runs"""
    port: Annotated[int, Within(0, 65535)] = 0
    """port to listen on; 0: any that is free"""
    no_open: bool = False
    """only print the address; else a browser opens it where there is a screen"""

    def __post_init__(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise ConfigError(f"{self.folder} is no folder; give the one that holds the runs")
        if not self.folder.exists() and self.folder != Path("runs"):
            raise ConfigError(
                f"there is no folder {self.folder}; give the one that holds the runs (--output-dir "
                "of phalanx train)"
            )
