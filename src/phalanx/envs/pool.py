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
import os
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal, Self

import cloudpickle
import numpy as np
import numpy.typing as npt

from phalanx.envs.arrived import Arrived, Quiet, gather, quiet
from phalanx.envs.auto import choose_num_envs, choose_workers, num_cores
from phalanx.envs.faults import Fault, FaultLog
from phalanx.envs.serial import Serial
from phalanx.envs.shared_memory import (
    BEGIN,
    SEED,
    Board,
    Ints,
    Shape,
)
from phalanx.envs.staff import TICK_S
from phalanx.envs.trial import EnvSpec, Trial, factory_of, try_out
from phalanx.envs.waiting import Bell
from phalanx.envs.worker import Setup
from phalanx.envs.workers import Workers
from phalanx.errors import ConfigError, PhalanxError

EnvIds = npt.ArrayLike | Sequence[int]


def make_pool(
    env: EnvSpec,
    *,
    n_envs: int | Literal["auto"],
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
    num_workers: processes, each with a block of the environments; 0 or "serial" for none;
        "auto" tries the environment first, and says why in `pool.reason`.
    wait_for: how many rows `recv` waits for.
    seed: environment i throws dice of (seed, i), wherever it runs.
    infos: False drops what environments tell besides; masks come all the same.
    step_timeout: seconds after which a step or reset is taken to hang. Counted while `recv` waits.
    start_timeout: seconds in which a worker must have built its environments.
    max_restarts: failures, of environments and workers together, after which `recv` raises.
    on_fault: called with each `Fault`; they are also kept in `pool.faults`.
    """
    at_least = 1 if n_envs == "auto" else n_envs
    few = wait_for if n_envs != "auto" else "all"  # it is cut to fit below
    _check_settings(at_least, num_workers, few, seed, step_timeout, max_restarts)
    factory, name = factory_of(env)
    measure = "auto" in (num_workers, n_envs)
    trial = try_out(factory, name, seed=seed, measure=measure)
    if n_envs == "auto":
        n_envs = choose_num_envs(trial.step_s, trial.cpu_share)
        wait_for = wait_for if wait_for == "all" else min(wait_for, n_envs)
    if num_workers == "auto":
        workers, reason = choose_workers(n_envs, trial.step_s, trial.cpu_share)
    elif num_workers in (0, "serial"):
        workers, reason = 0, "serial: as asked for"
    else:
        workers = min(int(num_workers), n_envs)
        reason = f"{workers} workers: as asked for"
    if workers and sys.platform != "linux":
        if num_workers != "auto":
            raise ConfigError(f"worker processes need Linux, this is {sys.platform}: num_workers=0")
        workers, reason = 0, f"serial: workers need Linux, this is {sys.platform}"
    pool = Pool(
        trial,
        n_envs,
        n_envs if wait_for == "all" else int(wait_for),
        seed=seed,
        max_restarts=max_restarts,
        on_fault=on_fault,
    )
    pool.reason = reason
    try:
        if workers == 0:
            pool._use_this_process(factory, infos)
        else:
            pool._use_workers(factory, workers, infos, step_timeout, start_timeout)
    except BaseException:
        pool.close()
        raise
    return pool


def _check_settings(
    n_envs: int,
    num_workers: int | str,
    wait_for: int | str,
    seed: int,
    step_timeout: float,
    max_restarts: int,
) -> None:
    if n_envs < 1:
        raise ConfigError(f"n_envs = {n_envs}: at least 1 is needed")
    if isinstance(num_workers, str) and num_workers not in ("auto", "serial"):
        raise ConfigError(f"num_workers = {num_workers!r}: a number, 'auto' or 'serial'")
    if isinstance(num_workers, int) and num_workers < 0:
        raise ConfigError(f"num_workers = {num_workers}: 0 is for none")
    if wait_for != "all" and (isinstance(wait_for, str) or not 1 <= wait_for <= n_envs):
        raise ConfigError(f"wait_for = {wait_for!r}: 'all', or 1 to n_envs = {n_envs}")
    if seed < 0:
        raise ConfigError(f"seed = {seed}: seeds are not negative")
    if step_timeout <= 0:
        raise ConfigError(f"step_timeout = {step_timeout}: seconds, more than 0")
    if max_restarts < 0:
        raise ConfigError(f"max_restarts = {max_restarts}: 0 is for none")


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
        max_restarts: int,
        on_fault: Callable[[Fault], None] | None,
    ) -> None:
        self.n_envs, self.wait_for, self.seed = n_envs, wait_for, seed
        self.single_observation_space = trial.observations.space
        self.single_action_space = trial.actions.space
        self.metadata = trial.metadata
        self._log = FaultLog(max_restarts, on_fault)
        self._trial = trial
        self._runner: Serial | Workers | None = None
        self._out = np.zeros(n_envs, np.bool_)  # asked for, and not yet received
        self._num_out = 0
        self._versions: Ints = np.zeros(n_envs, np.int64)
        self._last_ids: Ints | None = None  # as received, while nothing was sent for them
        self._seeded = False
        self._board: Board

    def _use_this_process(self, factory: Callable[[], Any], infos: bool) -> None:
        shape = Shape(self.n_envs, 0, self._trial.num_masked)
        self._board = Board(shape, self._trial.observations, self._trial.actions)
        self._runner = Serial(factory, self._board, infos=infos, on_fault=self._log)

    def _use_workers(
        self,
        factory: Callable[[], Any],
        num_workers: int,
        infos: bool,
        step_timeout: float,
        start_timeout: float,
    ) -> None:
        try:
            packed = cloudpickle.dumps(factory)
        except Exception as error:
            raise ConfigError(f"the environment's factory cannot go to a worker: {error}") from None
        shape = Shape(self.n_envs, num_workers, self._trial.num_masked)
        memory_fd = os.memfd_create("phalanx-pool")
        bells = [Bell.new() for _ in range(num_workers + 1)]
        self._board = Board(shape, self._trial.observations, self._trial.actions, memory_fd)
        setup = Setup(
            factory=packed,
            path=sys.path,
            observation_space=self.single_observation_space,
            action_space=self.single_action_space,
            shape=shape,
            seed=self.seed,
            infos=infos,
            each_row=self.wait_for < self.n_envs,
            memory_fd=memory_fd,
            bell_fds=[bell.fd for bell in bells],
        )
        self._runner = Workers(
            setup,
            self._board,
            bells,
            threads=max(1, num_cores() // num_workers),
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
        runner = self._open()
        need = self._need()
        prepared = quiet(self._board, need)
        ids = runner.collect(need)
        return self._arrived(runner, ids, prepared)

    async def recv_async(self) -> Arrived:
        """`recv` for asyncio: other tasks run meanwhile."""
        runner = self._open()
        need = self._need()
        if isinstance(runner, Serial):
            await asyncio.sleep(0)
            return self.recv()
        loop = asyncio.get_running_loop()
        happened = asyncio.Event()
        while not runner.enough(need):
            runner.arm()
            if runner.enough(need):
                break
            happened.clear()
            loop.add_reader(runner.fileno(), happened.set)
            try:
                await asyncio.wait_for(happened.wait(), TICK_S)
            except TimeoutError:
                pass
            finally:
                loop.remove_reader(runner.fileno())
            runner.attend()
        return self.recv()

    def call(
        self, name: str, *args: Any, env_ids: Sequence[int] | None = None, **kwargs: Any
    ) -> list[Any]:
        """An attribute, or what a method returns, of each environment; "x=" sets attribute x.

        For what happens seldom: it is sent as a message. Only between `recv` and `send`.
        """
        runner = self._open()
        if self._num_out:
            raise PhalanxError(f"call({name!r}): {self._num_out} rows are under way, recv first")
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

    def close(self) -> None:
        """End all workers and close all environments. A second call does nothing."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()
            del self._board  # the memory is given back

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
        if self._runner is None:
            raise PhalanxError("the pool is closed")
        return self._runner

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
