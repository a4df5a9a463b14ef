"""Build a pool: settings checked, one environment tried, workers chosen and started."""

import math
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, SupportsIndex

from gymnasium import Space
from gymnasium.vector import AutoresetMode

from phalanx.envs.auto import choose_num_envs, choose_workers
from phalanx.envs.factories import EnvSpec, Factory, OneEach, close_in_time, factory_of
from phalanx.envs.faults import Fault, FaultLog
from phalanx.envs.pool import ObservationMode, Pool
from phalanx.envs.serial import Serial
from phalanx.envs.shared_memory import Options, PoolSetup
from phalanx.envs.trial import Count, try_first
from phalanx.envs.workers import open_workers
from phalanx.errors import ConfigError, KindError


def make_pool(
    env: EnvSpec,
    *,
    n_envs: Count | None = None,
    num_envs: Count | None = None,
    num_workers: int | Literal["auto", "serial"] = "auto",
    wait_for: int | Literal["all"] = "all",
    seed: int = 0,
    infos: bool = True,
    options: Options | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    observation_mode: ObservationMode = "same",
    trial: bool = True,
    step_timeout: float = 60.0,
    start_timeout: float = 120.0,
    max_restarts: int = 20,
    on_fault: Callable[[Fault], None] | None = None,
) -> Pool:
    """Build `n_envs` copies of an environment, in this process or in workers.

    env: a Gymnasium id, "module:factory", a function without arguments that builds one, or a list
        with such a function for each environment (then `n_envs` need not be given).
    n_envs: how many; "auto" tries the environment first: 64 of those that wait, else 16.
        (`num_envs` is another name for it.)
    num_workers: processes, each with a block of the environments; 0 or "serial" for none;
        "auto" tries the environment first, and says why in `pool.reason`.
    wait_for: how many rows `recv` waits for.
    seed: environment i throws dice of (seed, i), wherever it runs.
    infos: False drops what environments tell besides; masks come all the same.
    options: for every reset that is given none, automatic ones included.
    autoreset_mode: when the next episode begins, as Gymnasium says it: SAME_STEP (the row of the
        last step has the first observation), NEXT_STEP (the next action is not played), DISABLED
        (the caller resets).
    observation_mode: "different" lets the bounds of observations differ among environments; so does
        a tuple of the batched and the single space, which are then those of `PoolVectorEnv`.
    trial: False only builds the first environment, without a reset and a step: for those that are
        to be prepared by `call` first. Masks then come among the infos.
    step_timeout: seconds after which a step or reset is taken to hang. Counted while `recv` waits.
    start_timeout: seconds in which a worker must have built its environments.
    max_restarts: failures, of environments and workers together, after which `recv` raises.
    on_fault: called with each `Fault`; they are also kept in `pool.faults`.

    One environment is tried first, in a process of its own: one that hangs or crashes is refused.
    Only with num_workers=0 it is tried in this process, where all of them are to be.
    """
    factory, name = factory_of(env)
    if isinstance(factory, OneEach) and n_envs is None and num_envs is None:
        n_envs = len(factory.factories)
    count = num_envs if n_envs is None else n_envs
    if count is None or (n_envs is not None and num_envs is not None):
        given = "neither is given" if n_envs is None else f"both are given: {n_envs} and {num_envs}"
        raise ConfigError(f"n_envs and num_envs are two names for one number; {given}")
    if count != "auto":
        count = whole("n_envs", count, 1, "a number of environments, or 'auto'")
    if num_workers == "serial":
        num_workers = 0
    elif num_workers != "auto":
        num_workers = whole("num_workers", num_workers, 0, "a number, 'auto' or 'serial'")
    if wait_for != "all":
        most = math.inf if count == "auto" else count  # of "auto", it is cut to fit later
        wait_for = whole("wait_for", wait_for, 1, f"'all', or 1 to n_envs = {count}", most)
    seed = whole("seed", seed, 0, "a whole number that is not negative")
    if not isinstance(infos, bool):
        raise ConfigError(f"infos = {infos!r:.60}: True or False")
    for key, value in (("step_timeout", step_timeout), ("start_timeout", start_timeout)):
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not is_number or not 0 < value < math.inf:
            raise ConfigError(f"{key} = {value!r:.60}: seconds, more than 0 and finite")
    whole("max_restarts", max_restarts, 0, "a number; 0 is for none")
    if not (on_fault is None or callable(on_fault)):
        raise ConfigError(f"on_fault = {on_fault!r:.60}: a function that takes a Fault, or None")
    autoreset, alike = checked_modes(autoreset_mode, observation_mode)
    if isinstance(factory, OneEach) and count != len(factory.factories):
        raise ConfigError(f"n_envs = {count}: env is a list of {len(factory.factories)} factories")
    if not trial and "auto" in (count, num_workers):
        raise ConfigError("trial = False: n_envs and num_workers must be numbers, not 'auto'")
    traits, starter, why_here, tried_env = try_first(
        factory,
        name,
        n_envs=count,
        num_workers=num_workers,
        step_timeout=step_timeout,
        start_timeout=start_timeout,
        seed=seed,
        options=options,
        alike=alike,
        only_build=not trial,
    )
    if count == "auto":
        count = choose_num_envs(traits.step_s, traits.cpu_share)
    if starter is None:
        workers, reason = 0, f"serial: {why_here}"
    elif num_workers == "auto":
        workers, reason = choose_workers(count, traits.step_s, traits.cpu_share)
    else:
        workers = min(num_workers, count)
        reason = f"{workers} workers: as asked for"
    if workers and starter is not None:
        reason += starter.note
    setup = PoolSetup(
        traits=traits,
        n_envs=count,
        num_workers=workers,
        seed=seed,
        infos=infos,
        options=options,
        autoreset=autoreset,
        alike=alike,
        wait_for=count if wait_for == "all" else min(wait_for, count),
        step_timeout_s=step_timeout,
        start_timeout_s=start_timeout,
    )
    log = FaultLog(max_restarts, on_fault)
    if starter is not None:
        if workers:
            there = open_workers(setup, starter, log)
            return Pool(setup, there, log, observation_mode, reason)
        starter.close()
    here = None
    try:
        here = Serial(setup, factory, log)
    finally:  # the factory may have given the same one again
        if tried_env is not None and (here is None or tried_env not in here.envs.values()):
            close_in_time([tried_env])
    return Pool(setup, here, log, observation_mode, reason)


