"""A batch cut into contiguous shards, one per thread.

Two locks per thread do the synchronising. But a thread that sleeps, for a lock or for the
interpreter, needs some 50 µs to wake up, a third of the time that a shard takes. So whoever waits
looks at a shared board first, for a short while and outside the interpreter, and sleeps only if
nothing comes.
"""

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from phalanx.cage2.rule import COMPILED, kernel, rule

Board = npt.NDArray[
    np.int64
]  # [0]: the number of the task that is up; [LINE * k]: last one done by thread k
LINE = 8  # numbers per cache line: threads do not write where others look
LOOKS = 200_000  # about 0.2 ms


@intrinsic  # type: ignore[untyped-decorator]
def _look(typing_context: Any, board: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, args), "acquire", 8)

    return types.int64(board, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _put_up(typing_context: Any, board: Any, place: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _pointer(context, builder, signature, args), "release", 8)
        return context.get_dummy_value()

    return types.void(board, types.int64, types.int64), generate


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array_type = signature.args[0]
    array = context.make_array(array_type)(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, array_type, array, [args[1]])


@rule
def call_others(board: Board, task: int) -> None:
    """At the start of a shard: the leader (task > 0) lets the others begin."""
    if COMPILED and task > 0:
        _put_up(board, 0, task)


@rule
def await_others(board: Board, task: int) -> None:
    """At the end of a shard: the leader (task > 0) looks out for the others to finish."""
    if COMPILED and task > 0:
        looks = 0
        for place in range(LINE, len(board), LINE):
            while _look(board, place) < task and looks < LOOKS:
                looks += 1


@kernel
def _stand_by(board: Board, place: int, done: int) -> None:
    """Report the last task as done and look out for the next one."""
    if COMPILED:
        _put_up(board, place, done)
        looks = 0
        while _look(board, 0) <= done and looks < LOOKS:
            looks += 1


class Crew:
    """Threads that play shards of a batch; the caller leads, and plays the first shard itself.

    crew = Crew(2)
    crew.run(play_turns, arguments, num_envs)   # play_turns(*arguments, board, task, start, stop)
    """

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._board: Board = np.zeros(LINE * num_threads, np.int64)
        self._task = 0
        self._hands = [_Hand(self._board, LINE * k) for k in range(1, num_threads)]
        weakref.finalize(self, _dismiss, self._hands)

    def run(self, play: Callable[..., None], arguments: tuple[Any, ...], size: int) -> None:
        bounds = [size * k // self.num_threads for k in range(self.num_threads + 1)]
        if not self._hands:
            play(*arguments, self._board, 0, 0, size)
            return
        self._task += 1
        for hand, start, stop in zip(self._hands, bounds[1:], bounds[2:], strict=False):
            hand.take(play, (*arguments, self._board, 0, start, stop))
        try:
            play(*arguments, self._board, self._task, 0, bounds[1])
        finally:
            for hand in self._hands:
                hand.join()

    def close(self) -> None:
        _dismiss(self._hands)


def _dismiss(hands: "list[_Hand]") -> None:
    for hand in hands:
        hand.take(None, ())
    hands.clear()


class _Hand:
    """One thread: takes a shard, plays it, waits for the next."""

    def __init__(self, board: Board, place: int) -> None:
        self._given, self._finished = threading.Lock(), threading.Lock()  # held: nothing yet
        self._given.acquire()
        self._finished.acquire()
        self._play: Callable[..., None] | None = None
        self._arguments: tuple[Any, ...] = ()
        self._error: BaseException | None = None
        threading.Thread(target=self._serve, args=(board, place), daemon=True).start()

    def take(self, play: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
        self._play, self._arguments = play, arguments
        self._given.release()

    def join(self) -> None:
        self._finished.acquire()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _serve(self, board: Board, place: int) -> None:
        done = 0
        while True:
            _stand_by(board, place, done)
            self._given.acquire()
            if self._play is None:
                return
            try:
                self._play(*self._arguments)
            except BaseException as error:
                self._error = error
            done += 1
            self._play, self._arguments = None, ()
            self._finished.release()
