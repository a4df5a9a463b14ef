"""The game as Stable-Baselines3's VecEnv."""

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.arrays import Array
from phalanx.cage2.settings import num_envs_of
from phalanx.cage2.vector import Attribute, Cage2VectorEnv
from phalanx.errors import ConfigError, MissingError

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:
    raise MissingError('Stable-Baselines3 is not installed: pip install "phalanx[sb3]"') from None

Indices = None | int | slice | Iterable[int]  # of networks; None: all


class Cage2VecEnv(VecEnv):  # type: ignore[misc]
    """A compiled batch for SB3: `PPO("MlpPolicy", Cage2VecEnv(256, red_agent="meander"))`.

    The settings are those of `Cage2VectorEnv`. At the end of an episode infos[i] holds SB3's
    "terminal_observation", "TimeLimit.truncated" and "episode" (r, l): PPO needs no Monitor, and
    `evaluate_policy` warns unless it is given VecMonitor(envs).
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
        obs, _ = self.envs.reset(seed=self._seeds)
        self._reset_seeds()
        self._reset_options()
        return obs

    def step_async(self, actions: Array) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, object]]]:
        assert self._actions is not None
        obs, rewards, _, truncated, batch_infos = self.envs.step(self._actions)
        infos: list[dict[str, object]] = [{} for _ in range(self.num_envs)]
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

    def set_options(
        self, options: Sequence[dict[str, object]] | dict[str, object] | None = None
    ) -> None:
        if any([options] if isinstance(options, dict) else options or ()):
            raise ConfigError(
                f"CAGE-2 knows no options of reset, got {options}; settings are given when the "
                "networks are made"
            )
        super().set_options(options)

    def render(self, mode: str | None = None) -> str | None:
        """All networks as one text, with render_mode="ansi"."""
        pictures = self.envs.render() if mode in (None, self.render_mode) else None
        return super().render(mode) if pictures is None else "\n\n".join(pictures)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Attribute]:
        return self.envs.get_of(attr_name, self._chosen(indices))

    def set_attr(self, attr_name: str, value: object, indices: Indices = None) -> None:
        chosen = self._chosen(indices)
        self.envs.set_of(attr_name, [value] * len(chosen), chosen)

    def env_method(
        self,
        method_name: str,
        *method_args: object,
        indices: Indices = None,
        **method_kwargs: object,
    ) -> list[Attribute]:
        chosen = self._chosen(indices)
        return self.envs.call_of(method_name, chosen, *method_args, **method_kwargs)

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        return [False] * len(self._chosen(indices))  # the networks are records, not environments

    def _chosen(self, indices: Any) -> list[int]:
        """Indices of any kind as a list: None for all, a number, a slice, a mask, or several."""
        every = range(self.num_envs)
        if indices is None or isinstance(indices, slice):
            return list(every if indices is None else every[indices])
        if isinstance(indices, np.ndarray) and indices.dtype == np.bool_:
            indices = np.flatnonzero(indices)
        several = [indices] if np.ndim(indices) == 0 and hasattr(indices, "__index__") else indices
        numbers = [operator.index(one) for one in several]
        for number in numbers:
            if not -self.num_envs <= number < self.num_envs:
                raise IndexError(f"there is no network {number} among {self.num_envs}")
        return [every[number] for number in numbers]
