"""What a pool tells of its workers' time, and of what goes between processes."""

import time

import numpy as np
import pytest

from phalanx.envs import make_pool
from phalanx.envs.faults import PoolClosed
from tests import odd_envs as odd


@pytest.mark.parametrize("wait_for", ["all", 1])
def test_workers_tell_how_long_they_stepped(wait_for: str | int) -> None:
    began = time.perf_counter()
    with make_pool("CartPole-v1", n_envs=4, num_workers=2, wait_for=wait_for) as pool:  # type: ignore[arg-type]
        pool.reset()
        for _ in range(20):
            received = pool.recv()
            before = pool.worker_times
            pool.send(np.zeros(len(received.env_ids), np.int64))
        pool.recv()
        spent, first, last = pool.worker_times.T
        now = time.perf_counter()
        assert pool.worker_times.shape == (2, 3)
        assert (spent > 0).all()
        assert (spent >= before[:, 0]).all()
        assert (spent < now - began).all()
        assert ((began < first) & (first < last) & (last < now)).all()
    with pytest.raises(PoolClosed):
        pool.worker_times  # noqa: B018


def test_without_workers_there_are_no_times() -> None:
    with make_pool("CartPole-v1", n_envs=4, num_workers=0) as pool:
        assert pool.worker_times.shape == (0, 3)


def test_bytes_of_a_step_are_those_of_its_row() -> None:
    # four numbers of 4 bytes are seen, one of 8 acts; a request, a reward, and flags
    with make_pool("CartPole-v1", n_envs=2, num_workers=0) as pool:
        assert pool.bytes_per_step == 4 * 4 + 8 + 8 + 8 + 1
    with make_pool(odd.TalksOfGraphs, n_envs=2, num_workers=0) as pool:
        assert pool.bytes_per_step is None  # messages: nobody knows how long


def test_who_waits_is_told_when_the_rows_are_there() -> None:
    order: list[str] = []
    for workers in (0, 2):
        with make_pool("CartPole-v1", n_envs=2, num_workers=workers) as pool:
            pool.reset()
            received = pool.recv(then=lambda: order.append("there"))
            assert len(received.obs) == 2
    assert order == ["there", "there"]
