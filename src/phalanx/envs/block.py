"""The environments of one process, stepped one after the other.

The same code serves in the caller's process and in a worker, so that both give the same rows. An
environment that raises, or gives what its space does not allow, is built anew; the rest of the
block goes on.
"""

import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from gymnasium import Env

from phalanx.envs.answers import checked_flag, checked_info, checked_reset
from phalanx.envs.closing import close_in_time
from phalanx.envs.layout import WrongValue
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
    Board,
    numbers,
)

Info = dict[str, Any]
Factory = Callable[[], Env[Any, Any]]
Publish = Callable[[int], None]  # row i is written


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
        publish: Publish | None = None,
        call: Callable[[Env[Any, Any]], None] | None = None,
    ) -> None:
        self._factory, self._board, self._report = factory, board, report
        self._publish, self._call, self._want_infos = publish, call, infos
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
            self._place(i, factory())
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
        read_action, write, flags, rewards = (
            self._read_action,
            self._write,
            self._flags,
            self._rewards,
        )
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
        """Keep the last observation and the statistics, and begin the next episode."""
        self._write_final(i, obs)
        self._board.episode_returns[i] = self._returns[i]
        self._board.episode_lengths[i] = self._lengths[i]
        first, reset_info = checked_reset(self.envs[i].reset())
        final = {k: v for k, v in checked_info(info or {}).items() if k != "action_mask"}
        self._start(i, first, {**reset_info, "final_info": final} if final else reset_info)
        self._flags[i] |= ended

    def _follow_order(self, i: int) -> None:
        order = int(self._board.orders[i])
        if order == CALL and self._call is not None:
            self._call(self.envs[i])
            return
        self._rewards[i] = 0.0
        if order == RECOVER:
            self._recover(i)
        elif order == SEED:
            self._start(i, *checked_reset(self.envs[i].reset(seed=int(self._board.seeds[i]))))
        else:
            assert order == BEGIN
            self._start(i, *checked_reset(self.envs[i].reset()))

    def _start(self, i: int, first: Any, info: Info) -> None:
        """The first row of an episode."""
        self._write(i, first)
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
        """Build environment i anew until it begins an episode; its row says that one was lost."""
        action = self._read_action(i) if stepped else None
        pause_s = 0.0
        while True:
            what = f"{type(error).__name__}: {error}".strip().removesuffix(":")
            trace = "".join(traceback.format_exception(error))
            self._report(env_id=i, what=what, trace=trace, action=action)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s + 0.02, 2.0)
            close_in_time([self.envs[i]])
            try:
                self._place(i, self._factory())
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
        for what, layout in (
            ("observation", self._board.observations),
            ("action", self._board.action_layout),
        ):
            space = getattr(env, f"{what}_space")
            if space != layout.space:
                raise WrongValue(
                    f"its {what} space is {space}; the first environment's was {layout.space}"
                )
        self.envs[i] = env
        self._steps[i] = env.step

    def close(self) -> None:
        close_in_time(self.envs.values())
