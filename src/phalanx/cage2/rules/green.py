"""What green does: users of the network, whose scans look to blue like an attacker's.

Green's die is thrown apart from all others: without green, or with less of it, blue and red play
the same game.
"""

from phalanx.cage2.rules.network import LOADED, Network, dice, high_die, low_die
from phalanx.cage2.rules.scenario import GREEN_HOSTS, NO_HOST, OPENED
from phalanx.cage2.rules.world import World
from phalanx.compiled.bits import count, number
from phalanx.compiled.rule import rule

ROLLS = 1 << 18  # slots of green's dice begin behind all others
NUM_TARGETS = len(GREEN_HOSTS)


@rule
def green_host(world: World, net: Network) -> int:
    """The host that green scans in this turn, or NO_HOST.

    Where it acts at all, it sleeps every other time, and else scans a host of its list; one that
    this network does not have is no valid action.
    """
    if world.green_chance == 0:
        return NO_HOST
    word = dice(net, ROLLS + number(net.turn))
    if low_die(word) >= world.green_chance:
        return NO_HOST
    outcome = (high_die(word) * 2 * NUM_TARGETS) >> 32
    return NO_HOST if outcome >= NUM_TARGETS else number(world.green_targets[outcome])


@rule
def green_host_as_told(world: World, host: int) -> int:
    """The host if green could scan it, else NO_HOST: how recorded games are played again."""
    for k in range(NUM_TARGETS):
        if world.green_targets[k] == host:
            return host
    return NO_HOST


@rule
def ports_within(world: World, net: Network, host: int) -> int:
    """How many ports of a host listen now, all of which green finds: nothing is closed to it."""
    known = number(world.ports[host]) | number(OPENED[net.decoys[host]])
    return count(known) + number(world.ports_besides[host])


# --- for beliefs: what green may have done --------------------------------------------------------


@rule
def green_outcomes(world: World) -> int:
    """How many things green may do: nothing comes first, then its hosts."""
    return 1 if world.green_chance == 0 else 1 + NUM_TARGETS


@rule
def green_outcome(world: World, k: int) -> tuple[int, float]:
    """The host that green scans, or NO_HOST, and how likely that is."""
    if world.green_chance == 0:
        return NO_HOST, 1.0
    each = number(world.green_chance) / (2.0 * NUM_TARGETS * LOADED)
    if k > 0:
        host = number(world.green_targets[k - 1])
        return host, (each if host != NO_HOST else 0.0)
    scanned = 0
    for target in range(NUM_TARGETS):
        if world.green_targets[target] != NO_HOST:
            scanned += 1
    return NO_HOST, 1.0 - scanned * each
