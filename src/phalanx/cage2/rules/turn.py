"""One turn in the order of the rule book."""

from phalanx.cage2.rules import blue, red
from phalanx.cage2.rules.attackers import ROLLED, note_target, plan_move
from phalanx.cage2.rules.green import ports_within
from phalanx.cage2.rules.network import (
    UNKNOWN,
    Network,
    one_of,
)
from phalanx.cage2.rules.observation import (
    activity,
    forget_activity,
    mark_activity,
    mark_cleaned,
    mark_malware,
    mark_removed,
)
from phalanx.cage2.rules.own_attackers import exploit_by_name_if_any
from phalanx.cage2.rules.red_actions import (
    ESCALATE,
    EXPLOIT,
    FIRST_PREFERRED,
    IMPACT,
    RED_SLEEP,
    SCAN,
    SWEEP,
)
from phalanx.cage2.rules.scenario import (
    ANALYSE,
    FIRST_DECOY,
    NO_EXPLOIT,
    NO_HOST,
    REMOVE,
    RESTORE,
    SHUFFLE,
    SLEEP,
)
from phalanx.cage2.rules.scoring import cost
from phalanx.cage2.rules.sessions import note_system_if_any, own_red
from phalanx.cage2.rules.web_decoys import connections_of_green
from phalanx.cage2.rules.world import World, host_of, verb_of
from phalanx.compiled.bits import number
from phalanx.compiled.rule import rule


@rule
def blue_moves(world: World, net: Network, verb: int, host: int) -> tuple[int, int]:
    """Blue's action.

    Returns the host on which malware was found and the host with a new decoy, or NO_HOST.
    """
    if verb >= SLEEP:
        if verb == SHUFFLE:
            blue.shuffle(net, host)
        return NO_HOST, NO_HOST
    if verb == RESTORE:
        blue.restore(world, net, host)
        mark_cleaned(net, host)
    elif verb == REMOVE:
        blue.remove(net, host)
        mark_removed(net, host)
    elif verb == ANALYSE:
        if blue.analyse(net, host):
            return host, NO_HOST
    elif blue.place_decoy(world, net, host, verb - FIRST_DECOY):
        return NO_HOST, host
    return NO_HOST, NO_HOST


@rule
def red_acts(
    world: World, net: Network, action: int, target: int, exploit_die: int, detection_die: int
) -> tuple[int, tuple[int, int, bool]]:
    """Red does what it planned, to the target that was drawn.

    Returns with which exploit, and what blue's sensors record.
    """
    recorded = red.QUIET
    chosen = NO_EXPLOIT
    note_target(net, action, target)
    if action == SCAN:
        succeeded, recorded = red.scan(world, net, target)
    elif action == EXPLOIT:
        succeeded, recorded, chosen = red.exploit(world, net, target, exploit_die, detection_die)
        if succeeded:
            note_system_if_any(own_red(net), target)
    elif action == ESCALATE:
        succeeded = red.escalate(world, net, target, exploit_die)
    elif action == SWEEP:
        succeeded = red.sweep(world, net, target)
    elif action == IMPACT:
        succeeded = red.impact(world, net, target)
    elif action > IMPACT:
        succeeded, recorded, chosen = exploit_by_name_if_any(
            own_red(net), world, action, target, exploit_die, detection_die
        )
        if succeeded and action >= FIRST_PREFERRED:
            note_system_if_any(own_red(net), target)
    else:
        net.succeeded = UNKNOWN
        return chosen, recorded
    net.succeeded = succeeded
    return chosen, recorded


@rule
def begin_turn(world: World, net: Network, action: int) -> tuple[int, int]:
    """Blue moves. Returns where malware was found and where a decoy was placed, or NO_HOST."""
    verb, host = verb_of(world, action), host_of(world, action)
    forget_activity(net)
    net.alert = NO_HOST
    return blue_moves(world, net, verb, host)


@rule
def end_turn(
    world: World,
    net: Network,
    target: int,
    recorded: tuple[int, int, bool],
    malware: int,
    new_decoy: int,
    green: int,
) -> None:
    """Blue observes what red did to `target`, and green's scan, if any.

    [Q20] What both did to one host is counted together: green's scan can hide an exploit.
    """
    connections, ports, shell_seen = recorded
    if green != NO_HOST:
        open_ports = ports_within(world, net, green)
        scanned = connections_of_green(world, net, green, open_ports)
        if connections and green == target:
            connections += scanned
            ports = open_ports + shell_seen
        else:
            mark_activity(net, green, activity(scanned, open_ports, False, new_decoy == green))
    if connections:
        mark_activity(net, target, activity(connections, ports, shell_seen, new_decoy == target))
    if malware != NO_HOST:
        mark_malware(net, malware)
    net.turn += 1


@rule
def play_turn(
    world: World,
    net: Network,
    action: int,
    target_die: int,
    exploit_die: int,
    detection_die: int,
    green: int,
) -> tuple[int, int, int, int, int, int]:
    """Blue moves, red moves, the turn is scored, blue observes.

    green: the host that green scans, or NO_HOST.
    Returns what the turn cost (tenths), the hosts that red held after blue's move, where a decoy
    was placed (or NO_HOST), and red's move: what, where, with which exploit.
    """
    malware, new_decoy = begin_turn(world, net, action)
    infected = number(net.sessions)
    move, targets = plan_move(world, net, ROLLED)
    target = NO_HOST if move == RED_SLEEP else one_of(targets, target_die)
    chosen, recorded = red_acts(world, net, move, target, exploit_die, detection_die)
    tenths = cost(world, net, verb_of(world, action))
    net.tenths -= tenths
    end_turn(world, net, target, recorded, malware, new_decoy, green)
    return tenths, infected, new_decoy, move, target, chosen
