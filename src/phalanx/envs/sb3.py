"""The pool as Stable-Baselines3's VecEnv."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.envs.pool import Pool
from phalanx.envs.vector import _row
from phalanx.errors import ConfigError, MissingError

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:
    raise MissingError('Stable-Baselines3 is not installed: pip install "phalanx[sb3]"') from None

Array = npt.NDArray[Any]


class PoolVecEnv(VecEnv):  # type: ignore[misc]
    """`PPO("MlpPolicy", PoolVecEnv(make_pool("CartPole-v1", n_envs=32)))`.

    At the end of an episode infos[i] holds SB3's "terminal_observation", "TimeLimit.truncated" and
    "episode" (r, l), so no Monitor is needed. Where "lost" is true, the environment failed and was
    replaced: the episode has no statistics.
    """

    def __init__(self, pool: Pool) -> None:
        if pool.wait_for != pool.n_envs:
            raise ConfigError(
                f"a VecEnv steps all environments at once: wait_for='all', not {pool.wait_for}"
            )
        self.pool = pool
        self._masks: npt.NDArray[np.bool_] | None = None
        super().__init__(pool.n_envs, pool.single_observation_space, pool.single_action_space)

    def reset(self) -> Any:
        if any(self._options):
            raise ConfigError("reset options do not reach the environments of a pool")
        seeds = [seed for seed in self._seeds if seed is not None]
        self.pool.reset(seeds if len(seeds) == self.num_envs else None)
        arrived = self.pool.recv()
        self.reset_infos = arrived.infos or [{} for _ in range(self.num_envs)]
        self._masks = arrived.action_masks
        self._reset_seeds()
        self._reset_options()
        return arrived.obs

    def step_async(self, actions: Array) -> None:
        self.pool.send(actions)

    def step_wait(self) -> tuple[Any, Array, Array, list[dict[str, Any]]]:
        arrived = self.pool.recv()
        self._masks = arrived.action_masks
        infos = arrived.infos or [{} for _ in range(self.num_envs)]
        dones = arrived.terminated | arrived.truncated
        for i in np.flatnonzero(dones).tolist():
            self.reset_infos[i] = {k: v for k, v in infos[i].items() if k != "final_info"}
            infos[i] = {
                **infos[i].get("final_info", {}),
                "terminal_observation": _row(arrived.final_obs, i),
                "TimeLimit.truncated": bool(arrived.truncated[i] and not arrived.terminated[i]),
            }
            if arrived.lost[i]:
                infos[i]["lost"] = True
            else:
                infos[i]["episode"] = {
                    "r": float(arrived.episode_returns[i]),
                    "l": int(arrived.episode_lengths[i]),
                }
        return arrived.obs, arrived.rewards.astype(np.float32), dones, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """bool [N, actions], for sb3-contrib's MaskablePPO."""
        if self._masks is None:
            raise ConfigError("these environments give no info['action_mask']")
        return self._masks

    def close(self) -> None:
        self.pool.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return self.pool.call(attr_name, env_ids=self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        self.pool.call(f"{attr_name}=", value, env_ids=self._chosen(indices))

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        if method_name == "action_masks" and self._masks is not None:
            return [self._masks[i] for i in self._chosen(indices)]
        return self.pool.call(
            method_name, *method_args, env_ids=self._chosen(indices), **method_kwargs
        )

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [wrapper_class is Monitor] * len(self._chosen(indices))  # its infos are here

    def _chosen(self, indices: int | Sequence[int] | None) -> list[int]:
        return list(self._get_indices(indices))
