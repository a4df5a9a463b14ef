"""The attackers `again`, `ssh` and `quiet` as agents of the original simulator (CybORG).

    phalanx record --red-agent examples/attackers/for_cyborg.py:Again --episodes 20 --out again
    phalanx verify again --red-agent examples/attackers/again.py:again

The original gives addresses, and hosts and subnets by name, in the order in which phalanx numbers
them: so the same attacker can be written twice, and must make the same moves.
"""

# mypy: ignore-errors
# The original has no types.

from CybORG.Agents import BaseAgent
from CybORG.Shared.Actions import (
    DiscoverNetworkServices,
    DiscoverRemoteSystems,
    ExploitRemoteService,
    Impact,
    PrivilegeEscalate,
    SSHBruteForce,
)

FIRST, GOAL = "User0", "Op_Server0"


class Numbered(BaseAgent):
    """What red knows, by number, and moves by number."""

    def __init__(self):
        self.begin()

    def begin(self):
        self.turn, self.last = -1, None
        self.systems, self.roots, self.scanned = set(), {FIRST}, set()
        self.start()

    def get_action(self, observation, action_space):
        self.turn += 1
        self.addresses = list(action_space["ip_address"])
        self.known = [n for n, ip in enumerate(self.addresses) if action_space["ip_address"][ip]]
        self.names = list(action_space["hostname"])
        self.all_subnets = list(action_space["subnet"])
        self.subnets = [n for n, s in enumerate(self.all_subnets) if action_space["subnet"][s]]
        self.succeeded = observation["success"].name == "TRUE"
        self.failed = observation["success"].name == "FALSE"
        if isinstance(self.last, ExploitRemoteService) and self.succeeded:
            self.systems.add(self.addresses.index(self.last.ip_address))
        if isinstance(self.last, PrivilegeEscalate) and self.succeeded:
            self.roots.add(self.last.hostname)
        if isinstance(self.last, DiscoverNetworkServices) and len(observation) > 1:
            self.scanned.add(self.addresses.index(self.last.ip_address))
        self.last = self.choose()
        return self.last

    def next_known(self, host):
        later = [n for n in self.known if n > host]
        return later[0] if later else self.known[0]

    def sweep(self, subnet):
        return DiscoverRemoteSystems(session=0, agent="Red", subnet=self.all_subnets[subnet])

    def scan(self, host):
        return DiscoverNetworkServices(session=0, agent="Red", ip_address=self.addresses[host])

    def exploit(self, host, priority=None):
        ip = self.addresses[host]
        return ExploitRemoteService(session=0, agent="Red", ip_address=ip, priority=priority)

    def escalate(self, host):
        return PrivilegeEscalate(session=0, agent="Red", hostname=self.names[host])

    def train(self, results):
        pass

    def end_episode(self):
        self.begin()

    def set_initial_values(self, action_space, observation):
        pass


class Again(Numbered):
    def start(self):
        self.swept, self.looked, self.target, self.stage = set(), set(), 0, 0

    def choose(self):
        if 0 < self.stage <= 3 and self.failed:
            self.looked.discard(self.target)
        for subnet in self.subnets:
            if subnet not in self.swept:
                self.swept.add(subnet)
                return self.sweep(subnet)
        for host in self.known:
            if host not in self.looked:
                self.looked.add(host)
                return self.scan(host)
        if self.stage == 0:
            self.target = self.next_known(self.target)
        self.stage += 1
        if self.stage <= 3:
            return self.exploit(self.target)
        self.stage, name = 0, self.names[self.target]
        if name == GOAL and name in self.roots:
            return Impact(session=0, agent="Red", hostname=name)
        is_told = self.target in self.systems
        return self.escalate(self.target) if is_told else self.scan(self.target)


class Ssh(Numbered):
    def start(self):
        self.swept, self.target, self.round = set(), 0, 0
        self.taken = self.tried = False

    def choose(self):
        if self.taken:
            self.taken = False
            if self.succeeded:
                return self.escalate(self.target)
        for subnet in self.subnets:
            if subnet not in self.swept:
                self.swept.add(subnet)
                return self.sweep(subnet)
        if not self.tried:
            later = [host for host in self.known if host > self.target]
            self.round += not later
            self.target = later[0] if later else self.known[0]
        self.tried = False
        if self.round % 2 == 0:
            ip = self.addresses[self.target]
            return SSHBruteForce(session=0, agent="Red", ip_address=ip, target_session=0)
        if self.target not in self.scanned:
            self.tried = True
            return self.scan(self.target)
        self.taken = True
        return self.exploit(self.target, priority=SSHBruteForce)


class Quiet(Numbered):
    def start(self):
        self.target = 0

    def choose(self):
        if self.turn == 0:
            (home,) = self.subnets
            return self.sweep(home)
        if self.turn < 8 or self.turn % 8 < 2:
            self.target = self.next_known(self.target)
            return self.scan(self.target)
        if self.turn % 3 == 0:
            self.target = self.next_known(self.target)
        return self.exploit(self.target)
