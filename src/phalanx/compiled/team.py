"""A batch cut into contiguous shards, one per thread, and threads that help each other out.

Every thread plays its own shard in small chunks, and then helps with what is left of the others'.
So a thread that the system has put aside costs little: the rest play its shard too. Who plays a
network does not matter to the network.

Waking a sleeping thread takes some 50 µs, as long as playing a thousand networks. So a thread that
is out of work looks at a shared board for a short while, outside the interpreter, before it sleeps.
"""

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils

from phalanx.compiled.clock import Pace, count_ticks, ticks
from phalanx.compiled.llvm import (
    Builder,
    Context,
    Intrinsic,
    Signature,
    Type,
    TypingContext,
    Value,
    Values,
    machine_code_of,
)
from phalanx.compiled.rule import kernel, rule

LOOKS = 200_000  # some 0.1 ms

# The board: numbers that threads share, each on a cache line of its own.
Board = npt.NDArray[np.int64]
CACHE_LINE = 8  # numbers that it holds
UP, CLOSED = 0, CACHE_LINE  # the task that may be played; the last one that may no longer be joined
FIRST_THREAD = 2 * CACHE_LINE  # then four lines for each thread:
TAKEN = 0  # how much of its shard is taken
INSIDE = CACHE_LINE  # the task that it is playing, or 0
PLAYED = 2 * CACHE_LINE  # the last task that it played in
BEGAN, BUSY = PLAYED + 1, PLAYED + 2  # when that was, and its time in all tasks, in ticks
WAITING = 3 * CACHE_LINE  # the task after which it looks out for the next
PER_THREAD = 4 * CACHE_LINE
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


