"""Train cyber-defence agents at the speed of the CPU."""

from phalanx.cage2.registration import register

__version__ = "0.1.0"
__all__ = ["__version__"]

register()
