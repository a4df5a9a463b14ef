"""`auto` goes by what an environment does, not by what the machine is busy with."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from phalanx.envs import thread_time
from phalanx.envs.auto import choose_num_envs, choose_workers
from phalanx.envs.thread_time import Account, quiet_mean
from phalanx.envs.trial import tried
from tests import odd_envs as odd

BEGAN = Account(wall_s=5.0, cpu_s=1.0, queued_s=2.0, others_s=1.0, sleeps=7, preemptions=9)


def later(**changes: float) -> Account:
    """The account some time after `BEGAN`, by how much it has grown."""
    return BEGAN._replace(**{name: getattr(BEGAN, name) + by for name, by in changes.items()})


def test_a_thread_that_others_keep_from_its_core_does_not_wait() -> None:
    spent = later(wall_s=1.0, cpu_s=0.2, queued_s=0.8, preemptions=90, sleeps=1).since(BEGAN)
    assert spent.computed_s == pytest.approx(0.2)
    assert spent.waited_s == pytest.approx(0.0)


def test_a_thread_that_sleeps_waits_but_not_while_it_queues() -> None:
    spent = later(wall_s=1.0, cpu_s=0.1, queued_s=0.3, sleeps=50).since(BEGAN)
    assert spent.waited_s == pytest.approx(0.6)


def test_who_never_sleeps_does_not_wait_whatever_the_queue_says() -> None:
    """A container that has used up its share of time is halted, and no queue tells of it."""
    assert later(wall_s=1.0, cpu_s=0.4, preemptions=10).since(BEGAN).waited_s == 0


def test_threads_that_work_for_it_are_not_waited_for() -> None:
    spent = later(wall_s=1.0, cpu_s=0.1, sleeps=9, others_s=0.7).since(BEGAN)
    assert spent.helped_s == pytest.approx(0.7)
    assert spent.waited_s == pytest.approx(0.2)
    spent = later(wall_s=1.0, cpu_s=0.1, sleeps=9, others_s=3.0).since(BEGAN)  # four of them
    assert (spent.helped_s, spent.waited_s) == pytest.approx((0.9, 0))


def test_without_the_queue_switches_tell_waiting_from_preemption() -> None:
    before = BEGAN._replace(queued_s=None)
    busy = later(wall_s=1.0, cpu_s=0.2, sleeps=1, preemptions=99)._replace(queued_s=None)
    assert busy.since(before).waited_s == pytest.approx(0.008)
    sleepy = later(wall_s=1.0, cpu_s=0.2, sleeps=99, preemptions=1)._replace(queued_s=None)
    assert sleepy.since(before).waited_s == pytest.approx(0.792)


def test_the_queue_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_schedstat: Path) -> float:
        raise FileNotFoundError

    monkeypatch.setattr(thread_time, "_queue_of", missing)
    assert Account.now().queued_s is None


def test_steps_beside_a_neighbour_do_not_count_but_dear_steps_do() -> None:
    quiet, beside = [1e-5] * 300, [2e-5] * 900
    assert quiet_mean(beside[:500] + quiet + beside[500:]) == pytest.approx(1e-5)
    assert quiet_mean([1e-5] * 990 + [0.1] * 10) == pytest.approx(1e-3, rel=0.02)
    assert quiet_mean([3.0]) == 3.0


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_the_number_of_environments_does_not_depend_on_the_machine(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)))
    assert [choose_num_envs(step_s, 1.0) for step_s in (1e-6, 1e-4, 1.0)] == [16] * 3
    assert [choose_num_envs(0.01, share) for share in (0.0, 0.1, 0.4)] == [64] * 3
    assert choose_num_envs(50e-6, 0.1) == 16  # over before anybody else is awake


def test_small_differences_of_timing_give_the_same_workers() -> None:
    assert len({choose_workers(64, 0.002, share)[0] for share in (0.04, 0.05, 0.06)}) == 1
    assert len({choose_workers(16, step_s, 1.0)[0] for step_s in (4e-6, 6e-6, 9e-6)}) == 1


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """Twice as many that compute as there are cores."""
    program = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    count = 2 * len(os.sched_getaffinity(0))
    others = [subprocess.Popen([sys.executable, "-S", "-c", program]) for _ in range(count)]
    yield
    for other in others:
        other.kill()
        other.wait()


class Delegates(odd.NeverEnds):
    """Waits for a thread of its own, which computes for half a millisecond."""

    def __init__(self) -> None:
        self.helper = ThreadPoolExecutor(1)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.helper.submit(compute).result()
        return super().step(odd.FINE)

    def close(self) -> None:
        self.helper.shutdown()


def compute() -> None:
    end = time.thread_time() + 0.0005
    while time.thread_time() < end:
        pass


@pytest.mark.usefixtures("busy_machine")
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's account of threads is Linux's")
@pytest.mark.parametrize(("env", "chosen"), [(odd.Busy, 16), (odd.Sleeps, 64), (Delegates, 16)])
def test_the_choice_is_the_same_on_a_busy_machine(env: Any, chosen: int) -> None:
    for seed in range(2):
        with tried(env, "it", seed=seed, measure=True) as (trial, _env):
            assert choose_num_envs(trial.step_s, trial.cpu_share) == chosen


def test_what_others_did_and_what_was_waited_for_is_shared_by_the_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two steps, in 0.8 s of which threads of their own helped for 0.2 s."""
    now = iter([BEGAN, later(wall_s=0.8, cpu_s=0.0, sleeps=2, others_s=0.2)])
    monkeypatch.setattr("phalanx.envs.trial.Account.now", lambda: next(now))
    monkeypatch.setattr("phalanx.envs.trial.TRY_S", 0.0)
    clock = Mock(perf_counter=time.perf_counter, thread_time=lambda: 7.0)
    monkeypatch.setattr("phalanx.envs.trial.time", clock)
    with tried(odd.NeverEnds, "it", seed=0, measure=True) as (trial, _env):
        pass
    assert trial.step_s == pytest.approx(0.4)
    assert trial.cpu_share == pytest.approx(0.25)
