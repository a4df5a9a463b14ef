"""Which host is in which subnet: each in just one."""

from phalanx.cage2.scenario.keys import Keys, refuse
from phalanx.errors import choices


def read_members(
    subnets: Keys, key: str, hosts: Keys
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The hosts that each subnet lists under a key, and the subnet of each host."""
    members: dict[str, tuple[str, ...]] = {}
    homes: dict[str, str] = {}
    for name in subnets.content:
        part = subnets.part(name)
        members[name] = tuple(part.names(key))
        for host in members[name]:
            if host not in hosts.content:
                refuse(part, key, choices("host", host, hosts.content))
            if host in homes:
                refuse(part, key, f"{host} is in {homes[host]} already; one subnet a host")
            homes[host] = name
    for host in hosts.content:
        if host not in homes:
            refuse(hosts, host, "is in no subnet")
    return members, homes
