"""The network that an episode is played on, for those who describe it: names, prices, ways."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.network import RUNNING
from phalanx.cage2.rules.scenario import ABOUT_HOSTS, ALL_VERBS, FIRST_DECOY, NO_HOST, RESTORE
from phalanx.cage2.rules.world import HOSTS_PER_WORD, NO_ACTION_OF, Worlds
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.read import CAGE2, CAGE2_WORLDS

Ints = npt.NDArray[np.int64]
ALL_BITS = (1 << 64) - 1
CERTAIN = 2**32  # of green's chance

ROOT, DECOY, SERVICE = "root", "decoy", "service"  # causes of costs, besides names of actions


class Place:
    """One of the networks that a batch plays.

    place = Place(batch.scenario_of(i), batch.worlds, int(batch.nets["world"][i]))
    place.hosts, place.action_name(7), place.start

    Records may have room for more hosts than this network has; what is told leaves these out.
    """

    def __init__(
        self, scenario: Scenario = CAGE2, worlds: Worlds = CAGE2_WORLDS, number: int = 0
    ) -> None:
        self.scenario, self.worlds, self.number = scenario, worlds, number
        self.hosts, self.subnets = scenario.host_names, scenario.subnet_names
        self.start = self.hosts.index(scenario.start)

    @property
    def world(self) -> np.void:
        """What the rules look up."""
        world: np.void = self.worlds[self.number]
        return world

    @property
    def alone(self) -> Worlds:
        """The same as the only one."""
        return self.worlds[self.number : self.number + 1].copy()

    @property
    def is_cage2(self) -> bool:
        return self.scenario == CAGE2

    @property
    def green(self) -> float:
        """The chance that green acts in a turn."""
        return int(self.world["green_chance"]) / CERTAIN

    # --- blue's actions ---------------------------------------------------------------------------

    def verb_of(self, action: int) -> int:
        return int(self.world["verb_of_action"][action])

    def host_of(self, action: int) -> int:
        """The host that an action is about, or NO_HOST."""
        if ALL_VERBS[self.verb_of(action)] not in ABOUT_HOSTS:
            return NO_HOST
        return int(self.world["host_of_action"][action])

    def actions_on(self, verb: int, hosts: Ints) -> list[int]:
        """The numbers of an action for hosts; none if blue does not have it here."""
        found: list[int] = self.world["action_of"][verb][hosts].tolist()
        return [action for action in found if action != NO_ACTION_OF]

    @cached_property
    def action_names(self) -> list[str]:
        """By number; a host that this network does not have is told by its number."""
        return [self._action_name(action) for action in range(int(self.world["num_actions"]))]

    def _action_name(self, action: int) -> str:
        verb, host = ALL_VERBS[self.verb_of(action)], self.host_of(action)
        if host == NO_HOST:
            return verb
        return f"{verb} {self.hosts[host] if host < len(self.hosts) else host}"

    # --- what is true -----------------------------------------------------------------------------

    def members(self, net: np.void, name: str) -> Ints:
        """One of a record's sets of hosts, as 0 or 1 for each."""
        return int(net[name]) >> np.arange(len(self.hosts)) & 1

    def shown(self, net: np.void) -> Ints:
        """What blue's table shows of each host: two bits of activity, then two of compromise."""
        words = [int(word) for word in net["seen"]]
        hosts = range(len(self.hosts))
        return np.array(
            [words[h // HOSTS_PER_WORD] >> 4 * (h % HOSTS_PER_WORD) & 15 for h in hosts], np.int64
        )

    def is_reached(self, net: np.void, host: int) -> bool:
        """Whether red's first session reaches a host now."""
        world = self.world
        if int(world["open_hosts"]) >> host & 1:
            return True
        is_gated = int(world["gated_hosts"]) >> host & 1
        return bool(is_gated and int(net["sessions"]) & int(world["keys"]))

    # --- what it costs ----------------------------------------------------------------------------

    def costs(self, action: int, after: np.void) -> list[tuple[str, int, int]]:
        """A turn's tenths by cause and host (-1: none), by what is true after it."""
        prices = [host.price for host in self.scenario.hosts]
        held = self.members(after, "root")
        parts = [(ROOT, h, price) for h, price in enumerate(prices) if held[h] and price]
        verb = self.verb_of(action)
        paid = int(self.world["action_costs"][verb])
        if paid:
            is_decoy = FIRST_DECOY <= verb < RESTORE
            parts.append(
                (DECOY if is_decoy else ALL_VERBS[verb].lower(), self.host_of(action), paid)
            )
        stopped = int(self.world["service_down_cost"])
        if stopped and not int(after["service"]) & RUNNING:
            parts.append((SERVICE, NO_HOST, stopped))
        return parts


def as_set(net: np.void, name: str) -> int:
    """One of a record's sets of hosts as a number that is never negative."""
    return int(net[name]) & ALL_BITS
