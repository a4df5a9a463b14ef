"""Meander, the challenge's attacker that takes everything, as an attacker of one's own.

    phalanx evaluate react-restore --red-agent examples/attackers/meander.py:meander

`phalanx bench sim` measures it beside the built-in one, so its text is part of phalanx:
`src/phalanx/bench/attacker.py`, a page long.
"""

from phalanx.bench.attacker import (
    ESCALATED,
    EXPLOITED,
    LAST_ESCALATION,
    LAST_EXPLOIT,
    SCANNED,
    SWEPT,
    learn,
    meander,
    next_move,
)

__all__ = [
    "ESCALATED",
    "EXPLOITED",
    "LAST_ESCALATION",
    "LAST_EXPLOIT",
    "SCANNED",
    "SWEPT",
    "learn",
    "meander",
    "next_move",
]
