"""The first environment, tried in a process of its own: what hangs or crashes there, ends there."""

import select
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from gymnasium import Env

from phalanx.envs.factories import Factory
from phalanx.envs.faults import how_it_ended
from phalanx.envs.fork_client import ForkStarter
from phalanx.envs.settings import Count
from phalanx.envs.spawn_client import SpawnStarter
from phalanx.envs.starter import CannotGo, Ended, Started, Starter, packed
from phalanx.envs.trial import BUILDING, EnvTraits, tried
from phalanx.errors import ConfigError, WorkerError
from phalanx.machine import count_cores
from phalanx.system import LINUX, kill

CLOSE_S = 1.0  # how long the environment may take to close
END_S = 5.0  # in which the starter tells how a process ended


class Tried(NamedTuple):
    """What one environment has shown, and who can start workers like it."""

    traits: EnvTraits
    starter: Starter | None
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
    why_here = "as asked for"
    if num_workers != 0:
        starter: Starter | None = None
        try:
            starter = _open_starter(factory, n_envs, num_workers, start_timeout)
            starter.try_out(name, **how)
            traits = _Attempt(starter, name, step_timeout, start_timeout).traits()
            if hasattr(factory, "prepare"):  # environments may tell of classes that it defines
                factory.prepare()
            return Tried(traits, starter, "", None)
        except BaseException as error:
            if starter is not None:
                starter.close()
            if not isinstance(error, CannotGo) or num_workers != "auto":
                raise
            why_here = str(error)
    with tried(factory, name, **how, keep_dice=True) as (traits, env):
        return Tried(traits, None, why_here, env)


def _open_starter(
    factory: Factory, n_envs: Count, num_workers: Count, start_timeout: float
) -> Starter:
    most = min([count_cores(), *(count for count in (n_envs, num_workers) if count != "auto")])
    start = ForkStarter if LINUX else SpawnStarter
    return start(packed(factory), count_cores() // most, start_timeout)


class _Attempt:
    """One process that tries an environment, and what it says meanwhile."""

    def __init__(
        self, starter: Starter, name: str, step_timeout: float, start_timeout: float
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
                self._process.close()
        return self._traits

    def _attend(self, timeout_s: float) -> None:
        listened: list[Any] = [self._starter] if self._starter.fileno() >= 0 else []
        if self._process is not None and not self._process.channel.closed:
            listened.append(self._process.channel)
        if listened:
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
        elif kind == "cannot go":
            raise CannotGo(f"a worker process cannot load the environment's factory: {rest[0]}")
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
            how, _code, _signal = how_it_ended(self._end.code)
            self._refuse(f"the process {how}", self._process.words())
        if time.monotonic() - self._since > limit:
            words = "" if self._process is None else self._process.stack()
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
