"""What the plan of a network says of its hosts, as arrays: for policies that look at each host."""

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import AS_ROOT, AS_USER, DECOYS, NUM_EXPLOITS
from phalanx.cage2.rules.world import FEATURES, MAX_SUBNETS
from phalanx.cage2.scenario.plan import CLOSED, GATED, GOAL, KEY_WORD, Scenario

GAINS = {AS_USER: 0.5, AS_ROOT: 1.0}
SAME_SUBNET, POINTS_TO = 1, 2  # bits of an adjacency


def features_of(scenario: Scenario) -> npt.NDArray[np.float32]:
    """float32 [hosts, FEATURES], from 0 to 1."""
    home, subnets = scenario.subnet_of(scenario.start), scenario.subnet_names
    pointed = {n for host in scenario.hosts for n in host.addresses if n != host.name}
    rows = []
    for host in scenario.hosts:
        name, image, subnet = host.name, host.image, scenario.subnet_of(host.name)
        way = scenario.ways[subnet]
        fits = [d.os in ("any", image.os) and d.needs_free not in image.ports for d in DECOYS]
        rows.append(
            [
                True,
                name == scenario.start,
                subnet == home,
                way not in (GATED, CLOSED),
                way == GATED,
                KEY_WORD in name,
                name == GOAL,
                image.runs_service,
                _scaled(host.price),
                _scaled(host.service_price) if image.runs_service else 0.0,
                any(other != name for other in host.addresses),
                name in pointed,
                image.os == "Windows",
                subnets.index(subnet) / MAX_SUBNETS,
                *(GAINS.get(image.yields.get(exploit, 0), 0.0) for exploit in range(NUM_EXPLOITS)),
                *fits,
            ]
        )
    features = np.array(rows, np.float32)
    assert features.shape[1] == len(FEATURES)
    return features


def _scaled(tenths: int) -> float:
    """0 for nothing, a third for 0.9 a turn, 1 for 100 a turn or more."""
    return min(1.0, float(np.log10(1 + tenths)) / 3)


def adjacency_of(scenario: Scenario, room: int) -> npt.NDArray[np.uint8]:
    """uint8 [room, room]: SAME_SUBNET, POINTS_TO (red reads the second's address on the first), or
    both; 0 for hosts that have nothing to do with each other, or are not there.
    """
    names, table = scenario.host_names, np.zeros((room, room), np.uint8)
    for members in scenario.subnets.values():
        for one in map(names.index, members):
            for other in map(names.index, members):
                table[one, other] |= SAME_SUBNET if one != other else 0
    for host in scenario.hosts:
        for name in host.addresses:
            if name != host.name:
                table[names.index(host.name), names.index(name)] |= POINTS_TO
    return table
