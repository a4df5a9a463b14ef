"""Long work in a thread aside: Ctrl-C is answered at once, not when a compiler comes up for air."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")
NAME = "phalanx aside"


def aside(
    work: Callable[..., Result], *arguments: object, meanwhile: Callable[[], None] = lambda: None
) -> Result:
    """What `work` returns or raises. After an interrupt it goes on alone, to an end that is safe.

    meanwhile: is called every second.

    Only the main thread hears signals, and only between two steps of Python: not within a call of
    LLVM, and in what LLVM calls back an interrupt is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        return work(*arguments)
    done = Future[Result]()

    def run() -> None:
        try:
            done.set_result(work(*arguments))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name=NAME).start()
    while True:
        try:
            return done.result(timeout=1.0)
        except TimeoutError:
            if done.done():  # it is the work's own
                raise
            meanwhile()


def is_at_work() -> bool:
    """Whether something still goes on alone, which the end of the interpreter would wait for."""
    return any(thread.name == NAME for thread in threading.enumerate())
