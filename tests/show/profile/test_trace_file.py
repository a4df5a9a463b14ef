"""A trace has the structure that Perfetto and speedscope read."""

import json
import time
from typing import Any

from phalanx.show.profile.trace_file import THIS, WORKERS, Trace, TracedStopwatch
from phalanx.stopwatch import COPYING, LEARNING, POLICY, SIMULATOR, WAITING


def check_events(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """What the Trace Event Format demands of complete events and of metadata; returns the former.

    Spans of a thread must not overlap, but for one within another.
    """
    trace = json.loads(json.dumps(trace, allow_nan=False))
    assert trace["displayTimeUnit"] in ("ms", "ns")
    named, spans = set(), []
    for event in trace["traceEvents"]:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["name"], str)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            if event["name"] == "thread_name":
                assert isinstance(event["args"]["name"], str)
                named.add((event["pid"], event["tid"]))
        else:
            assert event["ph"] == "X"
            assert event["ts"] >= 0
            assert event["dur"] >= 0
            spans.append(event)
    assert {(event["pid"], event["tid"]) for event in spans} <= named
    for thread in named:
        end = 0.0
        for event in spans:
            if (event["pid"], event["tid"]) == thread:
                assert event["ts"] >= end - 1.0, event  # a microsecond of rounding
                end = event["ts"] + event["dur"]
    return spans


def test_what_a_stopwatch_measured_is_in_the_trace() -> None:
    trace = Trace()
    watch = TracedStopwatch(trace, 0, "main")
    for part in (POLICY, SIMULATOR, LEARNING):
        watch.switch(part)
        time.sleep(0.01)
    watch.lap()  # in the middle of something
    time.sleep(0.01)
    watch.switch(POLICY)
    spans = check_events(trace.as_events())
    assert [span["name"] for span in spans] == ["idle", "policy", "simulator", "learning"]
    for span in spans[1:]:
        assert abs(span["dur"] / 1e6 - watch.seconds[span["name"]]) < 1e-4
    assert spans[-1]["dur"] >= 20_000


def test_a_time_that_was_divided_is_one_span_that_says_how() -> None:
    trace = Trace()
    watch = TracedStopwatch(trace, 3, "sampler 0")
    watch.switch(POLICY)
    time.sleep(0.01)
    watch.divide({SIMULATOR: 0.004, POLICY: 0.002}, rest=WAITING)
    last = check_events(trace.as_events())[-1]
    assert last["name"] == "simulator and policy"
    assert last["args"] == {"simulator": 0.004, "policy": 0.002}
    assert last["dur"] >= 10_000


def test_time_that_belongs_to_nobody_is_in_no_span() -> None:
    trace = Trace()
    watch = TracedStopwatch(trace, 0, "main")
    watch.switch(LEARNING)
    watch.lap()
    time.sleep(0.02)
    watch.restart(POLICY)
    watch.switch(LEARNING)
    spans = check_events(trace.as_events())
    assert [span["name"] for span in spans] == ["idle", "learning", "policy"]
    assert sum(span["dur"] for span in spans) < 15_000


def test_who_waited_for_rows_is_told_when_they_came() -> None:
    heard: list[int] = []
    watch = TracedStopwatch(Trace(), 0, "main", lambda: heard.append(1))
    for part in (WAITING, COPYING, POLICY, COPYING, WAITING, COPYING):
        watch.switch(part)
    assert len(heard) == 2


def test_a_trace_takes_only_as_much_as_a_viewer_can() -> None:
    trace = Trace(most=2)
    trace.name(WORKERS, 0, "worker 0")
    began = time.perf_counter()
    for k in range(4):
        trace.add(WORKERS, 0, "simulator", began + k, began + k + 0.5)
    assert len(check_events(trace.as_events())) == 2
    assert trace.is_full_at is not None
    assert 1.9 < trace.is_full_at < 2.1
    (process,) = [e for e in trace.as_events()["traceEvents"] if e["name"] == "process_name"]
    assert process["args"]["name"] == "worker processes"


def test_a_trace_that_was_stopped_takes_nothing() -> None:
    trace = Trace()
    trace.stop()
    trace.add(THIS, 0, "policy", 1.0, 2.0)
    assert trace.spans == []
    assert trace.is_full_at is None
