"""For pytest: say which test runs now, end one that takes far too long, note what each took."""

import faulthandler
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(os.environ["PHALANX_TESTED"])
PATIENCE = 8  # times as long as without a change: what never ends is noticed, too
AT_LEAST_S = 60.0  # other programs may run
KNOWN: dict[str, float] = {}
SECONDS: defaultdict[str, float] = defaultdict(float)
FAILED: list[str] = []


def pytest_sessionstart() -> None:
    say_now(0)
    times = FOLDER / "seconds.json"
    KNOWN.update(json.loads(times.read_text()) if times.exists() else {})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    say_now(1 + item.session.items.index(item))
    if item.nodeid in KNOWN:
        limit_s = AT_LEAST_S + PATIENCE * KNOWN[item.nodeid]
        faulthandler.dump_traceback_later(limit_s, exit=True, file=2)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SECONDS[report.nodeid] += report.duration
    if report.failed:
        FAILED.append(report.nodeid)


def pytest_collection_finish(session: pytest.Session) -> None:
    (FOLDER / "order.json").write_text(json.dumps([item.nodeid for item in session.items]))


def pytest_sessionfinish() -> None:
    (FOLDER / "took.json").write_text(json.dumps({"seconds": SECONDS, "failed": FAILED}))


def say_now(number: int) -> None:
    """Written in place: whoever has mapped the file sees it."""
    with open(FOLDER / "now", "r+b") as file:
        file.write(number.to_bytes(4, "little"))
