"""From a scenario to the record that the rules look up."""

from collections.abc import Iterable, Sequence

import numpy as np

from phalanx.cage2.rules.scenario import (
    ABOUT_HOSTS,
    ALL_VERBS,
    DECOYS,
    EXPLOIT_PORTS,
    GREEN_HOSTS,
    MAX_HOSTS,
    NO_HOST,
    NUM_DECOYS,
    NUM_EXPLOITS,
    OPENED,
    Image,
)
from phalanx.cage2.rules.sizes import hidden_size, open_size, sizes_of
from phalanx.cage2.rules.world import (
    MAX_SUBNETS,
    NO_ACTION_OF,
    Worlds,
    actions_of,
    world_dtype,
)
from phalanx.cage2.scenario.features import features_of
from phalanx.cage2.scenario.plan import CLOSED, GATED, GOAL, KEY_WORD, Scenario, Way
from phalanx.compiled.rule import records
from phalanx.errors import ConfigError


def worlds_of(
    scenarios: Sequence[Scenario], room: int | None = None, by_host: bool | None = None
) -> Worlds:
    """A record for each scenario, with room and numbers for as many hosts as the largest has.

    room: for so many hosts, if that is more.
    by_host: observations have as many numbers for each host, whatever runs there, and end with its
        features: as they do wherever there are several networks, if it is not said.
    """
    for scenario in scenarios:
        check_sizes(scenario)
        if scenario.verbs != scenarios[0].verbs:
            raise ConfigError(
                f"{scenario.name} and {scenarios[0].name} cannot be played in one batch: blue's "
                "actions are not the same, or in another order"
            )
    num_hosts = max(room or 0, *(len(scenario.hosts) for scenario in scenarios), 2)
    by_host = len(scenarios) > 1 if by_host is None else by_host
    worlds = records(len(scenarios), world_dtype(num_hosts))
    for k, scenario in enumerate(scenarios):
        _fill(worlds[k], scenario, num_hosts, by_host)
    worlds["num_subnets"] = MAX_SUBNETS if by_host else worlds["num_subnets"].max()
    for world in worlds:
        _fill_sizes(world, num_hosts)
    return worlds


def green_chance(green: float) -> int:
    """A share as rules take it."""
    return round(green * 2**32)


def check_sizes(scenario: Scenario) -> None:
    counted = {
        "hosts": (len(scenario.hosts), 2, MAX_HOSTS),
        "subnets": (len(scenario.subnets), 1, MAX_SUBNETS),
    }
    for what, (count, low, high) in counted.items():
        if not low <= count <= high:
            raise ConfigError(
                f"scenario {scenario.name} has {count} {what}; from {low} to {high} can be played"
            )


