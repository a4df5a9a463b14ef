"""What an attacker can ask: what red knows, and nothing else.

Sets of hosts are whole numbers: bit k stands for host k.
"""

import numpy as np

from phalanx.cage2.rules.network import FALSE, TRUE
from phalanx.cage2.rules.scenario import NO_HOST, OPTIONS
from phalanx.compiled.bits import has, number
from phalanx.compiled.rule import Record, rule

View = Record  # of one network, as red sees it

SEEN_BY_RED = (
    "turn",
    "known",
    "named",
    "scanned",
    "ports",
    "subnets",
    "succeeded",
    "found_nothing",
    "systems",
    "root_told",
    "service_told",
    "start",
    "goal",
    "num_subnets",
    "home",
    "memory",
)


def view_dtype(whole: np.dtype[np.void]) -> np.dtype[np.void]:
    """The record of a network, of which only this is seen: other fields have no names."""
    assert whole.fields is not None
    places = [whole.fields[name] for name in SEEN_BY_RED]
    return np.dtype(
        {
            "names": list(SEEN_BY_RED),
            "formats": [place[0] for place in places],
            "offsets": [place[1] for place in places],
            "itemsize": whole.itemsize,
        },
        align=True,
    )


# --- the network ----------------------------------------------------------------------------------


@rule
def num_hosts(net: View) -> int:
    """How many hosts there are; they have the numbers 0, 1, … in the order of their names."""
    return len(net.ports)


@rule
def num_subnets(net: View) -> int:
    """How many subnets there are, in the order of the scenario."""
    return number(net.num_subnets)


@rule
def turn(net: View) -> int:
    """Turns that were played in this episode."""
    return number(net.turn)


@rule
def first_host(net: View) -> int:
    """Where red began: a session that blue cannot end (User0 in CAGE-2)."""
    return number(net.start)


@rule
def goal(net: View) -> int:
    """The host that Impact is meant for, Op_Server0, or NO_HOST if there is none."""
    return number(net.goal)


@rule
def subnet_of(net: View, host: int) -> int:
    """The subnet of a host whose address red knows; -1 of any other."""
    return number(net.home[host]) if knows(net, host) else NO_HOST


# --- what red knows -------------------------------------------------------------------------------


@rule
def known_hosts(net: View) -> int:
    """The set of hosts whose address red knows: it can scan and exploit them."""
    return number(net.known)


@rule
def knows(net: View, host: int) -> bool:
    return is_host(net, host) and has(net.known, host)


@rule
def known_subnets(net: View) -> int:
    """The set of subnets that red knows: it can sweep them."""
    return number(net.subnets)


@rule
def knows_subnet(net: View, subnet: int) -> bool:
    return 0 <= subnet < net.num_subnets and has(net.subnets, subnet)


@rule
def scanned_hosts(net: View) -> int:
    """The set of hosts of which red remembers ports."""
    return number(net.scanned)


@rule
def has_scanned(net: View, host: int) -> bool:
    return is_host(net, host) and has(net.scanned, host)


@rule
def exploits_on(net: View, host: int) -> int:
    """The set of exploits (ETERNAL_BLUE, …) that the remembered ports of a host allow.

    ExploitRemoteService draws one of them.
    """
    return number(OPTIONS[net.ports[host]]) if is_host(net, host) else 0


@rule
def taken_hosts(net: View) -> int:
    """The set of hosts on which red has had a session, whose names it knows: it can escalate there.

    Red is not told when blue ends a session: it finds out when an escalation or Impact fails.
    """
    return number(net.named)


@rule
def is_taken(net: View, host: int) -> bool:
    return is_host(net, host) and has(net.named, host)


@rule
def root_hosts(net: View) -> int:
    """The set of hosts on which red was told that it is root (SYSTEM); blue may have ended it."""
    return number(net.root_told)


@rule
def is_root(net: View, host: int) -> bool:
    return is_host(net, host) and has(net.root_told, host)


@rule
def knows_system(net: View, host: int) -> bool:
    """Whether red knows the operating system: ExploitRemoteService told it when it worked.

    A user cannot escalate without that; single exploits do not tell.
    """
    return is_host(net, host) and has(net.systems, host)


@rule
def knows_service(net: View) -> bool:
    """Whether red knows the name of the operational service, which Impact needs."""
    return net.service_told != 0


@rule
def is_host(net: View, host: int) -> bool:
    return 0 <= host < len(net.ports)


# --- red's last action ----------------------------------------------------------------------------


@rule
def succeeded(net: View) -> bool:
    """Whether red's last action was a success. In the first turn, and after Sleep, it was not."""
    return net.succeeded == TRUE


@rule
def failed(net: View) -> bool:
    """Whether red's last action was a failure. In the first turn, and after Sleep, it was not."""
    return net.succeeded == FALSE


@rule
def found_nothing(net: View) -> bool:
    """Whether the last scan showed no port: the host could not be reached."""
    return net.found_nothing != 0
