"""What B-line, Meander and Sleep do next, and three attackers that the original does not have.

Each sees only whether its last action succeeded, and what it knows.
"""

from phalanx.cage2.rules.network import FALSE, TRUE, Network, heads
from phalanx.cage2.rules.own_attackers import plan_own_if_any
from phalanx.cage2.rules.red_actions import ESCALATE, EXPLOIT, IMPACT, RED_SLEEP, SCAN, SWEEP
from phalanx.cage2.rules.scenario import (
    B_LINE,
    B_LINE_DETOUR,
    COIN,
    MEANDER,
    MEANDER_RESCAN,
    NO_HOST,
)
from phalanx.cage2.rules.sessions import own_red
from phalanx.cage2.rules.world import World
from phalanx.compiled.bits import ALL, all_but, has, lowest, number, only
from phalanx.compiled.rule import rule

Plan = tuple[int, int]  # what to do, and the set of hosts (or subnets, for a sweep) it draws from
ROLLED = -1  # a coin that is thrown; 0 and 1 are loaded


@rule
def plan_move(world: World, net: Network, coin: int) -> Plan:
    """What the attacker of this network does next, and to one of which hosts."""
    player = number(net.red)
    if player == COIN:
        player = whose_move(world, net, coin)
    if player in (B_LINE, B_LINE_DETOUR):
        return plan_line(world, net)
    if player in (MEANDER, MEANDER_RESCAN):
        return plan_meander(world, net)
    return plan_own_if_any(own_red(net), world)


@rule
def note_target(net: Network, action: int, target: int) -> None:
    """What the attacker writes down once the target of its planned move is drawn."""
    player = number(net.red)
    if player == COIN:
        player = MEANDER if has(net.line_done, STEP_IS_DUE) else B_LINE
    if player in (B_LINE, B_LINE_DETOUR):
        note_line(net, action, target)
    elif player in (MEANDER, MEANDER_RESCAN):
        note_meander(net, action, target)


# --- B-line: one straight way to the operational server -------------------------------------------

# Whom a step is about: the user host drawn at the start, the host that it points to, the third host
# of that one's subnet, the operational server; sweeps are of the subnets of red's first host and of
# the gateway.
START, TARGET, GATEWAY, PIVOT, GOAL = range(5)
LINE = (
    (SWEEP, START),
    (SCAN, TARGET), (EXPLOIT, TARGET), (ESCALATE, TARGET),
    (SCAN, GATEWAY), (EXPLOIT, GATEWAY), (ESCALATE, GATEWAY),
    (SWEEP, GATEWAY),
    (SCAN, PIVOT), (EXPLOIT, PIVOT), (ESCALATE, PIVOT),
    (SCAN, GOAL), (EXPLOIT, GOAL), (ESCALATE, GOAL), (IMPACT, GOAL),
)  # fmt: skip
FALL_BACK = (0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13)  # [step]: where a failure leads
SCAN_GATEWAY, EXPLOIT_SERVER, LAST_STEP = 4, 12, 14

# What the spare bit of `line_done` says.
DETOUR_MADE = 15  # b_line_detour: it goes for its second user host
STEP_IS_DUE = 15  # coin: `line_step` is B-line's next step, not its last one


@rule
def plan_line(world: World, net: Network) -> Plan:
    """The next step of the line after a success, the fall-back step after a failure."""
    step = number(net.line_step) if net.red == COIN else step_after_last(world, net)
    net.line_step = step
    net.line_done |= only(step)
    if net.red == COIN:
        net.line_done &= all_but(STEP_IS_DUE)
    action, role = LINE[step]
    if role == TARGET and net.line_target == NO_HOST and step == 1:
        return action, number(world.line_targets)
    host = host_in_role(world, net, role)
    return action, only(world.subnet[host] if action == SWEEP else host)


@rule
def host_in_role(world: World, net: Network, role: int) -> int:
    """The host that a step of the line is about."""
    if role == START:
        return number(world.start)
    if role == GOAL:
        return number(world.goal)
    host = number(net.line_target)
    if role == TARGET:
        return host
    host = number(world.gateway[host])
    return host if role == GATEWAY else number(world.pivot[host])


