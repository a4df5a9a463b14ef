"""An agent written for the original, in plain Python: slower, for a first try.

It is asked through a callback that stands where compiled code would: kernels see no difference.
"""

import ctypes
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Protocol

import numpy as np

from phalanx.cage2.attack.refusal import refusal
from phalanx.cage2.rules.network import FALSE, TRUE
from phalanx.cage2.rules.red_actions import (
    BITS_OF_ACTION,
    ESCALATE,
    EXPLOIT,
    FIRST_PREFERRED,
    FIRST_SINGLE,
    RAISED,
    RED_ACTIONS,
    RED_SLEEP,
    SCAN,
    SWEEP,
)
from phalanx.cage2.rules.scenario import EXPLOIT_PORTS, EXPLOITS
from phalanx.cage2.scenario.plan import Scenario
from phalanx.compiled.rule import COMPILED
from phalanx.errors import ConfigError

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
ROOTS = {"Linux": "root", "Windows": "SYSTEM"}


class Success:
    """Whether an action worked, as the original says it: equal to True, to False, or to neither."""

    def __init__(self, number: int) -> None:
        self.name = {TRUE: "TRUE", FALSE: "FALSE"}.get(number, "UNKNOWN")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, bool):
            return self.name == str(other).upper()
        return self.name == getattr(other, "name", None)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


class Addresses:
    """Addresses and names of a network, in the order of its hosts and subnets."""

    def __init__(self, scenario: Scenario) -> None:
        self.names, self.subnet_names = scenario.host_names, scenario.subnet_names
        self.subnets = [IPv4Network((f"10.0.{k}.0", 24)) for k in range(len(self.subnet_names))]
        self.members = [
            [self.names.index(name) for name in scenario.subnets[subnet]]
            for subnet in self.subnet_names
        ]
        self.home = [self.subnet_names.index(scenario.subnet_of(name)) for name in self.names]
        self.ips = [IPv4Address(f"10.0.{self.home[h]}.{h + 10}") for h in range(len(self.names))]
        self.systems = [host.image.os for host in scenario.hosts]
        self.told = [[self.names.index(name) for name in host.addresses] for host in scenario.hosts]
        self.start = self.names.index(scenario.start)

    def interface(self, host: int, with_subnet: bool = True) -> dict[str, object]:
        told: dict[str, object] = {"IP Address": self.ips[host]}
        if with_subnet:
            told["Subnet"] = self.subnets[self.home[host]]
        return {"Interface": [told]}

    def system(self, host: int) -> dict[str, object]:
        return {"System info": {"Hostname": self.names[host], "OSType": self.systems[host]}}


class RedAgent(Protocol):
    """A class of the user's, as the original's agents are."""

    def get_action(
        self, observation: dict[str, object], action_space: dict[str, object]
    ) -> object: ...


