"""Work that takes longer than a request: one piece after the other, with progress, in a thread."""

import secrets
import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from phalanx.errors import PhalanxError
from phalanx.files import Facts
from phalanx.ui.asked import NotHere, TooMuch
from phalanx.ui.busy import busy

MOST_WAITING = 4
MOST_KEPT = 12  # results; each has a megabyte at most
WAITING, AT_WORK, READY, FAILED, GIVEN_UP = "waiting", "working", "ready", "failed", "given up"

Tell = Callable[[float, str], None]  # share that is done, and what is being done
Work = Callable[[Tell], object]


class GaveUp(Exception):
    """Nobody waits for this any more."""


@dataclass
class Job:
    """One piece of work."""

    id: str
    what: str
    work: Work
    state: str = WAITING
    share: float = 0.0
    note: str = ""
    error: str = ""
    result: object = field(default=None, repr=False)

    def tell(self, share: float, note: str = "") -> None:
        """How far it is; who has given up hears of it here."""
        if self.state == GIVEN_UP:
            raise GaveUp
        self.share, self.note = max(0.0, min(1.0, share)), note or self.note

    def facts(self) -> dict[str, object]:
        names = ("id", "what", "state", "share", "note", "error")
        return {name: getattr(self, name) for name in names}


class Jobs:
    """Pieces of work and what came of them; the oldest results are forgotten.

    jobs = Jobs()
    job = jobs.begin("a replay", lambda tell: ...)
    jobs.facts(job.id)["state"]         # waiting, working, ready, failed, given up
    jobs.result(job.id)
    """

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def begin(self, what: str, work: Work) -> Job:
        job = Job(secrets.token_urlsafe(8), what, work)
        with self._changed:
            if sum(one.state == WAITING for one in self._jobs.values()) >= MOST_WAITING:
                raise TooMuch(f"{MOST_WAITING} others wait already; give one of them up")
            self._jobs[job.id] = job
            over = [one.id for one in self._jobs.values() if one.state not in (WAITING, AT_WORK)]
            for old in over[: max(0, len(self._jobs) - MOST_KEPT)]:
                del self._jobs[old]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return job

    def facts(self, id: str) -> Facts:
        return self._found(id).facts()

    def result(self, id: str) -> object:
        job = self._found(id)
        if job.state != READY:
            raise NotHere(f"{job.what} is not ready: {job.error or job.state}")
        return job.result

    def give_up(self, id: str) -> dict[str, object]:
        with self._changed:
            job = self._found(id)
            if job.state in (WAITING, AT_WORK):
                job.state = GIVEN_UP
        return job.facts()

    def close(self) -> None:
        """Begin nothing more; what is at work hears of it at its next word."""
        with self._changed:
            self._is_closed = True
            for job in self._jobs.values():
                if job.state in (WAITING, AT_WORK):
                    job.state = GIVEN_UP
            self._changed.notify_all()

    def _found(self, id: str) -> Job:
        job = self._jobs.get(id)
        if job is None:
            raise NotHere("this is forgotten; ask for it again")
        return job

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                with busy():
                    result = job.work(job.tell)
            except GaveUp:
                continue
            except PhalanxError as error:
                self._end(job, FAILED, error=" ".join(str(error).split()))
            except Exception as error:  # our mistake: the server goes on, and says where to look
                traceback.print_exception(error, file=sys.stderr)
                self._end(job, FAILED, error="phalanx made a mistake; the terminal says which")
            else:
                self._end(job, READY, result=result, share=1.0)

    def _next(self) -> Job | None:
        """The oldest that waits; None: there will be no more."""
        with self._changed:
            while not self._is_closed:
                for job in self._jobs.values():
                    if job.state == WAITING:
                        job.state = AT_WORK
                        return job
                self._changed.wait()
        return None

    def _end(self, job: Job, state: str, **facts: object) -> None:
        with self._changed:
            if job.state == AT_WORK:
                for name, value in facts.items():
                    setattr(job, name, value)
                job.state = state
