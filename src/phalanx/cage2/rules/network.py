"""One network as one record: the state of a game, dice included. A batch is an array of them."""

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import B_LINE, DRAWN, NO_HOST, NUM_HOSTS
from phalanx.cage2.rules.sessions import begin_own_if_any, own_fields, own_red
from phalanx.cage2.rules.web_decoys import counted, forget_vsftpd_if_counted, vsftpd_fields
from phalanx.cage2.rules.world import HOSTS_PER_WORD, World, Worlds, set_dtype
from phalanx.compiled.bits import count, has, lowest, number, only
from phalanx.compiled.rule import Record, kernel, rule

Network = Record  # one record of NETWORK inside a rule
Networks = npt.NDArray[np.void]  # NETWORK [N]
Odds = npt.NDArray[np.int64]  # [attackers] of those that are drawn


def network_dtype(
    num_hosts: int, counts_vsftpd: bool = False, own_red: bool = False
) -> np.dtype[np.void]:
    """A record with room for so many hosts; for how many Vsftpd decoys stand on each; and for an
    attacker of the user's own.
    """
    hosts = set_dtype(num_hosts)
    return np.dtype(
        [
            # First, since Numba takes a record for another that has fewer fields at its end
            *(vsftpd_fields(num_hosts) if counts_vsftpd else ()),
            *(own_fields(num_hosts) if own_red else ()),
            # what blue sees: four bits per host (observation.py)
            ("seen", np.int64, -(-num_hosts // HOSTS_PER_WORD)),
            ("stream", np.uint64),  # the dice of (seed, index); episode and turn say where they are
            ("episode", np.uint32),
            ("tenths", np.int32),  # blue's return so far
            ("turn", np.uint16),  # turns played in this episode
            ("horizon", np.uint16),  # the episode is cut after so many
            # what is true, as sets of hosts
            ("sessions", hosts),  # red is on the host
            ("root", hosts),  # ... as root or SYSTEM
            ("removable", hosts),  # ... as a user whose shell blue saw start: Remove will stop it
            ("files", hosts),  # malware lies on the disk
            ("restored", hosts),  # blue has restored the host in this episode
            # what red knows, as sets of hosts
            ("known", hosts),  # the address
            ("named", hosts),  # the host name
            ("scanned", hosts),  # red holds a list of its ports
            # Meander's notes, as sets of hosts
            ("scan_tried", hosts),
            ("exploited", hosts),
            ("escalated", hosts),
            ("mapped", hosts),  # name and address are known to belong together
            ("line_done", np.uint16),  # B-line: steps that it has played; bit 15: see attackers.py
            ("world", np.uint16),  # which of the batch's worlds this is
            ("decoys", np.uint8, num_hosts),  # decoys that stand, one bit each
            ("ports", np.uint8, num_hosts),  # ports that red remembers, one bit each
            ("subnets", np.uint8),  # subnets that red knows, one bit each
            ("swept", np.uint8),  # Meander: subnets it has tried to sweep
            ("line_step", np.uint8),  # B-line: step of its plan
            ("line_target", np.int8),  # B-line: the user host it goes for, or NO_HOST
            ("last_exploited", np.int8),  # Meander: where the last turn's exploit went, or NO_HOST
            ("last_escalated", np.int8),  # Meander: ... or its escalation or impact
            ("succeeded", np.uint8),  # red's last action: FALSE, TRUE or UNKNOWN
            ("found_nothing", np.uint8),  # red's last scan came back empty
            ("service", np.uint8),  # the operational service: bits RUNNING, ACTIVE, NAME_KNOWN
            ("alert", np.int8),  # where blue's sensors reported a new shell this turn, or NO_HOST
            ("red", np.uint8),  # who attacks in this episode
            ("red_plan", np.uint8),  # who attacks in every episode, or DRAWN
            ("rules", np.uint8),  # FINAL or LEADERBOARD
        ],
        align=True,
    )


NETWORK = network_dtype(NUM_HOSTS)  # of CAGE-2

LAST_EPISODE = 0xFFFFFFFF  # the next one is number 0
FALSE, TRUE, UNKNOWN = range(3)
RUNNING, ACTIVE, NAME_KNOWN = 1, 2, 4  # the operational service


# --- dice -----------------------------------------------------------------------------------------
# A die is a number below 2**32. A loaded die is 2**32 + the outcome: it enters where a rolled one
# does, and is how recorded games are played again.

LOADED = 1 << 32
COINS = 1 << 16  # slots of coins begin behind the last one that a turn rolls in
WHERE = COINS - 1  # the slot of the network that an episode is played on
OWN_DICE = 1 << 17  # ... and behind these the dice of attackers of the user's own
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@rule
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits (the finaliser of splitmix64)."""
    x = (x ^ (x >> _SHIFTS[0])) * _FACTORS[0]
    x = (x ^ (x >> _SHIFTS[1])) * _FACTORS[1]
    return x ^ (x >> _SHIFTS[2])


@rule
def dice(net: Network, slot: int) -> np.uint64:
    """64 random bits of this episode; every slot has its own, and nobody else's."""
    episode = mix(net.stream + np.uint64(net.episode) * _GOLDEN)
    return mix(episode + np.uint64(slot + 1) * _GOLDEN)


@rule
def turn_dice(net: Network) -> tuple[np.uint64, np.uint64]:
    """The 128 random bits of this turn: three dice of the game, and a policy's (`policy_die`)."""
    slot = 2 * number(net.turn)
    return dice(net, slot + 1), dice(net, slot + 2)


@rule
def policy_die(net: Network) -> int:
    """The die by which a policy draws its action in this turn."""
    return high_die(dice(net, 2 * number(net.turn) + 2))


@rule
def heads(net: Network) -> bool:
    """A fair coin for this turn, thrown apart from all other dice."""
    return dice(net, COINS + number(net.turn)) & np.uint64(1) != np.uint64(0)


@rule
def own_die(net: Network) -> int:
    """63 random bits for an attacker of the user's own, rolled apart from all other dice."""
    return number(dice(net, OWN_DICE + number(net.turn)) >> np.uint64(1))


@rule
def low_die(word: np.uint64) -> int:
    return number(word & np.uint64(0xFFFFFFFF))


@rule
def high_die(word: np.uint64) -> int:
    return number(word >> np.uint64(32))


@rule
def one_of(members: int, die: int) -> int:
    """A member of the set, each as likely as the others.

    A loaded die names it, and is obeyed if it is one.
    """
    if die >= LOADED:
        named = die - LOADED
        return named if has(members, named) else lowest(members)
    for _ in range((die * count(members)) >> 32):
        members &= members - 1
    return lowest(members)


# --- beginning ------------------------------------------------------------------------------------


@rule
def draw_world(worlds: Worlds, net: Network) -> None:
    """The network that an episode is played on, by dice of its own if there are several."""
    if len(worlds) > 1:
        net.world = (low_die(dice(net, WHERE)) * len(worlds)) >> 32


@rule
def begin_episode(world: World, net: Network, odds: Odds) -> None:
    """Everything as the scenario starts: red sits on its first host and knows little else.

    odds: int64 [attackers], their cumulative chances times 2**32, for attackers that are drawn.
    """
    for word in range(len(net.seen)):
        net.seen[word] = 0
    net.tenths = 0
    net.turn = 0
    net.sessions = net.root = only(world.start)
    net.known, net.named = world.known_at_start, world.named_at_start
    net.removable = net.files = net.restored = net.scanned = 0
    net.scan_tried = net.exploited = net.escalated = net.mapped = net.line_done = 0
    for host in range(len(net.decoys)):
        net.decoys[host] = 0
        net.ports[host] = 0
        forget_vsftpd_if_counted(counted(net), host)
    net.subnets = world.subnets_at_start
    net.swept = net.line_step = 0
    net.line_target = net.last_exploited = net.last_escalated = net.alert = NO_HOST
    net.succeeded = UNKNOWN
    net.found_nothing = 0
    net.service = RUNNING | ACTIVE
    begin_own_if_any(own_red(net), world)
    net.red = net.red_plan
    if net.red_plan == DRAWN:
        die = low_die(dice(net, 0))
        net.red = B_LINE
        while die >= odds[net.red] and net.red < len(odds) - 1:
            net.red += 1


@kernel
def seed_networks(
    nets: Networks, seeds: npt.NDArray[np.uint64], first_index: int, step: int
) -> None:
    """Dice of (seeds[i], first_index + step * i) for network i; its next episode is number 0."""
    for i in range(len(nets)):
        index = np.uint64(first_index + step * i)
        nets[i].stream = mix(mix(seeds[i] + _GOLDEN) + index * _FACTORS[0])
        nets[i].episode = LAST_EPISODE
