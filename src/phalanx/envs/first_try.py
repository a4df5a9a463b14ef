"""The first environment, tried in a process of its own: what hangs or crashes there, ends there."""

import os
import select
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from gymnasium import Env

from phalanx.envs.auto import num_cores
from phalanx.envs.factories import Factory
from phalanx.envs.faults import how_it_ended
from phalanx.envs.fork_client import (
    CannotGo,
    Ended,
    ForkStarter,
    Started,
    kill,
    packed,
    read_words,
    stack_of,
)
from phalanx.envs.settings import Count
from phalanx.envs.trial import BUILDING, EnvTraits, tried
from phalanx.errors import ConfigError, WorkerError

CLOSE_S = 1.0  # how long the environment may take to close
END_S = 5.0  # in which the fork server tells how a process ended


class Tried(NamedTuple):
    """What one environment has shown, and who can start workers like it."""

    traits: EnvTraits
    starter: ForkStarter | None
    why_here: str
    """why nobody can, and the environments are to be in this process"""
    env: Env[Any, Any] | None
    """the one that was tried in this process, still open"""


def try_first(
    factory: Factory,
    name: str,
    *,
    seed: int,
    n_envs: Count,
    num_workers: Count,
    step_timeout: float,
    start_timeout: float,
    alike: bool = False,
    only_build: bool = False,
) -> Tried:
    """Try one environment, where the others will be."""
    measure = "auto" in (n_envs, num_workers)
    how: dict[str, Any] = {
        "seed": seed, "measure": measure, "alike": alike, "only_build": only_build,
    }  # fmt: skip
    starter, why_here = None, "as asked for"
    if num_workers != 0:
        try:
            starter = _open_starter(factory, n_envs, num_workers, start_timeout)
        except CannotGo as error:
            if num_workers != "auto":
                raise
            why_here = str(error)
    if starter is None:
        with tried(factory, name, **how, keep_dice=True) as (traits, env):
            return Tried(traits, None, why_here, env)
    try:
        starter.try_out(name, **how)
        traits = _Attempt(starter, name, step_timeout, start_timeout).traits()
        if hasattr(factory, "prepare"):  # what environments tell may be of classes that it defines
            factory.prepare()
    except BaseException:
        starter.close()
        raise
    return Tried(traits, starter, "", None)


def _open_starter(
    factory: Factory, n_envs: Count, num_workers: Count, start_timeout: float
) -> ForkStarter:
    if sys.platform != "linux":
        raise CannotGo(f"worker processes need Linux, this is {sys.platform}: num_workers=0")
    most = min([num_cores(), *(count for count in (n_envs, num_workers) if count != "auto")])
    return ForkStarter(packed(factory), num_cores() // most, start_timeout)


class _Attempt:
    """One process that tries an environment, and what it says meanwhile."""

    def __init__(
        self, starter: ForkStarter, name: str, step_timeout: float, start_timeout: float
    ) -> None:
        self._starter, self._name = starter, name
        self._step_timeout, self._start_timeout = step_timeout, start_timeout
        self._doing, self._since = BUILDING, time.monotonic()
        self._process: Started | None = None
        self._traits: EnvTraits | None = None
        self._end: Ended | None = None

    def traits(self) -> EnvTraits:
        try:
            while self._traits is None:
                self._attend(0.1)
                self._check()
            self._await(lambda: self._end is not None, CLOSE_S)
        finally:
            if self._process is not None:
                if self._end is None:
                    kill(self._process.pid)
                self._process.channel.close()
                os.close(self._process.last_words)
        return self._traits

    def _attend(self, timeout_s: float) -> None:
        listened: list[Any] = [self._starter.control]
        if self._process is not None and not self._process.channel.closed:
            listened.append(self._process.channel)
        select.select(listened, [], [], timeout_s)
        for news in self._starter.hear():
            if isinstance(news, Started):
                self._process, self._since = news, time.monotonic()
            else:
                self._end = news
        if self._process is not None:
            for kind, *rest in self._process.channel.receive():
                self._understand(kind, rest)

    def _understand(self, kind: str, rest: list[Any]) -> None:
        if kind == "doing":
            self._doing, self._since = rest[0], time.monotonic()
        elif kind == "traits":
            self._traits = rest[0]
        else:
            assert kind == "refused"
            raise _with_note(ConfigError(rest[0]), rest[1])

    def _check(self) -> None:
        """Whether it is still to be waited for."""
        if self._traits is not None:
            return
        if self._starter.gone:
            raise WorkerError("the process that tries the environment was killed")
        limit, name = self._step_timeout, "step_timeout"
        if self._doing == BUILDING:
            limit, name = self._start_timeout, "start_timeout"
        if self._end is None and self._process is not None and self._process.channel.closed:
            self._await(lambda: self._end is not None, END_S)
        if self._end is not None:
            assert self._process is not None
            how, _code, _signal = how_it_ended(self._end.status)
            self._refuse(f"the process {how}", read_words(self._process.last_words))
        if time.monotonic() - self._since > limit:
            words = (
                ""
                if self._process is None
                else stack_of(self._process.pid, self._process.last_words)
            )
            self._refuse(f"it took longer than the {name} of {limit:g} s", words)

    def _refuse(self, why: str, words: str) -> None:
        what = f"environment {self._name} cannot be used: in {self._doing} {why}"
        raise _with_note(ConfigError(what), words)

    def _await(self, is_there: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_there() and not self._starter.gone and time.monotonic() < deadline:
            self._attend(0.05)


def _with_note(error: ConfigError, words: str) -> ConfigError:
    if words:
        error.add_note(words)
    return error
