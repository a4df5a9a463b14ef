"""What an attacker can do, and what blue's sensors record of it."""

from phalanx.cage2.rules.network import (
    ACTIVE,
    LOADED,
    NAME_KNOWN,
    RUNNING,
    Network,
    one_of,
)
from phalanx.cage2.rules.scenario import (
    AS_ROOT,
    BEST,
    DECOY,
    FAILS,
    HARAKA,
    LEADERBOARD,
    LURES,
    NO_EXPLOIT,
    NOTHING,
    OPENED,
    OPTIONS,
    SPOILED,
    SSH,
)
from phalanx.cage2.rules.sessions import (
    add_session_if_any,
    note_root_if_any,
    own_red,
    raise_one_if_any,
)
from phalanx.cage2.rules.web_decoys import connections_of_red
from phalanx.cage2.rules.world import World, is_reached, is_subnet_reached
from phalanx.compiled.bits import all_but, count, has, number, only
from phalanx.compiled.rule import rule

BEST_SHARE, SEEN_SHARE = 0.75, 0.95
BEST_CHANCE = int(BEST_SHARE * LOADED)  # red takes the exploit that it ranks highest
DETECTION_CHANCE = int(SEEN_SHARE * LOADED)  # blue's sensors see a reverse shell start

# Blue's sensors record what red did to a host as (connections, ports, shell seen): how many
# connections, to how many different ports, and whether one was a new shell calling home.
QUIET = (0, 0, False)


@rule
def reaches(world: World, net: Network, host: int) -> bool:
    """Some hosts can be reached only while red holds a session on a key host: in CAGE-2 those of
    the operational subnet, by Enterprise0..2.
    """
    return is_reached(world, net.sessions, host)


@rule
def sweep(world: World, net: Network, subnet: int) -> bool:
    """Learn all addresses of a subnet."""
    if not is_subnet_reached(world, net.sessions, subnet):
        return False
    net.known |= world.hosts_of_subnet[subnet]
    net.subnets |= only(subnet)
    return True


@rule
def listening(world: World, net: Network, host: int) -> int:
    """The ports of a host that an exploit could need and red would see open now."""
    genuine, faked = number(world.ports[host]), number(OPENED[net.decoys[host]])
    return (genuine | faked) & number(world.let_through[host])


@rule
def scan(world: World, net: Network, host: int) -> tuple[bool, tuple[int, int, bool]]:
    """Learn which ports of a host listen now. [Q5] Out of reach, it "succeeds" and finds nothing.

    [Q18] Under the leaderboard's rules, ports once seen are remembered for the rest of the episode.
    """
    found = listening(world, net, host)
    ports = count(found) + number(world.other_ports[host])
    if ports == 0 or not reaches(world, net, host):
        net.found_nothing = 1
        return True, QUIET
    net.found_nothing = 0
    if net.rules == LEADERBOARD:
        found |= net.ports[host]
    net.ports[host] = found
    net.scanned |= only(host)
    net.known |= only(host)
    return True, (connections_of_red(world, net, host, ports), ports, False)


@rule
def choose_exploit(options: int, die: int) -> int:
    """The best option three times in four, else one of the others; a loaded die names it."""
    best = number(BEST[options])
    others = options & all_but(best)
    if others == 0:
        return best
    if die >= LOADED:
        return one_of(options, die)
    if die < BEST_CHANCE:
        return best
    return one_of(others, (die - BEST_CHANCE) << 2)


@rule
def exploits_against(net: Network, host: int) -> int:
    """The set of exploits that the ports red remembers of a host allow."""
    return number(OPTIONS[net.ports[host]])


@rule
def chance_of_exploit(options: int, chosen: int) -> float:
    """How likely `choose_exploit` is to choose this one of the options."""
    others = count(options) - 1
    if others == 0:
        return 1.0
    return BEST_SHARE if chosen == BEST[options] else (1 - BEST_SHARE) / others


