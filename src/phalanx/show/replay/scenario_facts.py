"""What a scenario is made of, for whoever draws it: hosts, subnets, and how red gets about."""

from phalanx.cage2.rules.scenario import (
    DECOYS,
    HOSTS,
    IMAGE_OF_HOST,
    NUM_ACTIONS,
    OP_SERVER0,
    POINTS_TO,
    ROOT_COST,
    SUBNET_OF_HOST,
    SUBNETS,
    USER0,
    action_name,
)

LOW = 1  # tenths that a host of low value costs in a turn


def scenario_facts(rules: str, horizon: int) -> dict[str, object]:
    """The part of a trajectory that is the same in all games of a scenario."""
    order = _by_distance()
    members: list[list[int]] = [[] for _ in order]
    hosts = []
    for h, name in enumerate(HOSTS):
        subnet = order.index(int(SUBNET_OF_HOST[h]))
        members[subnet].append(h)
        image = IMAGE_OF_HOST[h]
        hosts.append(
            {
                "name": name,
                "subnet": subnet,
                "value": _value(h),
                "cost": int(ROOT_COST[h]) / 10,
                "image": image.os,
                "ports": list(image.ports),
            }
        )
    return {
        "rules": rules,
        "horizon": horizon,
        "hosts": hosts,
        "subnets": [
            {"name": SUBNETS[s], "hosts": mine} for s, mine in zip(order, members, strict=True)
        ],
        "links": [[order.index(a), order.index(b)] for a, b in _links()],
        "points": [[a, b] for a, b in sorted(POINTS_TO.items())],
        "decoys": [decoy.name.removeprefix("Decoy") for decoy in DECOYS],
        "actions": [action_name(action) for action in range(NUM_ACTIONS)],
    }


def _value(host: int) -> str:
    if host == OP_SERVER0:  # it runs the operational service
        return "high"
    tenths = int(ROOT_COST[host])
    return "none" if tenths == 0 else "low" if tenths <= LOW else "medium"


def _links() -> list[tuple[int, int]]:
    """Pairs of subnets: on a host of the first, red reads the address of one of the second."""
    pairs = [(int(SUBNET_OF_HOST[a]), int(SUBNET_OF_HOST[b])) for a, b in POINTS_TO.items()]
    return sorted({(a, b) for a, b in pairs if a != b})


def _by_distance() -> list[int]:
    """Subnets in the order in which red gets to them from where it begins; others come last."""
    reached = [int(SUBNET_OF_HOST[USER0])]
    for here in reached:
        reached += [b for a, b in _links() if a == here and b not in reached]
    return [*reached, *(s for s in range(len(SUBNETS)) if s not in reached)]
