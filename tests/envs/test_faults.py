"""A fault costs one slot, or one worker's block: never the run, and nothing is left behind."""

import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.envs import Fault, Pool, make_pool, workers
from phalanx.envs.starter import Ended, ForkStarter, packed
from phalanx.envs.waiting import Patience
from phalanx.errors import ConfigError, PhalanxError, WorkerError
from tests import odd_envs as odd

N = 4
FINE = [odd.FINE] * N


def begun(env: Any, num_workers: int = 2, **settings: Any) -> Pool:
    pool = make_pool(env, n_envs=N, num_workers=num_workers, **settings)
    pool.reset()
    pool.recv()
    return pool


def act_up_in(which: int) -> list[int]:
    return [odd.ACT_UP if i == which else odd.FINE for i in range(N)]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize(
    ("env", "message"),
    [
        (odd.Raises, "ZeroDivisionError: the reactor is on fire"),
        (odd.WrongShape, r"observation has shape \(1,\); its space says \(3,\)"),
        (odd.WrongType, "observation has dtype float64; its space says uint8"),
        (odd.NotANumber, "reward is nan"),
        (odd.SaysMaybe, "terminated is 'maybe', not True or False"),
        (odd.SaysTwo, "truncated is 2, not True or False"),
        (odd.TellsAList, r"info is \['a'\], not a dict"),
    ],
)
def test_an_environment_that_fails_costs_its_own_slot(
    env: Any, message: str, num_workers: int
) -> None:
    told: list[Fault] = []
    with begun(env, num_workers, on_fault=told.append) as pool:
        pool.send(FINE)
        pool.recv()
        pool.send(act_up_in(1))
        received = pool.recv()
        assert received.lost.tolist() == [False, True, False, False]
        assert received.truncated.tolist() == [False, True, False, False]
        assert received.rewards.tolist() == [2, 0, 2, 2]
        assert np.isnan(received.episode_returns[1])
        pool.send(FINE)
        received = pool.recv()
        assert not received.lost.any()
        assert received.rewards.tolist() == [3, 1, 3, 3]
        assert told == pool.faults
    (fault,) = told
    assert fault.env_id == 1
    assert fault.lost == (1,)
    assert fault.worker == (0 if num_workers else None)
    assert fault.last_action == odd.ACT_UP
    assert "odd_envs.py" in fault.traceback or env is not odd.Raises
    assert fault.memory_mb is not None
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(str(fault))


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (odd.Dies, "worker 0 was killed by SIGKILL"),
        (odd.Segfaults, "worker 0 was killed by SIGSEGV"),
        (odd.Exits, "worker 0 exited with code 7"),
        (odd.Hangs, "worker 0 hung for longer than the step_timeout of 0.3 s"),
        (odd.HangsInCompiledCode, "worker 0 hung for longer"),
    ],
)
def test_a_worker_that_dies_or_hangs_costs_its_block(env: Any, message: str) -> None:
    with begun(env, step_timeout=0.3) as pool:
        pool.send(act_up_in(1))
        began = time.perf_counter()
        received = pool.recv()
        assert time.perf_counter() - began < 30  # it would hang for longer
        assert received.lost.tolist() == [True, True, False, False]
        assert received.truncated.tolist() == [True, True, False, False]
        assert received.rewards.tolist() == [0, 0, 1, 1]
        assert received.obs[:, 1].tolist() == [0, 0, 1, 1]
        (fault,) = pool.faults
        pool.send(FINE)
        received = pool.recv()
        assert not received.lost.any()
        assert received.rewards.tolist() == [1, 1, 2, 2]
    assert fault.what.startswith(message)
    assert "in environment 1" in fault.what
    assert fault.lost == (0, 1)
    assert fault.last_action == odd.ACT_UP
    assert fault.memory_mb is not None
    assert fault.memory_mb > 1
    if env not in (odd.Dies, odd.Exits):  # these leave no time to say anything
        assert "act_up" in fault.traceback


