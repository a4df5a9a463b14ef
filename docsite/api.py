"""The API reference, from docstrings, by pdoc."""

import pkgutil
import re
import warnings
from importlib import import_module
from pathlib import Path

import pdoc

import phalanx
from docsite.check import Page

HERE = Path(__file__).parent
WITHIN = re.compile(r'<a href="#([^"]+)">([^<]*)</a>')


def write_api(folder: Path) -> None:
    """A page for each module of phalanx, and an index with a search; a warning is an error."""
    found = pkgutil.walk_packages(phalanx.__path__, "phalanx.")
    modules = ["phalanx", *(room.name for room in found if not room.name.endswith("__main__"))]
    for module in map(import_module, modules):
        for name in getattr(module, "__all__", ()):
            setattr(module, name, getattr(module, name))  # some come only when they are asked for
    pdoc.render.configure(template_directory=HERE / "api_theme", show_source=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A folder without __all__ names its files too, so that most are named twice.
        warnings.filterwarnings("ignore", message="The module specification .* already been added")
        # Fields that a TypedDict has from several others stand nowhere else; they are shown anyway.
        warnings.filterwarnings("ignore", message="Cannot determine where .* is taken from")
        pdoc.pdoc(*modules, output_directory=folder)
    for page in folder.rglob("*.html"):
        page.write_text(without_dead_links(page.read_text()))


def without_dead_links(text: str) -> str:
    """A page whose links lead somewhere: inherited docstrings speak of what is not shown there."""
    places = Page(text).places
    return WITHIN.sub(lambda found: found[0] if found[1] in places else found[2], text)
