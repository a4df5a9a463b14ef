"""The plan of a network as one record: what the rules look up about it. Data, no rules.

`cage2/scenario/` makes these records of files; every network says which of them it plays.
"""

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scenario import (
    ABOUT_HOSTS,
    ALL_VERBS,
    GREEN_HOSTS,
    NUM_DECOYS,
    NUM_EXPLOITS,
)
from phalanx.compiled.bits import has, number
from phalanx.compiled.rule import Record, rule

World = Record  # one record of a world inside a rule
Worlds = npt.NDArray[np.void]  # [K] those that a batch plays

MAX_SUBNETS = 8
MAX_OWN = 8  # attackers of the user's own in one batch
HOSTS_PER_WORD = 16  # of what blue sees: four bits a host

# What the plan says of a host, as numbers from 0 to 1: for policies that look at hosts one by one.
FEATURES = (
    "is_there", "is_start", "in_first_subnet", "is_open", "is_gated", "is_key", "is_goal",
    "runs_service", "value", "service_value", "points_on", "is_pointed_to", "windows", "subnet",
    *(f"exploit{k}" for k in range(NUM_EXPLOITS)),
    *(f"decoy{k}" for k in range(NUM_DECOYS)),
)  # fmt: skip
NUM_FEATURES = len(FEATURES)


NO_ACTION_OF = -1


def num_hosts_of(worlds: Worlds) -> int:
    """How many hosts their records have room for."""
    return len(worlds["subnet"][0])


def set_dtype(num_hosts: int) -> np.dtype[np.integer]:
    """The numbers that sets of so many hosts are kept in."""
    return np.dtype("u2" if num_hosts <= 16 else "u4" if num_hosts <= 32 else "i8")


def actions_of(num_hosts: int) -> int:
    """How many actions blue can have: Sleep, Monitor, and every other verb for every host."""
    return 2 + len(ABOUT_HOSTS) * num_hosts


