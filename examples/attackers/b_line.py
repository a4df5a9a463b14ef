"""B-line, the challenge's straight way to the operational server, as an attacker of one's own.

    phalanx evaluate react-restore --red-agent examples/attackers/b_line.py:b_line

After a success it takes the next of fifteen steps, after a failure it falls back.
"""

from typing import Any

from phalanx.cage2.attack import (
    attacker,
    escalate,
    exploit,
    first_host,
    found_nothing,
    goal,
    has,
    helper,
    impact,
    known_hosts,
    lowest,
    num_hosts,
    one_of,
    only,
    scan,
    subnet_of,
    succeeded,
    sweep,
)

STEP, DONE, TARGET, GATEWAY, PIVOT = range(5)  # words of its memory
SWEEP, SCAN, EXPLOIT, ESCALATE, IMPACT = range(5)
TAKE = (SCAN, EXPLOIT, ESCALATE)
WHAT = (SWEEP, *TAKE, *TAKE, SWEEP, *TAKE, *TAKE, IMPACT)  # [step]
FALL_BACK = (0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13)  # [step]: where a failure leads
SCAN_TARGET, SCAN_GATEWAY, SCAN_PIVOT, SCAN_SERVER, EXPLOIT_SERVER, LAST = 1, 4, 8, 11, 12, 14


@helper
def next_step(net: Any, step: int, done: int) -> int:
    """Where the success or failure of the last step leads; `done` are the steps made so far."""
    if not succeeded(net):
        return FALL_BACK[step]
    step = min(step + 1, LAST)
    if step == EXPLOIT_SERVER and found_nothing(net) and not has(done, step):
        return SCAN_TARGET  # the server was out of reach: begin again
    return step


@helper
def neighbours(net: Any) -> int:
    """The hosts beside the one where red began, once it has swept its subnet."""
    hosts = 0
    for host in range(num_hosts(net)):
        if host != first_host(net) and subnet_of(net, host) == subnet_of(net, first_host(net)):
            hosts |= only(host)
    return hosts


@helper
def last_known(net: Any, subnet: int) -> int:
    """The last host of a subnet that red knows."""
    host = num_hosts(net) - 1
    while subnet_of(net, host) != subnet:
        host -= 1
    return host


@helper
def host_of(net: Any, step: int, target: int, gateway: int, pivot: int) -> int:
    """The host that a step is about; a sweep is of its subnet."""
    if step < SCAN_TARGET:
        return first_host(net)
    if step < SCAN_GATEWAY:
        return target
    if step < SCAN_PIVOT:
        return gateway
    return pivot if step < SCAN_SERVER else goal(net)


@helper
def move_of(net: Any, step: int, host: int) -> int:
    what = WHAT[step]
    if what == SWEEP:
        return sweep(subnet_of(net, host))
    if what == SCAN:
        return scan(host)
    if what == EXPLOIT:
        return exploit(host)
    return escalate(host) if what == ESCALATE else impact(host)


@helper
def go(net: Any, memory: Any, step: int, die: int) -> int:
    """Make a step. Host 0 is the Defender, which it never goes for: 0 is a host not found yet."""
    memory[STEP] = step
    memory[DONE] |= only(step)
    if step == SCAN_TARGET and memory[TARGET] == 0:
        memory[TARGET] = one_of(neighbours(net), die)
    if step == SCAN_GATEWAY and memory[GATEWAY] == 0:  # all else that it knows was read there
        memory[GATEWAY] = lowest(known_hosts(net))
    if step == SCAN_PIVOT and memory[PIVOT] == 0:
        memory[PIVOT] = last_known(net, subnet_of(net, memory[GATEWAY]))
    host = host_of(net, step, memory[TARGET], memory[GATEWAY], memory[PIVOT])
    return move_of(net, step, host)


@attacker
def b_line(net: Any, memory: Any, die: int) -> int:
    return go(net, memory, next_step(net, memory[STEP], memory[DONE]), die)
