"""Gymnasium's way to reset some environments of many: options["reset_mask"]."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from phalanx.errors import ConfigError, KindError


def checked_mask(options: Mapping[str, object] | None, num_envs: int) -> npt.NDArray[np.bool_]:
    """The environments that a reset is for: options["reset_mask"], or all."""
    if options is None or "reset_mask" not in options:
        return np.ones(num_envs, np.bool_)
    mask, name = options["reset_mask"], "`options['reset_mask']`"
    if not isinstance(mask, np.ndarray):
        raise KindError(f"{name} must be a numpy array of bool, got {type(mask).__name__}")
    if mask.shape != (num_envs,):
        raise ConfigError(f"{name} must have shape `({num_envs},)`, got {mask.shape}")
    if mask.dtype != np.bool_:
        raise KindError(f"{name} must have `dtype=np.bool_`, got {mask.dtype}")
    if not mask.any():
        raise ConfigError(
            f"{name} must contain a boolean array with at least one True value, "
            f"got reset_mask={mask}; leave out the reset"
        )
    return mask
