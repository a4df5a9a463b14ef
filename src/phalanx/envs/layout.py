"""How observations and actions of any space are kept, one row for each environment.

A space whose values have one size is cut into leaves: a Box, Discrete, MultiDiscrete or
MultiBinary, however deep in Dicts and Tuples. Each leaf is one array. Rows are written by the
environment's process, and read by the caller's, in the structure that the space has. Values of all
other spaces (Text, Sequence, Graph, OneOf, and those of one's own) cannot lie in shared memory:
they travel as messages, pickled, which is slower the larger they are.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from operator import setitem
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from phalanx.arrays import Array
from phalanx.errors import ActionError

INT64, UINT64 = np.dtype(np.int64), np.dtype(np.uint64)
FEW = 32  # so many numbers Python compares faster than numpy

AnySpace = spaces.Space[Any]  # of the user's environment
Rows = Any  # the arrays of a user's space, in its structure: dicts and tuples, however deep
Values = dict[int, object]  # of the rows that are known
Value = Any  # one row of them, or whatever else an environment gives
Write = Callable[[int, Value], None]
Read = Callable[[int], Value]
Which = Array | slice  # the rows meant


class WrongValue(ValueError):
    """An environment gave something that its own space does not allow."""


class NoBatch(ActionError, TypeError):
    """One action where there must be one for each environment."""


class NoFixedSize(Exception):
    """A space whose values are not all of one size."""


@dataclass(frozen=True)
class Leaf:
    """One array of a space: `place` is where in the structure, "" for the space itself."""

    place: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    low: Array | None
    """smallest values; None where nothing is too small or too large"""
    high: Array | None
    scalar: bool
    """a Discrete: a number rather than an array"""
    highest: int | None = None
    """the highest number of a Discrete from 0, the usual case"""

    def checked(self, value: Value) -> Array:
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

    def checked_actions(self, values: Rows, ids: Sequence[int] | Array) -> Array:
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
            bounds = "any number but NaN"
            if self.low is not None and self.high is not None:
                bounds = f"{self.low.min()} to {self.high.max()}"
            raise ActionError(
                f"action{self.place} {given[row]!r:.80} of environment {ids[row]} is not in its "
                f"space, {bounds}; clip or scale it"
            )
        return given


Structure: TypeAlias = "Leaf | dict[str, Structure] | tuple[Structure, ...]"


class Layout:
    """A space as arrays.

    layout = Layout(env.observation_space)
    rows = layout.rows(lambda leaf: np.zeros((n, *leaf.shape), leaf.dtype))
    write = layout.writer(rows);  write(3, obs)          # checked
    layout.take(rows, np.array([3, 5]))                  # in the structure of the space
    """

    def __init__(self, space: AnySpace, bounded: bool = True) -> None:
        """NoFixedSize if there is none.

        bounded: False if values may be beyond the bounds of the space, but not of its dtype.
        """
        self.space = space
        self._structure = _cut(space, "", bounded)
        self.single = self._structure if isinstance(self._structure, Leaf) else None

    def rows(self, make: Callable[[Leaf], Array]) -> Rows:
        """The arrays of the space, each from `make(leaf)`."""
        return _map(make, self._structure)

    def take(self, rows: Rows, which: Which) -> Rows:
        """Copies of some rows; of all, for a slice."""
        if self.single is not None:
            return rows.copy() if isinstance(which, slice) else rows[which]
        return _map(lambda array: array.copy() if isinstance(which, slice) else array[which], rows)

    def batch(self, values: Sequence[Value]) -> Rows:
        """Values one by one, as rows."""
        return _map(lambda _leaf, *given: np.asarray(given), self._structure, *values)

    def row(self, rows: Rows, i: int, _count: int) -> Value:
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

    def put(self, rows: Rows, which: Which, values: Rows, ids: Sequence[int] | Array) -> None:
        """Store one action for each of `ids`, or none at all."""
        if self.single is not None:
            rows[which] = self.single.checked_actions(values, ids)
            return
        _check_parts(self._structure, values, "actions", ActionError)
        checked = _map(
            lambda leaf, given: leaf.checked_actions(given, ids), self._structure, values
        )
        _map(lambda array, given: setitem(array, which, given), rows, checked)

    def writer(self, rows: Rows) -> Write:
        """write(i, value): store what environment i gave in row i."""
        return _writer(self._structure, rows)

    def reader(self, rows: Rows) -> Read:
        """read(i): row i as a value of its own, of the types that `space.sample()` has."""
        return _reader(self._structure, rows)


class Objects:
    """A space as values of Python; what `Layout` is for spaces that fit into arrays."""

    def __init__(self, space: AnySpace) -> None:
        self.space = space

    def rows(self, _make: object) -> Values:
        """No arrays: a dict that each process fills with what it is sent."""
        return {}

    def batch(self, values: Sequence[Value]) -> Rows:
        """The values of some rows, as Gymnasium batches those of this space."""
        room: Rows = create_empty_array(self.space, len(values), fn=np.zeros)
        return deepcopy(concatenate(self.space, list(values), room))

    def row(self, batch: Rows, i: int, count: int) -> Value:
        """Value i of a batch of `count`."""
        return list(iterate(batch_space(self.space, count), batch))[i]

    def take(self, rows: Values, which: Array | slice) -> Rows:
        """Some rows; all, for a slice."""
        ids = sorted(rows) if isinstance(which, slice) else which.tolist()
        return self.batch([rows[i] for i in ids])

    def put(self, rows: Values, _which: object, actions: Rows, ids: Sequence[int] | Array) -> None:
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

    def writer(self, rows: Values) -> Write:
        return rows.__setitem__

    def reader(self, rows: Values) -> Read:
        return rows.__getitem__


def layout_of(space: AnySpace, *, bounded: bool = True) -> Layout | Objects:
    """How values of a space are kept: in arrays, if they have a fixed size."""
    try:
        return Layout(space, bounded)
    except NoFixedSize:
        return Objects(space)


def _cut(space: AnySpace, place: str, bounded: bool) -> Structure:
    """The structure of a space, with a leaf for each array."""
    if isinstance(space, spaces.Dict):
        return {k: _cut(part, f"{place}[{k!r}]", bounded) for k, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_cut(part, f"{place}[{k}]", bounded) for k, part in enumerate(space.spaces))
    low: Array | None
    high: Array | None
    if isinstance(space, spaces.Box):
        free = space.dtype.kind == "f" and np.isinf(space.low).all() and np.isinf(space.high).all()
        low, high = (None, None) if free else (space.low, space.high)
    elif isinstance(space, spaces.MultiBinary):
        low, high = np.zeros((), np.int8), np.ones((), np.int8)
    elif isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        count = space.n if isinstance(space, spaces.Discrete) else space.nvec
        low, high = np.asarray(space.start), np.asarray(space.start + count - 1)
    else:
        raise NoFixedSize
    if not bounded:
        low = high = None
    dtype, scalar, highest = np.dtype(space.dtype), isinstance(space, spaces.Discrete), None
    if scalar and high is not None and dtype is INT64 and low == 0:
        highest = int(high)
    return Leaf(place, tuple(space.shape or ()), dtype, low, high, scalar, highest)


def _up_to(most: int, values: Array) -> bool:
    """Whether whole numbers are all from 0 to `most`."""
    if len(values) <= FEW:
        listed = values.tolist()
        return min(listed) >= 0 and max(listed) <= most
    return int(np.maximum.reduce(values.view(UINT64))) <= most  # negative ones are very large


def _map(function: Callable[..., object], structure: Rows, *others: Rows) -> Rows:
    """The structure with function(leaf, ...) in place of each leaf; others have the same parts."""
    if not isinstance(structure, dict | tuple):
        return function(structure, *others)
    parts = {
        k: _map(function, part, *(other[k] for other in others)) for k, part in _parts(structure)
    }
    return parts if isinstance(structure, dict) else tuple(parts.values())


def _parts(
    structure: dict[str, Structure] | tuple[Structure, ...],
) -> Iterable[tuple[str | int, Structure]]:
    return structure.items() if isinstance(structure, dict) else enumerate(structure)


def _check_parts(structure: Structure, given: Value, what: str, error: type[Exception]) -> None:
    """Whether all parts of a structure are there, and no others."""
    if isinstance(structure, Leaf):
        return
    if isinstance(structure, dict):
        if not isinstance(given, dict) or given.keys() != structure.keys():
            keys = sorted(given) if isinstance(given, dict) else type(given).__name__
            raise error(f"{what}: {keys} given; its space says {sorted(structure)}")
    elif not isinstance(given, tuple | list) or len(given) != len(structure):
        raise error(f"{what}: not a tuple of {len(structure)}, as its space says")
    for k, part in _parts(structure):
        _check_parts(part, given[k], f"{what}[{k!r}]", error)


# --- one row --------------------------------------------------------------------------------------


def _writer(structure: Structure, rows: Rows) -> Write:
    if isinstance(structure, Leaf):
        return _leaf_writer(structure, rows)
    writers = {k: _writer(part, rows[k]) for k, part in _parts(structure)}
    kind: type = dict if isinstance(structure, dict) else tuple
    names: Callable[[Value], object] = dict.keys if kind is dict else len
    wanted = names(structure)

    def write(i: int, value: Value) -> None:
        if type(value) is not kind or names(value) != wanted:
            _check_parts(structure, value, "observation", WrongValue)
        for key, write_part in writers.items():
            write_part(i, value[key])

    return write


def _leaf_writer(leaf: Leaf, rows: Array) -> Write:
    shape, dtype, scalar = leaf.shape, leaf.dtype, leaf.scalar
    # A memoryview takes only what has its shape and type, and in half of numpy's time.
    views = [memoryview(row) for row in rows] if len(shape) == 1 and rows.size else []

    def write_vector(i: int, value: Value) -> None:
        try:
            views[i][:] = value
        except (ValueError, TypeError, BufferError, NotImplementedError):
            rows[i] = leaf.checked(value)

    def write_array(i: int, value: Value) -> None:
        if scalar or type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
            value = leaf.checked(value)
        rows[i] = value

    return write_vector if views else write_array


def _reader(structure: Structure, rows: Rows) -> Read:
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
