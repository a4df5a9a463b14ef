"""All that a run needs to continue exactly: arrays and JSON in one file, whole or not at all."""

import json
import os
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from phalanx.errors import CheckpointError

FORMAT = 1
Arrays = dict[str, npt.NDArray[Any]]


def save_checkpoint(path: Path, arrays: Arrays, facts: dict[str, Any]) -> None:
    """Write beside the file, flush to disk, rename: the last good one survives whatever happens."""
    beside = path.with_name(f".{path.name}.tmp")
    text = np.frombuffer(json.dumps({"format": FORMAT, **facts}).encode(), np.uint8)
    try:
        with beside.open("wb") as file:
            np.savez(file, allow_pickle=False, facts=text, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise CheckpointError(
            f"cannot write {path}: {error.strerror}; the last checkpoint is kept"
        ) from None
    finally:
        beside.unlink(missing_ok=True)


def last_checkpoint(path: Path) -> Path:
    """The newest checkpoint of a run folder, or a search's winner; a file is taken as it is."""
    winner, last = path / "policies" / "winner.npz", path / "checkpoints" / "last.npz"
    if not path.is_dir():
        return path
    return winner if winner.exists() and not last.exists() else last


def load_checkpoint(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and facts of a checkpoint. Nothing in the file is executed."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        facts = json.loads(arrays.pop("facts").tobytes())
    except FileNotFoundError:
        raise CheckpointError(f"there is no checkpoint {path}") from None
    except (TypeError, ValueError, EOFError, KeyError, AttributeError, BadZipFile, zlib.error):
        raise CheckpointError(f"{path} is not a whole checkpoint of phalanx") from None
    except OSError as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {error.strerror}") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise CheckpointError(f"{path} is no checkpoint of this version (format {FORMAT})")
    return arrays, facts
