"""What may be asked of a pool, checked before anything is started."""

import math
import numbers
import operator
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from gymnasium import Space
from gymnasium.vector import AutoresetMode

from phalanx.errors import ConfigError, KindError

Count = int | Literal["auto"]


def checked_settings(
    *,
    n_envs: Any,
    num_envs: Any,
    num_workers: Any,
    wait_for: Any,
    seed: Any,
    infos: Any,
    step_timeout: Any,
    start_timeout: Any,
    max_restarts: Any,
    on_fault: Any,
) -> tuple[Count, Count, int | Literal["all"], int]:
    """How many environments, workers and rows to wait for, and the seed, as plain numbers."""
    count: Count = one_of_both(n_envs, num_envs)
    if count != "auto":
        count = whole("n_envs", count, 1, "a number of environments, or 'auto'")
    if num_workers == "serial":
        num_workers = 0
    elif num_workers != "auto":
        num_workers = whole("num_workers", num_workers, 0, "a number, 'auto' or 'serial'")
    if wait_for != "all":
        most = math.inf if count == "auto" else count  # of "auto", it is cut to fit later
        allowed = f"'all', or 1 to n_envs = {count}"
        wait_for = whole("wait_for", wait_for, 1, allowed, most)
    seed = whole("seed", seed, 0, "a whole number that is not negative")
    if not isinstance(infos, bool):
        raise ConfigError(f"infos = {infos!r:.60}: True or False")
    for name, value in (("step_timeout", step_timeout), ("start_timeout", start_timeout)):
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not is_number or not 0 < value < math.inf:
            raise ConfigError(f"{name} = {value!r:.60}: seconds, more than 0 and finite")
    whole("max_restarts", max_restarts, 0, "a number; 0 is for none")
    if not (on_fault is None or isinstance(on_fault, Callable)):  # type: ignore[arg-type]
        raise ConfigError(f"on_fault = {on_fault!r:.60}: a function that takes a Fault, or None")
    return count, num_workers, wait_for, seed


class Rules(NamedTuple):
    """How environments are treated, wherever they are."""

    autoreset: AutoresetMode
    alike: bool
    """observation spaces may have different bounds, if shape and dtype are the same"""


SAME = Rules(AutoresetMode.SAME_STEP, False)


def checked_rules(autoreset_mode: Any, observation_mode: Any) -> Rules:
    try:
        autoreset = AutoresetMode(autoreset_mode)
    except ValueError:
        allowed = ", ".join(repr(mode.value) for mode in AutoresetMode)
        raise ConfigError(f"autoreset_mode = {autoreset_mode!r:.60}: one of {allowed}") from None
    given_spaces = isinstance(observation_mode, tuple) and len(observation_mode) == 2
    if observation_mode not in ("same", "different") and not given_spaces:
        raise ConfigError(
            "Invalid `observation_mode`, expected: 'same' or 'different' or tuple of single and "
            f"batch observation space, actual got {observation_mode}"
        )
    if given_spaces and not all(isinstance(one, Space) for one in observation_mode):
        raise KindError(
            "Expected both elements of observation_mode to be Spaces, got "
            f"{type(observation_mode[0])} and {type(observation_mode[1])}"
        )
    return Rules(autoreset, observation_mode != "same")


def one_of_both(n_envs: Any, num_envs: Any) -> Any:
    """A number of environments by either of its names."""
    if (n_envs is None) == (num_envs is None):
        given = "neither is given" if n_envs is None else f"both are given: {n_envs} and {num_envs}"
        raise ConfigError(f"n_envs and num_envs are two names for one number; {given}")
    return num_envs if n_envs is None else n_envs


def whole(name: str, value: Any, least: int, allowed: str, most: float = math.inf) -> int:
    """A whole number of a kind that has no fraction, in its range."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or not least <= number <= most:
        raise ConfigError(f"{name} = {value!r:.60}: {allowed}")
    return number
