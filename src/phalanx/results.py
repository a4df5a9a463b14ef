"""Results on disk: whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, result: Any) -> None:
    """Write beside the file and rename, so that a reader never sees half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(json.dumps(result, indent=1) + "\n")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
