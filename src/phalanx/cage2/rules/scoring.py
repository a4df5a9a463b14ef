"""What a turn costs blue, in exact tenths, and how well a fix follows the order of repair."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.network import RUNNING, Network
from phalanx.cage2.rules.scenario import REMOVE, RESTORE
from phalanx.cage2.rules.world import World
from phalanx.cage2.workflow import CODES, JUDGED
from phalanx.compiled.bits import has, number
from phalanx.compiled.rule import Record, rule


@rule
def cost(world: World, net: Network, verb: int) -> int:
    """Hosts that red holds as root, the operational service while it is down [Q7], and blue's
    action: in the challenge only Restore.
    """
    tenths, root = number(0), number(net.root)
    for four in range(len(world.prices)):
        tenths += world.prices[four, (root >> (4 * four)) & 15]
    if net.service & RUNNING == 0:
        tenths += world.service_down_cost
    return tenths + number(world.action_costs[verb])


# --- how well blue follows its order of repair ----------------------------------------------------

CONDUCT = np.dtype(
    [
        ("score", np.float64),  # alignment reward of this episode so far
        ("fixes", np.uint16),
        ("compliant", np.uint16),  # fixes that followed the order
        ("order", np.uint8),  # its number
    ],
    align=True,
)
Conduct = Record  # one record of CONDUCT inside a rule
IDLE = 0.1  # of the cost of a violation: `gate`, for a fix that follows its order in vain
FIXES = 20  # `per_fix` and `gate` share λ among so many fixes


class Orders(NamedTuple):
    """Which orders are to be followed, how a fix is judged, and what that is worth."""

    allowed: npt.NDArray[np.uint8]  # [K] each episode's is drawn from these; K = 0: nothing to do
    judged: npt.NDArray[np.uint16]  # [120, 13, 2] see workflow.py
    codes: npt.NDArray[np.float32]  # [120, C] what the policy is told of its order; C may be 0
    weight: float  # λ, for `delta`
    gains: npt.NDArray[np.float64]  # [120] what a fix gains that follows its order
    costs: npt.NDArray[np.float64]  # [120] what it costs otherwise
    defied: npt.NDArray[np.float64]  # [120] ... on top, if red holds a host of a better-ranked type
    must_evict: bool  # only a fix that evicts red gains


def make_orders(
    allowed: Sequence[int], rule: str = "host", alignment: str = "delta", weight: float = 0.0
) -> Orders:
    """The orders that episodes draw from; a policy that gains nothing by them is not told."""
    return Orders(
        np.array(allowed, np.uint8),
        JUDGED[rule],
        np.ascontiguousarray(CODES if weight else CODES[:, :0]),
        float(weight) if alignment == "delta" else 0.0,
        np.full(len(CODES), weight / FIXES),
        np.full(len(CODES), weight / FIXES),
        np.zeros(len(CODES)),
        alignment == "gate",
    )


NO_ORDERS = make_orders([])


@rule
def begin_conduct(conduct: Conduct, orders: Orders, die: int) -> None:
    """A new episode: its order is drawn, nothing is fixed yet."""
    conduct.order = orders.allowed[(die * len(orders.allowed)) >> 32]
    conduct.fixes = conduct.compliant = 0
    conduct.score = 0.0


@rule
def align(
    conduct: Conduct, orders: Orders, infected: int, left: int, verb: int, host: int
) -> float:
    """Judge a fix by the hosts that red held before it; returns its alignment reward.

    left: hosts that red holds after it.

    delta: S_t - S_{t-1} with S = λ · compliant / fixes, so that an episode's sum is λ · compliance.
    per_fix: λ/20 for a fix that follows the order, -λ/20 for one that does not.
    gate: gains and costs that change while training (learn/gate.py). Only a fix that evicts red
    gains; Remove of a root session follows the order too, but repairs nothing and costs a little.
    """
    if verb != REMOVE and verb != RESTORE:
        return 0.0
    own, better = orders.judged[conduct.order, host, 0], orders.judged[conduct.order, host, 1]
    follows = infected & own != 0 and infected & better == 0
    conduct.fixes += 1
    if follows:
        conduct.compliant += 1
    before = conduct.score
    if orders.weight:
        conduct.score = orders.weight * conduct.compliant / conduct.fixes
    elif not follows:
        conduct.score -= orders.costs[conduct.order]
        if infected & own != 0:  # this host was red's, and one that comes first was, too
            conduct.score -= orders.defied[conduct.order]
    elif not orders.must_evict or not has(left, host):
        conduct.score += orders.gains[conduct.order]
    else:
        conduct.score -= IDLE * orders.costs[conduct.order]
    return conduct.score - before
