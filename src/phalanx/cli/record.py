"""The command `phalanx record`: games of the original with any scenario, for `phalanx verify`."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from phalanx.cage2.rules.scenario import RED_AGENTS
from phalanx.cage2.settings import MAX_HORIZON, is_own
from phalanx.errors import ConfigError, choices
from phalanx.importing import find_named
from phalanx.settings.fields import Within, checked


@checked
@dataclass(frozen=True, kw_only=True)
class RecordConfig:
    """Play the original, where it is installed, and write what happened for phalanx to replay."""

    scenario: str = "cage2"
    """a file in the original's format or in the short form, cage2, or a single network of
    random:seed=1,network=0 (docs/random-networks.md)"""
    red_agent: str = "b_line"
    """the original's own: b_line, meander or sleep; or a class of yours, my_file.py:MyRed"""
    episodes: Annotated[int, Within(1, 10_000)] = 10
    """how many games; five scripts of blue take turns"""
    horizon: Annotated[int, Within(1, MAX_HORIZON)] = 100
    """turns of each"""
    seed: Annotated[int, Within(0, 2**31)] = 0
    """game k is that of random.seed(seed + k)"""
    green: Annotated[float | None, Within(0, 1)] = None
    """the chance that green acts in a turn: 1 is the original's GreenAgent; if not given, as the
    scenario says"""
    out: Path = Path("recorded")
    """a new folder"""

    def __post_init__(self) -> None:
        if self.red_agent not in RED_AGENTS and not is_own(self.red_agent):
            raise ConfigError(choices("red agent of the original", self.red_agent, RED_AGENTS))
        if self.out.exists():
            raise ConfigError(f"{self.out} exists already; give --out a new folder")


def main(config: RecordConfig) -> int:
    """Record, with progress, and say how to check it."""
    from phalanx.cage2.scenario.original_file import original_file
    from phalanx.cage2.scenario.several import open_scenarios
    from phalanx.cli.scenario import which_one
    from phalanx.display import progress_display
    from phalanx.verify.record import record

    red_agent: str | type = config.red_agent
    if is_own(config.red_agent):
        red_agent = find_named("the class", config.red_agent)
        if not isinstance(red_agent, type):
            raise ConfigError(f"{config.red_agent} is no class of an agent of the original")
    scenario, *others = open_scenarios(config.scenario).members
    if others:
        raise ConfigError(which_one(config.scenario, 1 + len(others)))
    green = scenario.green if config.green is None else config.green
    with tempfile.TemporaryDirectory() as folder:
        source = original_file(config.scenario, scenario, Path(folder))
        with progress_display("games") as progress:
            task = progress.add_task("recording", total=config.episodes, note="")
            record(
                source,
                red_agent,
                config.episodes,
                config.horizon,
                config.out,
                config.seed,
                green,
                lambda done: progress.update(task, completed=done),
            )
    print(f"{config.episodes} games in {config.out}; check them: phalanx verify {config.out}")
    return 0
