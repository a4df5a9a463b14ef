"""How observations and actions of any space lie in arrays, one row for each environment.

A space is cut into leaves: a Box, Discrete, MultiDiscrete or MultiBinary, however deep in Dicts and
Tuples. Each leaf is one array. Rows are written by the environment's process, and read by the
caller's, in the structure that the space has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from phalanx.errors import ActionError

INT64, UINT64 = np.dtype(np.int64), np.dtype(np.uint64)
FIXED = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
FEW = 32  # so many numbers Python compares faster than numpy

Array = npt.NDArray[Any]
Rows = Any  # the arrays of a space, in its structure: an array, or dicts and tuples of such
Write = Callable[[int, Any], None]
Read = Callable[[int], Any]
Which = Array | slice  # the rows meant


class WrongValue(ValueError):
    """An environment gave something that its own space does not allow."""


class NoBatch(ActionError, TypeError):
    """One action where there must be one for each environment."""


@dataclass(frozen=True)
class Leaf:
    """One array of a space: `place` is where in the structure, "" for the space itself."""

    place: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: Array | None
    """smallest values; None where nothing is too small or too large"""
    high: Array | None
    scalar: bool
    """a Discrete: a number rather than an array"""
    highest: int | None = None
    """the highest number of a Discrete from 0, the usual case"""

    def checked(self, value: Any) -> Array:
        """What an environment gave, as this leaf stores it; WrongValue if that would change it."""
        what = f"observation{self.place}"
        try:
            given = np.asarray(value)
        except ValueError as error:
            raise WrongValue(f"{what} is no array: {error}") from None
        if given.shape != self.shape:
            raise WrongValue(f"{what} has shape {given.shape}; its space says {self.shape}")
        if not np.can_cast(given.dtype, self.dtype, "same_kind"):
            raise WrongValue(f"{what} has dtype {given.dtype}; its space says {self.dtype}")
        stored = given.astype(self.dtype)
        if self.dtype.kind in "iub" and not np.array_equal(stored, given):
            raise WrongValue(f"{what} holds numbers that are no {self.dtype}: {given!r:.80}")
        if self.scalar and self.low is not None and not self.low <= stored <= self.high:
            raise WrongValue(f"{what} is {given}; its space says {self.low} to {self.high}")
        return stored

    def checked_actions(self, values: Any, ids: Sequence[int] | Array) -> Array:
        """One action for each of `ids`, as this leaf stores them; ActionError if one is illegal."""
        if self.highest is not None and type(values) is np.ndarray and values.dtype is INT64:
            count = len(ids)
            if count and values.shape == (count,) and _up_to(self.highest, values):
                return values
        what = f"actions{self.place}"
        try:
            given = np.asarray(values)
        except ValueError as error:
            raise ActionError(f"{what} are no array: {error}") from None
        shape = (len(ids), *self.shape)
        if given.shape == ():
            raise NoBatch(f"{what} are {values!r:.60}; one for each of {len(ids)} rows is wanted")
        if given.shape != shape:
            raise ActionError(f"{what} have shape {given.shape}; {len(ids)} rows want {shape}")
        if given.dtype != self.dtype:
            fits = np.can_cast(given.dtype, self.dtype, "same_kind")
            if not fits and (self.scalar or not np.array_equal(given.astype(self.dtype), given)):
                raise ActionError(f"{what} have dtype {given.dtype}; the space says {self.dtype}")
            given = given.astype(self.dtype) if self.dtype.kind == "f" else given
        if self.low is None:
            wrong = np.isnan(given) if self.dtype.kind == "f" else None
        else:
            wrong = ~((given >= self.low) & (given <= self.high))
        if wrong is not None and wrong.any():
            row = int(np.argwhere(wrong)[0][0])
            raise ActionError(
                f"action{self.place} {given[row]!r:.80} of environment {ids[row]} is not in its "
                f"space, {self.bounds}; clip or scale it"
            )
        return given

    @property
    def bounds(self) -> str:
        if self.low is None or self.high is None:
            return "any number but NaN"
        return f"{self.low.min()} to {self.high.max()}"


class Layout:
    """A space as arrays.

    layout = Layout(env.observation_space)
    rows = layout.rows(lambda leaf: np.zeros((n, *leaf.shape), leaf.dtype))
    write = layout.writer(rows);  write(3, obs)          # checked
    layout.take(rows, np.array([3, 5]))                  # in the structure of the space
    """

    def __init__(self, space: spaces.Space[Any], bounded: bool = True) -> None:
        """bounded: False if values may be beyond the bounds of the space, but not of its dtype."""
        self.space = space
        self.leaves: list[Leaf] = []
        self._bounded = bounded
        self._structure = self._cut(space, "")
        self.single = self.leaves[0] if isinstance(self._structure, Leaf) else None

    @classmethod
    def fits(cls, space: spaces.Space[Any]) -> bool:
        """Whether all values of a space have one size."""
        if isinstance(space, spaces.Dict | spaces.Tuple):
            parts = space.values() if isinstance(space, spaces.Dict) else space.spaces
            return all(cls.fits(part) for part in parts)
        return isinstance(space, FIXED)

    def _cut(self, space: spaces.Space[Any], place: str) -> Any:
        if isinstance(space, spaces.Dict):
            return {k: self._cut(part, f"{place}[{k!r}]") for k, part in space.items()}
        if isinstance(space, spaces.Tuple):
            return tuple(self._cut(part, f"{place}[{k}]") for k, part in enumerate(space.spaces))
        leaf = _leaf(space, place)
        if not self._bounded:
            leaf = replace(leaf, low=None, high=None, highest=None)
        self.leaves.append(leaf)
        return leaf

    def rows(self, make: Callable[[Leaf], Array]) -> Rows:
        """The arrays of the space, each from `make(leaf)`."""
        return _map(make, self._structure)

    def take(self, rows: Rows, which: Which) -> Rows:
        """Copies of some rows; of all, for a slice."""
        if self.single is not None:
            return rows.copy() if isinstance(which, slice) else rows[which]
        if isinstance(which, slice):
            return _map(lambda array: array.copy(), rows)
        return _map(lambda array: array[which], rows)

    def row(self, rows: Rows, i: int, _count: int) -> Any:
        """Row i, in the structure of the space."""
        return _map(
            lambda leaf, array: int(array[i]) if leaf.scalar else array[i], self._structure, rows
        )

    def replace(self, rows: Rows, where: Array, others: Rows, which: Array) -> Rows:
        """Copies of `rows` in which those at `where` are the rows `which` of `others`."""

        def replaced(array: Array, other: Array) -> Array:
            copied = array.copy()
            copied[where] = other[which]
            return copied

        return _map(replaced, rows, others)

    def put(self, rows: Rows, which: Which, values: Any, ids: Sequence[int] | Array) -> None:
        """Store one action for each of `ids`, or none at all."""
        if self.single is not None:
            rows[which] = self.single.checked_actions(values, ids)
            return
        checked = _map_given(
            lambda leaf, given: leaf.checked_actions(given, ids), self._structure, values, ""
        )

        def store(array: Array, given: Array) -> None:
            array[which] = given

        _map(store, rows, checked)

    def writer(self, rows: Rows) -> Write:
        """write(i, value): store what environment i gave in row i."""
        return _writer(self._structure, rows)

    def reader(self, rows: Rows) -> Read:
        """read(i): row i as a value of its own, of the types that `space.sample()` has."""
        return _reader(self._structure, rows)


def _leaf(space: spaces.Space[Any], place: str) -> Leaf:
    if isinstance(space, spaces.Discrete):
        low, high = np.asarray(space.start), np.asarray(space.start + space.n - 1)
        dtype = np.dtype(space.dtype)
        highest = int(high) if dtype is INT64 and space.start == 0 else None
        return Leaf(place, (), dtype, low, high, True, highest)
    if isinstance(space, spaces.MultiDiscrete):
        low, high = np.asarray(space.start), np.asarray(space.start + space.nvec - 1)
        return Leaf(place, space.nvec.shape, np.dtype(space.dtype), low, high, False)
    if isinstance(space, spaces.MultiBinary):
        zero, one = np.zeros((), np.int8), np.ones((), np.int8)
        return Leaf(place, tuple(space.shape), np.dtype(space.dtype), zero, one, False)
    assert isinstance(space, spaces.Box)
    free = space.dtype.kind == "f" and np.isinf(space.low).all() and np.isinf(space.high).all()
    least, most = (None, None) if free else (space.low, space.high)
    return Leaf(place, tuple(space.shape), np.dtype(space.dtype), least, most, False)


def _up_to(most: int, values: Array) -> bool:
    """Whether whole numbers are all from 0 to `most`."""
    if len(values) <= FEW:
        listed = values.tolist()
        return min(listed) >= 0 and max(listed) <= most
    return int(np.maximum.reduce(values.view(UINT64))) <= most  # negative ones are very large


def _map(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """The structure with function(leaf, ...) in place of each leaf."""
    if isinstance(structure, dict):
        return {k: _map(function, part, *(o[k] for o in others)) for k, part in structure.items()}
    if isinstance(structure, tuple):
        return tuple(
            _map(function, part, *(o[k] for o in others)) for k, part in enumerate(structure)
        )
    return function(structure, *others)


def _map_given(function: Callable[..., Any], structure: Any, given: Any, place: str) -> Any:
    """As `_map`, with what a caller gave: it may have another structure."""
    if isinstance(structure, dict):
        if not isinstance(given, dict) or given.keys() != structure.keys():
            keys = sorted(given) if isinstance(given, dict) else type(given).__name__
            raise ActionError(f"actions{place} are {keys}; a dict of {sorted(structure)} is wanted")
        return {
            k: _map_given(function, part, given[k], f"{place}[{k!r}]")
            for k, part in structure.items()
        }
    if isinstance(structure, tuple):
        if not isinstance(given, tuple | list) or len(given) != len(structure):
            raise ActionError(f"actions{place} are not a tuple of {len(structure)} arrays")
        return tuple(
            _map_given(function, part, given[k], f"{place}[{k}]")
            for k, part in enumerate(structure)
        )
    return function(structure, given)


# --- one row --------------------------------------------------------------------------------------


def _writer(structure: Any, rows: Rows) -> Write:
    if isinstance(structure, dict):
        return _dict_writer({k: _writer(part, rows[k]) for k, part in structure.items()})
    if isinstance(structure, tuple):
        return _tuple_writer([_writer(part, rows[k]) for k, part in enumerate(structure)])
    return _leaf_writer(structure, rows)


def _dict_writer(writers: dict[str, Write]) -> Write:
    def write(i: int, value: Any) -> None:
        if not isinstance(value, dict) or value.keys() != writers.keys():
            keys = sorted(value) if isinstance(value, dict) else type(value).__name__
            raise WrongValue(f"observation has {keys}; its space says {sorted(writers)}")
        for key, write_part in writers.items():
            write_part(i, value[key])

    return write


def _tuple_writer(writers: list[Write]) -> Write:
    def write(i: int, value: Any) -> None:
        if not isinstance(value, tuple | list) or len(value) != len(writers):
            raise WrongValue(f"observation is not a tuple of {len(writers)}, as its space says")
        for write_part, part in zip(writers, value, strict=True):
            write_part(i, part)

    return write


def _leaf_writer(leaf: Leaf, rows: Array) -> Write:
    if len(leaf.shape) != 1 or 0 in rows.shape:
        return _array_writer(leaf, rows)
    # A memoryview takes only what has its shape and type, and in half of numpy's time.
    views = [memoryview(row) for row in rows]

    def write(i: int, value: Any) -> None:
        try:
            views[i][:] = value
        except (ValueError, TypeError, BufferError, NotImplementedError):
            rows[i] = leaf.checked(value)

    return write


def _array_writer(leaf: Leaf, rows: Array) -> Write:
    shape, dtype, scalar = leaf.shape, leaf.dtype, leaf.scalar

    def write(i: int, value: Any) -> None:
        if scalar or type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
            value = leaf.checked(value)
        rows[i] = value

    return write


def _reader(structure: Any, rows: Rows) -> Read:
    if isinstance(structure, dict):
        parts = {k: _reader(part, rows[k]) for k, part in structure.items()}
        return lambda i: {k: read(i) for k, read in parts.items()}
    if isinstance(structure, tuple):
        readers = [_reader(part, rows[k]) for k, part in enumerate(structure)]
        return lambda i: tuple(read(i) for read in readers)
    if structure.shape == ():  # a number, as Gymnasium's vector environments give them
        scalar: Read = rows.__getitem__
        return scalar
    return lambda i: rows[i].copy()
