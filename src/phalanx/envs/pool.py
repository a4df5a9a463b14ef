"""Many environments behind two calls: `send` actions, `recv` whatever is ready.

    with make_pool("CartPole-v1", n_envs=32, wait_for=8) as pool:
        pool.reset()
        while training:
            arrived = pool.recv()                         # the first 8 rows that are ready
            pool.send(policy(arrived.obs), arrived.env_ids, version)

`wait_for="all"` is synchronous stepping. With less, a slow environment is absent from this batch
and present in a later one; rows are handed out in the order in which they became ready, so no ready
row waits for more than n_envs / wait_for batches.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from phalanx.envs.arrived import Arrived, Quiet, gather, quiet
from phalanx.envs.auto import choose_num_envs, choose_workers
from phalanx.envs.faults import Fault, FaultLog
from phalanx.envs.first_try import try_first
from phalanx.envs.nurse import Nurse
from phalanx.envs.serial import Serial
from phalanx.envs.settings import Count, checked_settings
from phalanx.envs.shared_memory import (
    BEGIN,
    SEED,
    Board,
    Ints,
    Shape,
)
from phalanx.envs.staff import CLOSE_S, TICK_S
from phalanx.envs.trial import EnvSpec, Trial, factory_of
from phalanx.envs.workers import Workers, open_workers
from phalanx.errors import ConfigError, PhalanxError

EnvIds = npt.ArrayLike | Sequence[int]


def make_pool(
    env: EnvSpec,
    *,
    n_envs: Count | None = None,
    num_envs: Count | None = None,
    num_workers: int | Literal["auto", "serial"] = "auto",
    wait_for: int | Literal["all"] = "all",
    seed: int = 0,
    infos: bool = True,
    step_timeout: float = 60.0,
    start_timeout: float = 120.0,
    max_restarts: int = 20,
    on_fault: Callable[[Fault], None] | None = None,
) -> "Pool":
    """Build `n_envs` copies of an environment, in this process or in workers.

    env: a Gymnasium id, "module:factory", or a function without arguments that builds one.
    n_envs: how many; "auto" tries the environment first: 64 of those that wait, else 16 or more.
        (`num_envs` is another name for it.)
    num_workers: processes, each with a block of the environments; 0 or "serial" for none;
        "auto" tries the environment first, and says why in `pool.reason`.
    wait_for: how many rows `recv` waits for.
    seed: environment i throws dice of (seed, i), wherever it runs.
    infos: False drops what environments tell besides; masks come all the same.
    step_timeout: seconds after which a step or reset is taken to hang. Counted while `recv` waits.
    start_timeout: seconds in which a worker must have built its environments.
    max_restarts: failures, of environments and workers together, after which `recv` raises.
    on_fault: called with each `Fault`; they are also kept in `pool.faults`.

    One environment is tried first, in a process of its own: one that hangs or crashes is refused.
    Only with num_workers=0 it is tried in this process, where all of them are to be.
    """
    count, asked_for, wait_for, seed = checked_settings(
        n_envs=n_envs, num_envs=num_envs, num_workers=num_workers, wait_for=wait_for, seed=seed,
        infos=infos, step_timeout=step_timeout, start_timeout=start_timeout,
        max_restarts=max_restarts, on_fault=on_fault,
    )  # fmt: skip
    factory, name = factory_of(env)
    trial, nurse, why_here = try_first(
        factory,
        name,
        seed=seed,
        n_envs=count,
        num_workers=asked_for,
        step_timeout=step_timeout,
        start_timeout=start_timeout,
    )
    if count == "auto":
        count = choose_num_envs(trial.step_s, trial.cpu_share)
        wait_for = wait_for if wait_for == "all" else min(wait_for, count)
    if why_here:
        workers, reason = 0, f"serial: {why_here}"
    elif asked_for == "auto":
        workers, reason = choose_workers(count, trial.step_s, trial.cpu_share)
    else:
        workers = min(asked_for, count)
        reason = f"{workers} workers: as asked for"
    pool = Pool(trial, count, count if wait_for == "all" else wait_for, seed=seed)
    pool.reason, pool._log = reason, FaultLog(max_restarts, on_fault)
    if workers == 0:
        if nurse is not None:
            nurse.close()
        pool._use_this_process(factory, infos)
    else:
        assert nurse is not None
        pool._use_workers(nurse, workers, infos, step_timeout, start_timeout)
    return pool


class Pool:
    """Environments that are stepped together; see `make_pool`."""

    reason = ""
    """why there are as many workers as there are"""

    def __init__(
        self,
        trial: Trial,
        n_envs: int,
        wait_for: int,
        *,
        seed: int,
    ) -> None:
        self.n_envs, self.wait_for, self.seed = n_envs, wait_for, seed
        self.single_observation_space = trial.observations.space
        self.single_action_space = trial.actions.space
        self.metadata = trial.metadata
        self._log = FaultLog(0, None)
        self._trial = trial
        self._runner: Serial | Workers | None = None
        self._out = np.zeros(n_envs, np.bool_)  # asked for, and not yet received
        self._num_out = 0
        self._versions: Ints = np.zeros(n_envs, np.int64)
        self._last_ids: Ints | None = None  # as received, while nothing was sent for them
        self._seeded = False
        self._board: Board
        self._at_work, self._closing = threading.RLock(), threading.RLock()
        self._failure: Exception | None = None  # noticed while nobody waited

    def _use_this_process(self, factory: Callable[[], Any], infos: bool) -> None:
        shape = Shape(self.n_envs, 0, self._trial.num_masked)
        self._board = Board(shape, self._trial.observations, self._trial.actions)
        self._runner = Serial(factory, self._board, infos=infos, on_fault=self._log)

    def _use_workers(
        self,
        nurse: Nurse,
        num_workers: int,
        infos: bool,
        step_timeout: float,
        start_timeout: float,
    ) -> None:
        self._board, self._runner = open_workers(
            self._trial,
            nurse,
            Shape(self.n_envs, num_workers, self._trial.num_masked),
            seed=self.seed,
            infos=infos,
            each_row=self.wait_for < self.n_envs,
            step_timeout_s=step_timeout,
            start_timeout_s=start_timeout,
            on_fault=self._log,
        )

    # --- the calls --------------------------------------------------------------------------------

    def reset(
        self,
        seed: int | Sequence[int] | None = None,
        env_ids: EnvIds | None = None,
    ) -> None:
        """Begin an episode everywhere, or in `env_ids`; its first rows arrive through `recv`.

        The first reset uses the pool's seed. A later one without a seed lets each environment's
        dice run on. A list has a seed for each environment that is reset.
        """
        with self._at_work:
            runner = self._open()
            ids = self._checked_ids(env_ids, "reset")
            if seed is None and not self._seeded:
                seed = self.seed
            if seed is not None:
                self._board.seeds[ids] = self._seeds(seed, ids)
                self._seeded = True
            self._board.orders[ids] = BEGIN if seed is None else SEED
            self._ask(runner, ~ids, ids)

    def send(self, actions: Any, env_ids: EnvIds | None = None, version: int = 0) -> None:
        """Let environments take a step. Nothing is stepped unless all actions are legal.

        Without `env_ids`, the actions are for the rows of the last `recv`, in their order.
        """
        with self._at_work:
            runner = self._open()
            last_ids = self._last_ids
            if last_ids is not None and (env_ids is None or env_ids is last_ids):
                ids = last_ids
            else:
                ids = self._checked_ids(env_ids, "send")
            everybody = ids is runner.everybody
            which = slice(None) if everybody else ids
            self._trial.actions.put(self._board.actions, which, actions, ids)
            self._ask(runner, ids, ids)
            self._versions[which] = version

    def recv(self) -> Arrived:
        """Wait for the first `wait_for` rows, or for all that were asked for if that is fewer."""
        with self._at_work:
            runner = self._open()
            need = self._need()
            prepared = quiet(self._board, need)
            ids = runner.collect(need)
            return self._arrived(runner, ids, prepared)

    async def recv_async(self) -> Arrived:
        """`recv` for asyncio: other tasks run meanwhile."""
        if isinstance(self._open(), Serial):
            await asyncio.sleep(0)
            return self.recv()
        loop, happened = asyncio.get_running_loop(), asyncio.Event()
        while (fd := self._look()) is not None:
            happened.clear()
            loop.add_reader(fd, happened.set)
            try:
                await asyncio.wait_for(happened.wait(), TICK_S)
            except TimeoutError:
                pass
            finally:
                loop.remove_reader(fd)
        return self.recv()

    def _look(self) -> int | None:
        """What becomes readable when something has happened; None if there are enough rows."""
        with self._at_work:
            runner = self._open()
            assert isinstance(runner, Workers)
            need = self._need()
            if runner.enough(need):
                return None
            runner.attend()
            runner.enough(need)
            runner.arm()
            return None if runner.enough(need) else runner.fileno()

    def call(
        self, name: str, *args: Any, env_ids: Sequence[int] | None = None, **kwargs: Any
    ) -> list[Any]:
        """An attribute, or what a method returns, of each environment; "x=" sets attribute x.

        For what happens seldom: it is sent as a message. Only between `recv` and `send`.
        """
        with self._at_work:
            runner = self._open()
            if self._num_out:
                raise PhalanxError(
                    f"call({name!r}): {self._num_out} rows are under way, recv first"
                )
            ids = range(self.n_envs) if env_ids is None else env_ids
            return [runner.call(i, name, args, kwargs) for i in ids]

    @property
    def num_workers(self) -> int:
        """Worker processes; 0 if the environments are in this one."""
        return self._open().num_workers

    @property
    def faults(self) -> list[Fault]:
        """All failures so far."""
        return self._log.faults

    @property
    def worker_pids(self) -> list[int]:
        return list(self._open().pids)

    def listen(self, hook: Callable[[Fault], None]) -> None:
        """Call `hook` with each failure so far, and with each that comes, as soon as it is seen."""
        self._log.listen(hook)

    def attend(self) -> None:
        """See to workers that died or hang, without waiting; `recv` does so while it waits.

        For who does not call `recv` for long: another thread may call this meanwhile.
        """
        if not self._at_work.acquire(blocking=False):
            return
        try:
            if isinstance(self._runner, Workers) and self._failure is None:
                self._runner.attend()
        except Exception as error:
            self._failure = error  # whoever uses the pool next is told
        finally:
            self._at_work.release()

    def close(self) -> None:
        """End all workers and close all environments. A second call does nothing.

        Another thread may do so: whoever waits in `recv` then gets an error that says so.
        """
        with self._closing:
            runner, self._runner = self._runner, None
            if runner is None:
                return
            runner.leave()
            is_ours = self._at_work.acquire(timeout=CLOSE_S)
            try:
                if is_ours or isinstance(runner, Workers):  # else one of them is being stepped
                    runner.close()
                    del self._board  # the memory is given back
            finally:
                if is_ours:
                    self._at_work.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_runner", None) is not None:
            self.close()

    # --- inside -----------------------------------------------------------------------------------

    def _open(self) -> Serial | Workers:
        runner = self._runner
        if runner is None:
            raise PhalanxError("the pool is closed")
        if self._failure is not None:
            raise self._failure
        return runner

    def _need(self) -> int:
        if self._num_out == 0:
            raise PhalanxError("recv: nothing is under way; reset or send first")
        return min(self.wait_for, self._num_out)

    def _checked_ids(self, env_ids: EnvIds | None, doing: str) -> Ints:
        """The environments meant, none of which may be under way."""
        everybody = self._open().everybody
        if env_ids is None or env_ids is everybody:
            if self._num_out == 0:
                return everybody
            env_ids = everybody
        ids = np.asarray(env_ids)
        if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size):
            raise ConfigError(f"{doing}: env_ids must be a list of whole numbers, not {env_ids!r}")
        if ids.size and not (ids.min() >= 0 and ids.max() < self.n_envs):
            raise ConfigError(f"{doing}: env_ids {ids} are not all from 0 to {self.n_envs - 1}")
        if len(ids) == self.n_envs and np.array_equal(ids, everybody) and not self._num_out:
            return everybody
        busy = self._out[ids]
        if busy.any():
            raise PhalanxError(
                f"{doing}: environment {ids[busy][0]} is under way already; recv its row first"
            )
        if len(set(ids.tolist())) != len(ids):
            raise ConfigError(f"{doing}: env_ids {ids} name an environment twice")
        return ids.astype(np.int64)

    def _ask(self, runner: Serial | Workers, requests: Ints, ids: Ints) -> None:
        runner.submit(requests, ids)
        self._last_ids = None
        if ids is runner.everybody:
            self._out.fill(True)
            self._num_out = self.n_envs
        else:
            self._out[ids] = True
            self._num_out += len(ids)

    def _seeds(self, seed: int | Sequence[int], ids: Ints) -> list[int]:
        if isinstance(seed, int | np.integer):
            return [seed_of(int(seed), i) for i in ids.tolist()]
        if len(seed) != len(ids):
            raise ConfigError(f"reset: {len(seed)} seeds for {len(ids)} environments")
        return [int(one) for one in seed]

    def _arrived(self, runner: Serial | Workers, ids: Ints, prepared: Quiet) -> Arrived:
        everybody = ids is runner.everybody
        which: slice | Ints
        if everybody:
            which = slice(None)
            self._out.fill(False)
            self._num_out = 0
        else:
            if self.wait_for == self.n_envs:
                ids.sort()
            ids.flags.writeable = False
            which = ids
            self._out[ids] = False
            self._num_out -= len(ids)
        self._last_ids = ids
        versions = self._versions.copy() if everybody else self._versions[ids]
        return gather(self._board, runner, ids, which, versions, prepared)


def seed_of(seed: int, i: int) -> int:
    """The seed of environment i: it depends on nothing but these two numbers."""
    return int(np.random.SeedSequence([seed, i]).generate_state(1)[0])
