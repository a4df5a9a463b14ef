"""Hold compliance just above its threshold by what a fix gains or costs.

Fixes may be free for a share of the run. From then on a fix that evicts red gains (1 - a) p, and
one that violates its order costs a p, which is nothing on the whole at a compliance of a, the aim
just above the threshold. The price p of each order begins low; it is raised while the order's
compliance is below the aim and lowered while it is above: the best return among policies that pass
the gate, whatever lambda one began with.

`defiance` is a price of its own, which stays, for a fix of a host that red holds while it holds one
that comes first. Where red seldom holds two types of hosts at once, compliance is high whatever a
policy does then, and p is low; and a policy that has learnt to defend without an order seldom finds
one that follows it. So this price counts from the beginning, also while fixes are free, and rises
until then; with the whole price at once, a few networks never learnt to defend.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.scoring import Orders
from phalanx.cage2.workflow import NUM_ORDERS

MARGIN = 0.2  # of the way from the threshold to 1: where compliance is held
STEP = 0.03  # logarithm by which a price changes in an update, at most
FULL = 0.1  # compliance missed by which it changes that much
RANGE = 100.0  # prices stay within this factor of the first
FEW = 20  # fixes that say little of how an order is followed


class Gate:
    """The prices of fixes, one for each order.

    start: share of the run in which fixes are free, and the price of defiance rises.
    """

    def __init__(
        self, threshold: float, first_price: float, start: float, defiance: float = 0.0
    ) -> None:
        self.aim = threshold + MARGIN * (1 - threshold)
        self.first_price, self.start, self.defiance = first_price, start, defiance
        self.prices: npt.NDArray[np.float64] = np.full(NUM_ORDERS, first_price)

    def put_into(self, all_orders: Sequence[Orders], progress: float) -> None:
        """Set what the next fixes gain and cost."""
        has_begun = progress >= self.start
        prices = self.prices if has_begun else np.zeros(NUM_ORDERS)
        for orders in all_orders:
            orders.gains[:], orders.costs[:] = (1 - self.aim) * prices, self.aim * prices
            orders.defied[:] = self.defiance * (1.0 if has_begun else progress / self.start)

    def move(self, conducts: npt.NDArray[np.void], progress: float) -> None:
        """Raise the price of fixes for orders that were followed too little, lower all others.

        conducts: CONDUCT [n] of the episodes that ended.
        """
        if progress < self.start:
            return
        fixes = np.bincount(conducts["order"], conducts["fixes"], NUM_ORDERS)
        compliant = np.bincount(conducts["order"], conducts["compliant"], NUM_ORDERS)
        missed = (self.aim * fixes - compliant) / (fixes + FEW)
        self.prices *= np.exp(STEP * np.clip(missed / FULL, -1, 1))
        np.clip(self.prices, self.first_price / RANGE, self.first_price * RANGE, out=self.prices)
