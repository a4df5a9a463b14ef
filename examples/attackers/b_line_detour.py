"""B-line with a detour: it takes a second user host before it goes on, from there.

    phalanx evaluate react-restore --red-agent examples/attackers/b_line_detour.py:b_line_detour

The second one is the host half a round further on; in CAGE-2 it points to the other gateway.
"""

from typing import Any

from b_line import DONE, GATEWAY, SCAN_GATEWAY, SCAN_TARGET, STEP, TARGET, go, neighbours, next_step

from phalanx.cage2.attack import attacker, count, helper, known_hosts, lowest, only

KNEW = 5  # word of its memory: the hosts that it knew when it made the detour


@helper
def opposite(hosts: int, host: int) -> int:
    """The member of a set that is half a round further on."""
    for _ in range(count(hosts) // 2):
        later = hosts & ~(2 * only(host) - 1)
        host = lowest(later if later else hosts)
    return host


@attacker
def b_line_detour(net: Any, memory: Any, die: int) -> int:
    step = next_step(net, memory[STEP], memory[DONE])
    if step == SCAN_GATEWAY and memory[KNEW] == 0:
        memory[KNEW] = known_hosts(net)
        memory[TARGET] = opposite(neighbours(net), memory[TARGET])
        step = SCAN_TARGET
    if step == SCAN_GATEWAY and memory[GATEWAY] == 0:  # what its second target has told
        new = known_hosts(net) & ~memory[KNEW]
        memory[GATEWAY] = lowest(new if new else known_hosts(net))
    return go(net, memory, step, die)