@pytest.mark.parametrize("num_workers", [0, 2])
def test_flags_may_be_numbers_of_numpy(num_workers: int) -> None:
    with begun(odd.SaysOne, num_workers) as pool:
        pool.send(act_up_in(2))
        received = pool.recv()
        assert received.terminated.tolist() == [False, False, True, False]
        assert not received.truncated.any()
        assert not pool.faults


# --- whoever is stopped, every wait ends ----------------------------------------------------------


def test_a_worker_that_is_halted_is_replaced() -> None:
    with begun(odd.Counting, step_timeout=0.3) as pool:
        os.kill(pool.worker_pids[0], signal.SIGSTOP)
        pool.send(FINE)
        assert pool.recv().lost.tolist() == [True, True, False, False]
        assert "hung for longer than the step_timeout" in pool.faults[0].what


@pytest.mark.parametrize("with_a_worker", ["killed", "halted"])
def test_a_halted_starter_of_workers_is_replaced(
    with_a_worker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phalanx.envs.processes.DEAF_S", 0.5)
    with begun(odd.Counting, step_timeout=0.3) as pool:
        runner: Any = pool._runner
        os.kill(runner._starter._process.pid, signal.SIGSTOP)
        stop = signal.SIGKILL if with_a_worker == "killed" else signal.SIGSTOP
        os.kill(pool.worker_pids[0], stop)
        pool.send(FINE)
        assert pool.recv().lost[:2].all()
        assert "the process that starts workers was killed" in pool.faults[-1].what
        pool.send(FINE)
        pool.recv()
        pool.send(FINE)
        assert not pool.recv().lost.any()


def test_a_pool_closes_although_all_its_processes_are_halted() -> None:
    pool = begun(odd.Counting)
    started = descendants(os.getpid())
    for pid in started:
        os.kill(pid, signal.SIGSTOP)
    pool.close()
    assert all_gone(started)


def test_whoever_waits_is_told_that_another_thread_has_closed_the_pool() -> None:
    pool = begun(odd.Hangs)
    started = descendants(os.getpid())
    pool.send(act_up_in(0))
    closer = threading.Timer(0.3, pool.close)
    closer.start()
    with pytest.raises(PhalanxError, match="the pool was closed"):
        pool.recv()
    closer.join()
    assert all_gone(started)
    with pytest.raises(PhalanxError, match="the pool is closed"):
        pool.recv()


def test_whoever_waits_is_woken_when_the_pool_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("processes", "workers"):
        monkeypatch.setattr(f"phalanx.envs.{module}.TICK_S", 30.0)
    pool, began = begun(odd.Hangs), time.monotonic()
    pool.send(act_up_in(0))
    closer = threading.Timer(0.3, pool.close)
    closer.start()
    with pytest.raises(PhalanxError, match="the pool was closed"):
        pool.recv()
    closer.join()
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("num_workers", [0, 2])
def test_whoever_is_told_of_a_fault_may_close_the_pool(num_workers: int) -> None:
    pools: list[Pool] = []
    with begun(odd.Raises, num_workers, on_fault=lambda fault: pools[0].close()) as pool:
        pools.append(pool)
        pool.send(act_up_in(1))
        with pytest.raises(PhalanxError, match="the pool was closed"):
            pool.recv()


def test_faults_are_told_to_those_who_listen_later_too() -> None:
    with begun(odd.Raises) as pool:
        told: list[Fault] = []
        for _ in range(2):
            pool.send(act_up_in(1))
            pool.recv()
            if not told:
                pool.listen(told.append)
        assert told == pool.faults
        assert len(told) == 2


def test_too_few_files_leave_none_open() -> None:
    gc.collect()  # the memory of pools before
    files = set(os.listdir("/proc/self/fd"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [fd for fd in range(1000) if str(fd) not in files]
    for more in (1, 3, 5, 9, 12, 30, 60):
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[more], hard))
        try:
            with pytest.raises((OSError, WorkerError)):
                make_pool(odd.Counting, n_envs=40, num_workers=40)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert set(os.listdir("/proc/self/fd")) == files, more


def test_a_process_that_cannot_have_its_files_leaves_none_open() -> None:
    starter = ForkStarter(packed(odd.Counting), 1, 60.0)
    files, limits = set(os.listdir("/proc/self/fd")), resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [fd for fd in range(1000) if str(fd) not in files]
    task = partial(leave, 3)
    try:
        for more in range(4):  # two ends of a channel, its last words, its task
            resource.setrlimit(resource.RLIMIT_NOFILE, (free[more], limits[1]))
            try:
                with pytest.raises(OSError, match="Too many open files"):
                    starter.start(0, task)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert set(os.listdir("/proc/self/fd")) == files, more
        process = starter.start(0, task)
        assert process is not None
        process.close()
        ended: list[Ended] = []
        while not ended:
            ended += starter.hear()
        assert (ended[0].worker, ended[0].pid, ended[0].code) == (0, process.pid, 3)
    finally:
        starter.close()


def leave(code: int, **_given: Any) -> int:
    return code


def test_each_loss_is_told_once_also_when_nothing_was_under_way() -> None:
    with begun(odd.Counting) as pool:
        os.kill(pool.worker_pids[1], signal.SIGKILL)
        while not pool.faults:
            pool.send(FINE[:2], [0, 1])
            pool.recv()
        pool.send(FINE, range(N))
        received = pool.recv()
        assert received.lost.tolist() == [False, False, True, True]
        pool.send(FINE)
        assert not pool.recv().lost.any()
        assert "when idle" in pool.faults[0].what


def test_fresh_dice_after_a_loss() -> None:
    with begun(odd.Dies) as pool:
        pool.reset()
        first = pool.recv().obs[0, 0]
        for _ in range(2):
            pool.send(act_up_in(0))
            again = pool.recv().obs[0, 0]
            assert again != first
            first = again


def test_rows_that_were_finished_before_a_death_are_kept() -> None:
    with make_pool(odd.Dies, n_envs=4, num_workers=1, wait_for=1) as pool:
        pool.reset()
        for _ in range(4):
            pool.recv()
        pool.send([odd.FINE, odd.FINE, odd.ACT_UP, odd.FINE], [0, 1, 2, 3])
        rows = [pool.recv() for _ in range(4)]
        lost = {int(row.env_ids[0]): bool(row.lost[0]) for row in rows}
        assert lost == {0: False, 1: False, 2: True, 3: True}
        pool.send([odd.FINE] * 4, [0, 1, 2, 3])
        rows = [pool.recv() for _ in range(4)]
        lost = {int(row.env_ids[0]): bool(row.lost[0]) for row in rows}
        assert lost == {0: True, 1: True, 2: False, 3: False}


def test_a_slow_environment_is_not_taken_to_hang() -> None:
    """The block takes longer than the deadline of a step, and the caller is away even longer."""
    with begun(odd.Sleeps, 1, step_timeout=0.45) as pool:
        pool.send([odd.ACT_UP] * N)
        assert pool.recv().rewards.tolist() == [1] * N
        pool.send([odd.ACT_UP] * N)
        time.sleep(1.0)
        assert not pool.recv().lost.any()
        assert not pool.faults


@pytest.mark.parametrize("num_workers", [0, 2])
def test_too_many_faults_are_an_error_with_the_last_report(num_workers: int) -> None:
    with begun(odd.Raises, num_workers, max_restarts=2) as pool:
        for _ in range(2):
            pool.send(act_up_in(3))
            pool.recv()
        pool.send(act_up_in(3))
        with pytest.raises(WorkerError, match="on fire") as failed:
            pool.recv()
        assert isinstance(failed.value.fault, Fault)
        assert "act_up" in str(failed.value)


@pytest.mark.parametrize("num_workers", [2, 0])  # in this order: it remembers, where it failed
def test_an_environment_that_can_never_begin_again_is_an_error(num_workers: int) -> None:
    with begun(odd.CannotBeginAgain, num_workers, max_restarts=3) as pool:
        pool.send(act_up_in(0))
        with pytest.raises(WorkerError, match="no second life"):
            pool.recv()


def test_a_death_in_reset_is_noticed() -> None:
    with begun(odd.DiesInReset, 4, max_restarts=4) as pool:
        for _ in range(4):
            pool.send(FINE)
            pool.recv()
        pool.send(FINE)
        received = pool.recv()
        assert received.lost.all()
        assert len(pool.faults) == 4
        assert "SIGTERM" in pool.faults[0].what


def test_what_cannot_be_built_in_a_worker_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    home = os.getpid()

    def only_here() -> odd.Counting:
        if os.getpid() != home:
            raise PermissionError("no display")
        return odd.Counting()

    with pytest.raises(ConfigError, match="PermissionError: no display"):
        make_pool(only_here, n_envs=4, num_workers=2)


def test_the_pool_survives_the_death_of_all_its_processes() -> None:
    with begun(odd.Counting) as pool:
        for pid in descendants(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        pool.send(FINE)
        assert pool.recv().lost.all()
        pool.send(FINE)
        assert pool.recv().rewards.tolist() == [1] * N
        assert len(pool.faults) >= 1


def test_workers_killed_again_and_again_lose_nothing_else() -> None:
    with begun(odd.NeverEnds, max_restarts=100, wait_for=2) as pool:
        pool.recv()
        steps = dict.fromkeys(range(N), 0.0)
        kills = 0
        pool.send([odd.FINE] * N, range(N))
        ended_at = time.monotonic() + 2.0
        while time.monotonic() < ended_at:
            received = pool.recv()
            for i, reward, lost in zip(
                received.env_ids.tolist(), received.rewards.tolist(), received.lost, strict=True
            ):
                steps[i] = 0.0 if lost else steps[i] + 1
                assert reward == steps[i]  # none was counted twice, and none is missing
            pool.send([odd.FINE] * len(received.env_ids))
            if len(pool.faults) == kills and len(pool.worker_pids) == 2:
                os.kill(pool.worker_pids[kills % 2], signal.SIGKILL)
                kills += 1
        assert kills >= 3
        assert len(pool.faults) >= kills - 1


# --- nothing is left behind -----------------------------------------------------------------------


def descendants(pid: int) -> list[int]:
    """All processes that a process has started, and those that they have."""
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_gone(pids: list[int], within_s: float = 3.0) -> bool:
    deadline = time.monotonic() + within_s
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_closing_leaves_no_process_no_file_and_no_block() -> None:
    blocks = set(os.listdir("/dev/shm"))
    gc.collect()
    files = len(os.listdir("/proc/self/fd"))
    pool = begun(odd.Counting)
    started = descendants(os.getpid())
    assert len(started) >= 3
    assert set(os.listdir("/dev/shm")) <= blocks
    pool.close()
    pool.close()
    assert all_gone(started, 0.0)
    assert len(os.listdir("/proc/self/fd")) == files


def test_a_process_that_begins_after_its_caller_is_gone_ends_at_once() -> None:
    reading, writing = os.pipe()
    program = f"from phalanx.system import die_with; die_with({reading})"
    os.close(writing)
    late = subprocess.run(
        [sys.executable, "-c", program],
        pass_fds=[reading],
        start_new_session=True,
        timeout=600,
        check=False,
    )
    os.close(reading)
    assert late.returncode == -signal.SIGKILL


@pytest.mark.parametrize("is_stepped", [False, True])
def test_a_worker_that_dies_in_a_call_is_an_error_and_is_replaced(is_stepped: bool) -> None:
    with begun(odd.Dies, step_timeout=5) as pool:
        pool.call("see")
        with pytest.raises(WorkerError, match="worker 0 died in a call of environment 1"):
            pool.call("act_up", env_ids=[1])
        if is_stepped:
            pool.send(FINE)
            assert pool.recv().lost.tolist() == [True, True, False, False]
        assert pool.call("length", env_ids=[1]) == [5]
        assert len(pool.faults) == 1


def test_a_forgotten_pool_closes_itself() -> None:
    pool = begun(odd.Counting)
    started = pool.worker_pids
    del pool
    assert all_gone(started)


def test_closing_does_not_wait_for_an_environment_that_hangs() -> None:
    pool = begun(odd.Hangs)
    pool.send(act_up_in(0))
    time.sleep(0.05)
    started = descendants(os.getpid())
    began = time.perf_counter()
    pool.close()
    assert time.perf_counter() - began < 30
    assert all_gone(started)


SCRIPT = """
import os, signal, sys, time
from phalanx.envs import make_pool
from tests import odd_envs as odd
pool = make_pool(odd.HangsInCompiledCode, n_envs=2, num_workers=2)
pool.reset(); pool.recv()
pool.send([odd.ACT_UP, odd.FINE])
print(*pool.worker_pids, flush=True)
{then}
"""


ENDINGS = [
    ("pass", None),
    ("raise ValueError", None),
    ("os._exit(3)", None),
    ("pool.recv()", signal.SIGINT),
    ("pool.recv()", signal.SIGTERM),
    ("pool.recv()", signal.SIGKILL),
]


def test_however_the_caller_ends_its_workers_end_too() -> None:
    callers = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT.format(then=then)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parent.parent.parent,
            text=True,
        )
        for then, _kill in ENDINGS
    ]
    workers = []
    for caller in callers:
        assert caller.stdout is not None
        with caller.stdout:
            workers.append([int(pid) for pid in caller.stdout.readline().split()])
    assert [len(pids) for pids in workers] == [2] * len(ENDINGS)
    time.sleep(1.0)  # until all of them are in what is to be ended
    for caller, (_then, kill) in zip(callers, ENDINGS, strict=True):
        if kill is not None:
            caller.send_signal(kill)
    for caller, pids, ending in zip(callers, workers, ENDINGS, strict=True):
        caller.wait(60)
        assert all_gone(pids, 1.0), ending


