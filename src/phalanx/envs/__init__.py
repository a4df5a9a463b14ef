"""Any Gymnasium environment, many at once, without waiting for the slowest."""

from phalanx.envs.faults import Fault
from phalanx.envs.making import make_pool
from phalanx.envs.pool import Pool
from phalanx.envs.received import Received

__all__ = ["Fault", "Pool", "Received", "make_pool"]
