"""Settings of `phalanx compare`."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated

from phalanx.cage2.registration import CAGE2_ENVS
from phalanx.cage2.settings import MAX_THREADS, red_agent_weights
from phalanx.errors import ConfigError
from phalanx.files import check_writable
from phalanx.settings.fields import OneOf, OrWord, Within, checked, section
from phalanx.show.runs.runs import RunRow, find_runs, read_run

MOST_RUNS = 1000


@checked
@dataclass(frozen=True, kw_only=True)
class CompareConfig:
    """Which run is better, by how much, and how sure that is.

    Policies that can be played are played on the same dice, episode by episode. Without --by, that
    tells which policy is better, not which settings are: for that give runs with several seeds each
    and --by seed. Differences are corrected for their number (Holm); what is told as no difference
    is told with the difference that would have been found in four of five cases.
    """

    section("runs")
    runs: tuple[Path, ...] = field(default=(), metadata={"positional": True, "metavar": "RUN"})
    """run folders, two or more; a folder that holds several, such as a sweep, stands for all"""
    by: Annotated[str, OneOf("", "seed", "folder")] = ""
    """seed: runs with equal settings but for the seed are one group, and seeds are what varies;
    folder: so are runs that lie in the same folder, such as those of two versions of the code"""

    section("games")
    episodes: Annotated[int, Within(0, 10**7)] = 1000
    """to play of each kind; 0: compare what was returned at the end of training instead"""
    red_agent: tuple[str, ...] = ("b_line", "meander", "sleep")
    """attackers to play against, on CAGE-2"""
    seed: Annotated[int, Within(0, 2**64 - 1)] = 0
    """of the dice; equal seeds give equal results"""
    env: str | None = None
    """the environment of runs on one of your own, module:factory: a file cannot name code"""
    network: str | None = None
    """the module:factory of runs that trained a torch network of your own"""
    num_threads: Annotated[int | str, Within(1, MAX_THREADS), OrWord("auto")] = "auto"
    """threads that play; results do not depend on it"""

    section("output")
    out: Path | None = None
    """also write a page with curves, such as compare.html"""
    csv: Path | None = None
    """also write all differences to this file, a row each"""
    json: Path | None = None
    """also write all that is known to this file"""

    def __post_init__(self) -> None:
        for spec in self.red_agent:
            red_agent_weights(spec)
        for path in self.runs:
            if not path.is_dir():
                raise ConfigError(f"there is no run folder {path}; phalanx runs lists them")
        if not 2 <= len(self.rows) <= MOST_RUNS:
            raise ConfigError(
                f"compare needs 2 to {MOST_RUNS:,} run folders, got {len(self.rows)}; phalanx runs "
                "lists them"
            )
        envs = {row.env: row.name for row in self.rows if row.env is not None}
        if len(envs) > 1:
            (one, its_run), (other, its_other) = list(envs.items())[:2]
            raise ConfigError(
                f"{its_run} plays {one}, {its_other} plays {other}; compare runs of one environment"
            )
        for file in (self.out, self.csv, self.json):
            check_writable(file)

    @cached_property
    def rows(self) -> tuple[RunRow, ...]:
        """The runs, each once, by a short name of its own."""
        paths: dict[Path, Path] = {}
        for given in self.runs:
            found = [path for path in find_runs(given) if not (path / "sweep.csv").exists()]
            for path in found or [given]:
                paths.setdefault(path.resolve(), path)
        names = short_names([str(path) for path in paths.values()])
        return tuple(
            read_run(path, name=name) for path, name in zip(paths.values(), names, strict=True)
        )

    @property
    def is_cage2(self) -> bool:
        return all(row.env in CAGE2_ENVS for row in self.rows)


def short_names(paths: list[str]) -> list[str]:
    """Paths without the folders that all of them begin with; a single one by its own name."""
    parts = [Path(path).parts for path in paths]
    shared = 0
    while all(len(one) > shared + 1 for one in parts) and len({one[shared] for one in parts}) == 1:
        shared += 1
    return [str(Path(*one[shared:])) for one in parts]
