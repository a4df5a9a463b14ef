"""CAGE Challenge 2, exact and compiled."""

from phalanx.cage2.batch import Batch
from phalanx.cage2.defenders import DEFENDERS, make_defender
from phalanx.cage2.env import Cage2Env, Cage2VectorEnv
from phalanx.cage2.observation import History
from phalanx.cage2.scenario import (
    ALL_RED_AGENTS,
    DEFAULT_RULES,
    HOSTS,
    RED_AGENTS,
    RULE_SETS,
    action_index,
    action_name,
)

__all__ = [
    "ALL_RED_AGENTS",
    "DEFAULT_RULES",
    "DEFENDERS",
    "HOSTS",
    "RED_AGENTS",
    "RULE_SETS",
    "Batch",
    "Cage2Env",
    "Cage2VectorEnv",
    "History",
    "action_index",
    "action_name",
    "make_defender",
]
