"""Every moment belongs to one part."""

from typing import Any
from unittest.mock import Mock

import pytest

from phalanx import stopwatch
from phalanx.stopwatch import (
    IDLE,
    LEARNING,
    PARTS,
    POLICY,
    SIMULATOR,
    WAITING,
    Stopped,
    Stopwatch,
    difference,
    shares_of,
    split_in_words,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A clock that shows what a test sets."""
    time = Mock(now=0.0)
    time.perf_counter = lambda: time.now
    monkeypatch.setattr(stopwatch, "time", time)
    return time


def test_parts_sum_to_the_time_that_passed(clock: Any) -> None:
    watch = Stopwatch()
    for part, until in ((POLICY, 1.0), (SIMULATOR, 3.0), (POLICY, 3.5)):
        watch.switch(part)
        clock.now = until
    assert watch.lap() == dict.fromkeys(PARTS, 0.0) | {POLICY: 1.5, SIMULATOR: 2.0}
    clock.now = 5.0  # still the policy's
    assert sum(watch.lap().values()) == 5.0
    assert watch.seconds[POLICY] == 3.0


def test_what_passed_before_a_restart_is_nobodys(clock: Any) -> None:
    watch = Stopwatch()
    clock.now = 7.0
    watch.restart(LEARNING)
    clock.now = 9.0
    assert watch.lap() == dict.fromkeys(PARTS, 0.0) | {LEARNING: 2.0}


def test_a_time_is_divided_by_what_is_known_of_it(clock: Any) -> None:
    watch = Stopwatch()
    watch.switch(POLICY)
    clock.now = 4.0
    watch.divide({SIMULATOR: 1.0, POLICY: 2.0}, rest=WAITING)
    assert watch.lap() == dict.fromkeys(PARTS, 0.0) | {SIMULATOR: 1.0, POLICY: 2.0, WAITING: 1.0}


def test_what_is_known_is_never_more_than_what_passed(clock: Any) -> None:
    watch = Stopwatch()
    watch.switch(POLICY)
    clock.now = 2.0
    watch.divide({SIMULATOR: 1.0, POLICY: 3.0}, rest=WAITING)
    assert watch.lap() == dict.fromkeys(PARTS, 0.0) | {SIMULATOR: 0.5, POLICY: 1.5}
    clock.now = 3.0
    watch.divide({SIMULATOR: 0.0, POLICY: 0.0}, rest=WAITING)  # where no ticks are counted
    assert watch.seconds[WAITING] == 1.0


def test_others_may_look_without_changing_anything(clock: Any) -> None:
    watch = Stopwatch()
    watch.switch(POLICY)
    clock.now = 2.0
    assert watch.peek()[POLICY] == 2.0
    assert watch.seconds[POLICY] == 0.0


def test_one_that_is_stopped_measures_nothing(clock: Any) -> None:
    watch = Stopped()
    watch.switch(POLICY)
    clock.now = 2.0
    watch.divide({SIMULATOR: 1.0}, rest=WAITING)
    assert set(watch.lap().values()) == {0.0}


def test_shares_sum_to_one_or_there_are_none() -> None:
    assert shares_of({POLICY: 1.0, IDLE: 3.0}) == {POLICY: 0.25, IDLE: 0.75}
    assert shares_of({POLICY: 0.0}) == {POLICY: 0.0}
    assert difference({POLICY: 3.0, IDLE: 1.0}, {POLICY: 1.0}) == {POLICY: 2.0, IDLE: 1.0}


def test_a_split_is_told_in_whole_percents_and_what_is_little_as_other() -> None:
    seconds = {SIMULATOR: 9.0, POLICY: 14.0, WAITING: 0.2, LEARNING: 75.0, "logging": 1.8}
    assert split_in_words(seconds) == "simulator 9 % · policy 14 % · learning 75 % · other 2 %"
    assert split_in_words(dict.fromkeys(PARTS, 0.0)) == ""
