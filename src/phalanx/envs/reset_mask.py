"""Gymnasium's way to reset some environments of many: options["reset_mask"]."""

from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.errors import ConfigError, KindError


def taken_out(
    options: dict[str, Any] | None, num_envs: int
) -> tuple[npt.NDArray[np.bool_], dict[str, Any] | None]:
    """Which environments are to be reset, all without a mask; and the other options."""
    if options is None or "reset_mask" not in options:
        return np.ones(num_envs, np.bool_), options
    mask = options["reset_mask"]
    what = "`options['reset_mask']` must"
    if not isinstance(mask, np.ndarray):
        raise KindError(f"{what} be a numpy array, got {type(mask)}")
    if mask.shape != (num_envs,):
        raise ConfigError(f"{what} have shape `({num_envs},)`, got {mask.shape}")
    if mask.dtype != np.bool_:
        raise KindError(f"{what} have `dtype=np.bool_`, got {mask.dtype}")
    if not mask.any():
        raise ConfigError(
            f"{what} contain a boolean array with at least one True value, got reset_mask={mask}"
        )
    return mask, {key: value for key, value in options.items() if key != "reset_mask"}
