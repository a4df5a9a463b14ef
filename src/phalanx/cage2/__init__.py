"""CAGE Challenge 2, exact and compiled."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phalanx.cage2.batch import Batch
    from phalanx.cage2.belief import Belief, BeliefBatch
    from phalanx.cage2.defenders import DEFENDERS, make_defender
    from phalanx.cage2.env import Cage2Env
    from phalanx.cage2.history import History
    from phalanx.cage2.rules.scenario import (
        ALL_RED_AGENTS,
        DEFAULT_RULES,
        HOSTS,
        RED_AGENTS,
        RULE_SETS,
        action_index,
        action_name,
    )
    from phalanx.cage2.vector import Cage2VectorEnv

__all__ = [
    "ALL_RED_AGENTS",
    "DEFAULT_RULES",
    "DEFENDERS",
    "HOSTS",
    "RED_AGENTS",
    "RULE_SETS",
    "Batch",
    "Belief",
    "BeliefBatch",
    "Cage2Env",
    "Cage2VectorEnv",
    "History",
    "action_index",
    "action_name",
    "make_defender",
]

_HOMES = {
    "Batch": "batch",
    "Belief": "belief",
    "BeliefBatch": "belief",
    "Cage2Env": "env",
    "Cage2VectorEnv": "vector",
    "DEFENDERS": "defenders",
    "History": "history",
    "make_defender": "defenders",
}


def __getattr__(name: str) -> Any:
    """Compilers and tables come when somebody plays: workers of other games do without them."""
    if name not in __all__:
        raise AttributeError(f"module 'phalanx.cage2' has no attribute {name!r}")
    return getattr(import_module(f"phalanx.cage2.{_HOMES.get(name, 'rules.scenario')}"), name)
