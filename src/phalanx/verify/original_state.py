"""What is true in a game of the original, as numbers: read off its objects, without touching it."""

from collections.abc import Container, Iterable

from phalanx.cage2.cyborg import Original
from phalanx.cage2.rules.red_actions import (
    FIRST_PREFERRED,
    FIRST_SINGLE,
    INVALID,
    RED_ACTIONS,
    SWEEP,
)
from phalanx.cage2.rules.scenario import EXPLOIT_PORTS, EXPLOITS, NO_EXPLOIT, NO_HOST
from phalanx.cage2.scenario.images import ROOTS, SERVICE
from phalanx.cage2.scenario.plan import GOAL, Scenario
from phalanx.files import Facts

PROCESS_OF_DECOY = (
    "apache2",
    "femitter",
    "haraka",
    "Smss.exe",
    "Sshd.exe",
    "Svchost.exe",
    "Tomcat.exe",
    "vsftpd",
)
"""names of the processes that decoys start, in the order of decoys"""
SPOILABLE = ("User3", "User4")  # whose Haraka the recording's flags tell of
SHELL = "red_reverse_shell"
MALWARE = 0.9
MOST_SESSIONS = 32  # that a recorded list has room for
GREEN_SCAN = "GreenPortScan"
USER_STUCK, USER_REMOVABLE, ROOT = 1, 2, 3


class OriginalState:
    """One game of the original, in the challenge's wrapper."""

    def __init__(self, game: Original, scenario: Scenario, is_own: bool = False) -> None:
        self.is_own = is_own  # whether red is a class of the user's own
        self.names = scenario.host_names
        self.subnets = scenario.subnet_names
        self.controller = game.env.env.env.env.env.environment_controller

    # --- what is true -----------------------------------------------------------------------------

    @property
    def state(self) -> Original:
        return self.controller.state

    @property
    def _address(self) -> dict[str, object]:
        return {name: address for address, name in self.state.ip_addresses.items()}

    @property
    def _suspicious(self) -> dict[str, list[int]]:
        """Process ids that blue suspects, by host."""
        sessions = self.state.sessions["Blue"].values()
        return dict(next(s.sus_pids for s in sessions if hasattr(s, "sus_pids")))

    @property
    def _first(self) -> Original:
        """Red's first session, which remembers."""
        return self.state.sessions["Red"][0]

    def _sessions(self, host: str) -> list[Original]:
        """Red's sessions on a host, oldest first."""
        numbers = self.state.hosts[host].sessions.get("Red", [])
        return [self.state.sessions["Red"][number] for number in numbers]

    def facts(self) -> Facts:
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
            **(self._own_facts(kinds) if self.is_own else {}),
        }

    def _own_facts(self, kinds: list[list[int]]) -> dict[str, list[int]]:
        """What counts besides where red may hold any number of sessions on a host."""
        return {
            "n_sess": [len(ks) for ks in kinds],
            "n_root": [ks.count(ROOT) for ks in kinds],
            "n_sus": [ks.count(USER_REMOVABLE) for ks in kinds],
            "systems": [name in self._first.operating_system for name in self.names],
        }

    def _has_malware(self, host: str) -> bool:
        return any(file.density >= MALWARE for file in self.state.hosts[host].files)

    def _kind(self, host: str, session: Original) -> int:
        if session.username in ROOTS.values():
            return ROOT
        return USER_REMOVABLE if session.pid in self._suspicious.get(host, ()) else USER_STUCK

    def _decoys(self, host: str) -> int:
        processes = [p for p in self.state.hosts[host].processes if p.decoy_type.value]
        return sum({1 << PROCESS_OF_DECOY.index(process.name) for process in processes})

    def _subnets_known(self, space: Original) -> int:
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
        if name == RED_ACTIONS[SWEEP]:
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
        if name in EXPLOITS:
            exploit = EXPLOITS.index(name)
            number = FIRST_SINGLE + exploit
        preferred = getattr(action, "priority", None)
        if preferred is not None:
            number = FIRST_PREFERRED + EXPLOITS.index(preferred.__name__)
        return {"red": number, "red_tgt": target, "exploit": exploit, "green": self._green_move()}

    def _green_move(self) -> int:
        """1 and the number of the host that green scanned; 0 if none."""
        action = self.controller.action.get("Green")
        is_scan = type(action).__name__ == GREEN_SCAN
        return 1 + self.names.index(action.hostname) if is_scan else 0

    def session_kinds(self) -> dict[str, dict[int, int]]:
        """Red's sessions on each host by their numbers, oldest first, and what each is."""
        return {
            host: {s.ident: self._kind(host, s) for s in self._sessions(host)}
            for host in self.names
        }

    def escalated(self, before: dict[str, dict[int, int]]) -> int:
        """Which session of a host became root since, as `raise_one_if_any` counts them, or -1."""
        for host, now in self.session_kinds().items():
            was = before[host]
            for position, (ident, kind) in enumerate(was.items()):
                if kind != ROOT and now.get(ident) == ROOT:
                    return _place(list(was.values()), position)
        return -1

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
        if self.is_own:
            return [0] * 6
        if hasattr(agent, "action_history"):
            done = sum(1 << step for step in agent.action_history)
            return [agent.action, done, 0, 0, 0, 0]
        if not hasattr(agent, "scanned_ips"):
            return [0] * 6
        hosts, cidrs = self.state.ip_addresses, self.state.subnet_name_to_cidr

        def of_addresses(members: Iterable[object]) -> int:
            return sum(1 << self.names.index(hosts[ip]) for ip in set(members))

        def of_names(members: Iterable[str]) -> int:
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


def _place(kinds: list[int], position: int) -> int:
    """Of sessions in the order: removable ones ahead, the first stuck one, removable ones behind
    it, other stuck ones.
    """
    ahead = next((k for k, kind in enumerate(kinds) if kind != USER_REMOVABLE), len(kinds))
    if position <= ahead:
        return position
    behind = kinds[ahead:].count(USER_REMOVABLE)
    return ahead + 1 if kinds[position] == USER_REMOVABLE else ahead + 1 + behind


def _port_bits(ports: Container[int]) -> int:
    return sum(1 << k for k, port in enumerate(EXPLOIT_PORTS) if port in ports)