class AgentOfOneNetwork:
    """The user's agent in one episode: what it is told, and its actions as moves."""

    def __init__(self, agent: RedAgent, addresses: Addresses) -> None:
        self.agent, self.addresses = agent, addresses
        self.action, self.target, self.sessions = RED_SLEEP, addresses.start, 1

    def move(self, net: np.void) -> int:
        space = self.action_space(net)
        chosen = self.agent.get_action(self.observation(net), space)
        self.action, self.target = self._number(chosen)
        return self.action | self.target << BITS_OF_ACTION

    def observation(self, net: np.void) -> dict[str, object]:
        """What the last action told, as the original's dictionaries have it."""
        known, host = self.addresses, self.target
        told: dict[str, object] = {"success": Success(int(net["succeeded"]))}
        if net["turn"] == 0:
            first = known.interface(known.start) | known.system(known.start)
            told[known.names[known.start]] = first | self._session(known.start, 0, True)
        elif net["succeeded"] != TRUE:
            return told
        elif self.action == SWEEP:
            for member in known.members[host]:
                told[str(known.ips[member])] = known.interface(member)
        elif self.action == SCAN:
            if not net["found_nothing"]:
                told[str(known.ips[host])] = self._ports(net, host)
        elif self.action == ESCALATE:
            told[known.names[host]] = known.interface(host) | self._session(host, 1, True)
            for other in known.told[host]:
                home = known.home[other] == known.home[host]
                told.setdefault(known.names[other], known.interface(other, home))
        elif self.action == EXPLOIT or self.action >= FIRST_SINGLE:
            self.sessions += 1
            taken = known.interface(host, with_subnet=False) | known.system(host)
            told[str(known.ips[host])] = taken | self._session(host, self.sessions, False)
            if host != known.start:
                told[str(known.ips[known.start])] = known.interface(known.start, False)
        return told

    def action_space(self, net: np.void) -> dict[str, object]:
        known = self.addresses

        def members(values: Sequence[object], those: int) -> dict[object, bool]:
            return {value: bool(those >> k & 1) for k, value in enumerate(values)}

        return {
            "action": dict.fromkeys((*RED_ACTIONS, *EXPLOITS), True),
            "subnet": members(known.subnets, int(net["subnets"])),
            "ip_address": members(known.ips, int(net["known"])),
            "hostname": members(known.names, int(net["named"])),
            "session": {0: True},
            "target_session": {0: True},
            "agent": {"Red": True},
            "username": {},
            "password": {},
            "process": {},
            "port": {},
        }

    def _session(self, host: int, number: int, is_root: bool) -> dict[str, object]:
        told: dict[str, object] = {"ID": number, "Agent": "Red"}
        if is_root:
            told["Username"] = ROOTS[self.addresses.systems[host]]
        return {"Sessions": [told]}

    def _ports(self, net: np.void, host: int) -> dict[str, object]:
        ip, bits = self.addresses.ips[host], int(net["ports"][host])
        open_ports = [port for k, port in enumerate(EXPLOIT_PORTS) if bits >> k & 1]
        processes = [
            {"Connections": [{"local_port": port, "local_address": ip}]} for port in open_ports
        ]
        return self.addresses.interface(host, with_subnet=False) | {"Processes": processes}

    def _number(self, action: Any) -> tuple[int, int]:
        """An action of the original's, by the name of its class, and its target."""
        name, known = type(action).__name__, self.addresses
        if name == RED_ACTIONS[RED_SLEEP]:
            return RED_SLEEP, 0
        if name == RED_ACTIONS[SWEEP]:
            return SWEEP, known.subnets.index(action.subnet)
        if name in EXPLOITS:
            return FIRST_SINGLE + EXPLOITS.index(name), known.ips.index(action.ip_address)
        if name not in RED_ACTIONS:
            raise TypeError(f"{name} is no action of red's")
        number = RED_ACTIONS.index(name)
        if number in (SCAN, EXPLOIT):
            preferred = getattr(action, "priority", None)
            if preferred is not None:
                number = FIRST_PREFERRED + EXPLOITS.index(preferred.__name__)
            return number, known.ips.index(action.ip_address)
        return number, known.names.index(action.hostname)


class PythonAttacker:
    """A class with get_action(observation, action_space), as the original's agents have it.

    Each network has an agent of its own, and each episode a new one. Actions are the original's, or
    those of `original_actions`: what counts is the name of the class, and its subnet, ip_address,
    hostname, priority. Its state is no part of saved games, and its dice are Python's.
    """

    impossible = "stop"
    can_be_saved = False

    def __init__(self, make: type) -> None:
        self.make, self.name = make, str(make.__name__)
        self.file = f"{str(make.__module__).rpartition('.')[2]}.py"
        self._callbacks: dict[int, object] = {}
        self._error = ""

    def __reduce__(self) -> tuple[type["PythonAttacker"], tuple[type]]:
        return PythonAttacker, (self.make,)

    def address(self, network: np.dtype[np.void], scenarios: Sequence[Scenario]) -> int:
        """Where its callback is, for networks with such records."""
        if not COMPILED:
            raise ConfigError(f"{self.name} is a class, and these are asked by compiled code only")
        plans = [Addresses(scenario) for scenario in scenarios]
        agents: dict[int, AgentOfOneNetwork] = {}

        def asked(place: int, _die: int) -> int:
            try:
                net = np.frombuffer(ctypes.string_at(place, network.itemsize), network)[0]
                if place not in agents or net["turn"] == 0:
                    before = agents[place].agent if place in agents else None
                    if before is not None and hasattr(before, "end_episode"):
                        before.end_episode()
                    agents[place] = AgentOfOneNetwork(self.make(), plans[int(net["world"])])
                return agents[place].move(net)
            except Exception as error:  # of the user's code, and none must reach the kernel
                self._error = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                return RAISED

        callback = CALLBACK(asked)
        self._callbacks[id(callback)] = callback
        place = ctypes.cast(callback, ctypes.c_void_p).value
        assert place is not None
        return place

    def refusal(self, net: np.void, scenario: Scenario) -> str:
        """One line on an impossible move of a network."""
        return refusal(f"{self.name} ({self.file})", net, scenario, self._error)
