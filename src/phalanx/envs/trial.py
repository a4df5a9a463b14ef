"""The first environment: built and tried before any other, in a process of its own if there can be.

What cannot work is refused here, in one line; what hangs or crashes, ends there. How long a step
takes, and how much of that it computes rather than waits, decides how many workers there will be.
"""

import select
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from gymnasium import Env

from phalanx.envs.block import checked_reset, checked_step
from phalanx.envs.channel import Channel
from phalanx.envs.factories import AnyEnv, Factory, OneEach, close_in_time
from phalanx.envs.faults import how_it_ended
from phalanx.envs.layout import AnySpace, layout_of
from phalanx.envs.shared_memory import EnvTraits, Options
from phalanx.envs.starter import CannotGo, Ended, Started, Starter, open_starter
from phalanx.envs.thread_time import Account, quiet_mean
from phalanx.errors import ConfigError, WorkerError
from phalanx.machine import count_cores
from phalanx.system import kill

Count = int | Literal["auto"]

TRY_S = 0.2
MOST_STEPS = 6000
BEAT_S = 0.02  # a step that takes longer is told of
BUILDING = "building it"
CLOSE_S = 1.0  # how long the environment may take to close
TRY_OUT = -1  # in place of a worker's number


def try_first(
    factory: Factory,
    name: str,
    *,
    n_envs: Count,
    num_workers: Count,
    step_timeout: float,
    start_timeout: float,
    **how: Any,
) -> tuple[EnvTraits, Starter | None, str, AnyEnv | None]:
    """Try one environment, where the others will be; `how` is for `tried`.

    Returns what it has shown and who can start workers like it. If nobody can: why, and the
    environment itself, which was tried in this process and is still open.
    """
    how["measure"] = "auto" in (n_envs, num_workers)
    why_here = "as asked for"
    if num_workers != 0:
        starter: Starter | None = None
        try:
            counts = [count for count in (n_envs, num_workers) if count != "auto"]
            threads = count_cores() // min([count_cores(), *counts])
            starter = open_starter(factory, threads, start_timeout)
            process = starter.start(TRY_OUT, partial(report_trial, name=name, **how))
            traits = _heard(starter, process, name, step_timeout, start_timeout)
            if hasattr(factory, "prepare"):  # environments may tell of classes that it defines
                factory.prepare()
            return traits, starter, "", None
        except BaseException as error:
            if starter is not None:
                starter.close()
            if not isinstance(error, CannotGo) or num_workers != "auto":
                raise
            why_here = str(error)
    with tried(factory, name, **how, keep_dice=True) as (traits, env):
        return traits, None, why_here, env


def _heard(
    starter: Starter, process: Started | None, name: str, step_timeout: float, start_timeout: float
) -> EnvTraits:
    """What the process that tries the environment finds; ConfigError if it cannot be used."""
    if process is None:
        raise WorkerError("the process that tries the environment could not be started")
    traits: EnvTraits | None = None
    ends: list[Ended] = []
    doing, since = BUILDING, time.monotonic()
    try:
        while True:
            if process.channel.closed:
                time.sleep(0.005)  # it is about to end
            else:
                select.select([process.channel], [], [], 0.1)
            ends += starter.hear()
            for kind, *rest in process.channel.receive():
                since = time.monotonic()
                if kind == "doing":
                    doing = rest[0]
                elif kind == "traits":
                    traits = rest[0]
                elif kind == "cannot go":
                    what = "a worker process cannot load the environment's factory"
                    raise CannotGo(f"{what}: {rest[0]}")
                else:
                    assert kind == "refused"
                    raise _with_note(*rest)
            waited_s = time.monotonic() - since
            if traits is not None:
                if ends or starter.gone or waited_s > CLOSE_S:
                    return traits
                continue
            if starter.gone:
                raise WorkerError("the process that tries the environment was killed")
            limit, limit_s = "step_timeout", step_timeout
            if doing == BUILDING:
                limit, limit_s = "start_timeout", start_timeout
            if ends:
                how, words = f"the process {how_it_ended(ends[0].code)[0]}", process.words()
            elif waited_s > limit_s:
                how, words = f"it took longer than the {limit} of {limit_s:g} s", process.stack()
            else:
                continue
            raise _with_note(f"environment {name} cannot be used: in {doing} {how}", words)
    finally:
        if not ends:
            kill(process.pid)
        process.close()


