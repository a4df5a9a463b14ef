"""What a scenario is made of, for whoever draws it: hosts, subnets, and how red gets about."""

from phalanx.cage2.rules.scenario import DECOYS
from phalanx.cage2.scenario.plan import GOAL, HostPlan, Scenario
from phalanx.show.replay.place import Place

LOW = 1  # tenths that a host of low value costs in a turn


def scenario_facts(rules: str, horizon: int, place: Place) -> dict[str, object]:
    """The part of a trajectory that is the same in all games of a scenario."""
    scenario = place.scenario
    order = _by_distance(scenario)
    members: list[list[int]] = [[] for _ in order]
    hosts = []
    for h, host in enumerate(scenario.hosts):
        subnet = order.index(scenario.subnet_of(host.name))
        members[subnet].append(h)
        hosts.append(
            {
                "name": host.name,
                "subnet": subnet,
                "value": _value(host),
                "cost": host.price / 10,
                "image": host.image.os,
                "ports": list(host.image.ports),
            }
        )
    facts: dict[str, object] = {
        "rules": rules,
        "horizon": horizon,
        "hosts": hosts,
        "subnets": [
            {"name": name, "hosts": mine} for name, mine in zip(order, members, strict=True)
        ],
        "links": sorted([order.index(a), order.index(b)] for a, b in _links(scenario)),
        "points": sorted(
            [place.hosts.index(a), place.hosts.index(b)] for a, b in _points(scenario)
        ),
        "decoys": [decoy.name.removeprefix("Decoy") for decoy in DECOYS],
        "actions": place.action_names,
    }
    if not place.is_cage2:
        facts["name"] = scenario.name
    if place.green:
        facts["green"] = round(place.green, 6)
    return facts


def _value(host: HostPlan) -> str:
    if host.name == GOAL:  # it runs the operational service
        return "high"
    return "none" if host.price == 0 else "low" if host.price <= LOW else "medium"


def _points(scenario: Scenario) -> list[tuple[str, str]]:
    """Pairs of hosts: on the first, red reads the address of the second."""
    return [
        (host.name, other)
        for host in scenario.hosts
        for other in host.addresses
        if other != host.name
    ]


def _links(scenario: Scenario) -> set[tuple[str, str]]:
    """Pairs of subnets: on a host of the first, red reads the address of one of the second."""
    pairs = [(scenario.subnet_of(a), scenario.subnet_of(b)) for a, b in _points(scenario)]
    return {(a, b) for a, b in pairs if a != b}


def _by_distance(scenario: Scenario) -> list[str]:
    """Subnets in the order in which red gets to them from where it begins; others come last."""
    names = scenario.subnet_names
    links = sorted(_links(scenario), key=lambda pair: [names.index(name) for name in pair])
    reached = [scenario.subnet_of(scenario.start)]
    for here in reached:
        reached += [b for a, b in links if a == here and b not in reached]
    return [*reached, *(name for name in names if name not in reached)]
