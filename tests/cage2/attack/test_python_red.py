"""Agents in plain Python with the interface of the original's."""

import pickle
from typing import Any

import numpy as np
import pytest

from phalanx.cage2 import Batch
from phalanx.cage2.attack.original_actions import (
    DiscoverNetworkServices,
    DiscoverRemoteSystems,
    ExploitRemoteService,
    Impact,
    PrivilegeEscalate,
    Sleep,
    SSHBruteForce,
)
from phalanx.cage2.rules.scenario import HOSTS
from phalanx.errors import ActionError, ConfigError

SEEN: list[dict[str, Any]] = []


class Straight:
    """Takes User1 and the host that it points to, by what observations tell."""

    def __init__(self) -> None:
        self.turn, self.name = 0, ""
        self.ip: Any = None

    def get_action(self, observation: dict[str, Any], action_space: dict[str, Any]) -> Any:
        SEEN.append(observation)
        self.turn += 1
        if self.turn == 1:
            return DiscoverRemoteSystems(subnet=observation["User0"]["Interface"][0]["Subnet"])
        if self.turn == 2:
            self.ip = list(action_space["ip_address"])[HOSTS.index("User1")]
            assert action_space["ip_address"][self.ip]
            assert str(self.ip) in observation
            return DiscoverNetworkServices(ip_address=self.ip)
        if self.turn == 3:
            return ExploitRemoteService(ip_address=self.ip, priority=SSHBruteForce)
        if self.turn == 4:
            self.name = observation[str(self.ip)]["System info"]["Hostname"]
            return PrivilegeEscalate(hostname=self.name)
        if self.turn == 5:
            assert observation["success"] == True  # noqa: E712  # as agents of the original ask
            assert observation["User1"]["Sessions"][0]["Username"] == "SYSTEM"
            other = next(name for name in observation if "Enterprise" in name)
            self.ip = observation[other]["Interface"][0]["IP Address"]
            return DiscoverNetworkServices(ip_address=self.ip)
        if self.turn == 6:
            ports = [p["Connections"][0] for p in observation[str(self.ip)]["Processes"]]
            assert {"local_port": 22, "local_address": self.ip} in ports
            return SSHBruteForce(ip_address=self.ip)
        return Sleep()


class Hasty:
    def get_action(self, observation: Any, action_space: Any) -> Any:
        return Impact(hostname="Op_Server0")


class Broken:
    def get_action(self, observation: Any, action_space: Any) -> Any:
        return action_space["nothing"]


def test_an_agent_of_the_original_plays_by_what_it_is_told() -> None:
    SEEN.clear()
    batch = Batch(3, red_agent=Straight, horizon=10, seed=1, num_threads=1)
    for _ in range(7):
        batch.play(np.zeros(3, np.int64))
    held = {host for k, host in enumerate(HOSTS) if (batch.shown.access[:, k] > 0).all()}
    assert held == {"User0", "User1", "Enterprise1"}
    assert (batch.shown.access[:, HOSTS.index("User1")] == 2).all()
    assert len(SEEN) == 21
    for _ in range(4):  # the next episode has a new agent
        batch.play(np.zeros(3, np.int64))
    assert repr(SEEN[-3]["success"]) == "UNKNOWN"
    assert "User0" in SEEN[-3]


def test_its_errors_and_impossible_moves_stop_the_game() -> None:
    with pytest.raises(ActionError, match=r"Hasty .* Impact on Op_Server0 in turn 1: red has had"):
        Batch(1, red_agent=Hasty).play(np.zeros(1, np.int64))
    with pytest.raises(ActionError, match=r"Broken .* in turn 1 with KeyError: 'nothing'"):
        Batch(1, red_agent=f"{__name__}:Broken").play(np.zeros(1, np.int64))


def test_its_games_are_not_saved_but_travel() -> None:
    batch = Batch(2, red_agent=Straight)
    with pytest.raises(ConfigError, match="Straight is a class, whose state cannot be kept"):
        batch.save()
    pickle.loads(pickle.dumps(batch)).play(np.zeros(2, np.int64))
