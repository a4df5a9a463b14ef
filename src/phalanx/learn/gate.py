"""Hold compliance just above its threshold: what a fix gains if it follows its order, or costs.

A fix gains (1 - a) p and costs a p, which is nothing on the whole at a compliance of a. The aim a
is a half at first, where every fix that is right more often than not pays: blue learns to find what
is infected. Then it rises to just above the threshold. From there the price p of each order is
raised while its compliance is below, and lowered while it is above: the best return among policies
that pass the gate, whatever lambda one began with. Only fixes that evict red gain anything.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from phalanx.cage2.scoring import Orders
from phalanx.cage2.workflow import NUM_ORDERS

MARGIN = 0.2  # of the way from the threshold to 1: where compliance is held
STEP = 0.03  # logarithm by which a price changes in an update, at most
FULL = 0.1  # compliance missed by which it changes that much
RANGE = 30.0  # prices stay within this factor of the first
FEW = 20  # fixes that say little of how an order is followed


class Gate:
    """The prices of fixes, an own one for each order."""

    def __init__(self, threshold: float, first_price: float, ramp: float) -> None:
        self.aim_at_last = threshold + MARGIN * (1 - threshold)
        self.first_price, self.ramp = first_price, ramp
        self.prices: npt.NDArray[np.float64] = np.full(NUM_ORDERS, first_price)

    def aim(self, progress: float) -> float:
        """The compliance at which fixes are worth nothing."""
        if progress >= self.ramp:
            return self.aim_at_last
        risen = max(0.0, 2 * progress / self.ramp - 1)
        return 0.5 + (self.aim_at_last - 0.5) * risen

    def put_into(self, all_orders: Sequence[Orders], progress: float) -> None:
        """Set what the next fixes gain and cost."""
        aim = self.aim(progress)
        for orders in all_orders:
            orders.gains[:], orders.costs[:] = (1 - aim) * self.prices, aim * self.prices

    def move(self, conducts: npt.NDArray[np.void], progress: float) -> None:
        """Make fixes dearer for orders that were followed too little, cheaper for the others.

        conducts: CONDUCT [n] of the episodes that ended.
        """
        if progress < self.ramp:
            return
        fixes = np.bincount(conducts["order"], conducts["fixes"], NUM_ORDERS)
        compliant = np.bincount(conducts["order"], conducts["compliant"], NUM_ORDERS)
        missed = (self.aim_at_last * fixes - compliant) / (fixes + FEW)
        self.prices *= np.exp(STEP * np.clip(missed / FULL, -1, 1))
        np.clip(self.prices, self.first_price / RANGE, self.first_price * RANGE, out=self.prices)
