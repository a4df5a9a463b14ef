"""The clock of compiled code."""

import time
from typing import Any

import numpy as np
import pytest

from phalanx.compiled.clock import ARM, X86, Pace, count_ticks, ticks
from phalanx.compiled.rule import kernel

known = pytest.mark.skipif(not (X86 or ARM), reason="no counter that we know")


@kernel
def stamps(times: Any) -> None:
    for k in range(len(times)):
        times[k] = ticks()


@kernel
def spend(spent: Any, looks: int) -> None:
    since = ticks()
    for k in range(looks):
        since = count_ticks(spent, k % 2, since)


@known
def test_time_does_not_go_back() -> None:
    times = np.zeros(10_000, np.int64)
    stamps(times)
    assert (np.diff(times) >= 0).all()
    assert times[-1] > times[0]


@known
def test_ticks_come_to_seconds() -> None:
    pace, spent = Pace(), np.zeros(2, np.int64)
    spend(spent, 2)  # compiles
    began = time.perf_counter()
    spent[:] = 0
    spend(spent, 200_000)
    passed = time.perf_counter() - began
    seconds = spent * pace.seconds()
    assert (seconds > 0).all()
    assert 0.5 * passed < seconds.sum() < 1.05 * passed