def checked_modes(autoreset_mode: object, observation_mode: object) -> tuple[AutoresetMode, bool]:
    """When the next episode begins, and whether observation spaces may differ in their bounds."""
    try:
        autoreset = AutoresetMode(autoreset_mode)
    except ValueError:
        allowed = ", ".join(repr(mode.value) for mode in AutoresetMode)
        raise ConfigError(f"autoreset_mode = {autoreset_mode!r:.60}: one of {allowed}") from None
    pair = observation_mode if isinstance(observation_mode, tuple) else ()
    if observation_mode not in ("same", "different") and len(pair) != 2:
        raise ConfigError(
            "Invalid `observation_mode`, expected: 'same' or 'different' or tuple of single and "
            f"batch observation space, actual got {observation_mode}"
        )
    if not all(isinstance(one, Space) for one in pair):
        raise KindError(
            "Expected both elements of observation_mode to be Spaces, got "
            f"{type(pair[0])} and {type(pair[1])}"
        )
    return autoreset, observation_mode != "same"


def whole(name: str, value: SupportsIndex, least: int, allowed: str, most: float = math.inf) -> int:
    """A whole number of a kind that has no fraction, in its range."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or not least <= number <= most:
        raise ConfigError(f"{name} = {value!r:.60}: {allowed}")
    return number


def opened(pool: Pool | Sequence[Factory], settings: dict[str, Any], face: str) -> Pool:
    """A pool as it is, or one for these factories; `face` steps all environments at once."""
    if not isinstance(pool, Pool):
        pool = make_pool(list(pool), **settings)
    elif settings:
        raise ConfigError(f"settings of a pool are for make_pool: {', '.join(settings)}")
    if pool.wait_for != pool.n_envs:
        raise ConfigError(
            f"{face} steps all environments at once: wait_for='all', not {pool.wait_for}"
        )
    return pool
