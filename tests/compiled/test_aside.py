"""Work aside: done as if it were here, but Ctrl-C does not wait for it."""

import os
import signal
import threading
import time

import pytest

from phalanx.compiled.aside import aside, is_at_work


def test_what_it_returns_and_raises_arrives() -> None:
    assert aside(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        aside(divmod, 7, 0)


def test_in_the_main_thread_it_is_done_by_another_and_elsewhere_at_once() -> None:
    assert aside(threading.get_ident) != threading.get_ident()
    found = []

    def look() -> None:
        found.append(aside(threading.get_ident) == threading.get_ident())

    elsewhere = threading.Thread(target=look)
    elsewhere.start()
    elsewhere.join()
    assert found == [True]


def test_an_interrupt_does_not_wait_for_it() -> None:
    enough, done = threading.Event(), threading.Event()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        enough.wait(60)
        done.set()

    with pytest.raises(KeyboardInterrupt):
        aside(work)
    assert is_at_work()
    assert not done.is_set()
    enough.set()
    assert done.wait(60)
    deadline = time.monotonic() + 60
    while is_at_work() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_at_work()


def test_whoever_waits_for_long_work_can_say_so() -> None:
    heard: list[float] = []
    assert aside(time.sleep, 2.2, meanwhile=lambda: heard.append(time.monotonic())) is None
    assert heard


def test_a_timeout_of_the_work_itself_is_raised() -> None:
    def late() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        aside(late)
