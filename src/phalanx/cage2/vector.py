"""The game as Gymnasium knows many games at once: a compiled batch as a VectorEnv."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from phalanx.cage2.batch import Batch
from phalanx.cage2.env import observation_space
from phalanx.cage2.kernel import Shown
from phalanx.cage2.picture import picture
from phalanx.cage2.scenario import DEFAULT_RULES, NUM_ACTIONS
from phalanx.cage2.settings import RedAgent, num_envs_of
from phalanx.errors import ConfigError, choices

Array = npt.NDArray[Any]


class Cage2VectorEnv(VectorEnv[Array, Array, Array]):
    """`num_envs` networks (or `n_envs`) of CAGE Challenge 2, compiled, stepped together.

    envs = Cage2VectorEnv(4096, red_agent="meander", horizon=100, seed=7)
    obs, infos = envs.reset()
    obs, rewards, terminations, truncations, infos = envs.step(actions)   # actions: int [N], 0..144
    envs.access                           # the truth: 0 none, 1 user, 2 root; uint8 [N, 13]

    red_agent: one of ALL_RED_AGENTS; a mixture drawn anew each episode,
        "b_line=0.5,meander=0.5"; or one name per network.
    observation: "bits" (the challenge's 52) or "history" (these and what a defender can remember).
    dtype: "float32" or, for bits, "uint8".
    autoreset_mode: in the SAME_STEP (default), an ended episode's last observation is row i of
        infos["final_obs"] where infos["_final_obs"][i]; NEXT_STEP and DISABLED as in Gymnasium.
        Wrappers of Gymnasium that change observations want NEXT_STEP.
    copy: False returns the same arrays at every step, overwritten: faster for very large batches.
    first_index: the networks' dice are those of (seed, first_index), (seed, first_index + 1), ...
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int | None = None,
        *,
        n_envs: int | None = None,
        red_agent: RedAgent = "b_line",
        horizon: int = 100,
        rules: str = DEFAULT_RULES,
        observation: str = "bits",
        seed: int = 0,
        num_threads: int | str = "auto",
        dtype: str = "float32",
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
        first_index: int = 0,
        render_mode: str | None = None,
    ) -> None:
        modes = [mode.value for mode in AutoresetMode]
        if autoreset_mode not in (*AutoresetMode, *modes):
            raise ConfigError(choices("autoreset_mode", autoreset_mode, modes))
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        num_envs = num_envs_of(num_envs, n_envs, 1)
        self.num_envs, self.render_mode, self.copy = num_envs, render_mode, copy
        self.batch = Batch(
            num_envs,
            red_agent=red_agent,
            horizon=horizon,
            rules=rules,
            observation=observation,
            dtype=dtype,
            seed=seed,
            first_index=first_index,
            num_threads=num_threads,
            same_step=self.autoreset_mode == AutoresetMode.SAME_STEP,
        )
        shown = self.batch.shown
        self.single_observation_space = observation_space(shown)
        self.single_action_space = spaces.Discrete(NUM_ACTIONS)
        self._reset_done = False

    # The truth about each network after the last step: live views, overwritten by the next.

    @property
    def known(self) -> Array:
        """Whose address red knows: uint8 [N, 13]."""
        return self.batch.shown.known

    @property
    def scanned(self) -> Array:
        """Whose ports red knows: uint8 [N, 13]."""
        return self.batch.shown.scanned

    @property
    def access(self) -> Array:
        """How far red has come: uint8 [N, 13], 0 none, 1 user, 2 root."""
        return self.batch.shown.access

    @property
    def infected_before(self) -> Array:
        """Hosts that red held before blue's move, as sets: uint16 [N], bit h for host h."""
        return self.batch.shown.infected_before

    @property
    def infected_after(self) -> Array:
        """Hosts that red held after blue's move and before its own: uint16 [N]."""
        return self.batch.shown.infected_after

    # The bounds of a batch take more memory than the batch: made when somebody asks for them.

    @cached_property
    def observation_space(self) -> spaces.Space[Any]:  # type: ignore[override]
        return batch_space(self.single_observation_space, self.num_envs)

    @cached_property
    def action_space(self) -> spaces.Space[Any]:  # type: ignore[override]
        return batch_space(self.single_action_space, self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Array, dict[str, Any]]:
        """Begin the next episode everywhere, or in the networks of options["reset_mask"] only.

        A seed begins again with episode 0. A list of seeds makes network i the one that
        `gymnasium.make` gives for that seed.
        """
        mask = (options or {}).get("reset_mask")
        if seed is not None:
            if mask is not None:
                raise ConfigError(
                    "a seed is for all networks; reset with a seed or with a reset_mask"
                )
            self.batch.reseed(seed)
        elif self._reset_done or mask is not None:
            self.batch.begin(mask)
        self._reset_done = True
        return self._own(self.batch.shown.obs), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Play one turn everywhere. Episodes end by truncation at the horizon."""
        self._check_may_step()
        if not isinstance(actions, np.ndarray):
            actions = np.asarray(actions)
        shown = self.batch.play(actions, self._fresh() if self.copy else None)
        never_terminated = np.zeros(self.num_envs, np.bool_)
        return shown.obs, shown.rewards, never_terminated, shown.truncated, self._infos(shown)

    def _check_may_step(self) -> None:
        if not self._reset_done:
            raise ResetNeeded("call reset() before the first step()")
        if self.autoreset_mode == AutoresetMode.DISABLED:
            over = self.batch.nets["turn"] >= self.batch.nets["horizon"]
            if over.any():
                i = int(np.flatnonzero(over)[0])
                raise ResetNeeded(
                    f"the episode of environment {i} is over: reset(options={{'reset_mask': …}})"
                )

    def _fresh(self) -> Shown:
        """The arrays a step returns, new for each step, so that the caller may keep them."""
        shown = self.batch.shown
        return shown._replace(
            obs=np.empty_like(shown.obs),
            rewards=np.empty_like(shown.rewards),
            truncated=np.empty_like(shown.truncated),
        )

    def _infos(self, shown: Shown) -> dict[str, Any]:
        if not shown.truncated.any():
            return {}
        ended = shown.truncated.copy()
        infos = {
            "episode_return": shown.returns.copy(),
            "_episode_return": ended,
            "episode_length": np.where(ended, self.batch.horizon, 0),
            "_episode_length": ended,
        }
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            infos |= {"final_obs": shown.final_obs.copy(), "_final_obs": ended}
        return infos

    def _own(self, array: Array) -> Array:
        return array.copy() if self.copy else array

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """bool [N, 145]: False for decoys that blue knows it cannot place; they stay legal."""
        return self.batch.action_masks()

    def save(self) -> dict[str, Array]:
        """The whole state as arrays (see `restore`)."""
        return self.batch.save()

    def restore(self, saved: dict[str, Array]) -> Array:
        """Continue a saved state exactly; returns the observation at which it was saved."""
        self.batch.restore(saved)
        self._reset_done = True
        return self._own(self.batch.shown.obs)

    def render(self) -> tuple[str, ...] | None:
        """Each network as text: what blue sees beside what is true."""
        if self.render_mode is None:
            return None
        return tuple(picture(net) for net in self.batch.nets)

    def close_extras(self, **kwargs: Any) -> None:
        self.batch.close()
