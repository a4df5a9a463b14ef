"""The pool as Stable-Baselines3's VecEnv."""

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from phalanx.arrays import Array
from phalanx.envs.block import Info
from phalanx.envs.factories import AnyEnv, Factory, is_wrapped
from phalanx.envs.layout import Rows, Value
from phalanx.envs.making import opened
from phalanx.envs.pool import Pool
from phalanx.errors import ConfigError, MissingError

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:
    raise MissingError('Stable-Baselines3 is not installed: pip install "phalanx[sb3]"') from None

Indices = None | int | Iterable[int]  # of environments; None: all


class PoolVecEnv(VecEnv):  # type: ignore[misc]
    """`PPO("MlpPolicy", PoolVecEnv(make_pool("CartPole-v1", n_envs=32)))`.

    At the end of an episode infos[i] holds SB3's "terminal_observation", "TimeLimit.truncated" and
    "episode" (r, l), so no Monitor is needed. Where "lost" is true, the environment failed and was
    replaced: the episode has no statistics. In place of a pool it takes a list of factories and
    settings of `make_pool`, for SB3's make_vec_env(..., vec_env_cls=PoolVecEnv).
    """

    def __init__(self, pool: Pool | Sequence[Factory], **settings: object) -> None:
        pool = opened(pool, settings, "a VecEnv")
        if pool.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ConfigError(
                "a VecEnv begins the next episode in the step that ends the last: "
                f"autoreset_mode='SameStep', not {pool.autoreset_mode.value!r}"
            )
        self.pool = pool
        self._masks: npt.NDArray[np.bool_] | None = None
        super().__init__(pool.n_envs, pool.single_observation_space, pool.single_action_space)
        self.metadata = pool.metadata

    def reset(self) -> Rows:
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        self.pool.reset(seeds, options=self._options if any(self._options) else None)
        received = self.pool.recv()
        self.reset_infos = received.infos or [{} for _ in range(self.num_envs)]
        self._masks = received.action_masks
        self._reset_seeds()
        self._reset_options()
        return received.obs

    def step_async(self, actions: Array) -> None:
        nested = isinstance(self.action_space, spaces.Dict | spaces.Tuple)
        if nested and not isinstance(actions, dict):  # SB3 gives them one by one
            actions = self.pool.batch(list(actions))
        self.pool.send(actions)

    def step_wait(self) -> tuple[Rows, Array, Array, list[Info]]:
        received = self.pool.recv()
        self._masks = received.action_masks
        infos = [dict(info) for info in received.infos or [{}] * self.num_envs]
        dones = received.terminated | received.truncated
        for i in range(self.num_envs):
            if not dones[i]:
                infos[i]["TimeLimit.truncated"] = False
                continue
            self.reset_infos[i] = {k: v for k, v in infos[i].items() if k != "final_info"}
            infos[i] = {
                **infos[i].get("final_info", {}),
                "terminal_observation": self.pool.row(received.final_obs, i),
                "TimeLimit.truncated": bool(received.truncated[i] and not received.terminated[i]),
            }
            if received.lost[i]:
                infos[i]["lost"] = True
            else:
                statistics = {
                    "r": float(received.episode_returns[i]),
                    "l": int(received.episode_lengths[i]),
                }
                infos[i].setdefault("episode", statistics)  # a Monitor's own come first
        return received.obs, received.rewards.astype(np.float32), dones, infos

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """bool [N, actions], for sb3-contrib's MaskablePPO."""
        if self._masks is None:
            raise ConfigError("these environments give no info['action_mask']")
        return self._masks

    def close(self) -> None:
        self.pool.close()

    @property
    def envs(self) -> list[AnyEnv]:
        """The environments themselves, if they are in this process."""
        return self.pool.envs

    def get_images(self) -> Sequence[Array | None]:
        """A picture of each environment, if they were made with render_mode="rgb_array"."""
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"The render mode is {self.render_mode}, but this method assumes it is `rgb_array` "
                "to obtain images.",
                stacklevel=2,
            )
            return [None] * self.num_envs
        return self.pool.call("render")

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Value]:
        return self.pool.call(attr_name, env_ids=self._chosen(indices))

    def set_attr(self, attr_name: str, value: object, indices: Indices = None) -> None:
        self.pool.call(f"{attr_name}=", value, env_ids=self._chosen(indices))

    def env_method(
        self,
        method_name: str,
        *method_args: object,
        indices: Indices = None,
        **method_kwargs: object,
    ) -> list[Value]:
        if method_name == "action_masks" and self._masks is not None:
            return [self._masks[i] for i in self._chosen(indices)]
        return self.pool.call(
            method_name, *method_args, env_ids=self._chosen(indices), **method_kwargs
        )

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """Whether each environment has this wrapper. None needs a Monitor: the pool is one."""
        return self.pool.apply(is_wrapped, wrapper_class, env_ids=self._chosen(indices))

    def _chosen(self, indices: Indices) -> list[int]:
        """The environments meant: all, one, or some, counted from the end if negative."""
        return np.arange(self.num_envs)[list(self._get_indices(indices))].tolist()
