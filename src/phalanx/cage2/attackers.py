"""What B-line, Meander and Sleep do next.

Each sees only whether its last action succeeded, and what it knows.
"""

from phalanx.cage2.bits import ALL, all_but, has, only
from phalanx.cage2.network import FALSE, TRUE, Network, one_of
from phalanx.cage2.rule import rule
from phalanx.cage2.scenario import (
    B_LINE,
    ENTERPRISE,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    ENTERPRISE_HOSTS,
    MEANDER,
    NO_HOST,
    OP_HOSTS,
    OP_SERVER0,
    OPERATIONAL,
    USER1,
    USER2,
    USER3,
    USER4,
    USER_SUBNET,
    hosts,
)

RED_ACTIONS = (
    "Sleep", "DiscoverRemoteSystems", "DiscoverNetworkServices", "ExploitRemoteService",
    "PrivilegeEscalate", "Impact",
)  # fmt: skip
RED_SLEEP, SWEEP, SCAN, EXPLOIT, ESCALATE, IMPACT = range(len(RED_ACTIONS))

Move = tuple[int, int]  # what to do, and to which host (or subnet, for a sweep)


@rule
def next_move(net: Network, target_die: int) -> Move:
    """The move of whoever attacks this network."""
    if net.red == B_LINE:
        return b_line(net, target_die)
    if net.red == MEANDER:
        return meander(net, target_die)
    return RED_SLEEP, NO_HOST


# --- B-line: one straight way to the operational server -------------------------------------------

TARGET, GATEWAY = -2, -3  # the user host drawn at the start, and the host that it points to
LINE = (
    (SWEEP, USER_SUBNET),
    (SCAN, TARGET), (EXPLOIT, TARGET), (ESCALATE, TARGET),
    (SCAN, GATEWAY), (EXPLOIT, GATEWAY), (ESCALATE, GATEWAY),
    (SWEEP, ENTERPRISE),
    (SCAN, ENTERPRISE2), (EXPLOIT, ENTERPRISE2), (ESCALATE, ENTERPRISE2),
    (SCAN, OP_SERVER0), (EXPLOIT, OP_SERVER0), (ESCALATE, OP_SERVER0), (IMPACT, OP_SERVER0),
)  # fmt: skip
FALL_BACK = (0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13)  # [step]: where a failure leads
EXPLOIT_SERVER, LAST_STEP = 12, 14
TARGETS = hosts(USER1, USER2, USER3, USER4)
POINT_TO_ENTERPRISE1 = hosts(USER1, USER2)


@rule
def b_line(net: Network, target_die: int) -> Move:
    """The next step of the line after a success, the fall-back step after a failure."""
    if net.succeeded == TRUE:
        step = min(net.line_step + 1, LAST_STEP)
        if step == EXPLOIT_SERVER and net.found_nothing and not has(net.line_done, step):
            step = 1  # [Q8] the scan of the server was empty: nothing to exploit, begin again
    else:
        step = FALL_BACK[net.line_step]
    if net.line_target == NO_HOST and step == 1:
        net.line_target = one_of(TARGETS, target_die)
    net.line_step = step
    net.line_done |= only(step)
    action, target = LINE[step]
    if target == TARGET:
        target = net.line_target
    elif target == GATEWAY:
        target = ENTERPRISE1 if has(POINT_TO_ENTERPRISE1, net.line_target) else ENTERPRISE0
    return action, target


# --- Meander: take everything, one host after the other -------------------------------------------


@rule
def meander(net: Network, target_die: int) -> Move:
    """Sweep what can be swept, scan what was not scanned, escalate where it is, and then exploit
    the next host.
    """
    learn_from_last_move(net)
    if has(net.escalated, OP_SERVER0):
        net.last_escalated = OP_SERVER0
        return IMPACT, OP_SERVER0

    for subnet in (ENTERPRISE, OPERATIONAL, USER_SUBNET):
        if has(net.subnets, subnet) and not has(net.swept, subnet):
            net.swept |= only(subnet)
            return SWEEP, subnet

    unscanned = net.known & (ALL ^ net.scan_tried)
    if unscanned:  # [Q9] a scan that found nothing is never tried again
        host = one_of(unscanned, target_die)
        net.scan_tried |= only(host)
        return SCAN, host

    held = net.named & (ALL ^ net.escalated) & ((ALL ^ net.mapped) | net.exploited)
    if held:
        host = one_of(held, target_die)
        net.escalated |= only(host)
        net.last_escalated = host
        return ESCALATE, host

    host = one_of(
        net.known & (ALL ^ net.exploited), target_die
    )  # [Q10] User0 and Defender are among them
    net.exploited |= only(host)
    net.last_exploited = host
    return EXPLOIT, host


@rule
def learn_from_last_move(net: Network) -> None:
    """Meander's notes on its last exploit or escalation.

    [Q10] A failed exploit makes it forget whole subnets.
    """
    if net.last_exploited != NO_HOST:
        if net.succeeded == TRUE:
            net.mapped |= only(net.last_exploited)
        else:
            net.exploited &= all_but(net.last_exploited)
            lost = net.escalated & OP_HOSTS
            if lost == 0:
                lost = net.escalated & ENTERPRISE_HOSTS
            net.escalated &= ALL ^ lost
            net.exploited &= ALL ^ lost
        net.last_exploited = NO_HOST
    if net.last_escalated != NO_HOST:
        if net.succeeded == FALSE:
            net.escalated &= all_but(net.last_escalated)
            if has(net.mapped, net.last_escalated):
                net.exploited &= all_but(net.last_escalated)
        net.last_escalated = NO_HOST