@rule
def meets(world: World, net: Network, host: int, exploit: int) -> int:
    """What answers an exploit: the genuine service if there is one, else a decoy, else nothing.

    [Q6] Nothing answers on ports of another service's type, and on decoys that are gone.
    [Q19] Under the leaderboard's rules, Restore spoils a genuine Haraka (of User3 and User4).
    """
    answer = number(world.meets[host, exploit])
    if answer == NOTHING:
        return DECOY if net.decoys[host] & LURES[exploit] else NOTHING
    if exploit == HARAKA and net.rules == LEADERBOARD and has(net.restored, host):
        return SPOILED
    return answer


@rule
def can_try(world: World, net: Network, host: int, chosen: int) -> bool:
    """Whether red's first session reaches the port of an exploit there."""
    return has(world.let_through[host], chosen) and reaches(world, net, host)


@rule
def takes(world: World, net: Network, host: int, chosen: int) -> bool:
    """Whether this exploit would get a session there now."""
    answer = meets(world, net, host, chosen)
    return can_try(world, net, host, chosen) and answer not in (NOTHING, DECOY, FAILS, SPOILED)


@rule
def exploit(
    world: World, net: Network, host: int, exploit_die: int, detection_die: int
) -> tuple[bool, tuple[int, int, bool], int]:
    """Try to get a session through a port that red remembers.

    Returns success, what blue records, the exploit.
    """
    options = exploits_against(net, host)
    if options == 0:
        return False, QUIET, NO_EXPLOIT
    return try_exploit(world, net, host, choose_exploit(options, exploit_die), detection_die)


@rule
def try_exploit(
    world: World, net: Network, host: int, chosen: int, detection_die: int
) -> tuple[bool, tuple[int, int, bool], int]:
    """Try one exploit, whatever red remembers of the host; returns the same."""
    if not can_try(world, net, host, chosen):
        return False, QUIET, chosen
    answer = meets(world, net, host, chosen)
    if answer == NOTHING:
        return False, QUIET, chosen
    if chosen == SSH:
        if answer in (DECOY, FAILS):
            return False, (10, 1, False), chosen
        gain_session(net, host, answer == AS_ROOT, False)
        return True, (11, 1, False), chosen
    if answer == DECOY:
        return False, (2, 1, False), chosen
    if answer == SPOILED:
        return False, (1, 1, False), chosen
    detected = detection_die < DETECTION_CHANCE
    net.files |= only(host)
    gain_session(net, host, answer == AS_ROOT, detected)
    if detected:
        net.alert = host
        return True, (2, 2, True), chosen
    return True, (1, 1, False), chosen


@rule
def gain_session(net: Network, host: int, as_root: bool, detected: bool) -> None:
    """Add red's new session. Beside an older one it changes nothing for the challenge's attackers:
    that one is root already. What it changes for others is in sessions.py.
    """
    net.named |= only(host)
    if as_root:
        net.root |= only(host)
    elif detected and not has(net.sessions, host):
        net.removable |= only(host)
    net.sessions |= only(host)
    add_session_if_any(own_red(net), host, as_root, detected)


@rule
def escalate(world: World, net: Network, host: int, die: int) -> bool:
    """Become root through a session on the host, any one if none is, and read what lies there.

    Blue sees nothing of it.
    """
    if not has(net.sessions, host):
        return False
    if not has(net.root, host):
        net.root |= only(host)
        net.removable &= all_but(host)
        net.files |= only(host)
        raise_one_if_any(own_red(net), host, die)
    note_root_if_any(own_red(net), host, has(world.tells_service, host))
    net.known |= world.read_on[host]
    net.subnets |= world.subnets_read_on[host]
    if has(world.tells_service, host):
        net.service |= NAME_KNOWN
    return True


@rule
def impact(world: World, net: Network, host: int) -> bool:
    """Stop the operational service (of Op_Server0); any session on its host will do.

    [Q3] Once the host was restored, the service has lost track of its process, which runs on.
    [Q7] A stopped service stays down, and costs, until its host is restored.
    """
    if not has(net.sessions, host) or net.service & NAME_KNOWN == 0:
        return False
    if not has(world.services, host):
        return False
    net.service &= RUNNING | NAME_KNOWN
    if not has(net.restored, host):
        net.service &= ACTIVE | NAME_KNOWN
    return True
