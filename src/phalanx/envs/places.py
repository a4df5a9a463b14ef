"""What users name as `module:factory`."""

import os
import sys
from importlib import import_module
from types import ModuleType


def import_from_here(module: str) -> ModuleType:
    """A module by its name. Files of the current folder are found too, after all that is installed.

    The command `phalanx` has its own folder on the path, not that in which it is called.
    """
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return import_module(module)
