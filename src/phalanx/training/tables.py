"""The rows of a run as arrays: what its updates and episodes gave, column by column."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.errors import RunError

Columns = dict[str, npt.NDArray[Any]]


def read_table(folder: Path | str, name: str = "updates") -> Columns:
    """A table of a run folder: updates, episodes or faults; also while the run goes on.

    pandas.DataFrame(phalanx.read_table("runs/first"))

    Columns of whole numbers are int64, of other numbers float64, all others strings.
    """
    path = Path(folder) / f"{name}.csv"
    try:
        text = path.read_text()
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}; give the folder of a run") from None
    whole = text[: text.rfind("\n") + 1]  # of the last row half may be on its way
    names, *rows = csv.reader(whole.splitlines(keepends=True)) if whole else [[]]
    return {name: _as_numbers(np.array([row[k] for row in rows])) for k, name in enumerate(names)}


def _as_numbers(words: npt.NDArray[np.str_]) -> npt.NDArray[Any]:
    for kind in (np.int64, np.float64):
        try:
            return words.astype(kind)
        except (ValueError, OverflowError):
            pass
    return words
