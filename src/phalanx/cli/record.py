"""The command `phalanx record`: games of the original with any scenario, for `phalanx verify`."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from phalanx.cage2.rules.scenario import RED_AGENTS
from phalanx.cage2.settings import MAX_HORIZON
from phalanx.errors import ConfigError, choices
from phalanx.settings.fields import Within, checked


@checked
@dataclass(frozen=True, kw_only=True)
class RecordConfig:
    """Play the original, where it is installed, and write what happened for phalanx to replay."""

    scenario: str = "cage2"
    """a file in the original's format or in the short form, or cage2"""
    red_agent: str = "b_line"
    """the original's own: b_line, meander or sleep"""
    episodes: Annotated[int, Within(1, 10_000)] = 10
    """how many games; five scripts of blue take turns"""
    horizon: Annotated[int, Within(1, MAX_HORIZON)] = 100
    """turns of each"""
    seed: Annotated[int, Within(0, 2**31)] = 0
    """game k is that of random.seed(seed + k)"""
    out: Path = Path("recorded")
    """a new folder"""

    def __post_init__(self) -> None:
        if self.red_agent not in RED_AGENTS:
            raise ConfigError(choices("red agent of the original", self.red_agent, RED_AGENTS))
        if self.out.exists():
            raise ConfigError(f"{self.out} exists already; give --out a new folder")


def main(config: RecordConfig) -> int:
    """Record, with progress, and say how to check it."""
    import yaml

    from phalanx.cage2.scenario.keys import read_keys
    from phalanx.cage2.scenario.original_form import in_original_form
    from phalanx.cage2.scenario.read import BUILT_IN, read_scenario
    from phalanx.display import progress_display
    from phalanx.verify.record import record

    source = BUILT_IN.get(config.scenario, Path(config.scenario))
    with tempfile.TemporaryDirectory() as folder:
        if "Agents" not in read_keys(source).content:  # the original does not know the short form
            scenario = read_scenario(config.scenario)
            source = Path(folder) / f"{scenario.name}.yaml"
            source.write_text(yaml.safe_dump(in_original_form(scenario), sort_keys=False))
        with progress_display("games") as progress:
            task = progress.add_task("recording", total=config.episodes, note="")
            record(
                source,
                config.red_agent,
                config.episodes,
                config.horizon,
                config.out,
                config.seed,
                lambda done: progress.update(task, completed=done),
            )
    print(f"{config.episodes} games in {config.out}; check them: phalanx verify {config.out}")
    return 0
