"""A scenario in the original's own format, so that the original can play it."""

from collections.abc import Sequence

from phalanx.cage2.rules.red_actions import RED_ACTIONS
from phalanx.cage2.rules.scenario import ACTION_COSTS, EXTRA_VERBS
from phalanx.cage2.scenario.images import IMAGES, ROOTS, SERVICE
from phalanx.cage2.scenario.original import GREEN_AGENTS, VALUES
from phalanx.cage2.scenario.plan import ALL_PORTS, CLOSED, HostPlan, Scenario, Way
from phalanx.errors import ConfigError
from phalanx.files import Facts

SERVER = "VeloServer"
EVERYTHING = {"in": "all", "out": "all"}
ALL_KNOWN = {"Interfaces": "All", "System info": "All", "User info": "All"}
GREEN_ACTIONS = ("Sleep", "GreenPingSweep", "GreenPortScan", "GreenConnection")
EXPLOIT_ACTIONS = (
    "BlueKeep",
    "EternalBlue",
    "FTPDirectoryTraversal",
    "HarakaRCE",
    "HTTPRFI",
    "HTTPSRFI",
    "SQLInjection",
    "SSHBruteForce",
)


def in_original_form(scenario: Scenario) -> Facts:
    """Agents, Hosts and Subnets, as `yaml.safe_dump` writes them."""
    for verb in scenario.verbs:
        if verb in EXTRA_VERBS:
            raise ConfigError(f"the original has no action {verb}; leave it out of blue_actions")
    if {verb: tenths for verb, tenths in scenario.action_costs.items() if tenths} != ACTION_COSTS:
        raise ConfigError("in the original only Restore costs something, 1; leave out action_costs")
    return {
        "Agents": {
            "Blue": _blue(scenario),
            "Green": _green(scenario),
            "Red": _red(scenario),
        },
        "Hosts": {host.name: _host(scenario, host) for host in scenario.hosts},
        "Subnets": {name: _subnet(scenario, name) for name in scenario.subnets},
    }


def _agent(
    scenario: Scenario,
    actions: list[str],
    reward: str,
    sessions: Sequence[object],
    told: dict[str, dict[str, str]],
) -> dict[str, object]:
    return {
        "AllowedSubnets": list(scenario.subnets),
        "INT": {"Hosts": told},
        "actions": actions,
        "agent_type": "SleepAgent",
        "reward_calculator_type": reward,
        "starting_sessions": sessions,
        "wrappers": [],
    }


def _blue(scenario: Scenario) -> dict[str, object]:
    clients = [
        {
            "hostname": name,
            "name": f"Velo{name}",
            "parent": SERVER,
            "type": "VelociraptorClient",
            "username": "ubuntu",
        }
        for name in scenario.host_names
    ]
    server = {
        "artifacts": ["NetworkConnections", "ProcessCreation"],
        "hostname": scenario.host_names[0],
        "name": SERVER,
        "num_children_sessions": 2,
        "type": "VelociraptorServer",
        "username": "ubuntu",
    }
    told = {name: dict(ALL_KNOWN) for name in scenario.host_names}
    reward = "HybridAvailabilityConfidentiality"
    blue = _agent(scenario, list(scenario.verbs), reward, [*clients, server], told)
    return blue | {"adversary": "Red"}


def _green(scenario: Scenario) -> dict[str, object]:
    """Ready to act, and asleep unless the scenario says otherwise."""
    session = {
        "hostname": scenario.host_names[0],
        "name": "GreenSession",
        "type": "green_session",
        "username": "GreenAgent",
    }
    told = {name: dict(ALL_KNOWN) for name in (scenario.host_names[0], *scenario.green_hosts)}
    told = {name: told[name] for name in scenario.host_names if name in told}
    kinds = {share: kind for kind, share in GREEN_AGENTS.items()}
    if scenario.green not in kinds:
        raise ConfigError(
            f"green is {scenario.green:g}; the original's files know only 0 and 1: GreenAgent"
        )
    green = _agent(scenario, list(GREEN_ACTIONS), "None", [session], told)
    return green | {"agent_type": kinds[scenario.green]}


def _red(scenario: Scenario) -> dict[str, object]:
    session = {
        "hostname": scenario.start,
        "name": "RedPhish",
        "type": "RedAbstractSession",
        "username": ROOTS[scenario.host(scenario.start).image.os],
    }
    told: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys((*scenario.known, *scenario.named)):
        told[name] = {}
        if name in scenario.known:
            everything = scenario.subnet_of(name) in scenario.subnets_known
            told[name]["Interfaces"] = "All" if everything else "IP Address"
        if name in scenario.named:
            told[name]["System info"] = "All"
    actions = [*RED_ACTIONS, *EXPLOIT_ACTIONS]
    return _agent(scenario, actions, "HybridImpactPwn", [session], told)


def _host(scenario: Scenario, host: HostPlan) -> dict[str, object]:
    images = [name for name, image in IMAGES.items() if image == host.image]
    if not images:
        raise ConfigError(f"host {host.name} has an image of its own, which has no name there")
    info: dict[str, dict[str, object]] = {}
    for other in host.addresses:
        everything = scenario.subnet_of(other) in host.subnets_told
        info[other] = {"Interfaces": "All" if everything else "IP Address"}
    for other in host.services_told:
        info.setdefault(other, {})["Services"] = [SERVICE]
    return {
        "AWS_Info": [],
        "image": images[0],
        "info": info,
        "ConfidentialityValue": _value(host.name, host.price),
        "AvailabilityValue": _value(host.name, host.service_price),
    }


def _value(host: str, tenths: int) -> str:
    words = {value: word for word, value in VALUES.items()}
    if tenths not in words:
        known = ", ".join(f"{value / 10:g}" for value in words)
        raise ConfigError(f"host {host} costs {tenths / 10:g}; the original knows only {known}")
    return words[tenths]


def _subnet(scenario: Scenario, name: str) -> dict[str, object]:
    members, home = scenario.subnets[name], scenario.subnet_of(scenario.start)
    way = scenario.ways[name]
    rules: dict[str, dict[str, object]] = {"all": dict(EVERYTHING)}
    if way == CLOSED:
        rules = {other: dict(EVERYTHING) for other in scenario.subnets if other != home}
    elif way != (ALL_PORTS,):
        rules = {home: {"in": _let_in(way), "out": "all"}, **rules}
    return {"Hosts": list(members), "NACLs": rules, "Size": 2 * len(members)}


def _let_in(way: Way) -> object:
    if isinstance(way, str):  # gated
        return "None"
    return [{"PortRange": [r.start, r.stop], "Transport Protocol": "all"} for r in way]
