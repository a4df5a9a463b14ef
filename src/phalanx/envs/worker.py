"""A worker process: waits for requests on the board, plays them, says which rows are written."""

import dataclasses
import os
import pickle
import traceback
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import numpy as np
from gymnasium import spaces

from phalanx.envs.block import Block, SpacesDiffer
from phalanx.envs.channel import Channel
from phalanx.envs.factories import Factory
from phalanx.envs.objects import Objects, layout_of
from phalanx.envs.settings import Rules
from phalanx.envs.shared_memory import IDLE, Board, Shape, block_of, numbers
from phalanx.envs.waiting import Patience, fence
from phalanx.errors import ConfigError
from phalanx.machine import count_cores
from phalanx.system import (
    READABLE,
    Bell,
    MemoryFile,
    SocketBell,
    SpawnedBytes,
    new_poll,
    peak_memory_mb,
)

STOP = -1  # in place of a count of requests
CHECK_S = 1.0  # how often an idle worker looks whether its parent is still there


@dataclass(frozen=True)
class PoolSetup:
    """All that decides how the environments of a pool are run; workers are told so."""

    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    shape: Shape
    seed: int
    infos: bool
    rules: Rules
    wait_for: int
    step_timeout_s: float
    start_timeout_s: float
    memory: MemoryFile | SpawnedBytes | None = None
    bells: dict[int, Bell | SocketBell] = field(default_factory=dict)
    """one for each worker, and the last for the caller"""

    @property
    def each_row(self) -> bool:
        """Workers say so after every row, not only after a whole request."""
        return self.wait_for < self.shape.n_envs

    def packed(self) -> bytes:
        """All but the memory and the bells, which travel in ways of their own."""
        return cloudpickle.dumps(dataclasses.replace(self, memory=None, bells={}))


def work(setup: PoolSetup, factory: Factory, number: int, channel: Channel) -> int:
    """Be worker `number` until told to stop; returns the exit code of the process."""
    shape, memory = setup.shape, setup.memory
    assert memory is not None
    board = Board(
        shape,
        layout_of(setup.observation_space, bounded=not setup.rules.alike),
        layout_of(setup.action_space),
        memory.map,
    )
    # Environments that use numpy's own dice must not all throw the same. noqa: it is theirs.
    np.random.seed(np.random.SeedSequence([setup.seed, number]).generate_state(4))  # noqa: NPY002
    worker = EnvWorker(setup, board, number, channel)
    if isinstance(board.action_layout, Objects):
        board.actions = Letters(worker)
    try:
        block = Block(
            factory,
            block_of(number, shape.n_envs, shape.num_workers),
            board,
            worker=number,
            report=worker.report,
            infos=setup.infos,
            rules=setup.rules,
            publish=worker.publish if setup.each_row else None,
            call=worker.call,
            post=worker.post,
        )
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        refusal = SpacesDiffer if isinstance(error, SpacesDiffer) else ConfigError
        channel.send(("failed", what, traceback.format_exc(), refusal))
        return 1
    channel.send(("ready",))
    try:
        worker.serve(block)
    finally:
        block.close()
    return 0


class EnvWorker:
    """The worker's side of the board."""

    def __init__(self, setup: PoolSetup, board: Board, number: int, channel: Channel) -> None:
        indices = block_of(number, setup.shape.n_envs, setup.shape.num_workers)
        self._number, self._channel, self._each_row = number, channel, setup.each_row
        self._board, self._sends_values = board, isinstance(board.observations, Objects)
        self._letters: dict[tuple[str, int], Any] = {}  # that came, and were not yet opened
        self._requests = numbers(board.requests[indices.start : indices.stop])
        self._finished = board.finished[indices.start : indices.stop]
        self._size = len(indices)
        self._sent, self._done = numbers(board.sent), numbers(board.done)
        self._asleep, self._goal = numbers(board.asleep), numbers(board.goal)
        self._caller = setup.shape.num_workers
        self._bell = setup.bells[number]
        self._callers_bell = setup.bells[self._caller]
        self._taken = self._done[number]
        self._patience = Patience(setup.shape.num_workers / count_cores())
        self._poll = new_poll()
        self._poll.register(self._bell.fd, READABLE)
        self._parent = os.getppid()
        self._block: Block | None = None
        board.now[number] = IDLE

    def serve(self, block: Block) -> None:
        self._block = block
        number, all_sent, ring = self._number, self._sent, self._requests
        while True:
            if all_sent[number] == self._taken:
                self._wait()
            sent = all_sent[number]
            fence()
            if sent == STOP:
                return
            requests = between(ring, self._taken, sent)
            self._taken = sent
            block.play(requests)
            if not self._each_row:
                self._count(len(requests))

    # --- waiting ----------------------------------------------------------------------------------

    def _wait(self) -> None:
        if self._patience.look(self._asked):
            return
        self._patience.sleeps()
        while not self._asked():
            self._asleep[self._number] = 1
            fence()
            if not self._asked() and not self._poll.poll(CHECK_S) and os.getppid() != self._parent:
                os._exit(1)  # whoever started this process is gone; nobody reads what it says
            self._asleep[self._number] = 0
            self._bell.hush()
        self._patience.wakes()

    def _asked(self) -> bool:
        return self._sent[self._number] != self._taken

    # --- telling ----------------------------------------------------------------------------------

    def publish(self, i: int) -> None:
        """Row i is written."""
        self._finished[self._done[self._number] % self._size] = i
        self._count(1)

    def _count(self, more: int) -> None:
        """Let the caller see that more rows are written, and wake it if it waits for no others."""
        assert self._block is not None
        if self._sends_values:
            self._channel.send(("values", self._board.obs, self._board.final_obs))
            self._board.obs.clear()
            self._board.final_obs.clear()
        if self._block.infos:
            self._channel.send(("infos", self._block.infos))
            self._block.infos.clear()
        fence()
        self._done[self._number] += more
        fence()
        if self._asleep[self._caller] and sum(self._done) >= self._goal[0]:
            self._callers_bell.ring()

    def report(self, env_id: int, what: str, trace: str, action: Any) -> None:
        self._channel.send(("fault", env_id, what, trace, action, peak_memory_mb()))

    def post(self, kind: str, i: int) -> Any:
        """What the caller sent for environment i, by message: before it asked for its row."""
        while (kind, i) not in self._letters:
            *whom, content = self._channel.receive_one()
            self._letters[*whom] = content
        return self._letters.pop((kind, i))

    def call(self, i: int, env: Any) -> None:
        """Do what the caller asks of one environment, and send back what it returned or raised."""
        name, args, kwargs = self.post("call", i)
        try:
            reply = ("reply", True, use(env, name, args, kwargs))
        except Exception as error:
            reply = ("reply", False, _sendable(error))
        self._channel.send(reply)


class Letters(dict[int, Any]):
    """Actions that come by message."""

    def __init__(self, worker: EnvWorker) -> None:
        self._worker = worker

    def __getitem__(self, i: int) -> Any:
        return self._worker.post("action", i)


def use(env: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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


def between(ring: Any, start: int, stop: int) -> list[int]:
    """Entries number `start` to `stop` of a ring, which holds as many as it is long."""
    size = len(ring)
    first, last = start % size, stop % size
    if start == stop:
        entries: list[int] = []
    elif stop - start == size and first == 0:
        entries = ring.tolist()
    elif first < last:
        entries = ring[first:last].tolist()
    else:
        entries = ring[first:].tolist() + ring[:last].tolist()
    return entries


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
