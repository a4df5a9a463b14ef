"""The first layer of networks whose inputs are mostly zeros: the zeros are not multiplied.

A row's inputs become a list of those that are not zero. The layer's product is then the sum of a
few rows of its weights, and only those rows of the gradient are added to. Sums are taken in the
order of the lists: a row's result depends on that row alone.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.compiled.bits import lowest, number
from phalanx.learn.compiled.lanes import (
    SEEN_TOGETHER,
    add_to_rows,
    add_up_rows,
    fetch_soon,
    which_are_not_zero,
)
from phalanx.learn.compiled.mlp import (
    Floats,
    Network,
    backward_to_first,
    fast,
    first_layer,
    forward_from,
)

Ints = npt.NDArray[np.int64]
CACHE_LINE = 16  # numbers of 32 bits that it holds


class Lists(NamedTuple):
    """The inputs of rows that are not zero. Row r has those from starts[r] to ends[r]."""

    starts: Ints  # [rows]
    middles: Ints  # [rows] where what only the critic sees begins
    ends: Ints  # [rows]
    columns: npt.NDArray[np.int32]  # ascending in each row
    values: Floats


def room_for_lists(rows: int, inputs: int) -> Lists:
    """As much as rows without any zero take; memory is used only where something is written."""
    numbers = rows * inputs
    starts, middles, ends = np.zeros((3, rows), np.int64)
    return Lists(starts, middles, ends, np.empty(numbers, np.int32), np.empty(numbers, np.float32))


# --- lists ----------------------------------------------------------------------------------------


@fast
def append_nonzeros(row: Floats, first_column: int, lists: Lists, at: int) -> int:
    """List the numbers of a row that are not zero, from place `at` on; where the list ends."""
    done = 0
    while done < len(row):
        if len(row) < SEEN_TOGETHER:
            first, bits = done, number(row[done] != 0)
            done += 1
        else:  # the last ones together with some that were seen before
            first = min(done, len(row) - SEEN_TOGETHER)
            bits = which_are_not_zero(row, first) >> (done - first) << (done - first)
            done = first + SEEN_TOGETHER
        while bits:
            c = first + lowest(bits)
            lists.columns[at] = first_column + c
            lists.values[at] = row[c]
            at += 1
            bits &= bits - 1
    return at


@fast
def list_row(obs: Floats, truth: Floats, lists: Lists, r: int, at: int) -> int:
    """What one row shows to the actor, and what only to the critic, from place `at` on."""
    lists.starts[r] = at
    lists.middles[r] = append_nonzeros(obs, 0, lists, at)
    lists.ends[r] = append_nonzeros(truth, len(obs), lists, lists.middles[r])
    return lists.ends[r]


@fast
def choose_lists(lists: Lists, chosen: Ints) -> Lists:
    """Those of the chosen rows, where they lie; the processor begins to fetch them."""
    n = len(chosen)
    starts, middles, ends = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for k in range(n):
        row = chosen[k]
        starts[k], middles[k], ends[k] = lists.starts[row], lists.middles[row], lists.ends[row]
        for n in range(starts[k], ends[k], CACHE_LINE):
            fetch_soon(lists.columns, n)
            fetch_soon(lists.values, n)
        fetch_soon(lists.columns, ends[k] - 1)
        fetch_soon(lists.values, ends[k] - 1)
    return Lists(starts, middles, ends, lists.columns, lists.values)


# --- passes ---------------------------------------------------------------------------------------


@fast
def copy_first(network: Network) -> Floats:
    """The first layer's weights in memory of their own, which begins where vectors may begin: rows
    that lie across the borders of cache lines take half as long again.
    """
    n_in, n_out = network.sizes[0], network.sizes[1]
    first = np.empty((n_in, n_out), np.float32)
    for k in range(n_in):
        for c in range(n_out):
            first[k, c] = network.theta[k * n_out + c]
    return first


@fast
def forward_lists(
    network: Network, first: Floats, lists: Lists, ends: Ints, work: Floats
) -> Floats:
    """As `forward`, for inputs in lists that end at `ends`: all of a row, or what the actor sees.

    first: as `copy_first` gives it.
    """
    _weights, y = first_layer(network, len(ends), work)
    for r in range(len(ends)):
        add_up_rows(first, lists.columns, lists.values, lists.starts[r], ends[r], y[r])
    return forward_from(network, y, work)


@fast
def backward_lists(
    network: Network,
    first: Floats,
    lists: Lists,
    ends: Ints,
    work: Floats,
    d_out: Floats,
    grad: Floats,
) -> None:
    """As `backward`, after `forward_lists`; `first` is used up."""
    dy = backward_to_first(network, len(ends), work, d_out, grad)
    first[:] = 0
    for r in range(len(ends)):
        add_to_rows(first, lists.columns, lists.values, lists.starts[r], ends[r], dy[r])
    n_in, n_out = first.shape
    for k in range(n_in):
        for c in range(n_out):
            grad[k * n_out + c] = first[k, c]
