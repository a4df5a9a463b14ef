"""Eight bits as eight values: tables from which rows of observations are copied."""

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

BytesOrFloats = npt.NDArray[np.uint8] | npt.NDArray[np.float32]

# [8 bits]: each as a value of its own
AS_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
AS_FLOATS = AS_BYTES.astype(np.float32)


def spread_for(row: BytesOrFloats) -> BytesOrFloats:
    """The table whose values are of the row's kind, so that they are copied at once."""
    return AS_FLOATS if row.dtype == np.float32 else AS_BYTES


@overload(spread_for)
def _compiled_spread_for(row):  # type: ignore[no-untyped-def]
    if row.dtype == types.float32:
        return lambda row: AS_FLOATS
    return lambda row: AS_BYTES
