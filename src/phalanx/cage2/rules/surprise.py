"""Where no state explains what blue was shown: how far a state is off, and what to make of that."""

from phalanx.cage2.rules.network import Network
from phalanx.cage2.rules.observation import EXPLOIT_SEEN, PRIVILEGED, Seen, shown_of
from phalanx.cage2.rules.red import listening
from phalanx.cage2.rules.world import World, hosts_in
from phalanx.compiled.bits import all_but, count, has, number, only
from phalanx.compiled.rule import rule


@rule
def take_at_its_word(world: World, state: Network, seen: Seen) -> None:
    """Where a state shows other bits than blue was shown, let be true what these look like."""
    for host in range(hosts_in(world)):
        shown = shown_of(seen, host)
        if shown == shown_of(state.seen, host):
            continue
        activity, is_root = shown & EXPLOIT_SEEN, shown & PRIVILEGED == PRIVILEGED
        if activity:
            state.known |= only(host)
            state.scanned |= only(host)
            state.ports[host] |= listening(world, state, host)
        if is_root or activity == EXPLOIT_SEEN:
            state.sessions |= only(host)
            state.named |= only(host)
            state.files |= only(host)
        if is_root:
            state.root |= only(host)
            state.removable &= all_but(host)
        elif activity == EXPLOIT_SEEN and not has(state.root, host):
            state.removable |= only(host)


@rule
def differing_hosts(seen: Seen, other: Seen) -> int:
    """Of how many hosts two observations say different things."""
    hosts = 0
    for word in range(len(seen)):
        bits = number(seen[word]) ^ number(other[word])
        bits |= bits >> 1
        bits |= bits >> 2
        hosts += count(bits & 0x1111111111111111)
    return hosts
