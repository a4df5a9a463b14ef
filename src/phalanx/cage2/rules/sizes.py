"""How many numbers an observation of each kind has, by the numbers of hosts, decoys and ports."""

import numpy as np

from phalanx.cage2.rules.hidden import NUM_FLAGS, NUM_STEPS
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, HORIZONS, NUM_VERBS
from phalanx.cage2.rules.world import NUM_FEATURES, Worlds, num_hosts_of

BELIEVES = 3  # kinds of observations from here on have places for ports


def open_size(hosts: int, decoys: int) -> int:
    """Of a `belief` observation, before what is hidden."""
    return 4 * hosts + decoys + hosts + 1 + 2 * len(HORIZONS)


def hidden_size(hosts: int, ports: int, subnets: int) -> int:
    """Of the hidden state."""
    return 17 * hosts + ports + 2 + NUM_STEPS + NUM_FLAGS + subnets + len(ALL_RED_AGENTS) + 1


def sizes_of(hosts: int, decoys: int, ports: int, subnets: int) -> tuple[int, ...]:
    """Of each of OBSERVATIONS, before the features of hosts."""
    history = 9 * hosts + decoys + NUM_VERBS + 1
    believed = open_size(hosts, decoys) + hidden_size(hosts, ports, subnets)
    return 4 * hosts, history, history + 3 * hosts + decoys + 2, believed, believed


def observation_size(kind: int, worlds: Worlds) -> int:
    """How many numbers an observation of this kind has in these worlds: the same in all of them."""
    features = num_hosts_of(worlds) * NUM_FEATURES if kind and worlds["shows_features"][0] else 0
    return int(worlds["sizes"][0, kind]) + features


def are_alike(kind: int, one: Worlds, other: Worlds) -> bool:
    """Whether observations of this kind, and actions, mean the same in both."""
    names = ["num_actions", "verb_of_action", "host_of_action", "shows_features"]
    if kind:
        names += ["sizes", "num_decoy_spots", "decoy_spot_host", "decoy_spot"]
    if kind >= BELIEVES:
        names += ["num_port_spots", "port_spot_host", "port_spot", "num_subnets"]
    if num_hosts_of(one) != num_hosts_of(other):
        return False
    return all(np.array_equal(one[name][0], other[name][0]) for name in names)
