"""Scenarios in the original's own format: `Scenario2.yaml` and others like it, read as they are.

What cannot be played as the original plays it is refused, with the key that says so.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from phalanx.cage2.rules.red_actions import RED_ACTIONS
from phalanx.cage2.rules.scenario import ABOUT_HOSTS, GREEN_HOSTS, Image
from phalanx.cage2.scenario.images import IMAGES, ROOTS, SERVICE, read_image
from phalanx.cage2.scenario.keys import Keys, read_keys, refuse
from phalanx.cage2.scenario.members import read_members
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

VALUES = {"None": 0, "Low": 1, "Medium": 10, "High": 100}  # tenths
UNSAID_VALUE = "Low"
ARTIFACT = "NetworkConnections"
ORDER = ("Blue", "Green", "Red")
GREEN_AGENTS = {"SleepAgent": 0.0, "GreenAgent": 1.0}
GREEN_SESSIONS = ("green_session", "redabstractsession", "velociraptorserver", "metasploitserver")
"""types of a session that the original lets an agent act from"""


def read_original(keys: Keys) -> Scenario:
    """A file with Agents, Hosts and Subnets."""
    agents, hosts = keys.part("Agents"), keys.part("Hosts")
    _check_order(keys)
    subnets = _subnets(keys, hosts)
    images = {name: _image(keys, hosts.part(name)) for name in hosts.content}
    start = _red_start(agents.part("Red"), images)
    _check_blue(agents.part("Blue"), images)
    _check_allowed(agents, subnets)
    known, named, subnets_known = _told(agents.part("Red").part("INT").part("Hosts"), subnets)
    return Scenario(
        Path(keys.file).stem,
        tuple(_host(name, hosts.part(name), images, subnets) for name in images),
        subnets,
        {name: _way(keys, name, _home(start, subnets)) for name in subnets},
        start,
        known,
        named,
        subnets_known,
        read_verbs(agents.part("Blue"), "actions"),
        agents.part("Green", {}).choice("agent_type", GREEN_AGENTS, "SleepAgent"),
        _green_hosts(agents.part("Green", {})),
    )


# --- hosts and subnets ----------------------------------------------------------------------------


def _home(host: str, subnets: Mapping[str, tuple[str, ...]]) -> str:
    return next(subnet for subnet, members in subnets.items() if host in members)


def _subnets(keys: Keys, hosts: Keys) -> dict[str, tuple[str, ...]]:
    """The hosts of each subnet, which must have an address for each."""
    parts = keys.part("Subnets")
    subnets, _homes = read_members(parts, "Hosts", hosts)
    for name, members in subnets.items():
        room = _addresses(parts.part(name).whole("Size"))
        if len(members) > room:
            why = f"has {room} addresses for {len(members)} hosts; make it larger"
            refuse(parts.part(name), "Size", why)
    return subnets


def _addresses(size: int) -> int:
    """How many hosts the original has addresses for in a subnet of this size."""
    return int(2 ** max((size + 5).bit_length() - 1, 4)) - 2


def _image(keys: Keys, host: Keys) -> Image:
    """By name: from a folder `images` beside the file, or the challenge's own."""
    name = host.text("image")
    index = Path(keys.file).parent / "images" / "images.yaml"
    own = read_keys(index) if index.is_file() else Keys(str(index), (), {})
    if name in own.content:
        path = Path(own.part(name).text("path") + ".yaml")
        if path.is_absolute() or ".." in path.parts:
            refuse(own.part(name), "path", "must lie in the same folder")
        return read_image(read_keys(index.parent / path).part("Test_Host"))
    if name not in IMAGES:
        refuse(host, "image", choices("image", name, (*IMAGES, *map(str, own.content))))
    return IMAGES[name]


def _host(
    name: str, keys: Keys, images: Mapping[str, Image], subnets: Mapping[str, tuple[str, ...]]
) -> HostPlan:
    addresses, told, services_told = [], [], []
    info = keys.part("info", {})
    for other in info.content:
        if not any(other in members for members in subnets.values()):
            refuse(info, str(other), "is no host")
        part = info.part(other)
        part.only("Interfaces", "Services")
        if "Interfaces" in part.content:
            everything = part.choice("Interfaces", {"All": True, "IP Address": False})
            addresses.append(str(other))
            told += [_home(other, subnets)] if everything else []
        services = part.items("Services", ())
        if images[other].runs_service and (SERVICE in services or "All" in services):
            services_told.append(str(other))
    return HostPlan(
        name,
        images[name],
        keys.choice("ConfidentialityValue", VALUES, UNSAID_VALUE),
        keys.choice("AvailabilityValue", VALUES, UNSAID_VALUE),
        tuple(addresses),
        tuple(dict.fromkeys(told)),
        tuple(services_told),
    )


