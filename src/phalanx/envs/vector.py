"""The pool as Gymnasium's VectorEnv."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from phalanx.envs.arrived import Arrived
from phalanx.envs.pool import Pool
from phalanx.errors import ConfigError


class PoolVectorEnv(VectorEnv[Any, Any, Any]):
    """`PoolVectorEnv(make_pool("CartPole-v1", n_envs=32))`, wherever a VectorEnv is wanted.

    An episode that ends begins anew in the same step; its last observation is
    infos["final_obs"][i] where infos["_final_obs"][i], its last info infos["final_info"].
    infos["episode"] has its return "r" and length "l"; infos["lost"] is True where an environment
    failed and was replaced. Masks are infos["action_mask"].
    """

    def __init__(self, pool: Pool) -> None:
        if pool.wait_for != pool.n_envs:
            raise ConfigError(
                f"a VectorEnv steps all environments at once: wait_for='all', not {pool.wait_for}"
            )
        self.pool, self.num_envs = pool, pool.n_envs
        self.metadata = {**pool.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = pool.single_observation_space
        self.single_action_space = pool.single_action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.render_mode = None
        self._reset_done = False

    def reset(
        self,
        *,
        seed: int | Sequence[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode everywhere. As in Gymnasium, environment i gets seed + i, or seed[i]."""
        if options:
            raise ConfigError(f"reset options do not reach the environments of a pool: {options}")
        if isinstance(seed, int | np.integer):
            seed = [int(seed) + i for i in range(self.num_envs)]
        self.pool.reset(seed)
        self._reset_done = True
        arrived = self.pool.recv()
        return arrived.obs, self._infos(arrived)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if not self._reset_done:
            raise ResetNeeded("call reset() before the first step()")
        self.pool.send(actions)
        arrived = self.pool.recv()
        return (
            arrived.obs,
            arrived.rewards,
            arrived.terminated,
            arrived.truncated,
            self._infos(arrived),
        )

    def _infos(self, arrived: Arrived) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        ended = arrived.terminated | arrived.truncated
        for i, info in enumerate(arrived.infos or ()):
            infos = self._add_info(infos, info, i)
        if ended.any():
            final_obs = np.full(self.num_envs, None, object)
            for i in np.flatnonzero(ended).tolist():
                final_obs[i] = _row(arrived.final_obs, i)
            counted = ended & ~arrived.lost
            infos["final_obs"], infos["_final_obs"] = final_obs, ended
            infos.setdefault("final_info", {})
            infos["_final_info"] = ended.copy()
            infos["episode"] = {
                "r": np.where(counted, arrived.episode_returns, 0.0),
                "_r": counted,
                "l": np.where(counted, arrived.episode_lengths, 0),
                "_l": counted,
            }
            infos["_episode"] = counted
        if arrived.lost.any():
            infos["lost"], infos["_lost"] = arrived.lost, arrived.lost.copy()
        if arrived.action_masks is not None:
            infos["action_mask"] = arrived.action_masks.view(np.int8)
            infos["_action_mask"] = np.ones(self.num_envs, np.bool_)
        return infos

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """An attribute, or what a method returns, of each environment."""
        return tuple(self.pool.call(name, *args, **kwargs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ConfigError(f"set_attr: {len(values)} values for {self.num_envs} environments")
        for i, value in enumerate(values):
            self.pool.call(f"{name}=", value, env_ids=[i])

    def close_extras(self, **kwargs: Any) -> None:
        self.pool.close()


def _row(rows: Any, i: int) -> Any:
    """Row i, in the structure of the space."""
    if isinstance(rows, dict):
        return {key: _row(part, i) for key, part in rows.items()}
    if isinstance(rows, tuple):
        return tuple(_row(part, i) for part in rows)
    return rows[i]
