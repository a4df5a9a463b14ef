"""What an environment may answer, besides observations: those are checked by their layout.

In `Block` the usual answers are recognised without a call; these functions see all others.
"""

from typing import Any

import numpy as np

from phalanx.envs.layout import WrongValue


def checked_reset(answer: Any) -> tuple[Any, dict[str, Any]]:
    """(observation, info)"""
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], dict):
        raise WrongValue("not (observation, info); environments of old gym need a wrapper")
    return answer


def checked_step(answer: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """(observation, reward, terminated, truncated, info)"""
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise WrongValue("not (observation, reward, terminated, truncated, info)")
    obs, reward, terminated, truncated, info = answer
    if not -np.inf < reward < np.inf:
        raise WrongValue(f"reward is {reward}, not a finite number")
    ended = checked_flag(terminated, "terminated"), checked_flag(truncated, "truncated")
    return obs, float(reward), *ended, checked_info(info)


def checked_flag(value: Any, name: str) -> bool:
    """Python's or numpy's booleans, and 0 and 1."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    given = np.asarray(value)
    if given.shape != () or given.dtype.kind not in "biu" or given not in (0, 1):
        raise WrongValue(f"{name} is {value!r:.60}, not True or False")
    return bool(given)


def checked_info(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongValue(f"info is {value!r:.60}, not a dict")
    return value
