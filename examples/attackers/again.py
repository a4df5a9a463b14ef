"""An attacker that exploits hosts which it holds already, again and again.

    phalanx evaluate react-restore --red-agent examples/attackers/again.py:again

It sweeps and scans what it knows, then goes from host to host: three exploits each, and only then
an escalation. `for_cyborg.py` has the same attacker for the original.
"""

from typing import Any

from phalanx.cage2.attack import (
    all_but,
    attacker,
    escalate,
    exploit,
    failed,
    goal,
    helper,
    impact,
    is_root,
    known_hosts,
    known_subnets,
    knows,
    knows_service,
    knows_system,
    lowest,
    num_hosts,
    only,
    scan,
    sweep,
)

SWEPT, SCANNED, TARGET, STAGE = range(4)  # words of its memory
EXPLOITS = 3  # before it escalates


@helper
def next_known(net: Any, host: int) -> int:
    """The next host after this one whose address red knows."""
    host = (host + 1) % num_hosts(net)
    while not knows(net, host):
        host = (host + 1) % num_hosts(net)
    return host


@attacker
def again(net: Any, memory: Any, die: int) -> int:
    if 0 < memory[STAGE] <= EXPLOITS and failed(net):
        memory[SCANNED] &= all_but(memory[TARGET])  # look again what listens there
    unswept = known_subnets(net) & ~memory[SWEPT]
    if unswept:
        memory[SWEPT] |= only(lowest(unswept))
        return sweep(lowest(unswept))
    unscanned = known_hosts(net) & ~memory[SCANNED]
    if unscanned:
        memory[SCANNED] |= only(lowest(unscanned))
        return scan(lowest(unscanned))
    if memory[STAGE] == 0:
        memory[TARGET] = next_known(net, memory[TARGET])
    target = memory[TARGET]
    memory[STAGE] += 1
    if memory[STAGE] <= EXPLOITS:
        return exploit(target)
    memory[STAGE] = 0
    if target == goal(net) and is_root(net, target) and knows_service(net):
        return impact(target)
    return escalate(target) if knows_system(net, target) else scan(target)
