"""An attacker that never escalates: it collects sessions of users.

    phalanx evaluate react-restore --red-agent examples/attackers/quiet.py:quiet

`for_cyborg.py` has the same attacker for the original.
"""

from typing import Any

from phalanx.cage2.attack import (
    attacker,
    exploit,
    first_host,
    helper,
    knows,
    num_hosts,
    scan,
    subnet_of,
    sweep,
    turn,
)

EVERY = 8  # turns between two scans
TARGET = 0  # word of its memory


@helper
def next_known(net: Any, host: int) -> int:
    """The next host after this one whose address red knows."""
    host = (host + 1) % num_hosts(net)
    while not knows(net, host):
        host = (host + 1) % num_hosts(net)
    return host


@attacker
def quiet(net: Any, memory: Any, die: int) -> int:
    if turn(net) == 0:
        return sweep(subnet_of(net, first_host(net)))
    is_early = turn(net) < EVERY
    if is_early or turn(net) % EVERY < 2:
        memory[TARGET] = next_known(net, memory[TARGET])
        return scan(memory[TARGET])
    if turn(net) % 3 == 0:  # otherwise the same host again
        memory[TARGET] = next_known(net, memory[TARGET])
    return exploit(memory[TARGET])