def _way(keys: Keys, subnet: str, home: str) -> Way:
    """How the subnet's rules let in what comes from red's first host."""
    part = keys.part("Subnets").part(subnet)
    rules = part.part("NACLs", {})
    named = home in rules.content
    if not named and "all" not in rules.content:
        return CLOSED
    rule = rules.part(home if named else "all")
    allowed = rule.needed("in")
    if allowed == "all" or (isinstance(allowed, list) and "all" in allowed):
        return (ALL_PORTS,)
    if allowed == "None":
        if not named:
            refuse(rule, "in", "None is only known of a subnet that is named")
        return GATED
    ranges = []
    for entry in rule.parts("in"):
        bounds = entry.items("PortRange")
        if len(bounds) != 2 or not all(isinstance(port, int) for port in bounds):
            refuse(entry, "PortRange", "must be two numbers: the first port, and one past the last")
        ranges.append(range(*bounds))
    return tuple(ranges)


# --- agents ---------------------------------------------------------------------------------------


def _red_start(red: Keys, images: Mapping[str, Image]) -> str:
    """The host of red's one session, which must be privileged."""
    sessions = list(red.parts("starting_sessions"))
    if len(sessions) != 1:
        refuse(red, "starting_sessions", f"must be one, got {len(sessions)}")
    session = sessions[0]
    session.choice("type", {"RedAbstractSession": True})
    host = session.text("hostname")
    if host not in images:
        refuse(session, "hostname", choices("host", host, images))
    root = ROOTS[images[host].os]
    if session.text("username") != root:
        refuse(session, "username", f"must be {root}: red's first session is a privileged one")
    for action in RED_ACTIONS:
        if action not in red.items("actions"):
            refuse(red, "actions", f"{action} is missing, which attackers use")
    return host


def _told(
    hosts: Keys, subnets: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What red knows at first: addresses, names, subnets."""
    known, named, subnets_known = [], [], []
    for name in hosts.content:
        if not any(name in members for members in subnets.values()):
            refuse(hosts, str(name), "is no host")
        part = hosts.part(name)
        if "Interfaces" in part.content:
            known.append(str(name))
            if part.choice("Interfaces", {"All": True, "IP Address": False}):
                subnets_known.append(_home(name, subnets))
        named += [str(name)] if "System info" in part.content else []
    return tuple(known), tuple(named), tuple(dict.fromkeys(subnets_known))


def _check_blue(blue: Keys, images: Mapping[str, Image]) -> None:
    """Blue must watch every host, as it does in the challenge."""
    blue.choice("adversary", {"Red": True})
    blue.choice("reward_calculator_type", {"HybridAvailabilityConfidentiality": True})
    sessions = list(blue.parts("starting_sessions"))
    servers = [s for s in sessions if s.get("type") == "VelociraptorServer"]
    if len(servers) != 1 or ARTIFACT not in servers[0].items("artifacts", ()):
        refuse(blue, "starting_sessions", f"one VelociraptorServer with {ARTIFACT} is needed")
    server = servers[0].get("name")
    watched = [s.get("hostname") for s in sessions if s.get("parent") == server]
    told = blue.part("INT").part("Hosts")
    for host in images:
        if host not in watched:
            refuse(blue, "starting_sessions", f"no session of {server} on {host}: blue is blind")
        part = told.part(host)
        if part.get("Interfaces") != "All" or "System info" not in part.content:
            refuse(told, host, "Interfaces: All and System info: All are needed")


def _green_hosts(green: Keys) -> tuple[str, ...]:
    """Hosts that green may scan: it must have that action, a session to act from, and know their
    names; else the original does nothing.
    """
    told = green.part("INT", {}).part("Hosts", {})
    first = next(green.parts("starting_sessions", ()), None)
    if first is None or "GreenPortScan" not in green.items("actions", ()):
        return ()
    kind, home = str(first.get("type")).lower(), str(first.get("hostname"))
    if kind not in GREEN_SESSIONS or home not in told.content:
        return ()
    named = [name for name in told.content if "System info" in told.part(name).content]
    return tuple(name for name in GREEN_HOSTS if name in named)


def _check_order(keys: Keys) -> None:
    """The original lets agents act in the order in which its file has them."""
    agents = keys.part("Agents")
    agents.only(*ORDER)
    if list(agents.content) != [name for name in ORDER if name in agents.content]:
        refuse(keys, "Agents", f"they act in their order in the file; only {ORDER} is played")


def _check_allowed(agents: Keys, subnets: Mapping[str, object]) -> None:
    for name in ("Blue", "Red"):
        part = agents.part(name)
        missing = [s for s in subnets if s not in part.items("AllowedSubnets")]
        if missing:
            refuse(part, "AllowedSubnets", f"{missing[0]} is missing: agents may be everywhere")


def read_verbs(keys: Keys, key: str, known: Sequence[str] = VERBS_OF_ALL) -> tuple[str, ...]:
    """Blue's actions, in the order of the file."""
    verbs = tuple(keys.names(key))
    for verb in verbs:
        if verb not in known:
            refuse(keys, key, choices("action", verb, known))
    if len(set(verbs)) < len(verbs) or "Sleep" not in verbs or not {*verbs} & {*ABOUT_HOSTS}:
        refuse(keys, key, "each once, Sleep and some that are about hosts")
    return verbs
