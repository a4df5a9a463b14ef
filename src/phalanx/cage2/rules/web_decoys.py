"""How many connections a scan makes where it finds a single port.

Three and more to one port look to blue like an exploit [Q21]. That takes several listeners: in
CAGE-2 no host has them, but Vsftpd can be placed again and again, and each listens on port 80. Only
networks where nothing but port 80 can be seen of some host count these, in a field of their own.
"""

import numpy as np

from phalanx.cage2.rules.scenario import DECOYS, HTTP_RFI
from phalanx.cage2.rules.world import World, Worlds
from phalanx.compiled.bits import count, has, number
from phalanx.compiled.llvm import (
    Intrinsic,
    RecordType,
    TypingContext,
    itself_or_none,
    machine_code_of,
)
from phalanx.compiled.rule import Record, rule

Network = Record  # one record inside a rule
VSFTPD = len(DECOYS) - 1
WEB = 1 << HTTP_RFI  # port 80
ENOUGH = 3  # that matter


def vsftpd_fields(num_hosts: int) -> list[tuple[object, ...]]:
    """What a network's record holds besides, where they are counted."""
    return [("num_vsftpd", np.uint8, num_hosts)]


def counts_vsftpd(worlds: Worlds) -> bool:
    """Whether a scan can meet several listeners on the only port that it sees."""
    seen, within = worlds["ports"] & worlds["let_through"], worlds["ports"]
    web_passes = worlds["let_through"] & WEB != 0
    only_web = (seen & ~np.uint8(WEB) == 0) & (worlds["other_ports"] == 0) & web_passes
    only_web |= (within & ~np.uint8(WEB) == 0) & (worlds["ports_besides"] == 0)
    takes_many = only_web & (worlds["fits"] >> VSFTPD & 1 != 0)
    listeners = np.maximum(worlds["connections"], worlds["connections_within"])
    ports = np.bitwise_count(within) + worlds["ports_besides"]
    return bool((takes_many | (listeners > ports)).any())


def counted(net: Network) -> Network | None:
    """The record itself, if Vsftpd decoys are counted in it; the compiler knows."""
    return net if "num_vsftpd" in net.dtype.names else None


@machine_code_of(counted)
def _counted(typing_context: TypingContext, net: RecordType) -> Intrinsic:
    return itself_or_none(net, "num_vsftpd" in net.fields)


@rule
def forget_vsftpd_if_counted(counts: Network | None, host: int) -> None:
    """None stand there."""
    if counts is not None:
        counts.num_vsftpd[host] = 0


@rule
def add_vsftpd_if_counted(counts: Network | None, host: int, decoy: int) -> None:
    """One more stands, if the decoy is one."""
    if counts is not None and decoy == VSFTPD:
        counts.num_vsftpd[host] = min(number(counts.num_vsftpd[host]) + 1, ENOUGH)


@rule
def connections_of_red(world: World, net: Network, host: int, ports: int) -> int:
    """How many a scan of red's makes where it finds so many ports."""
    genuine, seen = world.connections[host], world.decoys_seen[host]
    return connections_if_counted(counted(net), host, ports, genuine, seen)


@rule
def connections_of_green(world: World, net: Network, host: int, ports: int) -> int:
    """The same of green's, to whom nothing is closed."""
    return connections_if_counted(counted(net), host, ports, world.connections_within[host], 255)


@rule
def connections_if_counted(
    counts: Network | None, host: int, ports: int, genuine: int, seen: int
) -> int:
    """As many as ports, unless it is one port, and listeners on it are counted."""
    if counts is not None and ports == 1:
        standing = number(counts.decoys[host]) & number(seen)
        again = number(counts.num_vsftpd[host]) - 1 if has(standing, VSFTPD) else 0
        return number(genuine) + count(standing) + again
    return ports