def spot_words(num_hosts: int) -> int:
    """Words that a set of places of decoys takes."""
    return -(-num_hosts * NUM_DECOYS // 64)


def world_dtype(num_hosts: int) -> np.dtype[np.void]:
    """A record with room for so many hosts: code is compiled once for each number of them."""
    hosts, actions = set_dtype(num_hosts), actions_of(num_hosts)
    return np.dtype(
        [
            ("num_hosts", np.int64),  # those that are there: records may have room for more
            ("num_actions", np.int64),
            ("num_subnets", np.int64),  # that observations have places for
            # where red begins, and what it knows then
            ("start", np.int64),  # the host of its first session, which survives everything
            ("known_at_start", hosts),
            ("named_at_start", hosts),
            ("subnets_at_start", np.uint8),
            # who can be reached from there: always, or only while red holds one of `keys`
            ("open_hosts", hosts),
            ("gated_hosts", hosts),
            ("keys", hosts),
            ("open_subnets", np.uint8),
            ("gated_subnets", np.uint8),
            # green: its chance to act in a turn, times 2**32, and what it may scan, or NO_HOST
            ("green_chance", np.int64),
            ("green_targets", np.int8, len(GREEN_HOSTS)),
            ("reward", np.int64),  # where the code of a reward of the user's own is, or 0
            # what red is after, and what it costs blue, in tenths
            ("goal", np.int64),  # the host that Impact is meant for, or NO_HOST
            ("services", hosts),  # an operational service runs there
            ("tells_service", hosts),  # who escalates there learns the service's name
            ("service_down_cost", np.int64),
            ("action_costs", np.int64, len(ALL_VERBS)),  # [verb]
            # [four of a set of hosts]: what they cost each turn if red holds them as root
            ("prices", np.int32, (-(-num_hosts // 4), 16)),
            # for attackers that go by names
            ("op_named", hosts),
            ("ent_named", hosts),
            ("line_targets", hosts),  # B-line begins with one of them
            ("gateway", np.int8, num_hosts),  # [host] where B-line goes from there
            ("pivot", np.int8, num_hosts),  # [gateway] ... and on from there
            ("detour", np.int8, num_hosts),  # [target] the second target of b_line_detour
            # hosts and subnets
            ("hosts_of_subnet", hosts, MAX_SUBNETS),
            ("subnet", np.uint8, num_hosts),
            ("read_on", hosts, num_hosts),  # addresses that red learns by escalating there
            ("subnets_read_on", np.uint8, num_hosts),
            # what listens on a host, and what an exploit meets there
            ("ports", np.uint8, num_hosts),  # ports that matter to an exploit, one bit each
            ("other_ports", np.uint8, num_hosts),  # how many others are open, to red's first host
            ("ports_besides", np.uint8, num_hosts),  # ... and whoever looks
            ("connections", np.uint8, num_hosts),  # genuine listeners that red's first host sees
            ("connections_within", np.uint8, num_hosts),  # all
            ("decoys_seen", np.uint8, num_hosts),  # decoys whose port it sees
            ("let_through", np.uint8, num_hosts),  # ports that the way from red's first host allows
            ("fits", np.uint8, num_hosts),  # decoys that the bare host could take
            ("meets", np.uint8, (num_hosts, NUM_EXPLOITS)),
            # blue's actions, and places in observations
            ("verb_of_action", np.uint8, actions),
            ("host_of_action", np.uint8, actions),
            # what comes from here on is large, or rarely looked at
            ("num_decoy_spots", np.int64),  # decoys that can ever stand, host by host
            ("decoy_spot_host", np.uint8, num_hosts * NUM_DECOYS),
            ("decoy_spot", np.uint8, num_hosts * NUM_DECOYS),
            ("spot_of_decoy", np.uint16, (num_hosts, NUM_DECOYS)),
            ("spots_of_host", np.int64, (num_hosts, spot_words(num_hosts))),  # sets of them
            ("num_port_spots", np.int64),  # ports that red can ever remember, host by host
            ("port_spot_host", np.uint8, num_hosts * NUM_EXPLOITS),
            ("port_spot", np.uint8, num_hosts * NUM_EXPLOITS),
            ("sizes", np.int64, 5),  # numbers of each kind of observation, before the features
            ("open_size", np.int64),  # ... of a `belief`, before what is hidden
            ("hidden_size", np.int64),
            ("action_of", np.int16, (len(ALL_VERBS), num_hosts)),  # NO_ACTION_OF: blue cannot do it
            ("shows_features", np.int64),  # at the end of observations that are no mere bits
            ("features", np.float32, (num_hosts, NUM_FEATURES)),
            # attackers of the user's own (own_red.py): where their code is in this process, which
            # of them sleep instead of an impossible move, and whether one was made
            ("attackers", np.int64, MAX_OWN),
            ("lenient", np.int64),
            ("refused", np.int64),
        ],
        align=True,
    )


# --- what rules ask -------------------------------------------------------------------------------


@rule
def hosts_in(world: World) -> int:
    """How many hosts there are, known to the compiler."""
    return len(world.subnet)


@rule
def is_there(world: World, action: int) -> bool:
    """Whether the host that an action is about is one of this network's."""
    return number(world.host_of_action[action]) < world.num_hosts


@rule
def verb_of(world: World, action: int) -> int:
    return number(world.verb_of_action[action])


@rule
def host_of(world: World, action: int) -> int:
    return number(world.host_of_action[action])


@rule
def is_reached(world: World, sessions: int, host: int) -> bool:
    """Whether red's first session reaches a host while red holds these."""
    return has(world.open_hosts, host) or (
        has(world.gated_hosts, host) and sessions & number(world.keys) != 0
    )


@rule
def is_subnet_reached(world: World, sessions: int, subnet: int) -> bool:
    return has(world.open_subnets, subnet) or (
        has(world.gated_subnets, subnet) and sessions & number(world.keys) != 0
    )
