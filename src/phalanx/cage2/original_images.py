"""Images of the user's own for the original, which knows only those in its own folder."""

import inspect
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

INDEX = "images.yaml"
PLACE = Path("Shared", "Scenarios", "images")  # where the original looks, beside CybORG.py


@contextmanager
def own_images(scenario: Path, reader: Any) -> Iterator[None]:
    """Let the original find images that lie beside a scenario, and its own, while it reads it.

    reader: its module that reads them.
    """
    own = scenario.parent / "images"
    if not (own / INDEX).is_file():
        yield
        return
    theirs = Path(inspect.getfile(reader.CybORG)).parent / PLACE
    with tempfile.TemporaryDirectory() as folder:
        both = Path(folder) / PLACE
        shutil.copytree(theirs, both)
        shutil.copytree(own, both, dirs_exist_ok=True)
        known = yaml.safe_load((theirs / INDEX).read_text())
        known |= yaml.safe_load((own / INDEX).read_text())
        (both / INDEX).write_text(yaml.safe_dump(known))
        reader.inspect = SimpleNamespace(getfile=lambda _module: f"{folder}/CybORG.py")
        try:
            yield
        finally:
            reader.inspect = inspect
