"""Which functions the time goes into, thread by thread."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from phalanx.show.profile import python_functions
from phalanx.show.profile.python_functions import (
    CallTimes,
    Function,
    functions_of,
    most_expensive,
    new_counter,
    place_of,
)


def outer() -> None:
    inner()
    inner()


def inner() -> None:
    time.sleep(0.02)


def falls(depth: int) -> None:
    if depth:
        falls(depth - 1)
    else:
        time.sleep(0.02)


def counted(make: Callable[[], Any], *calls: Callable[[], None]) -> dict[str, Function]:
    counter = make()
    counter.enable()
    for call in calls:
        call()
    counter.disable()
    return {one.name: one for one in functions_of("main", counter)}


@pytest.mark.parametrize("make", [new_counter, CallTimes])
def test_own_time_and_that_of_what_was_called_are_told_apart(make: Callable[[], Any]) -> None:
    found = counted(make, outer, lambda: falls(5))
    assert found["outer"].total_s >= 0.04
    assert found["outer"].own_s < 0.02
    assert found["inner"].calls == 2
    assert found["inner"].total_s >= 0.04
    assert found["outer"].total_s >= found["inner"].total_s
    assert 0.02 <= found["falls"].total_s < 0.1  # once, not six times
    assert found["falls"].place.startswith(("test_python_functions.py:", "tests/"))


@pytest.mark.parametrize("make", [new_counter, CallTimes])
def test_what_another_thread_calls_is_not_counted(make: Callable[[], Any]) -> None:
    over = threading.Event()

    def elsewhere() -> None:
        while not over.is_set():
            falls(2)

    other = threading.Thread(target=elsewhere)
    other.start()
    found = counted(make, outer)
    over.set()
    other.join()
    assert "falls" not in found
    assert found["outer"].total_s >= 0.04


def test_from_python_3_12_on_threads_are_still_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_functions, "ONE_THREAD_EACH", False)
    assert isinstance(new_counter(), CallTimes)


def test_what_was_under_way_when_counting_began_does_not_confuse_it() -> None:
    counter = CallTimes()

    def begin() -> None:
        counter.enable()

    begin()
    outer()
    counter.disable()
    assert {one.name for one in functions_of("main", counter)} >= {"outer", "inner"}


def test_the_most_expensive_come_first_without_those_that_look_on() -> None:
    def took(name: str, place: str, total: float) -> Function:
        return Function("main", name, place, 1, 0.0, total)

    functions = [took("a", "x.py:1", 1.0), took("b", "y.py:1", 3.0), took("c", "watch.py:1", 9.0)]
    assert [one.name for one in most_expensive(functions, 5, but="watch.py")] == ["b", "a"]
    assert [one.name for one in most_expensive(functions, 1, but="watch.py")] == ["b"]


def test_places_are_told_from_the_package_on() -> None:
    assert place_of(python_functions.__file__, 7) == "phalanx/show/profile/python_functions.py:7"
    assert place_of(pytest.__file__, 3) == "pytest/__init__.py:3"
    assert place_of(threading.__file__, 3) == "threading.py:3"
    assert place_of("~", 0) == "built in"
    assert place_of("/somewhere/mine.py", 2) == "mine.py:2"
