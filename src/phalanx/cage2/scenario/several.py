"""One network or many: `cage2`, a file, a folder of files, or `random:…`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from phalanx.cage2.rules.world import Worlds
from phalanx.cage2.scenario.names import is_random
from phalanx.cage2.scenario.packed import files_of
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.random_networks import random_networks
from phalanx.cage2.scenario.random_spec import parse_random
from phalanx.cage2.scenario.read import CAGE2, open_scenario, read_scenario
from phalanx.cage2.scenario.worlds import worlds_of
from phalanx.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Scenarios:
    """The networks that a batch plays: with several, every episode draws one."""

    name: str
    members: tuple[Scenario, ...]
    room: int
    """hosts that records have room for"""

    def worlds(self, by_host: bool | None = None) -> Worlds:
        """Their records; not to be written."""
        return _worlds(self, by_host)


@lru_cache(maxsize=8)  # of hundreds of networks they take a moment
def _worlds(scenarios: Scenarios, by_host: bool | None) -> Worlds:
    return worlds_of(scenarios.members, scenarios.room, by_host)


Source = str | Path | Scenario | Scenarios | Sequence[Scenario]


def open_scenarios(source: Source) -> Scenarios:
    """Networks by name, or those that were read already."""
    if isinstance(source, Scenarios):
        return source
    if isinstance(source, Sequence) and not isinstance(source, str):
        if not source:
            raise ConfigError("give one scenario or more")
        return _together("several", tuple(source))
    if isinstance(source, str) and is_random(source):
        return _random(source)
    if isinstance(source, str | Path) and source != CAGE2.name and Path(source).is_dir():
        return _folder(Path(source))
    scenario = open_scenario(source)
    return _together(scenario.name, (scenario,))


def _together(name: str, members: tuple[Scenario, ...], room: int = 0) -> Scenarios:
    return Scenarios(name, members, max(room, *(len(one.hosts) for one in members)))


@lru_cache(maxsize=8)  # the same words are always the same networks
def _random(text: str) -> Scenarios:
    spec = parse_random(text)
    members = random_networks(spec)
    room = spec.room if spec.network is None else 0
    return _together(members[0].name if spec.network is not None else text, members, room)


def _folder(folder: Path) -> Scenarios:
    return _together(folder.name, tuple(read_scenario(path) for path in files_of(folder)))
