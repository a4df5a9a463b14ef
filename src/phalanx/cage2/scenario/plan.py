"""What a scenario says, whatever form its file has: hosts, subnets, who reaches whom, prices."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from phalanx.cage2.rules.scenario import ABOUT_HOSTS, ACTION_COSTS, GREEN_HOSTS, HOST_VERBS, Image
from phalanx.errors import ActionError, ConfigError, choices

GOAL = "Op_Server0"  # the host that the challenge's attackers want to stop, by its name
KEY_WORD = "Enterprise"  # a session on a host with this in its name opens gated subnets
VERBS_OF_ALL = ("Sleep", "Monitor", *HOST_VERBS)

ALL_PORTS = range(65536)
GATED, CLOSED = "gated", "closed"
Way = str | tuple[range, ...]  # GATED, CLOSED, or the ports that are let through


@dataclass(frozen=True)
class HostPlan:
    """One host."""

    name: str
    image: Image
    price: int = 1
    """tenths a turn while red holds it as root"""
    service_price: int = 1
    """tenths a turn while its operational service is down"""
    addresses: tuple[str, ...] = ()
    """hosts whose address red reads off it when it escalates there"""
    subnets_told: tuple[str, ...] = ()
    """subnets that it learns of so"""
    services_told: tuple[str, ...] = ()
    """hosts whose operational service it learns of so"""


@dataclass(frozen=True)
class Scenario:
    """A network and what the game on it is about; hosts in the order of observations."""

    name: str
    hosts: tuple[HostPlan, ...]
    subnets: dict[str, tuple[str, ...]]
    """hosts of each subnet, in the order in which a sweep lists them"""
    ways: dict[str, Way]
    """how red's first host reaches each subnet"""
    start: str
    """the host of red's first session"""
    known: tuple[str, ...]
    """hosts whose address red knows at first"""
    named: tuple[str, ...]
    """... whose name"""
    subnets_known: tuple[str, ...]
    verbs: tuple[str, ...] = VERBS_OF_ALL
    """blue's actions in their order: for those about a host, one action a host"""
    green: float = 0.0
    """the chance that green acts in a turn; 1 is the original's GreenAgent"""
    green_hosts: tuple[str, ...] = GREEN_HOSTS
    """what it may scan, if there are such hosts"""
    action_costs: Mapping[str, int] = field(default_factory=lambda: dict(ACTION_COSTS))
    """tenths that an action of blue's costs, by its name; nothing, if it is not here"""

    @property
    def host_names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    @property
    def subnet_names(self) -> tuple[str, ...]:
        """In the order in which hosts first name them: so attackers sweep them."""
        return tuple(dict.fromkeys(self.subnet_of(name) for name in self.host_names))

    def subnet_of(self, host: str) -> str:
        return next(subnet for subnet, hosts in self.subnets.items() if host in hosts)

    def host(self, name: str) -> HostPlan:
        return self.hosts[self.host_names.index(name)]

    @property
    def actions(self) -> tuple[tuple[str, str | None], ...]:
        """Every action of blue's as (verb, host): its number is its place."""
        pairs: list[tuple[str, str | None]] = []
        for verb in self.verbs:
            pairs += [(verb, host) for host in self.host_names] if verb in ABOUT_HOSTS else []
            pairs += [] if verb in ABOUT_HOSTS else [(verb, None)]
        return tuple(pairs)

    def action_index(self, verb: str, host: str | None = None) -> int:
        """The number of an action by its name: `action_index("Restore", "User3")`."""
        if (verb, host) not in self.actions:
            if verb not in self.verbs:
                raise ConfigError(choices("action", verb, self.verbs))
            raise ConfigError(choices(f"host of {verb}", host, self.host_names))
        return self.actions.index((verb, host))

    def action_name(self, action: int) -> str:
        """The name of an action by its number: `"Restore User3"`."""
        if not 0 <= action < len(self.actions):
            raise ActionError(f"action {action} is not one of 0..{len(self.actions) - 1}")
        verb, host = self.actions[action]
        return verb if host is None else f"{verb} {host}"
