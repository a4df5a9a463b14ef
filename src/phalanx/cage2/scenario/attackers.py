"""Which of the challenge's attackers can play on a network: they go by the names of its hosts."""

from collections.abc import Iterable, Mapping, Sequence

from phalanx.cage2.scenario.plan import CLOSED, GATED, GOAL, KEY_WORD, Scenario
from phalanx.cage2.scenario.worlds import gateway_of
from phalanx.cage2.settings import DEFAULT_PRIOR, red_agent_weights
from phalanx.errors import ConfigError

LINE_START = "User0"
BY_LINE = ("b_line", "b_line_detour", "coin")
BY_NAMES = ("meander", "meander_rescan", "coin")


def check_attackers(scenario: Scenario, red_agents: Iterable[str]) -> None:
    """Refuse attackers that would stop with an error in the original."""
    for red_agent in red_agents:
        _check(scenario, red_agent)


def can_attack(scenarios: Sequence[Scenario], red_agents: Iterable[str]) -> tuple[str, ...]:
    """Those of the attackers that can play on all of these networks."""

    def can(red_agent: str) -> bool:
        try:
            for scenario in scenarios:
                _check(scenario, red_agent)
        except ConfigError:
            return False
        return True

    return tuple(name for name in red_agents if can(name))


def spec_there(spec: str, scenarios: Sequence[Scenario]) -> str:
    """A mixture of attackers without those that cannot play on these networks."""
    weights = red_agent_weights(spec)
    able = can_attack(scenarios, weights)
    if len(able) == len(weights):
        return spec
    total = sum(weights[name] for name in able)
    return ",".join(f"{name}={weights[name] / total!r}" for name in able)


def prior_there(
    prior: str | Mapping[str, float], scenarios: Sequence[Scenario]
) -> str | Mapping[str, float]:
    """Whom a belief expects: of those that are expected if nothing is said, who can play there."""
    if prior == DEFAULT_PRIOR:
        return spec_there(DEFAULT_PRIOR, scenarios)
    for scenario in scenarios:
        check_attackers(scenario, red_agent_weights(prior))
    return prior


def _check(scenario: Scenario, red_agent: str) -> None:
    hindrances = []
    if red_agent in BY_LINE:
        hindrances.append(line_hindrance(scenario))
    if red_agent in BY_NAMES and any(word in scenario.start for word in ("Op", "Ent")):
        hindrances.append(f"its first host must not be named {scenario.start} (Op or Ent)")
    for why in hindrances:
        if why is not None:
            raise ConfigError(f"{red_agent} cannot play on scenario {scenario.name}: {why}")


def line_hindrance(scenario: Scenario) -> str | None:
    """What B-line would miss on its way, or None: it begins on User0, goes by a neighbour to the
    Enterprise host that this points to, to the third host of that one's subnet, to Op_Server0.
    """
    names = scenario.host_names
    if scenario.start != LINE_START:
        return f"red must start on {LINE_START}, not on {scenario.start}"
    home = scenario.subnet_of(scenario.start)
    targets = [name for name in scenario.subnets[home] if name != scenario.start]
    if not targets:
        return f"no other host is in {home}"
    if GOAL not in names:
        return f"there is no {GOAL}"
    for target in targets:
        gateway = gateway_of(scenario, target)
        if gateway is None:
            return f"{target} points to no host with {KEY_WORD} in its name"
        third = scenario.subnets[scenario.subnet_of(gateway)][2:3]
        if not third:
            return f"{scenario.subnet_of(gateway)} has fewer than three hosts"
        if GOAL not in scenario.host(third[0]).addresses:
            return f"{third[0]} does not point to {GOAL}"
        for host in (target, gateway, third[0]):
            if scenario.ways[scenario.subnet_of(host)] in (GATED, CLOSED):
                return f"{host} cannot always be reached"
        for host in (gateway, third[0]):
            if not _shows_a_port(scenario, host):
                return f"a scan of {host} finds no port"
        if scenario.subnet_of(gateway) not in scenario.host(gateway).subnets_told:
            return f"{gateway} does not tell its own subnet"
    return None


def _shows_a_port(scenario: Scenario, host: str) -> bool:
    """Whether red's first host sees a port of it that is genuine."""
    way = scenario.ways[scenario.subnet_of(host)]
    return any(port in ports for port in scenario.host(host).image.ports for ports in way)