def _with_note(what: str, words: str) -> ConfigError:
    error = ConfigError(what)
    if words:
        error.add_note(words)
    return error


@contextmanager
def tried(
    factory: Factory,
    name: str,
    *,
    seed: int,
    measure: bool,
    options: Options | None = None,
    alike: bool = False,
    only_build: bool = False,
    keep_dice: bool = False,
    tell: Callable[[str], None] = lambda doing: None,
) -> Iterator[tuple[EnvTraits, AnyEnv]]:
    """Build one environment, begin an episode, take a step; many, if it is to be measured.

    only_build: do not reset or step it.
    keep_dice: do not seed it; the factory may give the same one again, with dice of its own.
    tell: is called with what is done next, and at least once for every few steps.
    """
    doing = BUILDING
    try:
        tell(doing)
        env = factory()
        if not isinstance(env, Env):
            raise TypeError(f"got {type(env).__name__}, not a gymnasium.Env")
        try:
            observations = layout_of(env.observation_space, bounded=not alike)
            actions = layout_of(env.action_space)
            traits = EnvTraits(observations, actions, dict(env.metadata), env.render_mode)
            if not only_build:
                scratch = observations.rows(lambda leaf: np.zeros((1, *leaf.shape), leaf.dtype))
                write = observations.writer(scratch)
                given = {} if options is None else {"options": options}
                tell(doing := "reset(seed=…)")
                dice = None if keep_dice else seed
                obs, info = checked_reset(env.reset(seed=dice, **deepcopy(given)))
                write(0, obs)
                tell(doing := "its first step")
                possible = deepcopy(env.action_space)
                possible.seed(seed)
                write(0, checked_step(env.step(possible.sample()))[0])
                mask = np.ravel(info.get("action_mask", ()))
                traits = replace(traits, num_masked=len(mask), mask_dtype=mask.dtype)
                tell(doing := "its first steps")
                if measure:
                    step_s, cpu_share = _measure(env, given, possible, lambda: tell(doing))
                    traits = replace(traits, step_s=step_s, cpu_share=cpu_share)
            yield traits, env
        except BaseException:
            close_in_time([env])
            raise
    except ConfigError:
        raise
    except Exception as error:
        if keep_dice and isinstance(factory, OneEach):
            raise  # as Gymnasium and Stable-Baselines3 would let it through
        raise ConfigError(
            f"environment {name} cannot be used: {doing} gave {type(error).__name__}: {error}"
        ) from error


def report_trial(channel: Channel, factory: Factory, **settings: Any) -> int:
    """Try an environment out for whoever listens; returns the exit code of the process."""
    settings["tell"] = lambda doing: channel.send(("doing", doing))
    try:
        with tried(factory, **settings) as (traits, env):
            channel.send(("traits", traits))
            close_in_time([env])
    except ConfigError as error:
        trace = "".join(traceback.format_exception(error.__cause__ or error))
        channel.send(("refused", str(error), trace))
        return 1
    return 0


def _measure(
    env: AnyEnv, given: Options, possible: AnySpace, tell: Callable[[], None]
) -> tuple[float, float]:
    """Seconds of a step, and the share of them that was computing. Resets count too.

    They are those of a quiet machine: time in which others had the core does not count.
    """
    costs: list[float] = []
    ended, told, passed = True, 0.0, 0.0
    began, before = time.perf_counter(), Account.now()
    while len(costs) < 2 or (passed < TRY_S and len(costs) < MOST_STEPS):
        if passed - told > BEAT_S:
            tell()
            told = passed
        action, cpu_s = possible.sample(), time.thread_time()
        if ended:
            env.reset(**deepcopy(given))
        _obs, _reward, terminated, truncated, _info = env.step(action)
        ended = bool(terminated or truncated)
        costs.append(time.thread_time() - cpu_s)
        passed = time.perf_counter() - began
    spent = Account.now().since(before)
    computed_s = quiet_mean(costs) + spent.helped_s / len(costs)
    step_s = max(computed_s + spent.waited_s / len(costs), 1e-9)
    return step_s, min(computed_s / step_s, 1.0)
