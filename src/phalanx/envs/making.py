"""Build a pool: settings checked, one environment tried, workers chosen and started."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from gymnasium import Env
from gymnasium.vector import AutoresetMode

from phalanx.envs.auto import choose_num_envs, choose_workers
from phalanx.envs.closing import close_in_time
from phalanx.envs.factories import Factory, OneEach, WithOptions
from phalanx.envs.faults import Fault, FaultLog
from phalanx.envs.first_try import try_first
from phalanx.envs.pool import ObservationMode, Pool
from phalanx.envs.serial import Serial
from phalanx.envs.settings import Count, checked_rules, checked_settings
from phalanx.envs.shared_memory import Board, Shape
from phalanx.envs.starter import Starter
from phalanx.envs.trial import EnvSpec, EnvTraits, factory_of
from phalanx.envs.worker import PoolSetup
from phalanx.envs.workers import Workers, open_workers
from phalanx.errors import ConfigError


def make_pool(
    env: EnvSpec,
    *,
    n_envs: Count | None = None,
    num_envs: Count | None = None,
    num_workers: int | Literal["auto", "serial"] = "auto",
    wait_for: int | Literal["all"] = "all",
    seed: int = 0,
    infos: bool = True,
    options: dict[str, Any] | None = None,
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
    count, asked_for, wait_for, seed = checked_settings(
        n_envs=n_envs, num_envs=num_envs, num_workers=num_workers, wait_for=wait_for, seed=seed,
        infos=infos, step_timeout=step_timeout, start_timeout=start_timeout,
        max_restarts=max_restarts, on_fault=on_fault,
    )  # fmt: skip
    rules = checked_rules(autoreset_mode, observation_mode)
    if isinstance(factory, OneEach) and count != len(factory.factories):
        raise ConfigError(f"n_envs = {count}: env is a list of {len(factory.factories)} factories")
    if options is not None:
        factory = WithOptions(factory, options)
    if not trial and "auto" in (count, asked_for):
        raise ConfigError("trial = False: n_envs and num_workers must be numbers, not 'auto'")
    shown, starter, why_here, tried_env = try_first(
        factory,
        name,
        seed=seed,
        n_envs=count,
        num_workers=asked_for,
        step_timeout=step_timeout,
        start_timeout=start_timeout,
        alike=rules.alike,
        only_build=not trial,
    )
    if count == "auto":
        count = choose_num_envs(shown.step_s, shown.cpu_share)
        wait_for = wait_for if wait_for == "all" else min(wait_for, count)
    if why_here:
        workers, reason = 0, f"serial: {why_here}"
    elif asked_for == "auto":
        workers, reason = choose_workers(count, shown.step_s, shown.cpu_share)
    else:
        workers = min(asked_for, count)
        reason = f"{workers} workers: as asked for"
    if workers and starter is not None:
        reason += starter.note
    setup = PoolSetup(
        observation_space=shown.observations.space,
        action_space=shown.actions.space,
        shape=Shape(count, workers, shown.num_masked),
        seed=seed,
        infos=infos,
        rules=rules,
        wait_for=count if wait_for == "all" else wait_for,
        step_timeout_s=step_timeout,
        start_timeout_s=start_timeout,
    )
    log = FaultLog(max_restarts, on_fault)
    board, runner = _open_runner(setup, shown, factory, starter, tried_env, log)
    return Pool(setup, shown, board, runner, log, observation_mode=observation_mode, reason=reason)


def _open_runner(
    setup: PoolSetup,
    traits: EnvTraits,
    factory: Factory,
    starter: Starter | None,
    tried_env: Env[Any, Any] | None,
    log: FaultLog,
) -> tuple[Board, Serial | Workers]:
    """Let workers build the environments, or build them here."""
    if setup.shape.num_workers:
        assert starter is not None
        return open_workers(setup, traits, starter, log)
    if starter is not None:
        starter.close()
    board, here = Board(setup.shape, traits.observations, traits.actions), None
    try:
        here = Serial(setup, factory, board, log)
    finally:
        if tried_env is not None and (here is None or tried_env not in here.envs.values()):
            close_in_time([tried_env])
    return board, here


def opened(pool: Pool | Sequence[Factory], settings: dict[str, Any]) -> Pool:
    """A pool as it is, or one for these factories."""
    if not isinstance(pool, Pool):
        return make_pool(list(pool), **settings)
    if settings:
        raise ConfigError(f"settings of a pool are for make_pool: {', '.join(settings)}")
    return pool
