"""The environments of one process, stepped one after the other.

The same code serves in the caller's process and in a worker, so that both give the same rows. An
environment that raises, or gives what its space does not allow, is built again; the rest of the
block goes on.
"""

import time
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import numpy as np
from gymnasium import Env
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector import AutoresetMode

from phalanx.envs.answers import checked_flag, checked_info, checked_reset
from phalanx.envs.closing import close_in_time
from phalanx.envs.factories import Factory, build
from phalanx.envs.layout import Layout, WrongValue
from phalanx.envs.settings import SAME, Rules
from phalanx.envs.shared_memory import (
    BEGIN,
    CALL,
    IDLE,
    INFO,
    LOST,
    RECOVER,
    SEED,
    TERMINATED,
    TRUNCATED,
    WITH_OPTIONS,
    Board,
    numbers,
)
from phalanx.errors import ConfigError

Info = dict[str, Any]
Publish = Callable[[int], None]  # row i is written
Post = Callable[[str, int], Any]  # what the caller sent of a kind for environment i


class SpacesDiffer(ConfigError, RuntimeError):
    """An environment whose spaces are not those of the first one."""


class Report(Protocol):
    """How a block tells of an environment that failed."""

    def __call__(self, env_id: int, what: str, trace: str, action: Any) -> None: ...


def ending(terminated: Any, truncated: Any) -> int:
    """The flags of a row whose environment says so."""
    said = checked_flag(terminated, "terminated"), checked_flag(truncated, "truncated")
    return TERMINATED * said[0] | TRUNCATED * said[1]


class Block:
    """Environments `indices` of a pool; their rows are on the board.

    block = Block(factory, range(0, 4), board, worker=0, report=report)
    block.play([~0, ~1, ~2, ~3])     # follow their orders: begin
    block.play([0, 1, 2, 3])         # step them with the actions on the board
    """

    def __init__(
        self,
        factory: Factory,
        indices: range,
        board: Board,
        *,
        worker: int,
        report: Report,
        infos: bool = True,
        rules: Rules = SAME,
        publish: Publish | None = None,
        call: Callable[[int, Env[Any, Any]], None] | None = None,
        post: Post | None = None,
    ) -> None:
        self._build = partial(build, factory)
        self._board, self._report = board, report
        self._autoreset, self._alike = rules
        self._publish, self._call, self._want_infos, self._post = publish, call, infos, post
        self._write = board.observations.writer(board.obs)
        self._write_final = board.observations.writer(board.final_obs)
        self._read_action = board.action_layout.reader(board.actions)
        self._rewards, self._flags = numbers(board.rewards), numbers(board.flags)
        self._now, self._worker = numbers(board.now), worker
        self._returns = dict.fromkeys(indices, 0.0)
        self._lengths = dict.fromkeys(indices, 0)
        self.infos: dict[int, Info] = {}
        """what the environments told in the rows that were not yet fetched"""
        self.envs: dict[int, Env[Any, Any]] = {}
        self._steps: dict[int, Callable[[Any], Any]] = {}
        for i in indices:
            self._now[worker] = i
            self._place(i, self._build(i))
        self._now[worker] = IDLE

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

    def _end(self, i: int, obs: Any, ended: int, info: Info) -> None:
        """Keep the last observation and the statistics; begin the next episode, if it is time."""
        self._write_final(i, obs)
        self._board.episode_returns[i] = self._returns[i]
        self._board.episode_lengths[i] = self._lengths[i]
        final = checked_info(info or {})
        if self._autoreset is AutoresetMode.SAME_STEP:
            first, reset_info = checked_reset(self.envs[i].reset())
            self._start(i, first, {**reset_info, "final_info": final} if final else reset_info)
            self._flags[i] |= ended
            return
        self._write(i, obs)
        self._flags[i] = ended
        if final:
            self._tell(i, final)
        if self._autoreset is AutoresetMode.NEXT_STEP:
            self._steps[i] = partial(self._begin_instead, i)

    def _begin_instead(self, i: int, _action: Any) -> tuple[Any, float, bool, bool, Info]:
        """The step after the last: the action is not played, the next episode begins."""
        first, info = checked_reset(self.envs[i].reset())
        self._steps[i] = self.envs[i].step
        self._returns[i], self._lengths[i] = 0.0, -1  # so that this one does not count
        return first, 0.0, False, False, info

    def _follow_order(self, i: int) -> None:
        order = int(self._board.orders[i])
        if order == CALL and self._call is not None:
            self._call(i, self.envs[i])
            return
        self._rewards[i] = 0.0
        if order == RECOVER:
            self._recover(i)
            return
        given: dict[str, Any] = {}
        if order & WITH_OPTIONS:
            assert self._post is not None
            given["options"] = self._post("options", i)
        if order & ~WITH_OPTIONS == SEED:
            given["seed"] = int(self._board.seeds[i])
        else:
            assert order & ~WITH_OPTIONS == BEGIN
        self._start(i, *checked_reset(self.envs[i].reset(**given)))

    def _start(self, i: int, first: Any, info: Info) -> None:
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
        if self._board.shape.num_masked and "action_mask" in info:
            mask = np.asarray(info["action_mask"])
            if mask.shape != self._board.masks.shape[1:]:
                raise WrongValue(
                    f"action_mask has shape {mask.shape}; at first it was "
                    f"{self._board.masks.shape[1:]}"
                )
            self._board.masks[i] = mask
            info = {k: v for k, v in info.items() if k != "action_mask"}
        if info and self._want_infos:
            self.infos[i] = info
            self._flags[i] |= INFO

    # --- an environment that failed ---------------------------------------------------------------

    def _replace(self, i: int, error: Exception, *, stepped: bool) -> None:
        """Build environment i again until it begins an episode; its row says that one was lost."""
        has_action = stepped and isinstance(self._board.action_layout, Layout)
        action = self._read_action(i) if has_action else None
        pause_s = 0.0
        while True:
            what = f"{type(error).__name__}: {error}".strip().removesuffix(":")
            trace = "".join(traceback.format_exception(error))
            self._report(env_id=i, what=what, trace=trace, action=action)
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
        board = self._board
        board.losses[i] += 1
        fresh = np.random.SeedSequence([int(board.seeds[i]), int(board.losses[i])])
        self.infos.pop(i, None)
        seed = int(fresh.generate_state(1)[0])
        self._start(i, *checked_reset(self.envs[i].reset(seed=seed)))
        board.episode_returns[i], board.episode_lengths[i] = np.nan, -1
        self._flags[i] |= TRUNCATED | LOST

    def _place(self, i: int, env: Env[Any, Any]) -> None:
        seen, acts = self._board.observations.space, self._board.action_layout.space
        if self._alike and not is_space_dtype_shape_equiv(env.observation_space, seen):
            raise SpacesDiffer(
                f"its observation space is {env.observation_space}, of another shape or dtype than "
                f"the first environment's, {seen}"
            )
        if not self._alike and env.observation_space != seen:
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
