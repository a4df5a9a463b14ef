"""What an environment may answer, and what it may not."""

from typing import Any

import numpy as np
import pytest

from phalanx.envs.block import checked_flag, checked_info, checked_reset, checked_step
from phalanx.envs.layout import WrongValue


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        (True, True),
        (np.bool_(False), False),
        (1, True),
        (0, False),
        (np.uint8(1), True),
        (np.array(True), True),
    ],
)
def test_flags_are_true_or_false(value: Any, flag: bool) -> None:
    assert checked_flag(value, "terminated") is flag


@pytest.mark.parametrize(
    "value", ["maybe", "1", None, 2, -1, 1.0, 0.5, [True], np.array([1]), np.array([0, 1]), {}]
)
def test_nothing_else_is_a_flag(value: Any) -> None:
    with pytest.raises(WrongValue, match=r"terminated is .*, not True or False"):
        checked_flag(value, "terminated")


@pytest.mark.parametrize("reward", [np.nan, np.inf, -np.inf])
def test_rewards_are_finite(reward: float) -> None:
    with pytest.raises(WrongValue, match="not a finite number"):
        checked_step((0, reward, False, False, {}))
    assert checked_step((0, -1e300, False, True, {})) == (0, -1e300, False, True, {})


@pytest.mark.parametrize("answer", [(0, {}, 1), [0, {}], (0, []), 0, (0, None)])
def test_a_reset_gives_an_observation_and_an_info(answer: Any) -> None:
    with pytest.raises(WrongValue, match=r"not \(observation, info\)"):
        checked_reset(answer)
    assert checked_reset((0, {"a": 1})) == (0, {"a": 1})


@pytest.mark.parametrize("answer", [(0, 0.0, False, {}), [0, 0.0, False, False, {}], None])
def test_a_step_gives_five(answer: Any) -> None:
    with pytest.raises(WrongValue, match=r"not \(observation, reward"):
        checked_step(answer)
    with pytest.raises(WrongValue, match="not a dict"):
        checked_info([])
