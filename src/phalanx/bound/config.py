"""Settings of `phalanx bound`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, DEFAULT_RULES, HORIZONS, RED_AGENTS
from phalanx.cage2.settings import MAX_HORIZON, red_agent_number, refuse_own, rule_set_number
from phalanx.errors import ConfigError
from phalanx.files import check_writable
from phalanx.settings.fields import Within, checked


@checked
@dataclass(frozen=True, kw_only=True)
class BoundConfig:
    """Compute what no defender can beat: an upper bound on the mean return."""

    red_agent: tuple[str, ...] = ("b_line", "meander")
    """attackers: b_line, meander, sleep"""
    horizon: Annotated[tuple[int, ...], Within(1, MAX_HORIZON)] = HORIZONS
    """turns of an episode, 1 to 10000"""
    rules: str = DEFAULT_RULES
    """rule set: 2.1-final or 2.1-leaderboard"""
    json: Path | None = None
    """also write the bounds to this file"""

    def __post_init__(self) -> None:
        rule_set_number(self.rules)
        if not self.horizon:
            raise ConfigError("give at least one horizon")
        for name in self.red_agent:
            refuse_own(name, "a bound foresees the built-in attackers only")
        names = tuple(ALL_RED_AGENTS[red_agent_number(name)] for name in self.red_agent)
        for name in names:
            if name not in RED_AGENTS:
                raise ConfigError(
                    f"there is no bound for red agent {name}; choose from {', '.join(RED_AGENTS)}"
                )
        object.__setattr__(self, "red_agent", names)
        check_writable(self.json)
