"""What an attacker does with its die: 63 random bits of its own in every turn.

They are rolled apart from all other dice, so that an attacker that looks at them, or does not,
changes nothing else.
"""

import numpy as np

from phalanx.cage2.rules.network import mix
from phalanx.compiled.bits import count, lowest, number
from phalanx.compiled.rule import rule

_STEP = np.uint64(0x9E3779B97F4A7C15)


@rule
def reroll(die: int) -> int:
    """Another die, made of this one: for a second question in the same turn."""
    return number(mix(np.uint64(die) + _STEP) >> np.uint64(1))


@rule
def below(die: int, size: int) -> int:
    """A number from 0 to size - 1, each as likely as the others."""
    return ((die >> 31) * size) >> 32


@rule
def chance(die: int, share: float) -> bool:
    """True in this share of all turns."""
    return (die >> 31) < share * 4294967296.0


@rule
def one_of(members: int, die: int) -> int:
    """A member of a set that has one, each as likely as the others."""
    for _ in range(below(die, count(members))):
        members &= members - 1
    return lowest(members)
