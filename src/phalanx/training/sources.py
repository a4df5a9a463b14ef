"""Where a learner's rollouts come from: played in step with it, or ahead of it."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol

import numpy as np

from phalanx.learn.rollout import Rollout, Sampler, Stopped, columns_of
from phalanx.stopwatch import COPYING, IDLE, WAITING, Stopwatch
from phalanx.training.update_record import UpdateRecord

Weights = Callable[[], object]


class Source(Protocol):
    """Who plays for a learner."""

    @property
    def samplers(self) -> Sequence[Any]:
        """Each a `Sampler`; what else it has depends on the game."""
        ...

    def time_by(self, watch: Stopwatch) -> None:
        """The watch of the thread that calls `next`."""

    def next(self, weights: Weights, version: int, shaping: object) -> Rollout:
        """The next rollout to learn from."""
        ...

    def close(self) -> None: ...


class Workers(Source, Protocol):
    """Processes that play and learn by themselves, and tell of it: see `a3c_workers.py`."""

    num_workers: int
    spent: dict[int, Counter[str]]

    def tell_time(self, elapsed_s: float) -> None: ...

    def hear(self) -> list[UpdateRecord]: ...

    def finish(self) -> list[UpdateRecord]: ...

    def go_on_from(self, episodes: int, steps: int) -> None: ...


class InStep:
    """Sample, learn, sample, learn. New weights are taken at every `sync_every`-th rollout."""

    def __init__(self, sampler: Sampler, sync_every: int = 1) -> None:
        self.samplers, self._sync_every = [sampler], sync_every
        self._taken = False

    def time_by(self, watch: Stopwatch) -> None:
        """The watch of the thread that calls `next`: the sampler's time is part of its."""
        self.samplers[0].watch = watch

    def next(self, weights: Weights, version: int, shaping: object) -> Rollout:
        (sampler,) = self.samplers
        sampler.watch.switch(COPYING)
        if not self._taken or version % self._sync_every == 0:
            sampler.set_weights(weights(), version)
            self._taken = True
        return sampler.collect(shaping)

    def close(self) -> None:
        for sampler in self.samplers:
            sampler.close()


class Ahead:
    """Every sampler plays in a thread of its own while the learner learns from what is ready.

    A sampler plays one rollout ahead and then waits to be asked: that bounds both memory and lag.
    With one sampler its rollouts are one update old; with several, whoever is ready is next.
    """

    def __init__(self, samplers: Sequence[Sampler], sync_every: int = 1) -> None:
        self.samplers, self._sync_every = samplers, sync_every
        self._threads = ThreadPoolExecutor(len(samplers), thread_name_prefix="sampler")
        self._pending: dict[Future[Rollout], Sampler] = {}
        self._asked = Counter[int]()
        self._watch = Stopwatch()

    def time_by(self, watch: Stopwatch) -> None:
        """The watch of the thread that calls `next`; samplers have their own."""
        self._watch = watch

    def next(self, weights: Weights, version: int, shaping: object) -> Rollout:
        if not self._pending:
            for sampler in self.samplers:
                self._ask(sampler, weights, version, shaping)
        self._watch.switch(WAITING)
        done: set[Future[Rollout]] = set()
        while not done:
            done, _ = wait(self._pending, timeout=0.1, return_when=FIRST_COMPLETED)
            if not done and any(sampler.stop() for sampler in self.samplers):
                raise Stopped
        # Of several that are ready, the one that was heard least.
        future = min(done, key=lambda one: self._asked[id(self._pending[one])])
        sampler = self._pending.pop(future)
        rollout = future.result()
        self._watch.switch(COPYING)
        self._ask(sampler, weights, version, shaping)
        return rollout

    def _ask(self, sampler: Sampler, weights: Weights, version: int, shaping: object) -> None:
        count = self._asked[id(sampler)]
        self._asked[id(sampler)] += 1
        fresh = weights() if count % self._sync_every == 0 else None

        def collect() -> Rollout:
            sampler.watch.switch(COPYING)
            try:
                if fresh is not None:
                    sampler.set_weights(fresh, version)
                return sampler.collect(shaping)
            finally:
                sampler.watch.switch(IDLE)

        self._pending[self._threads.submit(collect)] = sampler

    def close(self) -> None:
        for sampler in self.samplers:
            sampler.stop = lambda: True
        wait(self._pending)
        self._threads.shutdown()
        for sampler in self.samplers:
            sampler.close()


class Replay:
    """The last rollouts, to be learnt from again: `--replay K` takes K old ones for each new one"""

    def __init__(self, per_new: int, capacity: int, random: np.random.Generator) -> None:
        self._per_new, self._random = per_new, random
        self._past: deque[Rollout] = deque(maxlen=capacity)

    def add(self, rollout: Rollout) -> list[Rollout]:
        """Keep a copy of a new rollout; returns old ones to learn from besides."""
        if not self._per_new:
            return []
        old = [
            self._past[self._random.integers(len(self._past))]
            for _ in range(self._per_new if self._past else 0)
        ]
        self._past.append(columns_of(rollout, np.arange(rollout.rewards.shape[1])))
        return old