def _fill(world: np.void, scenario: Scenario, num_hosts: int, by_host: bool) -> None:
    names = scenario.host_names

    def hosts(members: Iterable[str]) -> int:
        return sum(1 << names.index(name) for name in members)

    def containing(word: str) -> int:
        return hosts(name for name in names if word in name)

    def reached(kind: str) -> list[str]:
        """Subnets that red's first host reaches so."""
        ways = scenario.ways
        return [s for s in subnets if (ways[s] == kind if ways[s] in (GATED, CLOSED) else not kind)]

    def bits(members: Iterable[str]) -> int:
        return sum(1 << subnets.index(name) for name in members)

    subnets = scenario.subnet_names
    home = {name: scenario.subnet_of(name) for name in names}
    world["num_hosts"], world["num_subnets"] = len(names), len(subnets)
    world["start"] = names.index(scenario.start)
    world["known_at_start"] = hosts(scenario.known)
    world["named_at_start"] = hosts(scenario.named)
    world["subnets_at_start"] = bits(scenario.subnets_known)
    world["open_subnets"], world["gated_subnets"] = bits(reached("")), bits(reached(GATED))
    world["open_hosts"] = hosts(name for name in names if home[name] in reached(""))
    world["gated_hosts"] = hosts(name for name in names if home[name] in reached(GATED))
    world["keys"] = containing(KEY_WORD)
    world["green_chance"] = green_chance(scenario.green)
    for k, name in enumerate(GREEN_HOSTS):
        there = name in scenario.green_hosts and name in names
        world["green_targets"][k] = names.index(name) if there else NO_HOST
    world["goal"] = names.index(GOAL) if GOAL in names else NO_HOST
    world["services"] = hosts(host.name for host in scenario.hosts if host.image.runs_service)
    world["tells_service"] = hosts(host.name for host in scenario.hosts if host.services_told)
    world["service_down_cost"] = scenario.host(GOAL).service_price if GOAL in names else 0
    for k, verb in enumerate(ALL_VERBS):
        world["action_costs"][k] = scenario.action_costs.get(verb, 0)
    for h, host in enumerate(scenario.hosts):
        held = np.arange(16) >> h % 4 & 1
        world["prices"][h // 4] += (host.price * held).astype(np.int32)
    world["op_named"], world["ent_named"] = containing("Op"), containing("Ent")
    for k, subnet in enumerate(subnets):
        world["hosts_of_subnet"][k] = hosts(scenario.subnets[subnet])
    for h, host in enumerate(scenario.hosts):
        world["subnet"][h] = subnets.index(home[host.name])
        world["read_on"][h] = hosts(host.addresses)
        world["subnets_read_on"][h] = bits(host.subnets_told)
        _fill_image(world, h, host.image, scenario.ways[home[host.name]])
    _fill_line(world, scenario)
    _fill_actions(world, scenario, num_hosts)
    _fill_spots(world, num_hosts, by_host)
    world["shows_features"] = by_host
    world["features"][: len(names)] = features_of(scenario)


def _fill_image(world: np.void, h: int, image: Image, way: Way) -> None:
    """What listens on a host, as far as the way there lets it be seen."""
    allowed = (range(65536),) if isinstance(way, str) else way
    passes = {port for port in (*image.ports, *EXPLOIT_PORTS) if any(port in r for r in allowed)}
    world["let_through"][h] = _port_mask(passes)
    world["ports"][h] = _port_mask(set(image.ports))
    world["other_ports"][h] = len((set(image.ports) & passes) - set(EXPLOIT_PORTS))
    world["ports_besides"][h] = len(set(image.ports) - set(EXPLOIT_PORTS))
    listeners = (*image.ports, *image.again)
    world["connections"][h] = min(sum(any(p in r for r in allowed) for p in listeners), 255)
    world["connections_within"][h] = min(len(listeners), 255)
    seen = [any(d.opens in r for r in allowed) for d in DECOYS]
    world["decoys_seen"][h] = sum(1 << k for k, is_seen in enumerate(seen) if is_seen)
    fits = [d.os in ("any", image.os) and d.needs_free not in image.ports for d in DECOYS]
    world["fits"][h] = sum(1 << k for k, fit in enumerate(fits) if fit)
    for exploit, outcome in image.yields.items():
        world["meets"][h, exploit] = outcome


def _port_mask(ports: set[int]) -> int:
    return sum(1 << k for k, port in enumerate(EXPLOIT_PORTS) if port in ports)


def _fill_line(world: np.void, scenario: Scenario) -> None:
    """Where B-line goes, as far as this network has such a way (see `line_hindrance`)."""
    names = scenario.host_names
    for part in ("gateway", "pivot", "detour"):
        world[part] = NO_HOST
    targets = [
        n for n in scenario.subnets[scenario.subnet_of(scenario.start)] if n != scenario.start
    ]
    targets.sort(key=names.index)
    world["line_targets"] = sum(1 << names.index(name) for name in targets)
    for k, name in enumerate(targets):
        gateway = gateway_of(scenario, name)
        world["detour"][names.index(name)] = names.index(
            targets[(k + len(targets) // 2) % len(targets)]
        )
        if gateway is not None:
            world["gateway"][names.index(name)] = names.index(gateway)
    for name in names:
        third = scenario.subnets[scenario.subnet_of(name)][2:3]
        if third:
            world["pivot"][names.index(name)] = names.index(third[0])


def gateway_of(scenario: Scenario, host: str) -> str | None:
    """The first host, in the scenario's order, that this one points to and B-line goes on to."""
    told = [name for name in scenario.host_names if name in scenario.host(host).addresses]
    return next((name for name in told if KEY_WORD in name), None)


def _fill_actions(world: np.void, scenario: Scenario, num_hosts: int) -> None:
    """Numbers of actions, for as many hosts as the largest network of the batch has."""
    at = 0
    world["action_of"] = NO_ACTION_OF
    for name in scenario.verbs:
        verb, count = ALL_VERBS.index(name), num_hosts if name in ABOUT_HOSTS else 1
        world["action_of"][verb, :count] = np.arange(at, at + count)
        world["verb_of_action"][at : at + count] = verb
        world["host_of_action"][at : at + count] = np.arange(count)
        at += count
    world["num_actions"] = at
    assert at <= actions_of(num_hosts)


def _fill_spots(world: np.void, num_hosts: int, by_host: bool) -> None:
    """Decoys that can ever stand, and ports that red can ever remember, host by host; if `by_host`,
    a place for each, so that all hosts have as many.
    """
    decoys = [
        (h, d)
        for h in range(num_hosts)
        for d in range(NUM_DECOYS)
        if by_host or world["fits"][h] >> d & 1
    ]
    ports = [
        (h, p)
        for h in range(num_hosts)
        for p in range(NUM_EXPLOITS)
        if by_host or _can_listen(world, h) >> p & 1
    ]
    for name, spots in (("decoy_spot", decoys), ("port_spot", ports)):
        world[f"num_{name}s"] = len(spots)
        for k, (host, spot) in enumerate(spots):
            world[f"{name}_host"][k], world[name][k] = host, spot
    sets = world["spots_of_host"].view(np.uint64)
    for k, (host, decoy) in enumerate(decoys):
        world["spot_of_decoy"][host, decoy] = k
        sets[host, k // 64] |= np.uint64(1 << k % 64)


def _fill_sizes(world: np.void, num_hosts: int) -> None:
    decoys, ports, subnets = (
        int(world[name]) for name in ("num_decoy_spots", "num_port_spots", "num_subnets")
    )
    world["sizes"] = sizes_of(num_hosts, decoys, ports, subnets)
    world["open_size"] = open_size(num_hosts, decoys)
    world["hidden_size"] = hidden_size(num_hosts, ports, subnets)


def _can_listen(world: np.void, host: int) -> int:
    """Ports that red may ever see there; every decoy counts, also those that do not fit."""
    return (int(world["ports"][host]) | int(OPENED[-1])) & int(world["let_through"][host])
