"""The game as Stable-Baselines3's VecEnv."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.settings import num_envs_of
from phalanx.cage2.vector import Cage2VectorEnv
from phalanx.errors import ConfigError, MissingError

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:
    raise MissingError('Stable-Baselines3 is not installed: pip install "phalanx[sb3]"') from None

Array = npt.NDArray[Any]


class Cage2VecEnv(VecEnv):  # type: ignore[misc]
    """A compiled batch for SB3: `PPO("MlpPolicy", Cage2VecEnv(256, red_agent="meander"))`.

    The settings are those of `Cage2VectorEnv`. At the end of an episode infos[i] holds SB3's
    "terminal_observation", "TimeLimit.truncated" and "episode" (r, l), so no Monitor is needed.
    """

    def __init__(
        self, num_envs: int | None = None, *, n_envs: int | None = None, **settings: Any
    ) -> None:
        if "autoreset_mode" in settings:
            raise ConfigError("SB3 wants the same-step autoreset; leave autoreset_mode out")
        num_envs = num_envs_of(num_envs, n_envs)
        self.envs = Cage2VectorEnv(num_envs, **settings)
        super().__init__(
            num_envs, self.envs.single_observation_space, self.envs.single_action_space
        )
        self._actions: Array | None = None

    def reset(self) -> Array:
        seeds = [seed for seed in self._seeds if seed is not None]
        obs, _ = self.envs.reset(seed=seeds if len(seeds) == self.num_envs else None)
        self._reset_seeds()
        self._reset_options()
        return obs

    def step_async(self, actions: Array) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        assert self._actions is not None
        obs, rewards, _, truncated, batch_infos = self.envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(truncated):
            infos[i] = {
                "terminal_observation": batch_infos["final_obs"][i],
                "TimeLimit.truncated": True,
                "episode": {
                    "r": float(batch_infos["episode_return"][i]),
                    "l": int(batch_infos["episode_length"][i]),
                },
            }
        return obs, rewards.astype(np.float32), truncated, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """bool [N, 145], for sb3-contrib's MaskablePPO."""
        return self.envs.action_masks()

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return self._by_network(getattr(self.envs, attr_name), indices)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self.envs, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        return self._by_network(
            getattr(self.envs, method_name)(*method_args, **method_kwargs), indices
        )

    def _by_network(self, value: Any, indices: Any) -> list[Any]:
        """One row for each chosen network; what is the same for all is repeated."""
        chosen = self._chosen(indices)
        if isinstance(value, np.ndarray) and value.shape[:1] == (self.num_envs,):
            return [value[i] for i in chosen]
        return [value] * len(chosen)

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [wrapper_class is Monitor] * len(self._chosen(indices))  # its infos are here

    def _chosen(self, indices: int | Sequence[int] | None) -> list[int]:
        return list(self._get_indices(indices))
