"""Where the time of a thread goes: every moment belongs to one part, so that parts sum to all."""

import time
from collections.abc import Mapping

SIMULATOR = "simulator"  # environments play
POLICY = "policy"  # networks choose actions
COPYING = "copying"  # rows, rollouts and weights go from one place to another
WAITING = "waiting"  # for environments, samplers or threads that are still at it
LEARNING = "learning"  # gradients and steps
LOGGING = "logging"  # tables, events, trackers, checkpoints
IDLE = "idle"  # nothing was asked for
PARTS = (SIMULATOR, POLICY, COPYING, WAITING, LEARNING, LOGGING, IDLE)


class Stopwatch:
    """The seconds of one thread, by part; the thread says what it begins with.

    watch = Stopwatch()
    watch.switch(POLICY); actions = policy(obs)
    watch.switch(SIMULATOR); obs = env.step(actions)
    watch.lap()                                       # {"policy": 0.1, "simulator": 0.4, ...}

    A switch costs a tenth of a microsecond.
    """

    __slots__ = ("_clock", "_part", "_since", "seconds")

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._clock = time.perf_counter
        self._part, self._since = IDLE, self._clock()

    def switch(self, part: str) -> None:
        """What follows belongs to this part."""
        now = self._clock()
        self.seconds[self._part] += now - self._since
        self._part, self._since = part, now

    def restart(self, part: str) -> None:
        """The same, and the time since the last switch belongs to nobody."""
        self._part, self._since = part, self._clock()

    def divide(self, known: Mapping[str, float], rest: str) -> None:
        """The time since the last switch was spent so, in seconds; what is left on `rest`."""
        now = self._clock()
        spent, total = now - self._since, sum(known.values())
        scale = min(1.0, spent / total) if total else 0.0  # clocks of two kinds differ a little
        for part, seconds in known.items():
            self.seconds[part] += scale * seconds
        self.seconds[rest] += spent - scale * total
        self._since = now

    def move(self, source: str, target: str, seconds: float) -> None:
        """So much of one part belongs to another."""
        self.seconds[source] -= seconds
        self.seconds[target] += seconds

    def lap(self) -> dict[str, float]:
        """Seconds of all parts up to now."""
        self.switch(self._part)
        return dict(self.seconds)

    def peek(self) -> dict[str, float]:
        """The same for another thread than the one whose time this is: nothing is changed."""
        part, since, seconds = self._part, self._since, dict(self.seconds)
        seconds[part] += max(0.0, self._clock() - since)
        return seconds


class Stopped(Stopwatch):
    """One that does not run: to measure what the others cost."""

    def switch(self, part: str) -> None:
        pass

    def divide(self, known: Mapping[str, float], rest: str) -> None:
        pass


def shares_of(seconds: Mapping[str, float]) -> dict[str, float]:
    """Parts of their sum; all 0 if there is none."""
    total = sum(seconds.values())
    return {part: spent / total if total > 0 else 0.0 for part, spent in seconds.items()}


def difference(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {part: seconds - before.get(part, 0.0) for part, seconds in after.items()}


def split_in_words(seconds: Mapping[str, float], least: float = 0.005) -> str:
    """`simulator 9 % · policy 14 % · learning 75 % · other 2 %`, without what is next to nothing.

    logging and what is idle are told as other.
    """
    shares = shares_of(seconds)
    told = {part: share for part, share in shares.items() if part not in (LOGGING, IDLE)}
    words = [f"{part} {share:.0%}" for part, share in told.items() if share >= least]
    other = sum(shares.values()) - sum(share for share in told.values() if share >= least)
    words += [f"other {other:.0%}"] if other >= least else []
    return " · ".join(words).replace("%", " %")
