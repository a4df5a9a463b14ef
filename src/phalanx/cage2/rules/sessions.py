"""Red's sessions as the original keeps them: several on a host, as user and as root side by side.

The challenge's attackers escalate before they exploit a host again, so that sets of hosts say all
(network.py). Attackers of the user's own need not: their networks have the fields below besides.

A host's sessions are a list, oldest first. Some of a user's are removable (blue saw the shell
start), some stuck (SSH, or unseen), some are root. Of the list these counts are all that can ever
matter: Remove ends the removable ones, a new session comes last, an escalation takes any one, and
the true state tells of the oldest.
"""

import numpy as np

from phalanx.cage2.rules.world import World, hosts_in, set_dtype
from phalanx.compiled.bits import all_but, has, number, only
from phalanx.compiled.llvm import (
    Intrinsic,
    RecordType,
    TypingContext,
    itself_or_none,
    machine_code_of,
)
from phalanx.compiled.rule import Record, rule

Network = Record  # one record inside a rule
MEMORY_WORDS = 8  # that an attacker of the user's own can write
LOADED = 1 << 32  # see network.py


def own_fields(num_hosts: int) -> list[tuple[object, ...]]:
    """What a network's record holds besides where attackers of the user's own play."""
    hosts = set_dtype(num_hosts)
    return [
        # red's sessions on each host
        ("ahead", np.uint16, num_hosts),  # removable ones, older than the first that is not
        ("behind", np.uint16, num_hosts),  # removable ones, younger than that
        ("stuck", np.uint16, num_hosts),  # of a user, and not removable
        ("rooted", np.uint16, num_hosts),  # root or SYSTEM
        ("lead_root", hosts),  # the first that is not removable is root
        ("oldest_root", hosts),  # the oldest is root: what the true state tells
        # what red was told
        ("systems", hosts),  # whose operating system it knows
        ("root_told", hosts),  # where it was told that it is root
        ("service_told", np.uint8),  # it knows the name of the operational service
        ("start", np.int8),  # the host of its first session
        ("goal", np.int8),  # the host that Impact is meant for, or NO_HOST
        ("num_subnets", np.uint8),
        ("home", np.uint8, num_hosts),  # the subnet of each host
        # of the attacker itself
        ("memory", np.int64, MEMORY_WORDS),
        ("refused_turn", np.int64),  # in which the first impossible move was made and by whom, or 0
        ("refused_move", np.int64),
    ]


def own_red(net: Network) -> Network | None:
    """The record itself, if attackers of the user's own can play in it; the compiler knows."""
    return net if "memory" in net.dtype.names else None


@machine_code_of(own_red)
def _own_red(typing_context: TypingContext, net: RecordType) -> Intrinsic:
    return itself_or_none(net, "memory" in net.fields)


def built_in_red(net: Network) -> Network | None:
    """The record itself, if only built-in attackers can play in it."""
    return None if "memory" in net.dtype.names else net


@machine_code_of(built_in_red)
def _built_in_red(typing_context: TypingContext, net: RecordType) -> Intrinsic:
    return itself_or_none(net, "memory" not in net.fields)


# --- what happens to sessions ---------------------------------------------------------------------


@rule
def begin_own_if_any(own: Network | None, world: World) -> None:
    """Red's first session, and what it knows."""
    if own is not None:
        for host in range(hosts_in(world)):
            own.home[host] = world.subnet[host]
            forget_sessions(own, host)
        start = number(world.start)
        own.rooted[start] = 1
        own.lead_root = own.oldest_root = own.root_told = only(start)
        own.systems = 0
        own.service_told = 0
        own.start, own.goal = start, world.goal
        own.num_subnets = world.num_subnets
        for word in range(MEMORY_WORDS):
            own.memory[word] = 0


@rule
def add_session_if_any(own: Network | None, host: int, as_root: bool, detected: bool) -> None:
    """A new session, the youngest on its host."""
    if own is not None:
        is_led = own.stuck[host] + own.rooted[host] > 0
        if as_root:
            own.rooted[host] += 1
            if not is_led:
                own.lead_root |= only(host)
        elif not detected:
            own.stuck[host] += 1
        elif is_led:
            own.behind[host] += 1
        else:
            own.ahead[host] += 1
        count_sessions(own, host)


@rule
def end_removable_if_any(own: Network | None, host: int) -> None:
    """Blue's Remove: all shells of users that it saw start, and no others."""
    if own is not None:
        own.ahead[host] = own.behind[host] = 0
        count_sessions(own, host)


@rule
def end_all_if_any(own: Network | None, world: World, host: int) -> None:
    """Blue's Restore; red's first session comes back."""
    if own is not None:
        forget_sessions(own, host)
        if host == world.start:
            own.rooted[host] = 1
            own.lead_root |= only(host)
        count_sessions(own, host)


@rule
def raise_one_if_any(own: Network | None, host: int, die: int) -> None:
    """One session of a host where none is root becomes root, each as likely as the others.

    A loaded die says which: first those ahead, then the first stuck one, those behind, the others.
    """
    if own is not None:
        ahead, behind = number(own.ahead[host]), number(own.behind[host])
        sessions = ahead + behind + number(own.stuck[host])
        chosen = min(die - LOADED, sessions - 1) if die >= LOADED else (die * sessions) >> 32
        if chosen < ahead:
            own.behind[host] = behind + ahead - 1 - chosen
            own.ahead[host] = chosen
        elif ahead < chosen <= ahead + behind:
            own.behind[host] = behind - 1
        else:
            own.stuck[host] -= 1
        if chosen <= ahead:
            own.lead_root |= only(host)
        own.rooted[host] = 1
        count_sessions(own, host)


@rule
def forget_sessions(own: Network, host: int) -> None:
    own.ahead[host] = own.behind[host] = own.stuck[host] = own.rooted[host] = 0
    own.lead_root &= all_but(host)


@rule
def count_sessions(own: Network, host: int) -> None:
    """The sets of hosts that follow from the counts."""
    lasting = own.stuck[host] + own.rooted[host]
    sessions = own.ahead[host] + own.behind[host] + lasting
    oldest_root = own.ahead[host] == 0 and has(own.lead_root, host)
    own.sessions = with_or_without(own.sessions, host, sessions > 0)
    own.root = with_or_without(own.root, host, own.rooted[host] > 0)
    own.removable = with_or_without(own.removable, host, sessions > 0 and lasting == 0)
    own.oldest_root = with_or_without(own.oldest_root, host, oldest_root)


@rule
def with_or_without(members: int, member: int, is_in: bool) -> int:
    return number(members) | only(member) if is_in else number(members) & all_but(member)


# --- what is true, and what red is told -----------------------------------------------------------


@rule
def oldest_roots(own: Network | None, root: int) -> int:
    """Hosts whose oldest session is root [Q15]; `root` where attackers escalate at once."""
    if own is not None:
        return number(own.oldest_root)
    return number(root)


@rule
def note_system_if_any(own: Network | None, host: int) -> None:
    """ExploitRemoteService tells red's first session the operating system."""
    if own is not None:
        own.systems |= only(host)


@rule
def note_root_if_any(own: Network | None, host: int, tells_service: bool) -> None:
    if own is not None:
        own.root_told |= only(host)
        if tells_service:
            own.service_told = 1
