"""Threads share a batch: every network is played once, by whoever comes."""

import threading
import time

import numpy as np
import pytest

from phalanx.cage2 import Batch
from phalanx.cage2.crew import Crew
from phalanx.cage2.kernel import play_turns
from phalanx.cage2.scenario import NUM_ACTIONS


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


def test_an_interrupted_turn_does_not_spoil_the_next() -> None:
    """As after Ctrl-C: the leader has left without waiting for the others."""
    batch = Batch(4096, num_threads=2, horizon=1000)
    crew = batch.crew
    actions = np.zeros(4096, np.int64)
    for turn in range(200):
        arguments = (batch.nets, batch.memories, False, actions, batch._odds, True, batch.shown)
        crew._task += 1
        for hand in crew._hands:
            hand.offer(crew._task, play_turns, arguments)
        crew._finished = play_turns(*arguments, crew._board, crew._task, 0) and False
        batch.play(actions)
        assert (batch.nets["turn"] == 2 * (turn + 1)).all()


def test_a_crew_that_is_forgotten_ends_its_threads() -> None:
    before = set(threading.enumerate())
    crew = Crew(4)
    hands = set(threading.enumerate()) - before
    assert len(hands) == 3
    del crew
    for hand in hands:
        hand.join(timeout=5)
        assert not hand.is_alive()
