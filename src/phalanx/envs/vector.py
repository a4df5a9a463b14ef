"""The pool as Gymnasium's VectorEnv."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_differing_spaces, batch_space

from phalanx.arrays import Array
from phalanx.envs.block import Action, Info, Obs
from phalanx.envs.factories import AnyEnv, Factory
from phalanx.envs.layout import Value
from phalanx.envs.making import opened
from phalanx.envs.pool import Pool
from phalanx.envs.received import Received
from phalanx.errors import ConfigError
from phalanx.reset_mask import checked_mask

Seeds = int | Sequence[int | None] | None
Step = tuple[Obs, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], Info]


class PoolVectorEnv(VectorEnv[Obs, Action, Array]):
    """`PoolVectorEnv(make_pool("CartPole-v1", n_envs=32))`, wherever a VectorEnv is wanted.

    Plays as Gymnasium's own vector environments do, in the pool's autoreset mode. Beside their keys
    infos["lost"] is there, and True, where an environment failed and was replaced. Returns and
    lengths of episodes are in `received`, as the pool gave them; or use RecordEpisodeStatistics. In
    place of a pool it takes a list of factories and settings of `make_pool`.
    """

    received: Received
    """all that the pool told of the last step or reset"""

    def __init__(self, pool: Pool | Sequence[Factory], **settings: object) -> None:
        pool = opened(pool, settings, "a VectorEnv")
        self.pool, self.num_envs = pool, pool.n_envs
        self.autoreset_mode = pool.autoreset_mode
        self.metadata = {**pool.metadata, "autoreset_mode": pool.autoreset_mode}
        self.render_mode = pool.render_mode
        self.single_action_space = pool.single_action_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.single_observation_space = pool.single_observation_space
        if isinstance(pool.observation_mode, tuple):
            self.observation_space, self.single_observation_space = pool.observation_mode
        elif pool.observation_mode == "different":
            self.observation_space = batch_differing_spaces(pool.call("observation_space"))
        else:
            self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._reset_done = False
        self._ended = np.zeros(self.num_envs, np.bool_)
        self._pending = ""  # what was begun, and not yet waited for

    # --- the calls --------------------------------------------------------------------------------

    def reset(self, *, seed: Seeds = None, options: Info | None = None) -> tuple[Obs, Info]:
        """Begin an episode everywhere, or where options["reset_mask"] is True.

        As in Gymnasium, environment i gets seed + i, or seed[i]; or no seed, and throws dice that
        nobody knows. Other options reach every environment that is reset.
        """
        self.reset_async(seed, options)
        return self.reset_wait()

    def reset_async(self, seed: Seeds = None, options: Info | None = None) -> None:
        """Begin a reset, which `reset_wait` ends."""
        self._begin("reset")
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + i for i in range(self.num_envs)]
        elif len(seed) == self.num_envs:
            seeds = list(seed)
        else:
            raise ConfigError(f"reset: {len(seed)} seeds for {self.num_envs} environments")
        mask = checked_mask(options, self.num_envs)
        others = {key: value for key, value in (options or {}).items() if key != "reset_mask"}
        ids = np.flatnonzero(mask)
        self.pool.reset([seeds[i] for i in ids.tolist()], ids, others)
        self._ended[mask] = False
        self._pending, self._reset_done = "reset", True

    def reset_wait(self, timeout: float | None = None) -> tuple[Obs, Info]:
        received = self._finish("reset", timeout)
        are_all = len(received.env_ids) == self.num_envs
        return received.obs if are_all else self.pool.last_obs(), self._infos(received)

    def step(self, actions: Action) -> Step:
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Action) -> None:
        """Begin a step, which `step_wait` ends."""
        self._begin("step")
        if not self._reset_done:
            raise ResetNeeded("call reset() before the first step()")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            ended = np.flatnonzero(self._ended)
            raise ResetNeeded(f"episodes of {ended} have ended: reset(options={{'reset_mask': …}})")
        self.pool.send(actions, self.pool.everybody)
        self._pending = "step"

    def step_wait(self, timeout: float | None = None) -> Step:
        received = self._finish("step", timeout)
        self._ended = received.terminated | received.truncated
        obs, rewards, terminated, truncated = received[1:5]
        return obs, rewards, terminated, truncated, self._infos(received)

    def _begin(self, what: str) -> None:
        self.pool.check_open()
        if self._pending:
            raise AlreadyPendingCallError(
                f"Calling `{what}_async` while waiting for a pending call to `{self._pending}` to "
                "complete",
                self._pending,
            )

    def _finish(self, what: str, timeout: float | None) -> Received:
        self.pool.check_open()
        if self._pending != what:
            raise NoAsyncCallError(
                f"Calling `{what}_wait` without any prior call to `{what}_async`.", what
            )
        self.received = self.pool.recv(timeout)
        self._pending = ""
        return self.received

    # --- what environments tell -------------------------------------------------------------------

    def _infos(self, received: Received) -> Info:
        infos: Info = {}
        ids, ended = received.env_ids.tolist(), received.terminated | received.truncated
        if received.infos is not None:
            for i, info in zip(ids, received.infos, strict=True):
                infos = self._add_info(infos, info, i)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any():
            infos.setdefault("final_info", {})
            infos["final_obs"] = np.full(self.num_envs, None, object)
            for i in np.flatnonzero(ended).tolist():
                infos["final_obs"][i] = self.pool.row(received.final_obs, i)
            infos["_final_obs"], infos["_final_info"] = ended, ended.copy()
        if received.lost.any():
            infos["lost"], infos["_lost"] = received.lost, received.lost.copy()
        if received.action_masks is not None:
            given = np.zeros(self.num_envs, np.bool_)
            given[ids] = True
            masks = np.zeros((self.num_envs, received.action_masks.shape[1]), self.pool.mask_dtype)
            masks[ids] = received.action_masks
            infos["action_mask"], infos["_action_mask"] = masks, given
        return infos

    def call(self, name: str, *args: object, **kwargs: Any) -> tuple[Value, ...]:
        """An attribute, or what a method returns, of each environment."""
        return tuple(self.pool.call(name, *args, **kwargs))

    def get_attr(self, name: str) -> tuple[Value, ...]:
        return self.call(name)

    def set_attr(self, name: str, values: object) -> None:
        """One value for all environments, or a list or tuple with one for each."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ConfigError(f"set_attr: {len(values)} values for {self.num_envs} environments")
        for i, value in enumerate(values):
            self.pool.call(f"{name}=", value, env_ids=[i])

    def render(self) -> tuple[Value, ...]:
        """What each environment renders, in the mode that it was made with."""
        return self.call("render")

    @property
    def envs(self) -> list[AnyEnv]:
        """The environments themselves, if they are in this process."""
        return self.pool.envs

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed of each environment's own dice."""
        return self.get_attr("np_random_seed")

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Each environment's own dice; copies, if it is in a worker."""
        return self.get_attr("np_random")

    def close_extras(self, **_kwargs: object) -> None:
        """End all workers, also those that are at work."""
        if self._pending:
            warnings.warn(
                f"Calling `close` while waiting for a pending call to `{self._pending}` to "
                "complete.",
                stacklevel=3,
            )
        self.pool.close()
