"""Any Gymnasium environment, many at once, without waiting for the slowest."""

from phalanx.envs.faults import Fault
from phalanx.envs.making import make_pool
from phalanx.envs.pool import Pool
from phalanx.envs.received import Arrived

__all__ = ["Arrived", "Fault", "Pool", "make_pool"]
