"""The file with which the original plays a scenario."""

import dataclasses
from pathlib import Path

import yaml

from phalanx.cage2.scenario.keys import read_keys
from phalanx.cage2.scenario.original_form import in_original_form
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.read import BUILT_IN
from phalanx.cage2.scenario.several import Source


def original_file(source: Source, scenario: Scenario, folder: Path) -> Path:
    """The user's own file where it has the original's format; else one that is written to `folder`.

    source: where `scenario` was read from. In a file that is written green is asleep: a file cannot
    say how often it acts.
    """
    if isinstance(source, str | Path):
        own = BUILT_IN.get(str(source), Path(source))
        if own.is_file() and "Agents" in read_keys(own).content:
            return own
    written = folder / f"{scenario.name}.yaml"
    asleep = dataclasses.replace(scenario, green=0.0)
    written.write_text(yaml.safe_dump(in_original_form(asleep), sort_keys=False))
    return written
