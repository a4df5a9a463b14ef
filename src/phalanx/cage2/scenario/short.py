"""Scenarios in phalanx's short form: hosts and subnets, and only what differs from the usual.

red_starts_on: User0
hosts:
  User0: {image: windows_user_host1, value: 0}
  User1: {image: windows_user_host2, points_to: [Enterprise0]}
  Enterprise0: {image: Gateway, value: 1}
  Op_Server0: {image: OP_Server, value: 1, service_value: 10}
subnets:
  User: {hosts: [User0, User1]}
  Enterprise: {hosts: [Enterprise0]}
  Operational: {hosts: [Op_Server0], access: {User: gated}}
"""

from collections.abc import Mapping
from pathlib import Path

from phalanx.cage2.rules.scenario import ACTION_COSTS, EXTRA_VERBS, Image
from phalanx.cage2.scenario.images import IMAGES
from phalanx.cage2.scenario.keys import Keys, refuse
from phalanx.cage2.scenario.members import read_members
from phalanx.cage2.scenario.original import read_verbs
from phalanx.cage2.scenario.plan import (
    ALL_PORTS,
    CLOSED,
    GATED,
    VERBS_OF_ALL,
    HostPlan,
    Scenario,
    Way,
)
from phalanx.errors import choices

WAYS: dict[str, Way] = {"open": (ALL_PORTS,), GATED: GATED, CLOSED: CLOSED}
LARGEST_VALUE = 1000.0
ALL_VERBS = (*VERBS_OF_ALL, *EXTRA_VERBS)


def read_short(keys: Keys) -> Scenario:
    """A file with red_starts_on, hosts and subnets."""
    keys.only("red_starts_on", "green", "blue_actions", "action_costs", "hosts", "subnets")
    hosts, parts = keys.part("hosts"), keys.part("subnets")
    subnets, homes = read_members(parts, "hosts", hosts)
    for name in subnets:
        parts.part(name).only("hosts", "access")
    start = keys.text("red_starts_on")
    if start not in homes:
        refuse(keys, "red_starts_on", choices("host", start, homes))
    return Scenario(
        Path(keys.file).stem,
        tuple(_host(name, hosts.part(name), homes) for name in hosts.content),
        subnets,
        {name: _way(parts.part(name), homes[start], subnets) for name in subnets},
        start,
        (start,),
        (start,),
        (homes[start],),
        verbs=_verbs(keys),
        green=_share(keys, "green"),
        action_costs=_action_costs(keys),
    )


def _verbs(keys: Keys) -> tuple[str, ...]:
    """Blue's actions; the challenge's if nothing is said."""
    if "blue_actions" not in keys.content:
        return VERBS_OF_ALL
    return read_verbs(keys, "blue_actions", ALL_VERBS)


def _action_costs(keys: Keys) -> dict[str, int]:
    """What actions cost, in tenths; those of the challenge where nothing is said."""
    costs = keys.part("action_costs", {})
    costs.only(*ALL_VERBS)
    return ACTION_COSTS | {verb: _tenths(costs, verb, 0) for verb in costs.content}


def _host(name: str, keys: Keys, homes: Mapping[str, str]) -> HostPlan:
    keys.only("image", "value", "service_value", "points_to")
    image: Image = keys.choice("image", IMAGES)
    pointed = keys.names("points_to", ())
    for other in pointed:
        if other not in homes:
            refuse(keys, "points_to", choices("host", other, homes))
    return HostPlan(
        name,
        image,
        _tenths(keys, "value", 0.1),
        _tenths(keys, "service_value", 0.1),
        (name, *pointed),
        (homes[name],),
        (name,) if image.runs_service else (),
    )


def _share(keys: Keys, key: str) -> float:
    share = keys.get(key, 0)
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share <= 1:
        refuse(keys, key, f"must be a number from 0 to 1, got {share!r:.40}")
    return float(share)


def _tenths(keys: Keys, key: str, unsaid: float) -> int:
    """A price in whole tenths."""
    value = keys.get(key, unsaid)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (
        not is_number
        or not 0 <= value <= LARGEST_VALUE
        or abs(10 * value - round(10 * value)) > 1e-9
    ):
        refuse(keys, key, f"must be a number of tenths from 0 to {LARGEST_VALUE:g}, got {value!r}")
    return round(10 * value)


def _way(keys: Keys, home: str, subnets: Mapping[str, object]) -> Way:
    """How red's first host reaches the subnet; openly, if nothing is said."""
    access = keys.part("access", {})
    access.only(*subnets)
    word = access.get(home, "open")
    if not isinstance(word, list):
        way: Way = access.choice(home, WAYS, "open")
        return way
    if not all(isinstance(port, int) and 0 <= port < len(ALL_PORTS) for port in word):
        refuse(access, home, f"must be {', '.join(WAYS)}, or a list of ports that are let through")
    return tuple(range(port, port + 1) for port in word)
