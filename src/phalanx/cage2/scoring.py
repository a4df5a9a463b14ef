"""What a turn costs blue, in exact tenths."""

from phalanx.cage2.bits import count
from phalanx.cage2.network import RUNNING, Network
from phalanx.cage2.rule import rule
from phalanx.cage2.scenario import COSTS_ONE, COSTS_TEN, RESTORE_COST, SERVICE_DOWN_COST


@rule
def cost(net: Network, restored: bool) -> int:
    """Hosts that red holds as root, the operational service while it is down [Q7], and blue's
    Restore.
    """
    tenths = count(net.root & COSTS_ONE) + 10 * count(net.root & COSTS_TEN)
    if net.service & RUNNING == 0:
        tenths += SERVICE_DOWN_COST
    if restored:
        tenths += RESTORE_COST
    return tenths
