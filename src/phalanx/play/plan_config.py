"""Settings of planning: how many games a decision is worth."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from phalanx.cage2.settings import MAX_HORIZON
from phalanx.settings.fields import Only, Within, checked, section

MOST_GAMES = 10_000
SUFFIX = "+plan"


def is_planned(name: str | Path) -> bool:
    """Whether a defender of this name plans: `champion+plan`, unless that is a file or a folder."""
    return str(name).endswith(SUFFIX) and not Path(name).exists()


def base_of(name: str | Path) -> str:
    """The name of the policy on top of which a defender plans, if it does."""
    return str(name).removesuffix(SUFFIX) if is_planned(name) else str(name)


def _plans(config: "PlanConfig") -> bool:
    """PlanConfig by itself is for one that does; commands name their defenders."""
    named = getattr(config, "policies", None) or (getattr(config, "target", SUFFIX),)
    return any(map(is_planned, named))


PLANNED = Only(f"defenders that plan, such as champion{SUFFIX}", _plans)


@checked
@dataclass(frozen=True, kw_only=True)
class PlanConfig:
    """How a defender plans: what it tries, in how many games, and what it assumes."""

    section("planning", rarely=True)
    plan_candidates: Annotated[int, Within(2, 145), PLANNED] = 16
    """actions that are tried in each decision: the policy's most likely ones, and besides them
    Restore, Remove and Analyse of hosts that red may be on"""
    plan_screen: Annotated[int, Within(2, MOST_GAMES), PLANNED] = 48
    """short games for each that a third as many do not rule out, all with the same dice"""
    plan_turns: Annotated[int, Within(1, MAX_HORIZON), PLANNED] = 12
    """turns of a short game; then the critic says what is to come. Three times as many if there is
    no critic that counts as planning does"""
    plan_gain: Annotated[float, Within(0, 1e3), PLANNED] = 0.05
    """points by which an action must do better than the policy's own in short games to go on"""
    plan_finalists: Annotated[int, Within(1, 144), PLANNED] = 3
    """actions that go on at most, the best; these are played to the end"""
    plan_confirm: Annotated[int, Within(2, MOST_GAMES), PLANNED] = 192
    """games to the end for each that a quarter as many do not rule out"""
    plan_margin: Annotated[float, Within(0, 100), PLANNED] = 2.0
    """standard errors by which an action must be better than the policy's own to be played"""
    plan_horizon: Annotated[tuple[int, ...], Within(1, MAX_HORIZON), PLANNED] = ()
    """turns after which the episode may end, which a defender is not told: a reward counts once for
    each that it comes before; as in the policy's training if not given (30, 50, 100)"""
