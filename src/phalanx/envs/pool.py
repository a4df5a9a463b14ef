"""Many environments behind two calls: `send` actions, `recv` whatever is ready.

    with make_pool("CartPole-v1", n_envs=32, wait_for=8) as pool:
        pool.reset()
        while training:
            received = pool.recv()                         # the first 8 rows that are ready
            pool.send(policy(received.obs), received.env_ids, version)

`wait_for="all"` is synchronous stepping. With less, a slow environment is absent from this batch
and present in a later one; rows are handed out in the order in which they became ready, so no ready
row waits for more than n_envs / wait_for batches.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt

from phalanx.envs.factories import AnyEnv
from phalanx.envs.faults import Fault, FaultLog, PoolClosed
from phalanx.envs.layout import AnySpace, Rows, Value
from phalanx.envs.processes import CLOSE_S, TICK_S
from phalanx.envs.received import Quiet, Received, gather, quiet
from phalanx.envs.serial import Serial
from phalanx.envs.shared_memory import BEGIN, SEED, WITH_OPTIONS, Ints, Options, PoolSetup, seed_of
from phalanx.envs.workers import Workers
from phalanx.errors import ConfigError, PhalanxError

ObservationMode = Literal["same", "different"] | tuple[AnySpace, AnySpace]
EnvIds = npt.ArrayLike | Sequence[int]
T = TypeVar("T")


class Pool:
    """Environments that are stepped together; see `make_pool`."""

    def __init__(
        self,
        setup: PoolSetup,
        runner: Serial | Workers,
        log: FaultLog,
        observation_mode: ObservationMode,
        reason: str,
    ) -> None:
        self.n_envs, self.wait_for, self.seed = setup.n_envs, setup.wait_for, setup.seed
        self.reason = reason
        """why there are as many workers as there are"""
        self.autoreset_mode, self.observation_mode = setup.autoreset, observation_mode
        traits = self._traits = setup.traits
        self.render_mode, self.mask_dtype = traits.render_mode, traits.mask_dtype
        self.single_observation_space = traits.observations.space
        self.single_action_space = traits.actions.space
        self.metadata = traits.metadata
        self._board, self._log = runner.board, log
        self.everybody = runner.board.everybody
        """the numbers of all environments, to be given to `send`"""
        # Those of the first reset, and of environments that have to begin again.
        self._board.seeds[:] = [seed_of(self.seed, i) for i in range(self.n_envs)]
        self._runner: Serial | Workers | None = runner
        self._out = np.zeros(self.n_envs, np.bool_)  # asked for, and not yet received
        self._num_out = 0
        self._versions: Ints = np.zeros(self.n_envs, np.int64)
        self._last_ids: Ints | None = None  # as received, while nothing was sent for them
        self._seeded = False
        self._at_work, self._closing = threading.RLock(), threading.RLock()
        self._failure: Exception | None = None  # noticed while nobody waited

    # --- the calls --------------------------------------------------------------------------------

    def reset(
        self,
        seed: int | Sequence[int | None] | None = None,
        env_ids: EnvIds | None = None,
        options: Options | Sequence[Options | None] | None = None,
    ) -> None:
        """Begin an episode everywhere, or in `env_ids`; its first rows arrive through `recv`.

        The first reset uses the pool's seed. A later one without a seed lets each environment's
        dice run on. A list has a seed, or None, for each environment that is reset; so has a list
        of options.
        """
        with self._at_work:
            runner = self.check_open()
            ids = self._checked_ids(env_ids, "reset")
            if seed is None and not self._seeded:
                seed = self.seed
            orders = np.full(len(ids), BEGIN, np.int8)
            if seed is not None:
                seeds = self._seeds(seed, ids)
                seeded = np.array([one is not None for one in seeds], np.bool_)
                self._board.seeds[ids[seeded]] = [one for one in seeds if one is not None]
                self._seeded, orders[seeded] = True, SEED
            if options:
                each = options if isinstance(options, list | tuple) else [options] * len(ids)
                if len(each) != len(ids):
                    raise ConfigError(f"reset: {len(each)} options for {len(ids)} environments")
                orders[[bool(one) for one in each]] |= WITH_OPTIONS
                for i, one in zip(ids.tolist(), each, strict=True):
                    if one:
                        runner.begin_with(one, i)
            self._board.orders[ids] = orders
            self._ask(runner, ~ids, ids)

    def send(self, actions: object, env_ids: EnvIds | None = None, version: int = 0) -> None:
        """Let environments take a step. Nothing is stepped unless all actions are legal.

        Without `env_ids`, the actions are for the rows of the last `recv`, in their order.
        """
        with self._at_work:
            runner = self.check_open()
            last_ids = self._last_ids
            if last_ids is not None and (env_ids is None or env_ids is last_ids):
                ids = last_ids
            else:
                ids = self._checked_ids(env_ids, "send")
            everybody = ids is self.everybody
            which = slice(None) if everybody else ids
            self._traits.actions.put(self._board.actions, which, actions, ids)
            self._ask(runner, ids, ids)
            self._versions[which] = version

    def recv(
        self, timeout: float | None = None, then: Callable[[], None] | None = None
    ) -> Received:
        """Wait for the first `wait_for` rows, or for all that were asked for if that is fewer.

        timeout: seconds after which TimeoutError is raised; the rows can still be received later.
        Without workers it has no effect: the environments are stepped in this call.
        then: is called when the rows are there, before they are copied.
        """
        with self._at_work:
            runner = self.check_open()
            need = self._need()
            prepared = quiet(self._board, need)
            ids = runner.collect(need, timeout)
            if then is not None:
                then()
            return self._received(runner, ids, prepared)

    def last_obs(self) -> Rows:
        """What every environment showed last, copied; only while nothing is under way."""
        with self._at_work:
            self.check_open()
            self._at_rest("last_obs()")
            return self._traits.observations.take(self._board.obs, slice(None))

    async def recv_async(self) -> Received:
        """`recv` for asyncio: other tasks run meanwhile."""
        if isinstance(self.check_open(), Serial):
            await asyncio.sleep(0)
            return self.recv()
        loop, happened = asyncio.get_running_loop(), asyncio.Event()
        while (fd := self._look()) is not None:
            if fd < 0:  # nothing tells that something has happened
                await asyncio.sleep(0.001)
                continue
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
            runner = self.check_open()
            assert isinstance(runner, Workers)
            need = self._need()
            if runner.enough(need):
                return None
            runner.attend()
            runner.enough(need)
            runner.arm()
            return None if runner.enough(need) else runner.fileno()

    def row(self, observations: object, i: int) -> Value:
        """Environment i's of the observations of all, in the structure of the space."""
        return self._traits.observations.row(observations, i, self.n_envs)

    def batch(self, actions: Sequence[object]) -> Rows:
        """Actions one by one, as `send` takes them."""
        return self._traits.actions.batch(actions)

    def call(
        self, name: str, *args: object, env_ids: Sequence[int] | None = None, **kwargs: object
    ) -> list[Value]:
        """An attribute, or what a method returns, of each environment; "x=" sets attribute x.

        For what happens seldom: it is sent as a message. Only between `recv` and `send`.
        """
        with self._at_work:
            runner = self.check_open()
            self._at_rest(f"call({name!r})")
            ids = self._checked_ids(env_ids, "call", repeated=True)
            return [runner.call(i, name, args, kwargs) for i in ids.tolist()]

    def apply(
        self, function: Callable[..., T], *args: object, env_ids: Sequence[int] | None = None
    ) -> list[T]:
        """What function(env, *args) returns for each environment, where it is. As `call`."""
        return self.call("()", function, *args, env_ids=env_ids)

    def _at_rest(self, doing: str) -> None:
        if self._num_out:
            raise PhalanxError(f"{doing}: {self._num_out} rows are under way, recv first")

    @property
    def envs(self) -> list[AnyEnv]:
        """The environments themselves, if they are in this process."""
        runner = self.check_open()
        if isinstance(runner, Workers):
            raise AttributeError("the environments are in worker processes: use call or apply")
        return list(runner.envs.values())

    @property
    def num_workers(self) -> int:
        """Worker processes; 0 if the environments are in this one."""
        return self.check_open().num_workers

    @property
    def faults(self) -> list[Fault]:
        """All failures so far."""
        return self._log.faults

    @property
    def worker_pids(self) -> list[int]:
        return list(self.check_open().pids)

    @property
    def worker_times(self) -> npt.NDArray[np.float64]:
        """[workers, 3] seconds that each has stepped so far, and when it last began and ended, by
        `time.perf_counter`."""
        self.check_open()
        return self._board.busy[: self.num_workers, :3].copy()

    @property
    def bytes_per_step(self) -> int | None:
        """That go between this process and a worker for a step of one environment.

        None: not known, since values travel as messages.
        """
        self.check_open()
        return self._board.bytes_per_step()

    def listen(self, hook: Callable[[Fault], None]) -> None:
        """Call `hook` with each failure so far, and with each that comes, as soon as it is seen."""
        self._log.listen(hook)

    def attend(self) -> None:
        """Deal with workers that died or hang, without waiting; `recv` does so while it waits.

        For callers that do not call `recv` for long: another thread may call this meanwhile.
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

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_runner", None) is not None:
            self.close()

    # --- inside -----------------------------------------------------------------------------------

    def check_open(self) -> Serial | Workers:
        """Raise if the pool is closed, or cannot go on."""
        runner = self._runner
        if runner is None:
            raise PoolClosed("the pool is closed")
        if self._failure is not None:
            raise self._failure
        return runner

    def _need(self) -> int:
        if self._num_out == 0:
            raise PhalanxError("recv: nothing is under way; reset or send first")
        return min(self.wait_for, self._num_out)

    def _checked_ids(self, env_ids: EnvIds | None, doing: str, repeated: bool = False) -> Ints:
        """The environments meant, none of which may be under way."""
        everybody = self.everybody
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
        if not repeated and len(set(ids.tolist())) != len(ids):
            raise ConfigError(f"{doing}: env_ids {ids} name an environment twice")
        return ids.astype(np.int64)

    def _ask(self, runner: Serial | Workers, requests: Ints, ids: Ints) -> None:
        runner.submit(requests, ids)
        self._last_ids = None
        if ids is self.everybody:
            self._out.fill(True)
            self._num_out = self.n_envs
        else:
            self._out[ids] = True
            self._num_out += len(ids)

    def _seeds(self, seed: int | Sequence[int | None], ids: Ints) -> Sequence[int | None]:
        if isinstance(seed, int | np.integer):
            return [seed_of(int(seed), i) for i in ids.tolist()]
        if len(seed) != len(ids):
            raise ConfigError(f"reset: {len(seed)} seeds for {len(ids)} environments")
        return [None if one is None else int(one) for one in seed]

    def _received(self, runner: Serial | Workers, ids: Ints, prepared: Quiet) -> Received:
        if ids is self.everybody:
            self._out.fill(False)
            self._num_out = 0
        else:
            if self.wait_for == self.n_envs:
                ids.sort()
            ids.flags.writeable = False
            self._out[ids] = False
            self._num_out -= len(ids)
        self._last_ids = ids
        return gather(self._board, runner, ids, self._versions, prepared)
