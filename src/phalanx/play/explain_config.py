"""Settings of `phalanx explain`."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated

from phalanx.cage2.defenders import GREEDY
from phalanx.cage2.settings import MAX_HORIZON, MAX_THREADS
from phalanx.errors import ConfigError
from phalanx.files import check_writable
from phalanx.play.evaluate_config import EvaluateConfig, check_of_cage2
from phalanx.play.plan_config import PlanConfig
from phalanx.settings.fields import OrWord, Within, checked

MAX_TURNS = 20_000_000  # of all episodes against one attacker; each takes some ten bytes


@checked
@dataclass(frozen=True, kw_only=True)
class ExplainConfig(PlanConfig):
    """Show what a defender does, turn by turn and host by host, and where its loss comes from."""

    target: str = field(metadata={"positional": True})
    """run folder, checkpoint, module:factory of your own (docs/defenders.md), or name of a
    defender, such as champion or react-restore; champion+plan is the champion with planning"""
    red_agent: tuple[str, ...] = ("b_line", "meander")
    """attackers: b_line, meander, sleep, or a mixture such as b_line=0.5,meander=0.5"""
    horizon: Annotated[int, Within(1, MAX_HORIZON)] = 100
    """turns of an episode, 1 to 10000"""
    episodes: Annotated[int, Within(2, MAX_TURNS)] = 2000
    """episodes against each attacker"""
    rules: str = ""
    """rule set: 2.1-final or 2.1-leaderboard; a run's own (else 2.1-leaderboard) if not given"""
    scenario: str = ""
    """network: cage2, a file (docs/scenarios.md), or one of random:seed=1,network=0; a run's own
    (else cage2) if not given"""
    workflow: str | None = None
    """order of repair that the policy is told, or all: a mixture; a run's own if not given"""
    network: str | None = None
    """the module:factory of a run that trained a torch network of your own"""
    seed: Annotated[int, Within(0, 2**64 - 1)] = 0
    """the only source of chance; equal seeds give equal figures"""
    num_threads: Annotated[int | str, Within(1, MAX_THREADS), OrWord("auto")] = "auto"
    """threads that play; results do not depend on it"""
    json: Path | None = None
    """also write all figures to this file"""
    plot: Path | None = None
    """also draw them into this file, a PNG (needs matplotlib)"""

    def __post_init__(self) -> None:
        if self.workflow == "named":
            raise ConfigError("explain tells of one workflow at a time; give --workflow ORDER")
        if self.target.lower() == GREEDY and self.workflow is None:
            raise ConfigError("greedy repairs in an order: give --workflow")
        check_of_cage2(self.target, "explain tells of", any_network=True)
        _checked_too = self.played
        if self.episodes * self.horizon > MAX_TURNS:
            raise ConfigError(
                f"{self.episodes} episodes of {self.horizon} turns are more than the "
                f"{MAX_TURNS:,} turns that are remembered; "
                f"try --episodes {max(2, MAX_TURNS // self.horizon)}"
            )
        if self.plot is not None and self.plot.suffix.lower() != ".png":
            raise ConfigError(f"plots are PNG files, got {self.plot}; name it {self.plot.stem}.png")
        check_writable(self.plot)

    @cached_property
    def played(self) -> EvaluateConfig:
        """The same episodes as `phalanx evaluate` plays."""
        same = [
            "episodes",
            "rules",
            "scenario",
            "workflow",
            "network",
            "seed",
            "num_threads",
            "json",
        ]
        same += [item.name for item in fields(PlanConfig)]
        return EvaluateConfig(
            target=(self.target,),
            red_agent=self.red_agent,
            horizon=(self.horizon,),
            **{name: getattr(self, name) for name in same},
        )
