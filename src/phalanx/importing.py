"""What users name as `module:factory` or hand over as a function; where it is looked for."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from types import FrameType, ModuleType
from typing import Any

from phalanx.errors import ConfigError

GIVEN = "function "  # begins the name of one that cannot be imported: no environment's id does


def find_named(what: str, name: str) -> Any:
    """What the user names as `module:factory` or `file.py:factory`: a defender, a network, an
    attacker; one line if it is not there.

    what: how the line calls it, such as `--network`. Files of the current folder are found too,
    after all that is installed: the command `phalanx` has only its own folder on the path.
    """
    place, _, factory = name.rpartition(":")
    try:
        if place.endswith(".py"):
            return getattr(import_file(place), factory)
        return getattr(import_from(os.getcwd(), place), factory)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"cannot find {what} {name} ({error}); give module:factory, importable from here, or "
            "file.py:factory"
        ) from None


def import_file(file: str) -> ModuleType:
    """A Python file as a module; what lies beside it can be imported there. Once in a process.

    It takes no module's name: another `my_red` that is imported later is found where it lies.
    """
    path = os.path.realpath(file)
    if not os.path.isfile(path):
        raise ConfigError(f"there is no file {file!s:.200}")
    if path not in _of_files:
        name = f"{os.path.basename(path)} ({len(_of_files)})".replace(".", "_")
        spec = spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        look_for(os.path.dirname(path), [])
        _beside(os.path.dirname(path)).found.add(name)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        _of_files[path] = module
    return _of_files[path]


_of_files: dict[str, ModuleType] = {}  # by path


def import_from(folder: str, module: str) -> ModuleType:
    """A module that is installed, or that lies in `folder`. No other one is looked for there."""
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{module!r:.80} is no name of a module; give module:factory")
    look_for(folder, [module.partition(".")[0]])
    return import_module(module)


def place_of(factory: object) -> str:
    """`module:factory` of a function or class that is found there; of any other its own name."""
    name = getattr(factory, "__qualname__", type(factory).__qualname__)
    module = getattr(factory, "__module__", "__main__")
    if module != "__main__" and getattr(sys.modules.get(module), name, None) is factory:
        return f"{module}:{name}"
    return f"{GIVEN}{name}"


class Beside(MetaPathFinder):
    """Finds in a folder what was named, and what the modules found there import from beside them.

    To add the folder to `sys.path` would be to run any file there that has the name of a package
    which somebody tries to import, and which is not installed.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.named: set[str] = set()
        self.found: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None:  # a part of a package, which knows its own place
            return None
        if name not in self.named and _importing() not in self.found:
            return None
        spec = PathFinder.find_spec(name, [self.folder], target)
        if spec is not None:
            self.found.add(name)
        return spec


def look_for(folder: str, names: Sequence[str]) -> None:
    """Let modules of these names be found in a folder, if they are nowhere else."""
    _beside(folder).named.update(names)


def _beside(folder: str) -> Beside:
    beside = [finder for finder in sys.meta_path if isinstance(finder, Beside)]
    here = next((finder for finder in beside if finder.folder == folder), None)
    if here is None:
        here = Beside(folder)
        sys.meta_path.append(here)
    return here


def _importing() -> str:
    """The package, or the module outside of one, whose code asks for a module."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name not in ("importlib", "_frozen_importlib"):
            return name
        frame = frame.f_back
    return ""


# --- other processes ------------------------------------------------------------------------------

STARTER = """
import sys
sys.path[:] = {path!r}
from phalanx.importing import look_for
for folder, names in {beside!r}: look_for(folder, names)
from {module} import main
main(*map(int, sys.argv[1:]))
"""


def command_for(module: str, *numbers: int) -> list[str]:
    """What starts main(*numbers) of a module in another Python, which finds modules where we do.

    Nothing is imported from the current folder before the path is set (-P), and no folder comes
    before the standard library: a `json.py` that lies about is not run.
    """
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    library = os.path.dirname(os.__file__)
    ours = (library, os.path.join(library, "lib-dynload"))
    path = sorted((place or os.getcwd() for place in sys.path), key=lambda place: place not in ours)
    beside = [
        (finder.folder, sorted(finder.named | finder.found))
        for finder in sys.meta_path
        if isinstance(finder, Beside)
    ]
    program = STARTER.format(path=path, beside=beside, module=module)
    return [sys.executable, "-P", *flags, "-c", program, *map(str, numbers)]
