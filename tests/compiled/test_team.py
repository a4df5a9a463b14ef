"""Threads share a batch: every network is played once, by whoever comes."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

from phalanx.cage2 import Batch, Cage2VectorEnv
from phalanx.cage2.rules.batch_turn import play_turns
from phalanx.cage2.rules.scenario import NUM_ACTIONS
from phalanx.compiled.team import LEADER, ThreadTeam


@pytest.mark.parametrize("size", [1, 7, 127, 128, 129, 1000, 5000])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_network_is_played_once_a_turn(size: int, threads: int) -> None:
    batch = Batch(size, red_agent="meander", num_threads=threads, horizon=1000)
    for turn in range(30):
        batch.play(np.random.default_rng(turn).integers(NUM_ACTIONS, size=size))
        assert (batch.nets["turn"] == turn + 1).all()
    batch.close()


def test_more_threads_than_cores_give_the_same_games() -> None:
    def final_state(threads: int) -> bytes:
        batch = Batch(3000, red_agent="b_line=0.5,meander=0.5", num_threads=threads, seed=1)
        for actions in np.random.default_rng(0).integers(NUM_ACTIONS, size=(250, 3000)):
            batch.play(actions)
        batch.close()
        return batch.nets.tobytes()

    assert len({final_state(threads) for threads in (1, 2, 5, 16)}) == 1


def test_threads_that_went_to_sleep_come_back() -> None:
    batch = Batch(4096, num_threads=2, horizon=1000)
    for turn in range(20):
        time.sleep(0.005 * (turn % 3))
        batch.play(np.zeros(4096, np.int64))
        assert (batch.nets["turn"] == turn + 1).all()


def test_several_batches_play_in_threads_of_their_own() -> None:
    batches = [Batch(2000, num_threads=2, seed=k, horizon=1000) for k in range(3)]

    def play(batch: Batch) -> None:
        for _ in range(50):
            batch.play(np.zeros(2000, np.int64))

    callers = [threading.Thread(target=play, args=(batch,)) for batch in batches]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all((batch.nets["turn"] == 50).all() for batch in batches)


class Interrupt(Exception):
    """Stands for Ctrl-C."""


def test_an_interrupt_before_the_leader_plays_leaves_the_turn_unplayed() -> None:
    batch = Batch(4096, num_threads=3, horizon=1000)

    def play(*arguments: Any) -> bool:
        if arguments[-1] == LEADER:
            time.sleep(0.002)  # the others have the task by now, and must not begin
            raise Interrupt
        return play_turns(*arguments)

    restores = np.full(4096, 144)
    for turn in range(50):
        with pytest.raises(Interrupt):
            batch.team.run(play, batch.turn_arguments(restores, batch.shown))
        assert (batch.save()["nets"]["turn"] == turn).all()
        batch.play(np.zeros(4096, np.int64))
        assert (batch.nets["turn"] == turn + 1).all()
    assert not batch.nets["restored"].any()


def test_an_interrupt_after_the_leader_played_leaves_the_turn_played() -> None:
    batch = Batch(4096, num_threads=3, horizon=1000)

    def play(*arguments: Any) -> bool:
        play_turns(*arguments)
        if arguments[-1] == LEADER:
            raise Interrupt
        return True

    for turn in range(100):
        with pytest.raises(Interrupt):
            batch.team.run(play, batch.turn_arguments(np.zeros(4096, np.int64), batch.shown))
        assert (batch.save()["nets"]["turn"] == turn + 1).all()


def test_two_threads_that_share_a_batch_take_turns() -> None:
    batch = Batch(50_000, num_threads=2, horizon=10_000)

    def play() -> None:
        for _ in range(50):
            batch.play(np.zeros(50_000, np.int64))

    callers = [threading.Thread(target=play) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert (batch.nets["turn"] == 100).all()
    assert set(np.unique(batch.shown.obs)) <= {0, 1}


def test_what_was_played_with_is_not_kept_alive() -> None:
    batch = Batch(4096, num_threads=2)
    actions = np.zeros(4096, np.int64)
    kept = weakref.ref(actions)
    batch.play(actions)
    del actions
    deadline = time.monotonic() + 5
    while kept() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert kept() is None


def test_a_batch_with_threads_can_be_copied_and_pickled() -> None:
    envs = Cage2VectorEnv(3000, red_agent="meander", num_threads=2)
    envs.reset()
    envs.step(np.zeros(3000, int))
    copies = [copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))]
    actions = np.random.default_rng(1).integers(NUM_ACTIONS, size=(30, 3000))
    expected = [envs.step(row)[0] for row in actions]
    for other in copies:
        assert np.array_equal(expected, [other.step(row)[0] for row in actions])
        assert np.array_equal(other.access, envs.access)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_plays_on() -> None:
    program = """
import os, signal
import numpy as np
from phalanx.cage2 import Batch
batch = Batch(4096, num_threads=2, horizon=1000)
batch.play(np.zeros(4096, np.int64))
child = os.fork()
if child == 0:
    signal.alarm(20)
    for _ in range(20):
        batch.play(np.zeros(4096, np.int64))
    os._exit(0 if (batch.nets["turn"] == 21).all() else 1)
_, status = os.waitpid(child, 0)
batch.play(np.zeros(4096, np.int64))
raise SystemExit(status or not (batch.nets["turn"] == 2).all())
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_team_that_is_forgotten_ends_its_threads() -> None:
    before = set(threading.enumerate())
    team = ThreadTeam(4)
    hands = set(threading.enumerate()) - before
    assert len(hands) == 3
    del team
    for hand in hands:
        hand.join(timeout=120)
        assert not hand.is_alive()


def test_the_time_of_each_thread_is_counted() -> None:
    batch = Batch(200_000, num_threads=2, horizon=1000)
    actions = np.zeros(200_000, np.int64)
    batch.play(actions)  # compiles
    team, began = batch.team, time.perf_counter()
    before, waited, tasks = team.busy_s(), team.waited_s(), team.tasks
    for _ in range(20):
        batch.play(actions)
    passed = time.perf_counter() - began
    busy = team.busy_s() - before
    assert team.tasks - tasks == 20
    assert 0 < busy[LEADER] <= 1.05 * passed
    assert 0 <= busy[1] <= 1.05 * passed
    assert busy[LEADER] + team.waited_s() - waited <= 1.05 * passed


def test_who_plays_alone_waits_for_nobody() -> None:
    batch = Batch(100, num_threads=1)
    batch.play(np.zeros(100, np.int64))
    assert batch.team.waited_s() == 0
    assert batch.team.busy_s()[LEADER] > 0


def test_who_asks_hears_of_the_work_of_each_thread() -> None:
    heard: list[tuple[int, float, float]] = []
    batch = Batch(200_000, num_threads=2, horizon=1000)
    batch.team.on_work = lambda _play, thread, began, ended: heard.append((thread, began, ended))
    began = time.perf_counter()
    for _ in range(20):
        batch.play(np.zeros(200_000, np.int64))
    assert [thread for thread, _began, _ended in heard].count(LEADER) == 20
    assert all(began <= first <= last for _thread, first, last in heard)
    assert (batch.nets["turn"] == 20).all()