@rule
def note_line(net: Network, action: int, target: int) -> None:
    if net.line_target == NO_HOST and net.line_step == 1:
        net.line_target = target
    if net.red == COIN:
        note_for_meander(net, action, target)


@rule
def step_after_last(world: World, net: Network) -> int:
    """Where the success or failure of the last step leads."""
    if net.succeeded != TRUE:
        return FALL_BACK[net.line_step]
    step = min(number(net.line_step) + 1, LAST_STEP)
    if step == EXPLOIT_SERVER and net.found_nothing and not has(net.line_done, step):
        return 1  # [Q8] the scan of the server was empty: nothing to exploit, begin again
    if step == SCAN_GATEWAY and net.red == B_LINE_DETOUR and not has(net.line_done, DETOUR_MADE):
        net.line_done |= only(DETOUR_MADE)
        net.line_target = world.detour[net.line_target]
        return 1
    return step


# --- Meander: take everything, one host after the other -------------------------------------------


@rule
def plan_meander(world: World, net: Network) -> Plan:
    """Sweep what can be swept, scan what was not scanned, escalate where it is, and then exploit
    the next host.
    """
    learn_from_last_move(world, net)
    if world.goal != NO_HOST and has(net.escalated, world.goal):
        return IMPACT, only(world.goal)
    unswept = number(net.subnets) & ~number(net.swept)
    if unswept:
        return SWEEP, only(lowest(unswept))
    unscanned = net.known & (ALL ^ net.scan_tried)
    if unscanned:  # [Q9] a scan that found nothing is never tried again
        return SCAN, unscanned
    held = net.named & (ALL ^ net.escalated) & ((ALL ^ net.mapped) | net.exploited)
    if held:
        return ESCALATE, held
    # [Q10] User0 and Defender are among them
    left = net.known & (ALL ^ net.exploited)
    return (EXPLOIT, left) if left else (RED_SLEEP, left)  # the original stops with an error


@rule
def note_meander(net: Network, action: int, target: int) -> None:
    if action == SWEEP:
        net.swept |= only(target)
    elif action == SCAN:
        net.scan_tried |= only(target)
    elif action == EXPLOIT:
        net.exploited |= only(target)
        net.last_exploited = target
    else:
        if action == ESCALATE:
            net.escalated |= only(target)
        net.last_escalated = target


@rule
def learn_from_last_move(world: World, net: Network) -> None:
    """Meander's notes on its last exploit or escalation.

    [Q10] A failed exploit makes it forget whole subnets.
    """
    if net.last_exploited != NO_HOST:
        if net.succeeded == TRUE:
            net.mapped |= only(net.last_exploited)
        else:
            net.exploited &= all_but(net.last_exploited)
            lost = net.escalated & world.op_named
            if lost == 0:
                lost = net.escalated & world.ent_named
            net.escalated &= ALL ^ lost
            net.exploited &= ALL ^ lost
            if net.red == MEANDER_RESCAN:
                net.scan_tried &= all_but(net.last_exploited)
        net.last_exploited = NO_HOST
    if net.last_escalated != NO_HOST:
        if net.succeeded == FALSE:
            net.escalated &= all_but(net.last_escalated)
            if has(net.mapped, net.last_escalated):
                net.exploited &= all_but(net.last_escalated)
        net.last_escalated = NO_HOST


# --- Coin: now a move of B-line's, now one of Meander's -------------------------------------------


@rule
def whose_move(world: World, net: Network, coin: int) -> int:
    """B_LINE or MEANDER, by a fair coin; but who has just taken a host also escalates there.

    So no host is exploited while red is a mere user on it, as with the original's attackers.
    """
    line_moved_last = not has(net.line_done, STEP_IS_DUE)
    if line_moved_last:
        net.line_step = step_after_last(world, net)
        net.line_done |= only(STEP_IS_DUE)
    just_taken = net.last_exploited != NO_HOST and net.succeeded == TRUE
    learn_from_last_move(world, net)
    lines_turn = line_moved_last
    if not just_taken:
        lines_turn = heads(net) if coin == ROLLED else coin == 1
    return B_LINE if lines_turn else MEANDER


@rule
def note_for_meander(net: Network, action: int, target: int) -> None:
    """Meander's notes on a move of B-line's, as if it were its own."""
    if action == EXPLOIT:
        net.escalated &= all_but(target)
    note_meander(net, action, target)
