"""A scenario by the name of its file, or by its own name."""

from pathlib import Path

from phalanx.cage2.scenario.keys import read_keys
from phalanx.cage2.scenario.original import read_original
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.short import read_short
from phalanx.cage2.scenario.worlds import check_sizes, worlds_of

BUILT_IN = {"cage2": Path(__file__).parent / "cage2.yaml"}


def read_scenario(source: str | Path) -> Scenario:
    """`cage2`, or a file in the original's format or in the short form."""
    keys = read_keys(BUILT_IN.get(str(source), Path(source)))
    is_original = "Agents" in keys.content or "Hosts" in keys.content
    scenario = read_original(keys) if is_original else read_short(keys)
    check_sizes(scenario)
    return scenario


def open_scenario(scenario: str | Path | Scenario) -> Scenario:
    """One that was read already, or is now."""
    if isinstance(scenario, Scenario):
        return scenario
    return CAGE2 if scenario == CAGE2.name else read_scenario(scenario)


CAGE2 = read_scenario("cage2")
CAGE2_WORLDS = worlds_of([CAGE2])
