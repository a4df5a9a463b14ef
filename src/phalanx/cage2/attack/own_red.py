"""The user's own attackers in one batch: told to its kernels, and stopped when they go wrong."""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from phalanx.cage2.attack.find import find_attacker
from phalanx.cage2.attack.refusal import attacker_of
from phalanx.cage2.rules.network import Networks, network_dtype
from phalanx.cage2.rules.web_decoys import counts_vsftpd
from phalanx.cage2.rules.world import MAX_OWN, Worlds, num_hosts_of
from phalanx.cage2.scenario.plan import GOAL, Scenario
from phalanx.errors import ActionError, ConfigError


class OwnRed:
    """Attackers by their names or as functions; they have the numbers FIRST_OWN, and so on."""

    def __init__(
        self, given: tuple[object, ...], worlds: Worlds, scenarios: Sequence[Scenario]
    ) -> None:
        if len(given) > MAX_OWN:
            raise ConfigError(f"a batch can have {MAX_OWN} attackers of your own, not {len(given)}")
        for scenario in scenarios:
            _check_services(scenario)
        self.attackers = [find_attacker(one) for one in given]
        self.worlds, self._scenarios = worlds, scenarios
        self.tell()

    def tell(self) -> None:
        """Write into the worlds where the code of each attacker is in this process."""
        hosts, worlds = num_hosts_of(self.worlds), self.worlds
        network = network_dtype(hosts, counts_vsftpd(worlds), own_red=True)
        for k, attacker in enumerate(self.attackers):
            worlds["attackers"][:, k] = attacker.address(network, self._scenarios)
        sleepers = [k for k, one in enumerate(self.attackers) if one.impossible == "sleep"]
        self.worlds["lenient"] = sum(1 << k for k in sleepers)

    def check_saved(self) -> None:
        """Refuse to keep a game of which not all can be kept."""
        for attacker in self.attackers:
            if not attacker.can_be_saved:
                raise ConfigError(
                    f"{attacker.name} is a class, whose state cannot be kept in a file: write it "
                    "as a function with @attacker to train against it or to save its games"
                )

    def check_kind(self, observation: str) -> None:
        if observation == "truth":
            raise ConfigError(
                "observation truth shows what a built-in attacker will do next; an attacker of "
                "your own cannot be foreseen: play bits, history, memory or belief"
            )

    def refuse(self, nets: Networks) -> NoReturn:
        """Say what the first impossible move was, and be ready to go on."""
        wrong = np.flatnonzero(nets["refused_turn"])
        net = nets[wrong[0]].copy()
        nets["refused_turn"] = 0
        self.worlds["refused"] = 0
        who = self.attackers[attacker_of(net)]
        raise ActionError(who.refusal(net, self._scenarios[int(net["world"])]))


def _check_services(scenario: Scenario) -> None:
    for host in scenario.hosts:
        if host.image.runs_service and host.name != GOAL:
            raise ConfigError(
                f"attackers of your own cannot play on scenario {scenario.name}: an operational "
                f"service runs on {host.name}, and only that of {GOAL} is followed"
            )
