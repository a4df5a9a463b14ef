"""What is true in a game of the original, as numbers: read off its objects, without touching it."""

from typing import Any

from phalanx.cage2.rules.attackers import RED_ACTIONS
from phalanx.cage2.rules.scenario import EXPLOIT_PORTS, EXPLOITS, NO_EXPLOIT, NO_HOST
from phalanx.cage2.scenario.images import ROOTS, SERVICE
from phalanx.cage2.scenario.plan import GOAL, Scenario

PROCESS_OF_DECOY = (
    "apache2", "femitter", "haraka", "Smss.exe", "Sshd.exe", "Svchost.exe", "Tomcat.exe", "vsftpd",
)  # fmt: skip
"""names of the processes that decoys start, in the order of decoys"""
SPOILABLE = ("User3", "User4")  # whose Haraka the recording's flags tell of
SHELL = "red_reverse_shell"
MALWARE = 0.9
MOST_SESSIONS = 32  # that a recorded list has room for
INVALID = len(RED_ACTIONS)
USER_STUCK, USER_REMOVABLE, ROOT = 1, 2, 3


class OriginalState:
    """One game of the original, in the challenge's wrapper."""

    def __init__(self, game: Any, scenario: Scenario) -> None:
        self.names = scenario.host_names
        self.subnets = scenario.subnet_names
        self.controller = game.env.env.env.env.env.environment_controller

    # --- what is true -----------------------------------------------------------------------------

    @property
    def state(self) -> Any:
        return self.controller.state

    @property
    def _address(self) -> dict[str, Any]:
        return {name: address for address, name in self.state.ip_addresses.items()}

    @property
    def _suspicious(self) -> dict[str, list[int]]:
        """Process ids that blue suspects, by host."""
        sessions = self.state.sessions["Blue"].values()
        return dict(next(s.sus_pids for s in sessions if hasattr(s, "sus_pids")))

    @property
    def _first(self) -> Any:
        """Red's first session, which remembers."""
        return self.state.sessions["Red"][0]

    def _sessions(self, host: str) -> list[Any]:
        """Red's sessions on a host, oldest first."""
        numbers = self.state.hosts[host].sessions.get("Red", [])
        return [self.state.sessions["Red"][number] for number in numbers]

    def facts(self) -> dict[str, Any]:
        """The whole state, by the names that recordings have for it."""
        space = self.controller.agent_interfaces["Red"].action_space
        address, first = self._address, self._first
        ports = {name: first.ports.get(address[name], ()) for name in self.names}
        kinds = [[self._kind(host, s) for s in self._sessions(host)] for host in self.names]
        return {
            "known": [bool(space.ip_address.get(address[name])) for name in self.names],
            "hname_known": [bool(space.hostname.get(name)) for name in self.names],
            "scanned": [len(ports[name]) > 0 for name in self.names],
            "access": [0 if not k else 2 if k[0] == ROOT else 1 for k in kinds],
            "sess": [sum(k << 2 * i for i, k in enumerate(ks[:MOST_SESSIONS])) for ks in kinds],
            "decoys": [self._decoys(name) for name in self.names],
            "files": [self._has_malware(name) for name in self.names],
            "red_ports": [_port_bits(ports[name]) for name in self.names],
            "subnets_known": self._subnets_known(space),
            "misc": self._flags(),
        }

    def _has_malware(self, host: str) -> bool:
        return any(file.density >= MALWARE for file in self.state.hosts[host].files)

    def _kind(self, host: str, session: Any) -> int:
        if session.username in ROOTS.values():
            return ROOT
        return USER_REMOVABLE if session.pid in self._suspicious.get(host, ()) else USER_STUCK

    def _decoys(self, host: str) -> int:
        processes = [p for p in self.state.hosts[host].processes if p.decoy_type.value]
        return sum({1 << PROCESS_OF_DECOY.index(process.name) for process in processes})

    def _subnets_known(self, space: Any) -> int:
        cidrs = self.state.subnet_name_to_cidr
        return sum(1 << k for k, name in enumerate(self.subnets) if space.subnet.get(cidrs[name]))

    def _flags(self) -> int:
        running = linked = active = True
        if GOAL in self.names and SERVICE in self.state.hosts[GOAL].services:
            host = self.state.hosts[GOAL]
            running = any(process.name == SERVICE for process in host.processes)
            linked = host.services[SERVICE]["process"] is not None
            active = bool(host.services[SERVICE]["active"])
        flags = running | linked << 1 | (self._first.ot_service is not None) << 2 | active << 3
        for k, name in enumerate(SPOILABLE):
            flags |= (not self._is_spoiled(name)) << (4 + k)
        return int(flags)

    def _is_spoiled(self, name: str) -> bool:
        """Whether the host's genuine smtp process has lost its version."""
        if name not in self.names:
            return False
        genuine = [p for p in self.state.hosts[name].processes if not p.decoy_type.value]
        smtp = [p for p in genuine if p.process_type is not None and p.process_type.name == "SMTP"]
        return any(getattr(process.version, "name", "") == "UNKNOWN" for process in smtp)

    # --- what red did -----------------------------------------------------------------------------

    def move(self) -> dict[str, int]:
        """Red's last action, its target, the exploit that was drawn."""
        action = self.controller.action["Red"]
        name = type(action).__name__
        address = {str(ip): host for ip, host in self.state.ip_addresses.items()}
        target, exploit = NO_HOST, NO_EXPLOIT
        if name == RED_ACTIONS[1]:
            cidrs = {cidr: k for k, cidr in self.state.subnet_name_to_cidr.items()}
            target = self.subnets.index(cidrs[action.subnet])
        elif hasattr(action, "ip_address"):
            target = self.names.index(address[str(action.ip_address)])
        elif hasattr(action, "hostname"):
            target = self.names.index(action.hostname)
        chosen = getattr(action, "sub_action", None)
        if chosen is not None:
            exploit = EXPLOITS.index(type(chosen).__name__)
        number = RED_ACTIONS.index(name) if name in RED_ACTIONS else INVALID
        return {"red": number, "red_tgt": target, "exploit": exploit}

    def session_ids(self) -> set[int]:
        return set(self.state.sessions["Red"])

    def suspicious_ids(self) -> set[tuple[str, int]]:
        return {(host, pid) for host, pids in self._suspicious.items() for pid in pids}

    def detection(self, before: set[int]) -> int:
        """Whether blue's sensors saw the shell that came since; -1 if there was none."""
        new = [self.state.sessions["Red"][k] for k in self.session_ids() - before]
        shells = [session for session in new if session.session_type.name.lower() == SHELL]
        if not shells:
            return -1
        return int((shells[0].host, shells[0].pid) in self.suspicious_ids())

    def reuses_id(self, before: set[int], suspicious: set[tuple[str, int]]) -> bool:
        """Whether a session that came since has a process id that blue had suspected already."""
        new = [self.state.sessions["Red"][k] for k in self.session_ids() - before]
        return any((session.host, session.pid) in suspicious for session in new)

    def notes(self) -> list[int]:
        """The six numbers in which recordings keep what the red agent remembers."""
        agent = self.controller.agent_interfaces["Red"].agent
        if hasattr(agent, "action_history"):
            done = sum(1 << step for step in agent.action_history)
            return [agent.action, done, 0, 0, 0, 0]
        if not hasattr(agent, "scanned_ips"):
            return [0] * 6
        hosts, cidrs = self.state.ip_addresses, self.state.subnet_name_to_cidr

        def of_addresses(members: Any) -> int:
            return sum(1 << self.names.index(hosts[ip]) for ip in set(members))

        def of_names(members: Any) -> int:
            return sum(1 << self.names.index(name) for name in set(members))

        swept = sum(1 << k for k, n in enumerate(self.subnets) if cidrs[n] in agent.scanned_subnets)
        last_host = NO_HOST if agent.last_host is None else self.names.index(agent.last_host)
        last_ip = NO_HOST if agent.last_ip is None else self.names.index(hosts[agent.last_ip])
        return [
            swept,
            of_addresses(agent.scanned_ips),
            of_addresses(agent.exploited_ips),
            of_names(agent.escalated_hosts),
            of_names(agent.host_ip_map),
            100 * last_host + last_ip,
        ]


def _port_bits(ports: Any) -> int:
    return sum(1 << k for k, port in enumerate(EXPLOIT_PORTS) if port in ports)
