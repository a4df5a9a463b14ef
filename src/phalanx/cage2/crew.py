"""A batch cut into contiguous shards, one per thread, and threads that never wait for a late one.

Every thread plays its own shard in small chunks, and then helps with what is left of the others'.
So a thread that the system has put aside costs little: the rest play its shard too. Who plays a
network does not matter to the network.

Waking a sleeping thread takes some 50 µs, as long as playing a thousand networks. So a thread that
is out of work looks at a shared board for a short while, outside the interpreter, before it sleeps.
"""

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from phalanx.cage2.rule import kernel, rule

CHUNK = 128  # networks taken at a time
LOOKS = 200_000  # about 0.2 ms

# The board: numbers that threads share, each on a cache line of its own.
Board = npt.NDArray[np.int64]
LINE = 8
UP, CLOSED = 0, LINE  # the task that may be played; the last one that may no longer be joined
FIRST_THREAD = 2 * LINE  # then two lines for each thread:
TAKEN, INSIDE = 0, LINE  # how much of its shard is taken; the task that it is playing, or 0
PER_THREAD = 2 * LINE
LEADER = 0  # the thread that calls `run`


# --- atomic reads and writes ----------------------------------------------------------------------


def look(board: Board, place: int) -> int:
    """A number on the board, as the other threads have written it."""
    return int(board[place])


def put(board: Board, place: int, value: int) -> None:
    """Write a number for the other threads to see."""
    board[place] = value


def add(board: Board, place: int, value: int) -> int:
    """Add to a number and return what it was; no other thread comes in between."""
    before = int(board[place])
    board[place] += value
    return before


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array_type = signature.args[0]
    array = context.make_array(array_type)(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, array_type, array, [args[1]])


@intrinsic  # type: ignore[untyped-decorator]
def _load(typing_context: Any, board: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, args), "seq_cst", 8)

    return types.int64(board, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _store(typing_context: Any, board: Any, place: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], _pointer(context, builder, signature, args), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(board, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _fetch_add(typing_context: Any, board: Any, place: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, signature, args)
        return builder.atomic_rmw("add", pointer, args[2], "seq_cst")

    return types.int64(board, types.int64, types.int64), generate


@overload(look)
def _compiled_look(board, place):  # type: ignore[no-untyped-def]
    return lambda board, place: _load(board, place)


@overload(put)
def _compiled_put(board, place, value):  # type: ignore[no-untyped-def]
    return lambda board, place, value: _store(board, place, value)


@overload(add)
def _compiled_add(board, place, value):  # type: ignore[no-untyped-def]
    return lambda board, place, value: _fetch_add(board, place, value)


# --- what a kernel does to share its work ---------------------------------------------------------


@rule
def count_threads(board: Board) -> int:
    return (len(board) - FIRST_THREAD) // PER_THREAD


@rule
def shard_start(size: int, shard: int, threads: int) -> int:
    """Where a shard begins; shard number `threads` begins where the batch ends."""
    return size * shard // threads


@rule
def join(board: Board, task: int, thread: int) -> bool:
    """Begin to play. The leader calls the others in; one who comes too late is turned away."""
    if thread == LEADER:
        put(board, UP, task)
        return True
    put(board, FIRST_THREAD + PER_THREAD * thread + INSIDE, task)
    if look(board, CLOSED) >= task:
        put(board, FIRST_THREAD + PER_THREAD * thread + INSIDE, 0)
        return False
    return True


@rule
def take_chunk(board: Board, shard: int) -> int:
    """How much of the shard was taken before; the next CHUNK networks are the caller's."""
    return add(board, FIRST_THREAD + PER_THREAD * shard + TAKEN, CHUNK)


@rule
def leave(board: Board, task: int, thread: int) -> bool:
    """Stop playing: all is taken. True if, for the leader, the others have finished too."""
    if thread != LEADER:
        put(board, FIRST_THREAD + PER_THREAD * thread + INSIDE, 0)
        return True
    put(board, CLOSED, task)
    return all_out(board)


@rule
def all_out(board: Board) -> bool:
    """Look out until nobody is inside, then make the shards ready for the next task."""
    looks = 0
    for thread in range(1, count_threads(board)):
        while look(board, FIRST_THREAD + PER_THREAD * thread + INSIDE) != 0:
            looks += 1
            if looks > LOOKS:
                return False
    for thread in range(count_threads(board)):
        put(board, FIRST_THREAD + PER_THREAD * thread + TAKEN, 0)
    return True


@kernel
def _all_out(board: Board) -> bool:
    return all_out(board)


@kernel
def _look_out(board: Board, done: int) -> None:
    """Wait a short while for a task later than `done`."""
    for _ in range(LOOKS):
        if look(board, UP) > done:
            return


# --- the threads ----------------------------------------------------------------------------------

Play = Callable[..., bool]  # play(*arguments, board, task, thread), made of the rules above


class Crew:
    """Threads that share the networks of a batch; the caller leads, and plays as one of them.

    crew = Crew(2)
    crew.run(play_turns, arguments)
    """

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._board: Board = np.zeros(FIRST_THREAD + PER_THREAD * num_threads, np.int64)
        self._task = 0
        self._finished = True
        self._hands = [_Hand(self._board, thread) for thread in range(1, num_threads)]
        weakref.finalize(self, _dismiss, self._hands)

    def run(self, play: Play, arguments: tuple[Any, ...]) -> None:
        self._wait_for_all()  # only after an interrupt is there anything to wait for
        self._task += 1
        self._finished = False
        for hand in self._hands:
            hand.offer(self._task, play, arguments)
        self._finished = play(*arguments, self._board, self._task, LEADER)
        self._wait_for_all()

    def _wait_for_all(self) -> None:
        while not self._finished:
            self._finished = _all_out(self._board)
            time.sleep(0)

    def close(self) -> None:
        _dismiss(self._hands)


def _dismiss(hands: "list[_Hand]") -> None:
    for hand in hands:
        hand.dismiss()
    hands.clear()


class _Hand:
    """A thread that plays along in the newest task, if it comes in time."""

    def __init__(self, board: Board, thread: int) -> None:
        self._task: tuple[int, Play | None, tuple[Any, ...]] = (0, None, ())
        self._asleep = False
        self._alarm = threading.Event()
        threading.Thread(target=self._serve, args=(board, thread), daemon=True).start()

    def offer(self, number: int, play: Play | None, arguments: tuple[Any, ...]) -> None:
        self._task = (number, play, arguments)
        if self._asleep:
            self._alarm.set()

    def dismiss(self) -> None:
        self.offer(self._task[0] + 1, None, ())
        self._alarm.set()

    def _serve(self, board: Board, thread: int) -> None:
        done = 0
        while True:
            _look_out(board, done)
            number, play, arguments = self._task
            if number == done:
                self._alarm.clear()
                self._asleep = True
                if self._task[0] == done:
                    self._alarm.wait()
                self._asleep = False
                continue
            if play is None:
                return
            play(*arguments, board, number, thread)
            done = number
            del arguments  # nothing is kept alive while waiting
