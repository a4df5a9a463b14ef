"""Seeds of a reset, as Gymnasium means them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from phalanx.cage2.settings import checked_seed
from phalanx.errors import ConfigError

Seed = int | Sequence[int | None] | None


def spread_seeds(seed: Seed, num_envs: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """A seed for each network, and which networks got one.

    A number s gives network i the seed s + i. In a list, None leaves a network its dice.
    """
    if seed is None:
        return np.zeros(num_envs, np.uint64), np.zeros(num_envs, np.bool_)
    if not isinstance(seed, Sequence | np.ndarray):
        first, last = int(checked_seed(seed)), num_envs - 1
        checked_seed(first + last)
        return np.arange(num_envs, dtype=np.uint64) + np.uint64(first), np.ones(num_envs, np.bool_)
    given = np.array([one is not None for one in seed], np.bool_)
    if len(given) != num_envs:
        raise ConfigError(f"got {len(given)} seeds for {num_envs} networks; give one or one each")
    seeds = [checked_seed(0 if one is None else one) for one in seed]
    return np.array(seeds, np.uint64), given


def fresh_seeds(num_envs: int) -> npt.NDArray[np.uint64]:
    """Seeds that nobody has had, for those who give none."""
    return np.random.default_rng().integers(2**63, size=num_envs, dtype=np.uint64)
