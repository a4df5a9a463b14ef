"""What users name as `module:factory`, or hand over as a function."""

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

GIVEN = "function "  # begins the name of one that cannot be imported: no environment's id does


def import_from_here(module: str) -> ModuleType:
    """A module by its name. Files of the current folder are found too, after all that is installed.

    The command `phalanx` has its own folder on the path, not that in which it is called.
    """
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return import_module(module)


def place_of(factory: Any) -> str:
    """`module:factory` of a function or class that is found there; of any other its own name."""
    name = getattr(factory, "__qualname__", type(factory).__qualname__)
    module = getattr(factory, "__module__", "__main__")
    if module != "__main__" and getattr(sys.modules.get(module), name, None) is factory:
        return f"{module}:{name}"
    return f"{GIVEN}{name}"
