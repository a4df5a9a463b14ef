"""A worker process: waits for requests on the board, plays them, says which rows are written."""

import os
import pickle
import time
import traceback
from functools import partial

import numpy as np
import numpy.typing as npt

from phalanx.envs.block import Block, SpacesDiffer
from phalanx.envs.channel import Channel, Message
from phalanx.envs.factories import AnyEnv, Factory
from phalanx.envs.faults import Fault
from phalanx.envs.layout import Objects, Value
from phalanx.envs.shared_memory import (
    BEGAN,
    CALL,
    ENDED,
    SPENT,
    Board,
    Options,
    PoolSetup,
    block_of,
    numbers,
)
from phalanx.envs.waiting import Patience, fence
from phalanx.errors import ConfigError
from phalanx.machine import count_cores
from phalanx.system import READABLE, AnyBell, AnyMemory, new_poll

STOP = -1  # in place of a count of requests
CHECK_S = 1.0  # how often an idle worker looks whether its parent is still there


def work(
    setup: PoolSetup,
    number: int,
    memory: AnyMemory,
    *bells: AnyBell,
    factory: Factory,
    channel: Channel,
) -> int:
    """Be worker `number` until told to stop; returns the exit code of the process."""
    # Environments that use numpy's own dice must not all throw the same. noqa: it is theirs.
    np.random.seed(np.random.SeedSequence([setup.seed, number]).generate_state(4))  # noqa: NPY002
    try:
        worker = EnvWorker(setup, number, Board(setup, memory.map), bells, factory, channel)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        refusal = SpacesDiffer if isinstance(error, SpacesDiffer) else ConfigError
        channel.send(("failed", what, traceback.format_exc(), refusal))
        return 1
    channel.send(("ready",))
    try:
        worker.serve()
    finally:
        worker.close()
    return 0


class EnvWorker(Block):
    """The environments of one worker, and its side of the board."""

    def __init__(
        self,
        setup: PoolSetup,
        number: int,
        board: Board,
        bells: tuple[AnyBell, ...],
        factory: Factory,
        channel: Channel,
    ) -> None:
        """bells: its own, and the caller's."""
        super().__init__(setup, factory, board, number)
        indices = block_of(number, setup.n_envs, setup.num_workers)
        self._channel, self._sends_values = channel, isinstance(board.observations, Objects)
        self._letters: dict[tuple[str, int], object] = {}  # that came, and were not yet opened
        self._requests = numbers(board.requests[indices.start : indices.stop])
        self._finished = board.finished[indices.start : indices.stop]
        self._size = len(indices)
        self._sent, self._done = numbers(board.sent), numbers(board.done)
        self._asleep, self._goal = numbers(board.asleep), numbers(board.goal)
        self._busy = numbers(board.busy[number])
        self._caller = setup.num_workers
        self._bell, self._callers_bell = bells
        self._taken = self._done[number]
        self._patience = Patience(setup.num_workers / count_cores())
        self._poll = new_poll()
        self._poll.register(self._bell.fd, READABLE)
        self._parent = os.getppid()
        self._publish = self._publish_row if setup.each_row else None
        if isinstance(board.action_layout, Objects):
            self._read_action = partial(self._post, "action")

    def serve(self) -> None:
        number, all_sent, ring = self._worker, self._sent, self._requests
        busy, clock = self._busy, time.perf_counter
        while True:
            if all_sent[number] == self._taken:
                self._wait()
            sent = all_sent[number]
            fence()
            if sent == STOP:
                return
            requests = between(ring, self._taken, sent)
            self._taken = sent
            began = clock()
            self.play(requests)
            ended = clock()
            busy[SPENT] += ended - began
            busy[BEGAN], busy[ENDED] = began, ended
            if self._publish is None:
                self._count(len(requests))

    # --- waiting ----------------------------------------------------------------------------------

    def _wait(self) -> None:
        if self._patience.look(self._asked):
            return
        self._patience.sleeps()
        while not self._asked():
            self._asleep[self._worker] = 1
            fence()
            if not self._asked() and not self._poll.poll(CHECK_S) and os.getppid() != self._parent:
                os._exit(1)  # whoever started this process is gone; nobody reads what it says
            self._asleep[self._worker] = 0
            self._bell.hush()
        self._patience.wakes()

    def _asked(self) -> bool:
        return self._sent[self._worker] != self._taken

    # --- telling ----------------------------------------------------------------------------------

    def _publish_row(self, i: int) -> None:
        """Row i is written."""
        self._finished[self._done[self._worker] % self._size] = i
        self._count(1)

    def _count(self, more: int) -> None:
        """Let the caller see that more rows are written, and wake it if it waits for no others."""
        if self._sends_values:
            self._channel.send(("values", self.board.obs, self.board.final_obs))
            self.board.obs.clear()
            self.board.final_obs.clear()
        if self.infos:
            self._channel.send(("infos", self.infos))
            self.infos.clear()
        fence()
        self._done[self._worker] += more
        fence()
        if self._asleep[self._caller] and sum(self._done) >= self._goal[0]:
            self._callers_bell.ring()

    def _report(self, fault: Fault) -> None:
        self._channel.send(("fault", fault))

    def _post(self, kind: str, i: int) -> Message:
        """What the caller sent for environment i, by message: before it asked for its row."""
        while (kind, i) not in self._letters:
            *whom, content = self._channel.receive_one()
            self._letters[*whom] = content
        return self._letters.pop((kind, i))

    def _options_for(self, i: int) -> Options:
        return self._post("options", i)

    def _follow_order(self, i: int) -> None:
        """Or do what the caller asks of it, and send back what it returned or raised."""
        if self.board.orders[i] != CALL:
            super()._follow_order(i)
            return
        name, args, kwargs = self._post("call", i)
        try:
            reply = ("reply", True, use(self.envs[i], name, args, kwargs))
        except Exception as error:
            reply = ("reply", False, _sendable(error))
        self._channel.send(reply)


def use(env: AnyEnv, name: str, args: tuple[Value, ...], kwargs: dict[str, object]) -> Value:
    """An attribute of an environment, or what a method of it returns.

    "x=" sets attribute x; "()" gives the environment to a function, args[0].
    """
    if name == "()":
        return args[0](env, *args[1:])
    if name.endswith("="):
        env.set_wrapper_attr(name[:-1], *args)
        return None
    value = env.get_wrapper_attr(name)
    return value(*args, **kwargs) if callable(value) else value


def between(ring: memoryview | npt.NDArray[np.int64], start: int, stop: int) -> list[int]:
    """Entries number `start` to `stop` of a ring, which holds as many as it is long."""
    if start == stop:
        return []
    first, last = start % len(ring), stop % len(ring)
    if last == 0:
        return ring[first:].tolist() if first else ring.tolist()
    return ring[first:last].tolist() if first < last else [*ring[first:], *ring[:last]]


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
