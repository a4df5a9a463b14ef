"""Spaces whose values have no fixed size: Text, Sequence, Graph, OneOf, and those of one's own.

Their values cannot lie in shared memory. They travel as messages, pickled, which is slower the
larger they are. All that fits into arrays is in `layout.py`.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from phalanx.envs.layout import Layout
from phalanx.errors import ActionError

Array = npt.NDArray[Any]
Values = dict[int, Any]  # of the rows that are known


class Objects:
    """A space as values of Python; what `Layout` is for spaces that fit into arrays."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.space = space

    def rows(self, _make: Any) -> Values:
        """No arrays: a dict that each process fills with what it is sent."""
        return {}

    def batch(self, values: Sequence[Any]) -> Any:
        """The values of some rows, as Gymnasium batches those of this space."""
        room: Any = create_empty_array(self.space, len(values), fn=np.zeros)
        return deepcopy(concatenate(self.space, list(values), room))

    def row(self, batch: Any, i: int, count: int) -> Any:
        """Value i of a batch of `count`."""
        return list(iterate(batch_space(self.space, count), batch))[i]

    def take(self, rows: Values, which: Array | slice) -> Any:
        """Some rows; all, for a slice."""
        ids = sorted(rows) if isinstance(which, slice) else which.tolist()
        return self.batch([rows[i] for i in ids])

    def put(self, rows: Values, _which: Any, actions: Any, ids: Sequence[int] | Array) -> None:
        """Keep one action for each of `ids`."""
        try:
            given = list(iterate(batch_space(self.space, len(ids)), actions))
        except (TypeError, ValueError) as error:
            raise ActionError(
                f"actions {actions!r:.80} are no batch of {self.space}: {error}"
            ) from error
        if len(given) != len(ids):
            raise ActionError(f"{len(given)} actions for {len(ids)} rows")
        rows.update(zip(np.asarray(ids).tolist(), given, strict=True))

    def writer(self, rows: Values) -> Callable[[int, Any], None]:
        return rows.__setitem__

    def reader(self, rows: Values) -> Callable[[int], Any]:
        return rows.__getitem__


def layout_of(space: spaces.Space[Any], *, bounded: bool = True) -> Layout | Objects:
    """How values of a space are kept: in arrays, if they have a fixed size."""
    return Layout(space, bounded) if Layout.fits(space) else Objects(space)
