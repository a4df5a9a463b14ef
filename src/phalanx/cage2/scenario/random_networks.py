"""Networks like CAGE-2's, drawn by a seed: `random:seed=1,users=3-8,enterprise=3-5,op=2-4`.

What is drawn is drawn by a hash, so that the same words mean the same networks for ever.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from phalanx.cage2.scenario.images import IMAGES
from phalanx.cage2.scenario.plan import ALL_PORTS, GATED, GOAL, HostPlan, Scenario
from phalanx.cage2.scenario.random_spec import Range, Spec

USER_IMAGES = (
    "windows_user_host1",
    "windows_user_host2",
    "linux_user_host1",
    "linux_user_host2",
)
ENTERPRISE_IMAGES = ("Gateway", "Internal")
LOW, MEDIUM, HIGH = 1, 10, 100  # tenths

Drawn = TypeVar("Drawn")


def random_networks(spec: Spec) -> tuple[Scenario, ...]:
    """All of them, or the one that is asked for."""
    numbers = range(spec.networks) if spec.network is None else [spec.network]
    return tuple(random_network(spec, number) for number in numbers)


def random_network(spec: Spec, number: int) -> Scenario:
    """Subnets and their names as in CAGE-2, so that its attackers find their way; how many hosts,
    their images, and where users point to, is drawn.
    """
    dice = _Dice(f"{spec.seed} {number}")
    users = [f"User{k}" for k in range(dice.between("users", spec.users))]
    enterprise = [f"Enterprise{k}" for k in range(dice.between("enterprise", spec.enterprise))]
    operational = [f"Op_Host{k}" for k in range(dice.between("op", spec.op) - 1)]
    # B-line goes by the third host of this subnet, which may be Defender.
    members = [*enterprise, "Defender"]
    on_the_way = {members[2], enterprise[-1]}
    gateways = enterprise[:2]
    hosts = [_host("Defender", "Velociraptor_Server", LOW, "Enterprise")]
    for name in enterprise:
        hosts.append(_host(name, dice.one_of(name, ENTERPRISE_IMAGES), MEDIUM, "Enterprise"))
    hosts += [_host(name, "Gateway", LOW, "Operational") for name in operational]
    hosts.append(_host(GOAL, "OP_Server", MEDIUM, "Operational", service_price=HIGH))
    hosts.append(_host(users[0], dice.one_of(users[0], USER_IMAGES), 0, "User"))
    for name in users[1:]:
        target = dice.one_of(f"{name} points to", gateways)
        hosts.append(_host(name, dice.one_of(name, USER_IMAGES), LOW, "User", (target,)))
    hosts = [_pointing(host, GOAL) if host.name in on_the_way else host for host in hosts]
    return Scenario(
        f"random-{spec.seed}-{number}",
        tuple(hosts),
        {
            "Enterprise": tuple(members),
            "Operational": (GOAL, *operational),
            "User": tuple(users),
        },
        {"Enterprise": (ALL_PORTS,), "Operational": GATED, "User": (ALL_PORTS,)},
        users[0],
        (users[0],),
        (users[0],),
        ("User",),
    )


def _host(
    name: str,
    image: str,
    price: int,
    subnet: str,
    points_to: tuple[str, ...] = (),
    service_price: int = LOW,
) -> HostPlan:
    told = (name,) if IMAGES[image].runs_service else ()
    return HostPlan(name, IMAGES[image], price, service_price, (name, *points_to), (subnet,), told)


def _pointing(host: HostPlan, other: str) -> HostPlan:
    return replace(host, addresses=(*host.addresses, other))


class _Dice:
    """Draws by what is drawn: the same for the same words, whatever else is drawn."""

    def __init__(self, name: str) -> None:
        self._name = name

    def between(self, what: str, ends: Range) -> int:
        low, high = ends
        digest = hashlib.sha256(f"{self._name} {what}".encode()).digest()
        return low + int.from_bytes(digest[:8], "big") % (high - low + 1)

    def one_of(self, what: str, members: Sequence[Drawn]) -> Drawn:
        return members[self.between(what, (0, len(members) - 1))]
