"""Where rollouts come from: in step, ahead, or once more."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import Any

import numpy as np
import pytest

from phalanx.learn.rollout import Rollout, Stopped
from phalanx.stopwatch import COPYING, IDLE, WAITING, Stopwatch
from phalanx.training.sources import Ahead, InStep, Replay
from tests.learn.test_rollout import numbered, numbers


class Sampler:
    """Gives rollouts whose versions are those of the weights that it took last."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int]] = []
        self.is_closed = self.is_stopped = False
        self.stop: Callable[[], bool] = lambda: self.is_stopped
        self.watch = Stopwatch()

    def set_weights(self, weights: int, version: int) -> None:
        self.taken.append((weights, version))

    def collect(self, _shaping: Any) -> Rollout:
        rollout = numbered()
        rollout.versions[:] = self.taken[-1][1]
        return rollout

    def listen(self, _hook: Any) -> None: ...
    def save(self) -> Any: ...
    def load(self, _arrays: Any) -> None: ...
    def close(self) -> None:
        self.is_closed = True


def test_in_step_new_weights_are_taken_at_every_kth_rollout_and_at_the_first() -> None:
    sampler = Sampler()
    source = InStep(sampler, sync_every=3)
    versions = [int(source.next(lambda: 0, v, None).versions[0]) for v in range(4, 11)]
    assert versions == [4, 4, 6, 6, 6, 9, 9]
    source.close()
    assert sampler.is_closed


def test_ahead_a_rollout_is_older_than_the_learner_and_every_sampler_is_heard_in_turn() -> None:
    samplers: Any = [Sampler(), Sampler()]
    source, versions = Ahead(samplers), []
    for version in range(9):
        versions.append(int(source.next(lambda: 0, version, None).versions[0]))
        wait(source._pending)  # so that both are ready
    assert all(now - 3 <= was < max(1, now) for now, was in enumerate(versions))
    source.close()
    assert sorted(len(sampler.taken) for sampler in samplers) == [5, 6]
    assert all(sampler.is_closed for sampler in samplers)


def test_ahead_weights_are_taken_at_every_kth_rollout() -> None:
    sampler: Any = Sampler()
    source = Ahead([sampler], sync_every=2)
    for version in range(6):
        source.next(lambda: 0, version, None)
    source.close()
    assert [version for _, version in sampler.taken] == [0, 1, 3, 5]


def test_who_waits_for_rollouts_ahead_is_stopped_by_any_sampler_and_not_by_what_is_ready() -> None:
    class Slow(Sampler):
        def collect(self, shaping: Any) -> Rollout:
            go_on.wait(30)
            return super().collect(shaping)

    go_on, samplers = threading.Event(), [Slow(), Slow()]
    source = Ahead(list(samplers))
    samplers[1].is_stopped = True
    with pytest.raises(Stopped):  # none is ready
        source.next(lambda: 0, 0, None)
    go_on.set()
    while not any(future.done() for future in source._pending):
        time.sleep(0.001)
    source.next(lambda: 0, 1, None)  # what is ready is given, also to one who stops
    source.close()


def test_replay_gives_as_many_old_rollouts_as_asked_and_forgets_the_oldest() -> None:
    replay = Replay(3, 2, np.random.default_rng(0))
    assert replay.add(numbered(0)) == []
    assert [numbers(old)[0] for old in replay.add(numbered(10))] == [0, 0, 0]
    assert {numbers(old)[0] for _ in range(20) for old in replay.add(numbered(20))} >= {20}
    assert {numbers(old)[0] for _ in range(9) for old in replay.add(numbered(20))} == {20}
    assert Replay(0, 2, np.random.default_rng(0)).add(numbered()) == []


def test_what_is_replayed_is_a_copy() -> None:
    replay, rollout = Replay(1, 2, np.random.default_rng(0)), numbered(5)
    replay.add(rollout)
    rollout.rewards[:] = -1
    assert numbers(replay.add(numbered())[0]) == [5, 6, 7, 8]


def test_in_step_the_samplers_time_is_that_of_who_asks() -> None:
    sampler, watch = Sampler(), Stopwatch()
    source = InStep(sampler)
    source.time_by(watch)
    source.next(lambda: 0, 0, None)
    assert sampler.watch is watch
    assert watch.lap()[COPYING] > 0


def test_ahead_who_asks_waits_while_the_sampler_has_a_time_of_its_own() -> None:
    class Slow(Sampler):
        def collect(self, shaping: Any) -> Rollout:
            time.sleep(0.05)
            return super().collect(shaping)

    sampler, watch = Slow(), Stopwatch()
    source = Ahead([sampler])
    source.time_by(watch)
    source.next(lambda: 0, 0, None)
    waited, copied = watch.lap()[WAITING], sampler.watch.peek()[COPYING]
    source.close()
    assert waited >= 0.04
    assert copied >= 0.04  # it says nothing else meanwhile
    idle = sampler.watch.lap()[IDLE]
    assert sampler.watch.lap()[IDLE] > idle  # nobody asks any more
