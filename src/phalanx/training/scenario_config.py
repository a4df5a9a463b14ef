"""Which settings go with networks other than CAGE-2's."""

from typing import TYPE_CHECKING

from phalanx.cage2.scenario.names import CAGE2_NAME, absolute, is_random
from phalanx.cage2.scenario.random_spec import parse_random
from phalanx.errors import ConfigError

if TYPE_CHECKING:
    from phalanx.training.config import TrainConfig

HOSTS = "hosts"  # the built-in network that shares weights over hosts


def checked_scenario(run: "TrainConfig") -> str:
    """The scenario of a run's settings, if it goes with all the others."""
    if run.scenario != CAGE2_NAME:
        _only("--scenario", run.env == "cage2", "the compiled cage2 (--env cage2)")
        of_cage2 = f"CAGE-2 itself, not for --scenario {run.scenario}"
        if run.workflow is not None:
            raise ConfigError(
                "orders of repair (--workflow, phalanx search) are orders of the kinds of hosts of "
                f"CAGE-2 itself; leave out --scenario {run.scenario}"
            )
        _only("--teacher", run.teacher is None, of_cage2)
    if run.network == HOSTS:
        _only(f"--network {HOSTS}", run.env == "cage2", "the compiled cage2 (--env cage2)")
        _only(
            f"--network {HOSTS}",
            run.observation != "bits",
            "--observation history, memory, belief or truth, which tell what a host is",
        )
    if is_random(run.scenario):
        parse_random(run.scenario)
    return absolute(run.scenario)


def _only(setting: str, holds: bool, what: str) -> None:
    if not holds:
        raise ConfigError(f"{setting} is for {what}; leave it out")