class FailsInAReset(odd.Counting):
    """If the reset has options."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if options:
            raise KeyError("no such scenario")
        return super().reset(seed=seed)


def test_an_environment_that_fails_in_reset_was_given_no_action() -> None:
    with begun(FailsInAReset, num_workers=0) as pool:
        pool.send(act_up_in(1))
        pool.recv()
        pool.reset(env_ids=[1], options={"scenario": 3})
        assert pool.recv().lost.tolist() == [True]
        (fault,) = pool.faults
    assert "KeyError" in fault.what
    assert fault.last_action is None


def test_a_worker_that_cannot_begin_ends_the_start_at_once() -> None:
    told: list[Fault] = []
    with pytest.raises(ConfigError, match=r"worker 1 could not build environment 1: .*no map"):
        make_pool([odd.Counting, odd.CannotBeBuilt], n_envs=2, num_workers=2, on_fault=told.append)
    assert told == []


def test_patience_goes_by_the_workers_of_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    crowds: list[float] = []

    class Noted(Patience):
        def __init__(self, processes_per_core: float) -> None:
            crowds.append(processes_per_core)
            super().__init__(processes_per_core)

    monkeypatch.setattr(workers, "Patience", Noted)
    monkeypatch.setattr(workers, "count_cores", lambda: 8)
    make_pool(odd.Counting, n_envs=2, num_workers=2).close()
    assert crowds == [0.25]
