"""What threads and processes did when, as a file for Perfetto and speedscope.

The format is Chrome's: a list of events with a name, a beginning and a length in microseconds, each
of one thread (tid) of one process (pid), which have names too.
"""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from phalanx.files import Facts
from phalanx.stopwatch import COPYING, WAITING, Stopwatch

MOST_SPANS = 100_000  # some ten megabytes
THIS, WORKERS = 1, 2  # processes


class Span(NamedTuple):
    """Something that lasted; times by `time.perf_counter`."""

    pid: int
    tid: int
    name: str
    began: float
    ended: float
    facts: dict[str, float]


class Trace:
    """Spans of all threads, up to as many as a viewer can take."""

    def __init__(self, most: int = MOST_SPANS) -> None:
        self._most, self._began = most, time.perf_counter()
        self.spans: list[Span] = []
        self.threads: dict[tuple[int, int], str] = {}
        self.is_full_at: float | None = None  # seconds after its beginning
        self._stopped = False

    def stop(self) -> None:
        """Take no more."""
        self._stopped = True

    def name(self, pid: int, tid: int, name: str) -> None:
        self.threads[pid, tid] = name

    def add(
        self, pid: int, tid: int, name: str, began: float, ended: float, **facts: float
    ) -> None:
        if self._stopped:
            return
        if len(self.spans) < self._most:
            self.spans.append(Span(pid, tid, name, began, ended, facts))
        elif self.is_full_at is None:
            self.is_full_at = began - self._began

    def as_events(self) -> Facts:
        """For `json.dumps`."""
        events: list[dict[str, object]] = [
            {"ph": "M", "pid": pid, "tid": 0, "name": "process_name", "args": {"name": name}}
            for pid, name in ((THIS, "phalanx train"), (WORKERS, "worker processes"))
            if any(key[0] == pid for key in self.threads)
        ]
        for (pid, tid), name in self.threads.items():
            about = {"pid": pid, "tid": tid, "ph": "M"}
            events.append(about | {"name": "thread_name", "args": {"name": name}})
            events.append(about | {"name": "thread_sort_index", "args": {"sort_index": tid}})
        for span in sorted(self.spans, key=lambda one: one.began):
            about = {"ph": "X", "pid": span.pid, "tid": span.tid, "name": span.name, "cat": "time"}
            began, length = span.began - self._began, span.ended - span.began
            times = {"ts": round(1e6 * began, 3), "dur": round(1e6 * length, 3)}
            events.append(about | times | {"args": span.facts})
        return {"traceEvents": events, "displayTimeUnit": "ms"}


class TracedStopwatch(Stopwatch):
    """A stopwatch that keeps what it measured, part by part."""

    __slots__ = ("_arrived", "_span_began", "_tid", "_trace")

    def __init__(
        self, trace: Trace, tid: int, name: str, arrived: Callable[[], None] = lambda: None
    ) -> None:
        """arrived: is called when rows have come that were waited for."""
        super().__init__()
        trace.name(THIS, tid, name)
        self._trace, self._tid, self._arrived = trace, tid, arrived
        self._span_began = self._since

    def switch(self, part: str) -> None:
        before = self._part
        super().switch(part)
        if before != part:
            self._trace.add(THIS, self._tid, before, self._span_began, self._since)
            self._span_began = self._since
        if before == WAITING and part == COPYING:
            self._arrived()

    def restart(self, part: str) -> None:
        """What passed since the last switch and up to now is in no span, but for what was told."""
        if self._since > self._span_began:
            self._trace.add(THIS, self._tid, self._part, self._span_began, self._since)
        super().restart(part)
        self._span_began = self._since

    def divide(self, known: Mapping[str, float], rest: str) -> None:
        """One span: when within it what was done is not known, only how much."""
        super().divide(known, rest)
        words = {part: round(seconds, 6) for part, seconds in known.items()}
        name = " and ".join(known)
        self._trace.add(THIS, self._tid, name, self._span_began, self._since, **words)
        self._span_began = self._since
