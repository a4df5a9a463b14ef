"""Bits are written as values, whether compiled or not, and nothing beside them."""

from typing import Any

import numpy as np
import pytest

from phalanx.compiled.rule import COMPILED, kernel
from phalanx.compiled.spread import spread


@kernel
def spread_all(bits: Any, rows: Any, first: int) -> None:
    for i in range(len(bits)):
        spread(bits[i], rows[i], first)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("write", [spread_all, getattr(spread_all, "py_func", spread_all)])
def test_eight_bits_are_eight_values(dtype: type, write: Any) -> None:
    bits = np.arange(256)
    rows: Any = np.full((256, 11), 7, dtype)
    write(bits - 512, rows, 2)  # what is above the eight bits does not count
    assert np.array_equal(rows[:, 2:10], bits[:, None] >> np.arange(8) & 1)
    assert (rows[:, [0, 1, 10]] == 7).all()


@pytest.mark.skipif(not COMPILED, reason="of what is compiled")
def test_values_that_do_not_lie_beside_each_other_are_refused() -> None:
    with pytest.raises(Exception, match="must lie beside each other"):
        spread_all(np.arange(2), np.zeros((2, 22))[:, ::2], 0)
