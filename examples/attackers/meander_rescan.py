"""Meander that looks again: a host that it failed to exploit is scanned once more.

    phalanx evaluate react-restore --red-agent examples/attackers/meander_rescan.py:meander_rescan

So it finds the decoys that blue has placed since, where Meander goes by what it once saw.
"""

from typing import Any

from meander import LAST_EXPLOIT, SCANNED, next_move

from phalanx.cage2.attack import all_but, attacker, succeeded


@attacker
def meander_rescan(net: Any, memory: Any, die: int) -> int:
    if memory[LAST_EXPLOIT] and not succeeded(net):
        memory[SCANNED] &= all_but(memory[LAST_EXPLOIT] - 1)
    return next_move(net, memory, die)
