"""Write the API reference from docstrings to docs/api: what `make docs` runs."""

import pkgutil
import warnings
from importlib import import_module
from pathlib import Path

import pdoc

import phalanx

HERE = Path(__file__).parent
found = pkgutil.walk_packages(phalanx.__path__, "phalanx.")
modules = ["phalanx", *(room.name for room in found if not room.name.endswith("__main__"))]
for module in map(import_module, modules):
    for name in getattr(module, "__all__", ()):
        setattr(module, name, getattr(module, name))  # some come only when they are asked for
pdoc.render.configure(template_directory=HERE)
warnings.simplefilter("ignore")  # a folder names its files too, so that most are named twice
pdoc.pdoc(*modules, output_directory=HERE.parent / "api")
