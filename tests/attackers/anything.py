"""An agent of the original that does anything that red can do: to record what may happen."""

# mypy: ignore-errors
# The original has no types.

import random

from CybORG.Agents import BaseAgent
from CybORG.Shared.Actions import (
    HTTPRFI,
    HTTPSRFI,
    BlueKeep,
    DiscoverNetworkServices,
    DiscoverRemoteSystems,
    EternalBlue,
    ExploitRemoteService,
    FTPDirectoryTraversal,
    HarakaRCE,
    Impact,
    PrivilegeEscalate,
    Sleep,
    SQLInjection,
    SSHBruteForce,
)

SINGLE = (
    BlueKeep,
    EternalBlue,
    FTPDirectoryTraversal,
    HarakaRCE,
    HTTPRFI,
    HTTPSRFI,
    SQLInjection,
    SSHBruteForce,
)
OFTEN = {"sweep": 4, "scan": 22, "exploit": 30, "prefer": 10, "single": 15, "escalate": 14}
OFTEN |= {"impact": 3, "sleep": 2}


class Anything(BaseAgent):
    """Each episode has dice of its own, which are not the simulator's."""

    def __init__(self):
        self.episode = 0
        self.end_episode()

    def end_episode(self):
        self.episode += 1
        self.dice, self.last, self.told = random.Random(self.episode), None, {"User0"}

    def get_action(self, observation, action_space):
        if isinstance(self.last, ExploitRemoteService) and observation["success"].name == "TRUE":
            parts = [part for part in observation.values() if isinstance(part, dict)]
            self.told |= {p["System info"]["Hostname"] for p in parts if "System info" in p}
        kinds = list(OFTEN)
        (kind,) = self.dice.choices(kinds, [OFTEN[kind] for kind in kinds])
        self.last = self.action("sweep" if self.last is None else kind, action_space)
        return self.last

    def action(self, kind, action_space):
        def one(name):
            known = action_space[name]
            return self.dice.choice([value for value in known if known[value]])

        red = {"session": 0, "agent": "Red"}
        if kind == "sleep":
            return Sleep()
        if kind == "sweep":
            return DiscoverRemoteSystems(subnet=one("subnet"), **red)
        if kind == "escalate":  # without the operating system the original stops with an error
            return PrivilegeEscalate(hostname=self.dice.choice(sorted(self.told)), **red)
        if kind == "impact":
            return Impact(hostname=one("hostname"), **red)
        ip = one("ip_address")
        if kind == "scan":
            return DiscoverNetworkServices(ip_address=ip, **red)
        chosen = self.dice.choice((*SINGLE, *[SSHBruteForce] * 3))
        if kind == "single":
            return chosen(ip_address=ip, target_session=0, **red)
        return ExploitRemoteService(
            ip_address=ip, priority=chosen if kind == "prefer" else None, **red
        )

    def train(self, results):
        pass

    def set_initial_values(self, action_space, observation):
        pass
