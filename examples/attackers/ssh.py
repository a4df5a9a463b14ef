"""An attacker that guesses passwords: SSH brute force on everything.

    phalanx evaluate react-restore --red-agent examples/attackers/ssh.py:ssh

In one round it uses that single exploit; in the next it lets ExploitRemoteService prefer it, which
also tells the operating system, so that it can escalate. `for_cyborg.py` has the same attacker for
the original.
"""

from typing import Any

from phalanx.cage2.attack import (
    SSH,
    attacker,
    escalate,
    exploit_first,
    has_scanned,
    helper,
    known_subnets,
    knows,
    lowest,
    num_hosts,
    only,
    scan,
    ssh_brute_force,
    succeeded,
    sweep,
)

SWEPT, TARGET, ROUND, TAKEN, TRIED = range(5)  # words of its memory


@helper
def next_target(net: Any, memory: Any) -> int:
    """The next host whose address red knows; after the last one a new round begins."""
    memory[TARGET] += 1
    while memory[TARGET] >= num_hosts(net) or not knows(net, memory[TARGET]):
        if memory[TARGET] >= num_hosts(net):
            memory[TARGET] = -1
            memory[ROUND] += 1
        memory[TARGET] += 1
    return memory[TARGET]


@attacker
def ssh(net: Any, memory: Any, die: int) -> int:
    if memory[TAKEN]:  # the last move was a preferred exploit
        memory[TAKEN] = 0
        if succeeded(net):
            return escalate(memory[TARGET])
    unswept = known_subnets(net) & ~memory[SWEPT]
    if unswept:
        memory[SWEPT] |= only(lowest(unswept))
        return sweep(lowest(unswept))
    target = memory[TARGET] if memory[TRIED] else next_target(net, memory)
    memory[TRIED] = 0
    if memory[ROUND] % 2 == 0:
        return ssh_brute_force(target)
    if not has_scanned(net, target):
        memory[TRIED] = 1
        return scan(target)
    memory[TAKEN] = 1
    return exploit_first(target, SSH)
