"""The environments of one process, stepped one after the other.

The same code serves in the caller's process and in a worker, so that both give the same rows. An
environment that raises, or gives what its space does not allow, is built again; the rest of the
block goes on.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector import AutoresetMode

from phalanx.envs.factories import AnyEnv, Factory, build, close_in_time
from phalanx.envs.faults import Fault, failed_env
from phalanx.envs.layout import Layout, Value, WrongValue
from phalanx.envs.shared_memory import (
    BEGIN,
    IDLE,
    INFO,
    LOST,
    RECOVER,
    SEED,
    TERMINATED,
    TRUNCATED,
    WITH_OPTIONS,
    Board,
    Options,
    PoolSetup,
    block_of,
    numbers,
)
from phalanx.errors import ConfigError

Obs = Value
Action = Value
Info = dict[str, Value]
Step = tuple[Obs, float, bool, bool, Info]


class SpacesDiffer(ConfigError, RuntimeError):
    """An environment whose spaces are not those of the first one."""


class Block(ABC):
    """The environments of a worker, or all of a pool; their rows are on the board.

    block.play([~0, ~1, ~2, ~3])     # follow their orders: begin
    block.play([0, 1, 2, 3])         # step them with the actions on the board
    """

    def __init__(
        self, setup: PoolSetup, factory: Factory, board: Board, number: int | None = None
    ) -> None:
        """number: of the worker, if this is not the caller's own process."""
        self._build, self._setup, self.board = partial(build, factory), setup, board
        self._write = board.observations.writer(board.obs)
        self._write_final = board.observations.writer(board.final_obs)
        self._read_action = board.action_layout.reader(board.actions)
        self._rewards, self._flags = numbers(board.rewards), numbers(board.flags)
        self._now, self._number = numbers(board.now), number
        worker = self._worker = number or 0
        indices = block_of(worker, setup.n_envs, max(setup.num_workers, 1))
        self._returns = dict.fromkeys(indices, 0.0)
        self._lengths = dict.fromkeys(indices, 0)
        self._publish: Callable[[int], None] | None = None  # is told of each row that is written
        self.infos: dict[int, Info] = {}
        """what the environments told in the rows that were not yet fetched"""
        self.envs: dict[int, AnyEnv] = {}
        self._steps: dict[int, Callable[[Action], Value]] = {}
        for i in indices:
            self._now[worker] = i
            self._place(i, self._build(i))
        self._now[worker] = IDLE

    @abstractmethod
    def _report(self, fault: Fault) -> None:
        """Tell the caller of an environment that failed."""

    @abstractmethod
    def _options_for(self, i: int) -> Options:
        """What the caller sent for the reset of environment i."""

    def play(self, requests: Iterable[int]) -> None:
        """Step environment i for each i, or follow the order of environment ~i."""
        remaining = iter(requests)
        while True:
            try:
                self._play(remaining)
                break
            except Exception as error:
                at = self._now[self._worker]
                self._replace(at if at >= 0 else ~at, error, stepped=at >= 0)
        self._now[self._worker] = IDLE

    def _play(self, remaining: Iterable[int]) -> None:
        now, worker, publish, steps = self._now, self._worker, self._publish, self._steps
        read_action, write = self._read_action, self._write
        flags, rewards = self._flags, self._rewards
        returns, lengths = self._returns, self._lengths
        highest, lowest = float("inf"), -float("inf")
        for i in remaining:
            now[worker] = i
            if i < 0:
                i = ~i
                self._follow_order(i)
            else:
                obs, reward, terminated, truncated, info = steps[i](read_action(i))
                if not lowest < reward < highest:
                    raise WrongValue(f"reward is {reward}, not a finite number")
                rewards[i] = reward
                returns[i] += reward
                lengths[i] += 1
                if (terminated is not False or truncated is not False) and (
                    ended := ending(terminated, truncated)
                ):
                    self._end(i, obs, ended, info)
                else:
                    write(i, obs)
                    flags[i] = 0
                    if info:
                        self._tell(i, info)
            if publish is not None:
                publish(i)

    def _end(self, i: int, obs: Obs, ended: int, info: Info) -> None:
        """Keep the last observation and the statistics; begin the next episode, if it is time."""
        self._write_final(i, obs)
        self.board.episode_returns[i] = self._returns[i]
        self.board.episode_lengths[i] = self._lengths[i]
        final = checked_info(info or {})
        if self._setup.autoreset is AutoresetMode.SAME_STEP:
            first, reset_info = self._reset(i)
            self._start(i, first, {**reset_info, "final_info": final} if final else reset_info)
            self._flags[i] |= ended
            return
        self._write(i, obs)
        self._flags[i] = ended
        if final:
            self._tell(i, final)
        if self._setup.autoreset is AutoresetMode.NEXT_STEP:
            self._steps[i] = partial(self._begin_instead, i)

    def _begin_instead(self, i: int, _action: Action) -> Step:
        """The step after the last: the action is not played, the next episode begins."""
        first, info = self._reset(i)
        self._steps[i] = self.envs[i].step
        self._returns[i], self._lengths[i] = 0.0, -1  # so that this one does not count
        return first, 0.0, False, False, info

    def _follow_order(self, i: int) -> None:
        order = int(self.board.orders[i])
        self._rewards[i] = 0.0
        if order == RECOVER:
            self._recover(i)
            return
        given: dict[str, object] = {}
        if order & WITH_OPTIONS:
            given["options"] = self._options_for(i)
        if order & ~WITH_OPTIONS == SEED:
            given["seed"] = int(self.board.seeds[i])
        else:
            assert order & ~WITH_OPTIONS == BEGIN
        self._start(i, *self._reset(i, **given))

    def _reset(self, i: int, **given: Any) -> tuple[Obs, Info]:
        if self._setup.options is not None:
            given.setdefault("options", deepcopy(self._setup.options))
        return checked_reset(self.envs[i].reset(**given))

    def _start(self, i: int, first: Obs, info: Info) -> None:
        """The first row of an episode."""
        self._write(i, first)
        self._steps[i] = self.envs[i].step
        self._returns[i], self._lengths[i] = 0.0, 0
        self._flags[i] = 0
        if info:
            self._tell(i, info)

    def _tell(self, i: int, info: Info) -> None:
        """The mask goes to the board; the rest is kept for whoever wants infos."""
        info = checked_info(info)
        if self.board.num_masked and "action_mask" in info:
            mask = np.asarray(info["action_mask"])
            if mask.shape != self.board.masks.shape[1:]:
                raise WrongValue(
                    f"action_mask has shape {mask.shape}; at first it was "
                    f"{self.board.masks.shape[1:]}"
                )
            self.board.masks[i] = mask
            info = {k: v for k, v in info.items() if k != "action_mask"}
        if info and self._setup.infos:
            self.infos[i] = info
            self._flags[i] |= INFO

    # --- an environment that failed ---------------------------------------------------------------

    def _replace(self, i: int, error: Exception, *, stepped: bool) -> None:
        """Build environment i again until it begins an episode; its row says that one was lost."""
        has_action = stepped and isinstance(self.board.action_layout, Layout)
        action = self._read_action(i) if has_action else None
        pause_s = 0.0
        while True:
            self._report(failed_env(self._number, i, error, action))
            time.sleep(pause_s)
            pause_s = min(2 * pause_s + 0.02, 2.0)
            close_in_time([self.envs[i]])
            try:
                self._place(i, self._build(i))
                self._rewards[i] = 0.0
                self._recover(i)
            except Exception as another:
                error, action = another, None
            else:
                break
        if self._publish is not None:
            self._publish(i)

    def _recover(self, i: int) -> None:
        """Begin a fresh episode after a loss, with dice that were not used before."""
        board = self.board
        board.losses[i] += 1
        fresh = np.random.SeedSequence([int(board.seeds[i]), int(board.losses[i])])
        self.infos.pop(i, None)
        seed = int(fresh.generate_state(1)[0])
        self._start(i, *self._reset(i, seed=seed))
        board.episode_returns[i], board.episode_lengths[i] = np.nan, -1
        self._flags[i] |= TRUNCATED | LOST

    def _place(self, i: int, env: AnyEnv) -> None:
        seen, acts = self.board.observations.space, self.board.action_layout.space
        if self._setup.alike and not is_space_dtype_shape_equiv(env.observation_space, seen):
            raise SpacesDiffer(
                f"its observation space is {env.observation_space}, of another shape or dtype than "
                f"the first environment's, {seen}"
            )
        if not self._setup.alike and env.observation_space != seen:
            raise SpacesDiffer(
                f"its observation space is {env.observation_space}, that of the first {seen}: the "
                "sub-environments observation spaces are not equivalent. If this is "
                "intentional, use `observation_mode='different'` instead."
            )
        if env.action_space != acts:
            raise SpacesDiffer(
                f"its action space is {env.action_space}; the first environment's was {acts}"
            )
        if any(env is other for k, other in self.envs.items() if k != i):
            raise WrongValue(
                "the factory gave the same environment as before; it must build a new one each time"
            )
        self.envs[i] = env
        self._steps[i] = env.step

    def close(self) -> None:
        close_in_time(self.envs.values())


