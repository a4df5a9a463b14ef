"""A position: what is left of a network if its true state is known and decoys are free.

What is forgotten has no influence on what comes, or blue chooses it again in every turn of the
relaxed game. Why that can only help blue is in docs/bounds.md.
"""

from phalanx.bound.menus import Menus
from phalanx.cage2.rules.attackers import (
    EXPLOIT_SERVER,
    learn_from_last_move,
    step_after_last,
)
from phalanx.cage2.rules.network import (
    ACTIVE,
    FALSE,
    NAME_KNOWN,
    NETWORK,
    RUNNING,
    TRUE,
    UNKNOWN,
    Network,
    Networks,
)
from phalanx.cage2.rules.scenario import (
    B_LINE,
    HARAKA_HOSTS,
    LEADERBOARD,
    MEANDER,
    NO_HOST,
    NUM_HOSTS,
    OP_HOSTS,
    OP_SERVER0,
    SLEEP_AGENT,
    SSH,
    USER0,
)
from phalanx.compiled.bits import ALL, has, number, only
from phalanx.compiled.rule import kernel, records, rule


def positions_of(nets: Networks, menus: Menus) -> Networks:
    """The positions of networks, which stay as they are. Bytes that pad a record are 0."""
    positions = records(len(nets), NETWORK)
    for name in NETWORK.names or ():
        positions[name] = nets[name]
    forget_all(positions, menus)
    return positions


@kernel
def forget_all(nets: Networks, menus: Menus) -> None:
    """Make networks their positions."""
    for i in range(len(nets)):
        forget(nets[i], menus)


@kernel
def forget(net: Network, menus: Menus) -> None:
    """Make a network its position."""
    net.seen[0] = 0
    net.tenths = 0
    net.stream = net.episode = net.turn = net.horizon = 0  # dice are loaded, turns are counted
    net.files = net.scanned = 0  # for Analyse and for lookers-on
    net.alert = NO_HOST
    net.red_plan = net.red
    for host in range(NUM_HOSTS):
        net.decoys[host] = 0
        if has(OP_HOSTS, host) and net.ports[host] != 0:
            net.ports[host] = only(SSH)  # that it found some; which of them is blue's choice
    if net.red == B_LINE:
        forget_line(net, menus)
        goes_on = net.service & RUNNING != 0
    elif net.red == MEANDER:
        forget_meander(net, menus)
        goes_on = net.service & NAME_KNOWN == 0
    else:
        goes_on = False
    if not goes_on:
        fall_asleep(net)


@rule
def forget_line(net: Network, menus: Menus) -> None:
    """B-line looks at its target, the step it is due to play, and what its exploits meet."""
    net.known = net.named = net.subnets = 0
    world = menus.worlds[0]
    step = step_after_last(world, net)
    net.line_done &= only(EXPLOIT_SERVER)
    net.found_nothing = 0
    if step > 0:
        net.line_step = step - 1
        net.succeeded = TRUE
    else:
        net.succeeded = FALSE
    targets = number(world.line_targets) if net.line_target == NO_HOST else only(net.line_target)
    net.restored &= (spoilable(net) & targets) | only(OP_SERVER0)
    net.service |= ACTIVE  # whether it runs is what counts
    for host in range(NUM_HOSTS):
        net.ports[host] = menus.alike[host, net.ports[host]]


@rule
def spoilable(net: Network) -> int:
    """The hosts whose Haraka a Restore spoils."""
    return HARAKA_HOSTS if net.rules == LEADERBOARD else 0


@rule
def forget_meander(net: Network, menus: Menus) -> None:
    """Meander looks at its notes and at what it holds. Which ports it remembers is blue's choice at
    each exploit.
    """
    learn_from_last_move(menus.worlds[0], net)
    net.succeeded = UNKNOWN
    net.found_nothing = 0
    net.mapped = net.exploited & (ALL ^ only(USER0))
    net.named = net.mapped | only(USER0)
    net.restored &= spoilable(net) & (ALL ^ (net.exploited & net.escalated))
    for host in range(NUM_HOSTS):
        if not has(OP_HOSTS, host):
            net.ports[host] = 0


@rule
def fall_asleep(net: Network) -> None:
    """Red rests for the remainder: it keeps what costs blue, and never gets more."""
    net.red = net.red_plan = SLEEP_AGENT
    net.sessions = net.root
    net.removable = net.restored = 0
    net.known = net.named = net.scan_tried = net.exploited = net.escalated = net.mapped = 0
    net.line_done = net.line_step = net.subnets = net.swept = net.found_nothing = 0
    net.line_target = net.last_exploited = net.last_escalated = NO_HOST
    net.succeeded = UNKNOWN
    net.service &= RUNNING
    for host in range(NUM_HOSTS):
        net.ports[host] = net.decoys[host] = 0
