"""What decision.json holds: for each attacker, and for the worst of them, what orders cost."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict


class Named(TypedDict):
    """Which order it is."""

    workflow: int
    order: str
    tried: bool


class Cost(TypedDict):
    """By how many points an order is behind the best one: estimated, at least, at most."""

    may_be_best: bool
    cost: float
    low: float
    high: float


class NoCost(TypedDict):
    """The same where it is not known."""

    may_be_best: Literal[False]
    cost: None
    low: None
    high: None


class Measured(TypedDict):
    """What was measured of an order; None: nothing was."""

    compliance: float | None
    reverse_compliance: float | None
    disputed_fixes: float | None
    """in an episode: that either the order or its reverse allows, and not both"""
    disputed_compliance: float | None
    """the share of these that followed the order"""
    fixes_per_episode: float | None
    by_learner: list[float]
    minus_no_order: Mapping[str, Any] | None
    """an interval"""


Return = TypedDict("Return", {"return": float})
MaybeReturn = TypedDict("MaybeReturn", {"return": float | None})


class Followed(Named, Cost, Return, Measured):
    """An order that can be followed, as far as is known."""

    can_be_followed: Literal[True]


class Failed(Named, NoCost, MaybeReturn, Measured):
    """An order that cannot."""

    can_be_followed: Literal[False]


Order = Followed | Failed


class Effect(TypedDict):
    """How far orders that have a type at a position are above the mean, and ±."""

    effect: float
    reach: float


class Side(TypedDict):
    """The answer for one attacker, or for a mixture."""

    best: int | None
    orders: list[Order]
    positions: list[list[Effect | None]]
    """[type][position]"""
    no_order: Mapping[str, Any] | None
    """an interval"""
    demands: list[list[str]]


class AtWorst(Cost):
    """What an order costs whoever attacks."""

    workflow: int
    order: str


class WorstCase(TypedDict):
    best: int | None
    orders: list[AtWorst]


class Answer(TypedDict):
    """All of it."""

    confidence: float
    margin: float
    """points that nobody minds: only orders that cost more for certain are left out"""
    learners: int
    rules: str
    horizon: int
    weights: dict[str, float]
    exhaustive: bool | None
    against: dict[str, Side]
    worst_case: WorstCase | None