def _pointer(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
    array_type = signature.args[0]
    array = context.make_array(array_type)(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, array_type, array, [args[1]])


@machine_code_of(look)
def _load(typing_context: TypingContext, board: Type, place: Type) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        return builder.load_atomic(_pointer(context, builder, signature, args), "seq_cst", 8)

    return types.int64(board, types.int64), generate


@machine_code_of(put)
def _store(typing_context: TypingContext, board: Type, place: Type, value: Type) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        builder.store_atomic(args[2], _pointer(context, builder, signature, args), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(board, types.int64, types.int64), generate


@machine_code_of(add)
def _fetch_add(typing_context: TypingContext, board: Type, place: Type, value: Type) -> Intrinsic:
    def generate(context: Context, builder: Builder, signature: Signature, args: Values) -> Value:
        pointer = _pointer(context, builder, signature, args)
        return builder.atomic_rmw("add", pointer, args[2], "seq_cst")

    return types.int64(board, types.int64, types.int64), generate


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
    """Begin to play. The leader calls the others in; who comes for another task is turned away."""
    place = FIRST_THREAD + PER_THREAD * thread
    board[place + BEGAN] = ticks()
    if thread == LEADER:
        put(board, UP, task)
        return True
    put(board, place + INSIDE, task)
    if look(board, UP) != task or look(board, CLOSED) >= task:
        put(board, place + INSIDE, 0)
        return False
    put(board, place + PLAYED, task)
    return True


@rule
def take_chunk(board: Board, shard: int, chunk: int) -> int:
    """How much of the shard was taken before; the next `chunk` of it are the caller's."""
    return add(board, FIRST_THREAD + PER_THREAD * shard + TAKEN, chunk)


@rule
def next_piece(board: Board, pieces: int, thread: int, helped: int) -> tuple[int, int]:
    """A piece of work that is the caller's now: of its own shard, then of the others'.

    Begin with helped = 0 and hand in what was returned; the piece is -1 when all are taken.
    """
    threads = count_threads(board)
    while helped < threads:
        shard = (thread + helped) % threads
        low, high = shard_start(pieces, shard, threads), shard_start(pieces, shard + 1, threads)
        piece = low + take_chunk(board, shard, 1)
        if piece < high:
            return piece, helped
        helped += 1
    return -1, helped


@rule
def leave(board: Board, task: int, thread: int) -> bool:
    """Stop playing: all is taken. True if, for the leader, the others have finished too."""
    place = FIRST_THREAD + PER_THREAD * thread
    count_ticks(board, place + BUSY, board[place + BEGAN])
    if thread != LEADER:
        put(board, place + INSIDE, 0)
        return True
    put(board, CLOSED, task)
    out = all_out(board)
    if out:
        let_pass(board, task)
    return out


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


@rule
def let_pass(board: Board, task: int) -> None:
    """Wait until the helpers hold the interpreter's lock no more: to contend for it costs 50 µs."""
    for thread in range(1, count_threads(board)):
        place = FIRST_THREAD + PER_THREAD * thread
        if look(board, place + PLAYED) == task:
            for _ in range(LOOKS // 10):
                if look(board, place + WAITING) >= task:
                    break


@kernel
def _all_out(board: Board) -> bool:
    return all_out(board)


@kernel
def _look_out(board: Board, thread: int, done: int) -> None:
    """Wait a short while for a task later than `done`."""
    put(board, FIRST_THREAD + PER_THREAD * thread + WAITING, done)
    for _ in range(LOOKS):
        if look(board, UP) > done:
            return


# --- the threads ----------------------------------------------------------------------------------

Play = Callable[..., bool]  # play(*arguments, board, task, thread), made of the rules above


class ThreadTeam:
    """Threads that share the networks of a batch; the caller leads, and plays as one of them.

    team = ThreadTeam(2)
    team.run(play_turns, arguments)
    team.settle()                     # before anything else touches what they play with

    A task is played wholly or not at all: the others begin when the leader is inside the compiled
    code, where no interrupt reaches it. Two threads that call `run` take turns.
    """

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self.tasks = 0
        """that were run so far"""
        self.on_work: Callable[[Play, int, float, float], None] | None = None
        """is told of what was played by which thread, and when that began and ended"""
        self.on_done: Callable[[], None] | None = None
        """is called when a task was played"""
        self._pace = Pace()
        self._renew()
        if num_threads > 1:
            _all_out(self._board)  # compiled now, and not when somebody is late
        _teams.add(self)

    def _renew(self) -> None:
        """A clean board and new threads: at the start, and in a forked child, which has none."""
        self._lock = threading.RLock()  # a signal handler may settle within a run
        self._finished = True
        self._run_s = 0.0  # what the leader has spent on tasks, if it has helpers
        self._board: Board = np.zeros(FIRST_THREAD + PER_THREAD * self.num_threads, np.int64)
        self._helpers = [_Helper(self._board, thread) for thread in range(1, self.num_threads)]
        weakref.finalize(self, _dismiss, self._helpers)

    def run(self, play: Play, arguments: tuple[object, ...]) -> None:
        began = time.perf_counter() if self._helpers else 0.0
        play = play if self.on_work is None else _told(play, self.on_work)
        with self._lock:
            self._wait_for_all()
            self.tasks += 1
            task = self.tasks
            self._finished = False
            for helper in self._helpers:
                helper.offer(task, play, arguments)
            self._finished = play(*arguments, self._board, task, LEADER)
            self._wait_for_all()
            for helper in self._helpers:
                helper.work = NO_WORK  # keep nothing alive that belongs to the last task
            if self._helpers:
                self._run_s += time.perf_counter() - began
        if self.on_done is not None:
            self.on_done()

    @property
    def tick_s(self) -> float:
        """Seconds of a tick of the clock that kernels read."""
        return self._pace.seconds()

    def busy_s(self) -> npt.NDArray[np.float64]:
        """Seconds that each thread has worked on tasks so far, the leader first."""
        return np.multiply(self._board[FIRST_THREAD + BUSY :: PER_THREAD], self.tick_s, dtype=float)

    def waited_s(self) -> float:
        """Seconds of the leader's that went into calling the others in, and waiting for them."""
        return max(0.0, self._run_s - float(self.busy_s()[LEADER])) if self._helpers else 0.0

    def settle(self) -> None:
        """Return when nobody plays any more; after an interrupt somebody still may."""
        with self._lock:
            self._wait_for_all()

    def _wait_for_all(self) -> None:
        while not self._finished:
            self._finished = _all_out(self._board)
            time.sleep(0)

    def close(self) -> None:
        _dismiss(self._helpers)

    def __reduce__(self) -> tuple[type["ThreadTeam"], tuple[int]]:
        return ThreadTeam, (self.num_threads,)


def _told(play: Play, hear: Callable[[Play, int, float, float], None]) -> Play:
    """The same play, of which somebody hears."""

    def played(*arguments: Any) -> bool:
        began = time.perf_counter()
        is_over = play(*arguments)
        hear(play, arguments[-1], began, time.perf_counter())
        return is_over

    return played


_teams: weakref.WeakSet[ThreadTeam] = weakref.WeakSet()


def _renew_all() -> None:
    for team in _teams:
        team._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


def _dismiss(helpers: "list[_Helper]") -> None:
    for helper in helpers:
        helper.dismiss()
    helpers.clear()


class _Helper:
    """A thread that plays along in the newest task, if it comes in time."""

    def __init__(self, board: Board, thread: int) -> None:
        self._number, self.work = 0, NO_WORK
        self._asleep = False
        self._dismissed = False
        self._alarm = threading.Event()
        threading.Thread(target=self._serve, args=(board, thread), daemon=True).start()

    def offer(self, number: int, play: Play, arguments: tuple[object, ...]) -> None:
        self.work = (play, arguments)
        self._number = number
        if self._asleep:
            self._alarm.set()

    def dismiss(self) -> None:
        self._dismissed = True
        self._alarm.set()

    def _serve(self, board: Board, thread: int) -> None:
        done = 0
        while not self._dismissed:
            _look_out(board, thread, done)
            if self._number == done:
                self._sleep(done)
                continue
            done = self._number
            play, arguments = self.work
            if play is not None:
                # What cannot be compiled fails for the leader as well, and is reported there.
                with contextlib.suppress(Exception):
                    play(*arguments, board, done, thread)
            del play, arguments  # as the leader forgets them

    def _sleep(self, done: int) -> None:
        self._alarm.clear()
        self._asleep = True
        if self._number == done and not self._dismissed:
            self._alarm.wait()
        self._asleep = False


NO_WORK: tuple[Play | None, tuple[object, ...]] = (None, ())
