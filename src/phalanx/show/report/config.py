"""Settings of `phalanx report`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from phalanx.errors import ConfigError
from phalanx.files import check_writable
from phalanx.settings.fields import Within, checked
from phalanx.show.runs.runs import find_runs


@checked
@dataclass(frozen=True, kw_only=True)
class ReportConfig:
    """Write runs as one HTML page: curves with intervals, speed, scores, episodes, settings.

    It opens from disk, without a network, and tells what runs returned, how they learnt, how fast,
    their scores beside the published ones, the best and worst episodes to replay, and settings that
    differ from the defaults; of searches and sweeps, what they tried. A run that crashed, or is
    still at work, is told as far as it came.
    """

    runs: tuple[Path, ...] = field(default=(), metadata={"positional": True, "metavar": "RUN"})
    """folders of phalanx train, search or sweep"""
    out: Path = Path("report.html")
    """the page to write"""
    episodes: Annotated[int | None, Within(0, 10**7)] = None
    """to play of each kind for the scores; if not given, what was played after training is shown,
    or else 1,000 are played on CAGE-2; 0: none are played"""
    replays: Annotated[int, Within(0, 10**6)] = 200
    """episodes of which the best and the worst are shown turn by turn, against each of two
    attackers; 0: none"""

    def __post_init__(self) -> None:
        if not self.runs:
            raise ConfigError("give one or more run folders; phalanx runs lists them")
        for path in self.runs:
            if not path.is_dir():
                raise ConfigError(f"there is no run folder {path}; phalanx runs lists them")
            inside = list(find_runs(path))
            if path not in inside:
                hint = f"; it holds {inside[0]}" if inside else ""
                raise ConfigError(f"{path} is no folder of a run, search or sweep{hint}")
        check_writable(self.out)
