"""Meander as an attacker of one's own: to be measured beside the one inside the kernel.

It is an example, too: `examples/attackers/meander.py` names it.
"""

import numpy as np
import numpy.typing as npt

from phalanx.cage2.attack import (
    all_but,
    attacker,
    escalate,
    exploit,
    failed,
    goal,
    has,
    helper,
    impact,
    known_hosts,
    known_subnets,
    lowest,
    one_of,
    only,
    scan,
    sleep,
    succeeded,
    sweep,
    taken_hosts,
)
from phalanx.cage2.attack.knowledge import View
from phalanx.cage2.rules.scenario import ENTERPRISE_HOSTS, OP_HOSTS

# Words of its memory: sets, and the hosts of its last exploit and of its last escalation, plus one.
SWEPT, SCANNED, EXPLOITED, ESCALATED, MAPPED, LAST_EXPLOIT, LAST_ESCALATION = range(7)
Memory = npt.NDArray[np.int64]


@helper
def learn(net: View, memory: Memory) -> None:
    """What the last move has shown; a failed exploit makes it forget whole subnets [Q10]."""
    if memory[LAST_EXPLOIT]:
        host = memory[LAST_EXPLOIT] - 1
        memory[LAST_EXPLOIT] = 0
        if succeeded(net):
            memory[MAPPED] |= only(host)
        else:
            lost = memory[ESCALATED] & OP_HOSTS
            if lost == 0:
                lost = memory[ESCALATED] & ENTERPRISE_HOSTS
            memory[EXPLOITED] &= all_but(host) & ~lost
            memory[ESCALATED] &= ~lost
    if memory[LAST_ESCALATION]:
        host = memory[LAST_ESCALATION] - 1
        memory[LAST_ESCALATION] = 0
        if failed(net):
            memory[ESCALATED] &= all_but(host)
            if has(memory[MAPPED], host):
                memory[EXPLOITED] &= all_but(host)


@helper
def next_move(net: View, memory: Memory, die: int) -> int:
    """Sweep, scan, escalate, exploit: the first of these that is left to do."""
    learn(net, memory)
    if has(memory[ESCALATED], goal(net)):
        memory[LAST_ESCALATION] = goal(net) + 1
        return impact(goal(net))
    unswept = known_subnets(net) & ~memory[SWEPT]
    if unswept:
        memory[SWEPT] |= only(lowest(unswept))
        return sweep(lowest(unswept))
    unscanned = known_hosts(net) & ~memory[SCANNED]
    if unscanned:
        host = one_of(unscanned, die)
        memory[SCANNED] |= only(host)
        return scan(host)
    held = taken_hosts(net) & ~memory[ESCALATED] & (~memory[MAPPED] | memory[EXPLOITED])
    if held:
        host = one_of(held, die)
        memory[ESCALATED] |= only(host)
        memory[LAST_ESCALATION] = host + 1
        return escalate(host)
    left = known_hosts(net) & ~memory[EXPLOITED]
    if left == 0:
        return sleep()
    host = one_of(left, die)
    memory[EXPLOITED] |= only(host)
    memory[LAST_EXPLOIT] = host + 1
    return exploit(host)


@attacker
def meander(net: View, memory: Memory, die: int) -> int:
    """Takes everything, one host after the other."""
    return next_move(net, memory, die)
