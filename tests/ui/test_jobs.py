"""Long work: one piece at a time, told of while it goes on, bounded, and given up when unwanted."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from phalanx.errors import ConfigError
from phalanx.ui.asked import NotHere, TooMuch
from phalanx.ui.jobs import MOST_KEPT, MOST_WAITING, Jobs, Tell


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs()
    yield made
    made.close()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def state(jobs: Jobs, id: str) -> str:
    return str(jobs.facts(id)["state"])


def test_progress_is_told_and_the_result_kept(jobs: Jobs) -> None:
    go_on = threading.Event()

    def work(tell: Tell) -> int:
        tell(0.5, "half")
        go_on.wait(60)
        return 42

    job = jobs.begin("a number", work)
    until(lambda: jobs.facts(job.id)["share"] == 0.5)
    assert jobs.facts(job.id)["note"] == "half"
    with pytest.raises(NotHere, match="not ready: working"):
        jobs.result(job.id)
    go_on.set()
    until(lambda: state(jobs, job.id) == "ready")
    assert jobs.result(job.id) == 42


def test_a_failure_is_one_line_and_the_next_piece_is_done(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_tell: Tell) -> Any:
        raise ConfigError("no\nsuch attacker")

    def wrong(_tell: Tell) -> Any:
        raise ZeroDivisionError

    first, second = jobs.begin("one", refused), jobs.begin("two", wrong)
    third = jobs.begin("three", lambda _tell: 3)
    until(lambda: state(jobs, third.id) == "ready")
    assert jobs.facts(first.id)["error"] == "no such attacker"
    assert "the terminal says which" in jobs.facts(second.id)["error"]
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_what_is_given_up_ends_at_its_next_word(jobs: Jobs) -> None:
    ended = threading.Event()

    def endless(tell: Tell) -> None:
        try:
            while True:
                tell(0.1, "")
                time.sleep(0.001)
        finally:
            ended.set()

    job = jobs.begin("endless", endless)
    waiting = jobs.begin("never begun", lambda _tell: ended.clear())
    until(lambda: state(jobs, job.id) == "working")
    jobs.give_up(waiting.id)
    jobs.give_up(job.id)
    assert ended.wait(60)
    last = jobs.begin("last", lambda _tell: 1)
    until(lambda: state(jobs, last.id) == "ready")
    assert (state(jobs, job.id), state(jobs, waiting.id)) == ("given up", "given up")
    assert ended.is_set()


def test_only_so_many_wait_and_only_so_many_results_are_kept(jobs: Jobs) -> None:
    go_on = threading.Event()
    first = jobs.begin("first", lambda _tell: go_on.wait(60))
    until(lambda: state(jobs, first.id) == "working")
    waiting = [jobs.begin(f"{k}", lambda _tell: 0) for k in range(MOST_WAITING)]
    with pytest.raises(TooMuch, match="others wait"):
        jobs.begin("one more", lambda _tell: 0)
    go_on.set()
    until(lambda: state(jobs, waiting[-1].id) == "ready")
    for k in range(MOST_KEPT):
        last = jobs.begin(f"{k}", lambda _tell: 0)
        until(lambda job=last: state(jobs, job.id) == "ready")  # type: ignore[misc]
    with pytest.raises(NotHere, match="forgotten"):
        jobs.facts(first.id)


def test_an_unknown_name_is_one_line(jobs: Jobs) -> None:
    with pytest.raises(NotHere):
        jobs.facts("nothing")