# --- what environments may answer, besides observations: those are checked by their layout --------


def checked_reset(answer: object) -> tuple[Obs, Info]:
    """(observation, info)"""
    if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], dict):
        raise WrongValue("not (observation, info); environments of old gym need a wrapper")
    return answer


def checked_step(answer: object) -> Step:
    """(observation, reward, terminated, truncated, info)"""
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise WrongValue("not (observation, reward, terminated, truncated, info)")
    obs, reward, terminated, truncated, info = answer
    if not -np.inf < reward < np.inf:
        raise WrongValue(f"reward is {reward}, not a finite number")
    ended = checked_flag(terminated, "terminated"), checked_flag(truncated, "truncated")
    return obs, float(reward), *ended, checked_info(info)


def ending(terminated: object, truncated: object) -> int:
    """The flags of a row whose environment says so."""
    said = checked_flag(terminated, "terminated"), checked_flag(truncated, "truncated")
    return TERMINATED * said[0] | TRUNCATED * said[1]


def checked_flag(value: object, name: str) -> bool:
    """Python's or numpy's booleans, and 0 and 1."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    given = np.asarray(value)
    if given.shape != () or given.dtype.kind not in "biu" or given not in (0, 1):
        raise WrongValue(f"{name} is {value!r:.60}, not True or False")
    return bool(given)


def checked_info(value: object) -> Info:
    if not isinstance(value, dict):
        raise WrongValue(f"info is {value!r:.60}, not a dict")
    return value
