"""One network under test: a state built by hand, red told what to do, dice that are known."""

from typing import Any

import numpy as np

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.batch_turn import LOG, allocate, begin_episodes, replay_turn
from phalanx.cage2.rules.mind import NO_MINDS
from phalanx.cage2.rules.network import LOADED, NETWORK, TRUE
from phalanx.cage2.rules.observation import NUM_BITS
from phalanx.cage2.rules.red_actions import RED_ACTIONS
from phalanx.cage2.rules.scenario import (
    ALL_RED_AGENTS,
    DECOYS,
    EXPLOIT_PORTS,
    EXPLOITS,
    HOSTS,
    MEANDER,
    NUM_HOSTS,
    RULE_SETS,
    SUBNETS,
    action_index,
)
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.compiled.rule import records

ALL = (1 << NUM_HOSTS) - 1


def mask(*names: str) -> int:
    return sum(1 << HOSTS.index(name) for name in names)


def names(members: int) -> set[str]:
    return {host for h, host in enumerate(HOSTS) if int(members) >> h & 1}


class Game:
    """A network at the start of an episode; every field of its record is an attribute."""

    def __init__(self, red: str = "meander", rules: str = "2.1-final") -> None:
        self.nets = records(1, NETWORK)
        self.nets["red_plan"] = ALL_RED_AGENTS.index(red)
        self.nets["rules"] = RULE_SETS.index(rules)
        self.nets["horizon"] = 100
        self.log = records(1, LOG)
        everyone, odds = np.ones(1, np.bool_), np.zeros(3, np.int64)
        shown = allocate(1, NUM_BITS, np.float32)
        begin_episodes(CAGE2_WORLDS, self.nets, NO_MINDS, everyone, odds, shown)

    def __getattr__(self, name: str) -> Any:
        value = self.nets[name][0]
        return value[0] if name == "seen" else value

    def having(self, **fields: Any) -> "Game":
        for name, value in fields.items():
            self.nets[name] = value
        return self

    # --- building a state -----------------------------------------------------------------------

    def session(self, host: str, kind: str) -> "Game":
        """Red sits on the host: as "root", as a "removable" user, or as a "stuck" one."""
        self.nets["sessions"] |= mask(host)
        self.nets["known"] |= mask(host)
        self.nets["named"] |= mask(host)
        if kind != "stuck":
            self.nets[kind] |= mask(host)
        return self

    def decoy(self, host: str, *kinds: str) -> "Game":
        for kind in kinds:
            bit = [decoy.name for decoy in DECOYS].index(f"Decoy{kind}")
            self.nets["decoys"][0, HOSTS.index(host)] |= 1 << bit
        return self

    def remembers(self, host: str, *ports: int) -> "Game":
        """Red has scanned the host and saw these ports."""
        self.nets["known"] |= mask(host)
        self.nets["scanned"] |= mask(host)
        self.nets["ports"][0, HOSTS.index(host)] = sum(1 << EXPLOIT_PORTS.index(p) for p in ports)
        return self

    def table(self, host: str, activity: str = "None", compromised: str = "No") -> "Game":
        """What blue's table says of the host."""
        at = 4 * HOSTS.index(host)
        value = {"None": 0, "Scan": 1, "Exploit": 3}[activity]
        value |= {"No": 0, "Unknown": 4, "User": 8, "Privileged": 12}[compromised]
        self.nets["seen"] = (int(self.seen) & ~(15 << at)) | value << at
        return self

    # --- telling red what to do: Meander, with notes that leave only this move ------------------

    def red_will(self, action: str, target: str = "") -> "Game":
        nothing_left = {"swept": 7, "scan_tried": ALL, "escalated": ALL & ~mask("Op_Server0")}
        self.having(
            red=MEANDER, last_exploited=-1, last_escalated=-1, succeeded=TRUE, **nothing_left
        )
        if action == "sweep":
            subnet = 1 << SUBNETS.index(target)
            return self.having(swept=7 & ~subnet, subnets=int(self.subnets) | subnet)
        if action == "impact":
            return self.having(escalated=ALL)
        self.nets["known"] |= mask(target)
        if action == "scan":
            return self.having(scan_tried=ALL & ~mask(target))
        if action == "escalate":
            self.nets["named"] |= mask(target)
            return self.having(escalated=ALL & ~mask(target, "Op_Server0"), mapped=0, exploited=0)
        assert action == "exploit"
        self.having(exploited=ALL & ~mask(target), named=int(self.named) & ~mask("Op_Server0"))
        return self

    # --- playing --------------------------------------------------------------------------------

    def turn(
        self,
        blue: str = "Sleep",
        exploit: str = "",
        detected: bool = True,
        target: str = "",
        green: str = "",
    ) -> "Game":
        """Play one turn: blue's action, how the dice fall for red, what green scans."""
        scanned = HOSTS.index(green) if green else -1
        loaded = np.array([[LOADED, LOADED, 0 if detected else LOADED - 1, scanned]], np.int64)
        loaded[0, 0] += HOSTS.index(target) if target else 0
        loaded[0, 1] += EXPLOITS.index(exploit) if exploit else 0
        action = np.array([action_index(*blue.split())])
        replay_turn(CAGE2_WORLDS, self.nets, np.ones(1, np.bool_), action, loaded, self.log)
        return self

    def put_into(self, batch: Batch) -> None:
        """Give every network of the batch this state; their dice and turns stay their own."""
        for name in set(NETWORK.names or ()) - {"stream", "episode", "turn", "horizon"}:
            batch.nets[name] = self.nets[name][0]

    # --- looking --------------------------------------------------------------------------------

    @property
    def red_did(self) -> str:
        """Red's last move in words."""
        action, target = int(self.log["red"][0]), int(self.log["target"][0])
        where = "" if target < 0 else f" {(SUBNETS if action == 1 else HOSTS)[target]}"
        return RED_ACTIONS[action] + where

    @property
    def exploit_used(self) -> str | None:
        chosen = int(self.log["exploit"][0])
        return None if chosen < 0 else EXPLOITS[chosen]

    @property
    def cost(self) -> int:
        return int(self.log["cost"][0])

    @property
    def success(self) -> bool | None:
        return (False, True, None)[int(self.succeeded)]

    @property
    def decoy_placed(self) -> bool:
        return int(self.log["decoy"][0]) >= 0

    def decoys_on(self, host: str) -> set[str]:
        bits = int(self.decoys[HOSTS.index(host)])
        return {d.name.removeprefix("Decoy") for k, d in enumerate(DECOYS) if bits >> k & 1}

    def ports_of(self, host: str) -> set[int]:
        bits = int(self.ports[HOSTS.index(host)])
        return {port for k, port in enumerate(EXPLOIT_PORTS) if bits >> k & 1}

    def activity(self, host: str) -> str:
        return ("None", "Scan", "?", "Exploit")[int(self.seen) >> 4 * HOSTS.index(host) & 3]

    def compromised(self, host: str) -> str:
        level = int(self.seen) >> 4 * HOSTS.index(host) + 2 & 3
        return ("No", "Unknown", "User", "Privileged")[level]

    def access(self, host: str) -> str:
        if self.root & mask(host):
            return "root"
        if self.sessions & mask(host):
            return "removable" if self.removable & mask(host) else "stuck"
        return "none"
