"""The command `phalanx scenario`: a network file drawn, listed, and looked through for mistakes."""

from dataclasses import dataclass, field
from pathlib import Path

from phalanx.cage2.scenario.names import is_random
from phalanx.cage2.scenario.plan import CLOSED, GATED, GOAL, Scenario
from phalanx.errors import ConfigError
from phalanx.files import check_writable, write_text
from phalanx.settings.fields import checked


@checked
@dataclass(frozen=True, kw_only=True)
class ScenarioConfig:
    """Show what a scenario file says, and what cannot happen in it."""

    scenario: str = field(default="cage2", metadata={"positional": True})
    """a file in the original's format or in the short form, cage2, a folder of files, or
    random:seed=1,users=3-8 (docs/random-networks.md)"""
    actions: bool = False
    """also list the number of every action"""
    original: Path | None = None
    """also write it to this file in the original's format, for CybORG"""

    def __post_init__(self) -> None:
        check_writable(self.original)


def main(config: ScenarioConfig) -> int:
    """Print subnets with their hosts, who can attack, and warnings."""
    from phalanx.cage2.scenario.several import open_scenarios  # compiled: help need not wait

    networks = open_scenarios(config.scenario).members
    scenario = networks[0]
    if len(networks) > 1:
        if config.original is not None:
            raise ConfigError(which_one(config.scenario, len(networks)))
        sizes = [len(one.hosts) for one in networks]
        print(f"{len(networks)} networks of {min(sizes)} to {max(sizes)} hosts; the first of them:")
    print("\n".join(drawing(scenario)))
    for line in warnings(scenario):
        print(f"warning: {line}")
    if config.actions:
        for number in range(len(scenario.actions)):
            print(f"{number:4} {scenario.action_name(number)}")
    if config.original is not None:
        import yaml

        from phalanx.cage2.scenario.original_form import in_original_form

        write_text(config.original, yaml.safe_dump(in_original_form(scenario), sort_keys=False))
    return 0


def which_one(source: str, count: int) -> str:
    """Why many networks are refused where one is needed."""
    one = "network=0" if is_random(source) else "a file"
    return f"{source} is {count} networks; say which: {one}"


def drawing(scenario: Scenario) -> list[str]:
    """The network in words, subnet by subnet."""
    lines = [
        f"scenario {scenario.name}: {len(scenario.hosts)} hosts in {len(scenario.subnets)} "
        f"subnets, {len(scenario.actions)} actions; red starts on {scenario.start}"
    ]
    for subnet in scenario.subnet_names:
        lines.append(f"{subnet} ({reach(scenario, subnet)})")
        for name in scenario.subnets[subnet]:
            host = scenario.host(name)
            points = [other for other in host.addresses if other != name]
            ports = ", ".join(map(str, host.image.ports))
            parts = [f"  {name:14} {host.image.os:8} ports {ports}", f"costs {host.price / 10:g}"]
            if host.image.runs_service:
                parts.append(f"service costs {host.service_price / 10:g}")
            if points:
                parts.append(f"points to {', '.join(points)}")
            lines.append("; ".join(parts))
    return lines


def reach(scenario: Scenario, subnet: str) -> str:
    """How red gets there."""
    way = scenario.ways[subnet]
    if way == GATED:
        return "reached while red holds a host with Enterprise in its name"
    if way == CLOSED:
        return "out of reach"
    if len(way) == 1 and len(way[0]) == 65536:
        return "always reached"
    return f"reached at ports {', '.join(str(port) for ports in way for port in ports)}"


def warnings(scenario: Scenario) -> list[str]:
    """What cannot happen, and who cannot attack."""
    from phalanx.cage2.scenario.attackers import check_attackers

    found = []
    for red_agent in ("b_line", "meander"):
        try:
            check_attackers(scenario, [red_agent])
        except ConfigError as error:
            found.append(str(error))
    for subnet, way in scenario.ways.items():
        if way == CLOSED:
            hosts = ", ".join(scenario.subnets[subnet])
            found.append(f"no attacker gets to {subnet} ({hosts})")
        if way == GATED and not any("Enterprise" in name for name in scenario.host_names):
            found.append(f"nobody opens {subnet}: no host has Enterprise in its name")
    if GOAL not in scenario.host_names:
        found.append(f"no host is called {GOAL}: nothing is impacted")
    elif not scenario.host(GOAL).image.runs_service:
        found.append(f"{GOAL} runs no operational service: Impact does nothing")
    for host in scenario.hosts:
        told = {name for other in scenario.hosts for name in other.addresses if other != host}
        swept = scenario.subnet_of(host.name) in {
            *scenario.subnets_known,
            *(subnet for other in scenario.hosts for subnet in other.subnets_told if other != host),
        }
        if host.name not in (*told, *scenario.known) and not swept:
            found.append(f"red never learns the address of {host.name}")
    return found
