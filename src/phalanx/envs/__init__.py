"""Any Gymnasium environment, many at once, without waiting for the slowest."""

from phalanx.envs.arrived import Arrived
from phalanx.envs.faults import Fault
from phalanx.envs.making import make_pool
from phalanx.envs.pool import Pool

__all__ = ["Arrived", "Fault", "Pool", "make_pool"]
