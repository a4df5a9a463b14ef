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
    ENTERPRISE_HOSTS,
    FAILS,
    HARAKA,
    HARAKA_HOSTS,
    HOSTS_OF_SUBNET,
    LEADERBOARD,
    LISTENING,
    LURES,
    MEETS,
    NO_EXPLOIT,
    NOTHING,
    NUM_LISTENING,
    OP_HOSTS,
    OP_SERVER0,
    OPERATIONAL,
    OPTIONS,
    READ_ON,
    SPOILED,
    SSH,
    SUBNET_OF_HOST,
)
from phalanx.compiled.bits import all_but, count, has, number, only
from phalanx.compiled.rule import rule

BEST_SHARE, SEEN_SHARE = 0.75, 0.95
BEST_CHANCE = int(BEST_SHARE * LOADED)  # red takes the exploit that it ranks highest
DETECTION_CHANCE = int(SEEN_SHARE * LOADED)  # blue's sensors see a reverse shell start

# Blue's sensors record what red did to a host as (connections, ports, shell seen): how many
# connections, to how many different ports, and whether one was a new shell calling home.
QUIET = (0, 0, False)


@rule
def reaches(net: Network, host: int) -> bool:
    """Operational hosts can be reached only while red holds a session on one of Enterprise0..2."""
    return not has(OP_HOSTS, host) or net.sessions & ENTERPRISE_HOSTS != 0


@rule
def sweep(net: Network, subnet: int) -> bool:
    """Learn all addresses of a subnet."""
    if subnet == OPERATIONAL and net.sessions & ENTERPRISE_HOSTS == 0:
        return False
    net.known |= HOSTS_OF_SUBNET[subnet]
    net.subnets |= only(subnet)
    return True


@rule
def scan(net: Network, host: int) -> tuple[bool, tuple[int, int, bool]]:
    """Learn which ports of a host listen now. [Q5] Out of reach, it "succeeds" and finds nothing.

    [Q18] Under the leaderboard's rules, ports once seen are remembered for the rest of the episode.
    """
    if not reaches(net, host):
        net.found_nothing = 1
        return True, QUIET
    net.found_nothing = 0
    decoys = net.decoys[host]
    listening = LISTENING[host, decoys]
    if net.rules == LEADERBOARD:
        listening |= net.ports[host]
    net.ports[host] = listening
    net.scanned |= only(host)
    net.known |= only(host)
    ports = number(NUM_LISTENING[host, decoys])
    return True, (ports, ports, False)


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
def meets(net: Network, host: int, exploit: int) -> int:
    """What answers an exploit: the genuine service if there is one, else a decoy, else nothing.

    [Q6] Nothing answers on ports of another service's type, and on decoys that are gone.
    [Q19] Under the leaderboard's rules, Restore spoils the genuine Haraka of User3 and User4.
    """
    answer = number(MEETS[host, exploit])
    if answer == NOTHING:
        return DECOY if net.decoys[host] & LURES[exploit] else NOTHING
    if exploit == HARAKA and net.rules == LEADERBOARD and has(net.restored & HARAKA_HOSTS, host):
        return SPOILED
    return answer


@rule
def takes(net: Network, host: int, chosen: int) -> bool:
    """Whether this exploit would get a session there now."""
    answer = meets(net, host, chosen)
    return reaches(net, host) and answer not in (NOTHING, DECOY, FAILS, SPOILED)


@rule
def exploit(
    net: Network, host: int, exploit_die: int, detection_die: int
) -> tuple[bool, tuple[int, int, bool], int]:
    """Try to get a session through a port that red remembers.

    Returns success, what blue records, the exploit.
    """
    options = exploits_against(net, host)
    if options == 0:
        return False, QUIET, NO_EXPLOIT
    chosen = choose_exploit(options, exploit_die)
    if not reaches(net, host):
        return False, QUIET, chosen
    answer = meets(net, host, chosen)
    if answer == NOTHING:
        return False, QUIET, chosen
    if chosen == SSH:
        if answer in (DECOY, FAILS):
            return False, (10, 1, False), chosen
        gain_session(net, host, False, False)
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
    """Add red's new session. Beside an older one it changes nothing: that one is root already (see
    docs).
    """
    net.named |= only(host)
    if as_root:
        net.root |= only(host)
    elif detected and not has(net.sessions, host):
        net.removable |= only(host)
    net.sessions |= only(host)


@rule
def escalate(net: Network, host: int) -> bool:
    """Become root through a session on the host and read what lies there.

    Blue sees nothing of it.
    """
    if not has(net.sessions, host):
        return False
    if not has(net.root, host):
        net.root |= only(host)
        net.removable &= all_but(host)
        net.files |= only(host)
    net.known |= READ_ON[host]
    net.subnets |= only(SUBNET_OF_HOST[host])
    if host == OP_SERVER0:
        net.service |= NAME_KNOWN
    return True


@rule
def impact(net: Network) -> bool:
    """Stop the operational service; any session on Op_Server0 will do.

    [Q3] Once Op_Server0 was restored, the service has lost track of its process, which runs on.
    [Q7] A stopped service stays down, and costs, until Op_Server0 is restored.
    """
    if not has(net.sessions, OP_SERVER0) or net.service & NAME_KNOWN == 0:
        return False
    net.service &= RUNNING | NAME_KNOWN
    if not has(net.restored, OP_SERVER0):
        net.service &= ACTIVE | NAME_KNOWN
    return True
