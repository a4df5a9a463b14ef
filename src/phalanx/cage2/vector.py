"""The game as Gymnasium knows many games at once: a compiled batch as a VectorEnv."""

import inspect
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from phalanx.arrays import Array
from phalanx.cage2.batch import Batch
from phalanx.cage2.env import observation_space, shown_as
from phalanx.cage2.picture import picture
from phalanx.cage2.rules.batch_turn import Shown
from phalanx.cage2.rules.scenario import DEFAULT_RULES
from phalanx.cage2.scenario.several import Source
from phalanx.cage2.settings import DEFAULT_PRIOR, RedAgent, Seed, num_envs_of, spread_seeds
from phalanx.errors import ConfigError, choices
from phalanx.reset_mask import checked_mask

BY_NETWORK = (
    "known",
    "scanned",
    "access",
    "infected_before",
    "infected_after",
    "np_random",
    "np_random_seed",
)
"""attributes of the batch that have a row for each network"""
Attribute = Any  # of whatever name: only who asks for it knows what it is
SINGLE = {"observation_space": "single_observation_space", "action_space": "single_action_space"}
METHODS = ("action_masks", "render")
"""methods that give each network its own row, and change nothing"""
WRAPPER_METHODS = ("has_wrapper_attr", "get_wrapper_attr", "set_wrapper_attr")


class Cage2VectorEnv(VectorEnv[Array, Array, Array]):
    """`num_envs` networks (or `n_envs`) of CAGE Challenge 2, compiled, stepped together.

    envs = Cage2VectorEnv(4096, red_agent="meander", horizon=100, seed=7)
    obs, infos = envs.reset()
    obs, rewards, terminations, truncations, infos = envs.step(actions)   # actions: int [N], 0..144
    envs.access                           # the truth: 0 none, 1 user, 2 root; uint8 [N, 13]

    seed: the networks' dice are those of (seed, first_index), (seed, first_index + 1), ...; without
        one each batch plays other games. A seed of `reset` is Gymnasium's: see there.
    red_agent: one of ALL_RED_AGENTS; a mixture drawn in each episode,
        "b_line=0.5,meander=0.5"; or one name per network.
    observation: "bits" (the challenge's 52) or "history" (these and what a defender can remember).
    scenario: "cage2", or a file that says another network (see docs/scenarios.md): 4 bits a host
        are shown then, and actions are those of `envs.batch.scenario.actions`. Of a folder of
        files, or "random:seed=1,users=3-8", each episode draws its own network: hosts that are not
        there are masked, and observations other than bits end with `envs.batch.host_features`.
    by_host: observations like that for a single network too.
    green: the chance that green acts in a turn, 0 to 1; if not given, what the scenario says (none
        in CAGE-2). 1 is the original's GreenAgent, whose scans look like an attacker's.
    reward: a function of your own marked with `@reward` (docs/scenarios.md), or its
        module:function, in place of the scenario's reward. infos["episode_return"] stays the
        scenario's own score.
    dtype: "float32" or, for bits, "uint8".
    autoreset_mode: in the SAME_STEP (default), an ended episode's last observation is row i of
        infos["final_obs"] where infos["_final_obs"][i]; NEXT_STEP and DISABLED as in Gymnasium.
        Wrappers of Gymnasium that change observations want NEXT_STEP.
    copy: False returns the same arrays at every step, overwritten: faster for very large batches.
    call, get_attr, set_attr: as if each network were an environment. What the game has can be read;
        attributes of your own can be set, one for each network.
    """

    metadata: dict[str, object] = {  # noqa: RUF012
        "render_modes": ["ansi"],
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int | None = None,
        *,
        n_envs: int | None = None,
        red_agent: RedAgent = "b_line",
        horizon: int = 100,
        rules: str = DEFAULT_RULES,
        observation: str = "bits",
        prior: str | Mapping[str, float] = DEFAULT_PRIOR,
        scenario: Source = "cage2",
        by_host: bool | None = None,
        green: float | None = None,
        reward: object = None,
        seed: int | None = None,
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
        self.num_envs, self.copy = num_envs, copy
        self.render_mode = checked_render_mode(render_mode)
        self.batch = Batch(
            num_envs,
            red_agent=red_agent,
            horizon=horizon,
            rules=rules,
            observation=observation,
            prior=prior,
            scenario=scenario,
            green=green,
            reward=reward,
            by_host=by_host,
            dtype=dtype,
            seed=0 if seed is None else seed,
            first_index=first_index,
            num_threads=num_threads,
            same_step=self.autoreset_mode == AutoresetMode.SAME_STEP,
        )
        shown = self.batch.shown
        self.single_observation_space = observation_space(shown)
        self.single_action_space = spaces.Discrete(self.batch.num_actions)
        self._reset_done = False
        self._own_attributes: dict[str, dict[int, object]] = {}  # of users, by name and network
        self._generators: tuple[np.random.Generator, ...] | None = None
        if seed is None:
            self._seeds = np.random.default_rng().integers(2**63, size=num_envs, dtype=np.uint64)
            self._has_seed = np.ones(num_envs, np.bool_)
            self.batch.give_dice(self._seeds, self._has_seed)
            self.batch.begin()
        else:
            self._seeds = np.full(num_envs, seed, np.uint64)
            self._has_seed = first_index + np.arange(num_envs) == 0  # as a reset would give it

    # The truth about each network after the last step: live views, overwritten by the next.

    known = shown_as("known", "Whose address red knows: uint8 [N, 13].")
    scanned = shown_as("scanned", "Whose ports red knows: uint8 [N, 13].")
    access = shown_as("access", "How far red has come: uint8 [N, 13], 0 none, 1 user, 2 root.")
    infected_before = shown_as(
        "infected_before", "Hosts that red held before blue's move: uint16 [N], bit h for host h."
    )
    infected_after = shown_as(
        "infected_after", "Hosts that red held after blue's move and before its own: uint16 [N]."
    )

    # The bounds of a batch take more memory than the batch: made when somebody asks for them.

    @cached_property
    def observation_space(self) -> spaces.Space[Array]:  # type: ignore[override]
        return batch_space(self.single_observation_space, self.num_envs)

    @cached_property
    def action_space(self) -> spaces.Space[Array]:  # type: ignore[override]
        return batch_space(self.single_action_space, self.num_envs)

    def reset(
        self,
        *,
        seed: Seed = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Array, dict[str, Array]]:
        """Begin the next episode everywhere, or in the networks of options["reset_mask"] only.

        With a seed it is episode 0. Network i is the one that `gymnasium.make` gives for seed + i,
        or for seeds[i] if they are a list; where that is None, its dice go on.
        """
        self._check_open()
        chosen = checked_mask(options, self.num_envs)
        seeds, given = spread_seeds(seed, self.num_envs)
        if not (self._reset_done or chosen.all()):
            raise ResetNeeded("reset all networks once before some are reset by a reset_mask")
        given &= chosen
        if given.any():
            self._seeds[given], self._has_seed[given] = seeds[given], True
            self._generators = None
            self.batch.give_dice(seeds, given)
        # The first reset finds all networks at the beginning of an episode.
        self.batch.begin(chosen if self._reset_done else given)
        self._reset_done = True
        return self._own(self.batch.shown.obs), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Array]]:
        """Play one turn everywhere. Episodes end by truncation at the horizon."""
        self._check_may_step()
        if not isinstance(actions, np.ndarray):
            actions = np.asarray(actions)
        shown = self.batch.play(actions, self._fresh() if self.copy else None)
        never_terminated = np.zeros(self.num_envs, np.bool_)
        return shown.obs, shown.rewards, never_terminated, shown.truncated, self._infos(shown)

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("the networks were closed; make others")

    def _check_may_step(self) -> None:
        self._check_open()
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

    def _infos(self, shown: Shown) -> dict[str, Array]:
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

    def action_masks(self, *, effective: bool = False) -> npt.NDArray[np.bool_]:
        """bool [N, 145]: False for decoys that blue knows it cannot place; they stay legal.

        effective: also False for Analyse and Remove where they can show and change nothing, by the
            belief (or the truth) that is shown.
        """
        return self.batch.action_masks(effective=effective)

    def save(self) -> dict[str, Array]:
        """The whole state as arrays (see `restore`)."""
        return self.batch.save()

    def restore(self, saved: dict[str, Array]) -> Array:
        """Continue a saved state exactly; returns the observation at which it was saved."""
        self.batch.restore(saved)
        self._has_seed[:] = False
        self._reset_done = True
        return self._own(self.batch.shown.obs)

    def render(self) -> tuple[str, ...] | None:
        """Each network as text: what blue sees beside what is true."""
        self._check_open()
        if self.render_mode is None:
            return None
        if not self._reset_done:
            raise ResetNeeded("call reset() before render()")
        batch = self.batch
        names = [batch.scenario_of(i).host_names for i in range(self.num_envs)]
        attackers = [batch.red_agents] * self.num_envs
        return tuple(map(picture, batch.nets, names, attackers))

    # --- each network as if it were an environment --------------------------------------------

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seed that would give each network its dice by `reset`; -1 where there is none."""
        known = zip(self._seeds.tolist(), self._has_seed.tolist(), strict=True)
        return tuple(seed if is_known else -1 for seed, is_known in known)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """A generator of each network's seed, for users: the game has its own dice."""
        if self._generators is None:
            seeds = [None if seed == -1 else seed for seed in self.np_random_seed]
            self._generators = tuple(np.random.default_rng(seed) for seed in seeds)
        return self._generators

    def call(self, name: str, *args: object, **kwargs: object) -> tuple[Attribute, ...]:
        """What a method gives for each network ("action_masks", "render"), or an attribute."""
        self._check_open()
        every = range(self.num_envs)
        values = self.get_of(name, every)
        is_method = callable(values[0])
        return tuple(self.call_of(name, every, *args, **kwargs) if is_method else values)

    def get_attr(self, name: str) -> tuple[Attribute, ...]:
        """An attribute of each network: "access", "np_random_seed", or one's own."""
        return self.call(name)

    def set_attr(self, name: str, values: object) -> None:
        """Give each network an attribute of your own: a list has one for each."""
        self._check_open()
        if not isinstance(values, (list, tuple)):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ConfigError(
                f"got {len(values)} values of {name} for {self.num_envs} networks; a list must "
                "have one for each"
            )
        self.set_of(name, values, range(self.num_envs))

    def get_of(self, name: str, chosen: Sequence[int]) -> list[Attribute]:
        """The attribute of each chosen network; what is the same for all is repeated."""
        if name in self._own_attributes:
            return [self._own_attribute(name, i) for i in chosen]
        if name in METHODS:
            return [
                lambda *args, i=i, **kw: self.call_of(name, [i], *args, **kw)[0] for i in chosen
            ]
        if name in WRAPPER_METHODS:
            return [partial(self._wrapper_call, name, i) for i in chosen]
        value = getattr(self, SINGLE.get(name, name))
        if name in BY_NETWORK:
            rows = value.copy() if isinstance(value, np.ndarray) else value
            return [rows[i] for i in chosen]
        return [value] * len(chosen)

    def set_of(self, name: str, values: Sequence[Attribute], chosen: Sequence[int]) -> None:
        """Give each chosen network its value of an attribute that the game does not have."""
        for_all = {*chosen} == {*range(self.num_envs)}
        if name == "render_mode" and for_all and len({*values}) == 1:
            self.render_mode = checked_render_mode(values[0])
            return
        if name not in self._own_attributes and self._has(name):
            raise ConfigError(
                f"{name} cannot be set network by network: the networks are one batch, and what "
                "they play is decided when it is made; make another batch"
            )
        self._own_attributes.setdefault(name, {}).update(zip(chosen, values, strict=True))

    def call_of(
        self, name: str, chosen: Sequence[int], *args: object, **kwargs: object
    ) -> list[Attribute]:
        """What a method gives for each chosen network."""
        if name in METHODS:
            rows = getattr(self, name)(*args, **kwargs)
            return [None if rows is None else rows[i] for i in chosen]
        methods = self.get_of(name, chosen)
        if name not in (*WRAPPER_METHODS, *self._own_attributes) and callable(getattr(self, name)):
            raise ConfigError(
                f"{name} plays all networks at once and cannot be called for each; call it of the "
                f"batch, or one of {', '.join(METHODS)} here"
            )
        return [method(*args, **kwargs) for method in methods]

    def _wrapper_call(
        self, method: str, i: int, name: str, *value: object, **_kwargs: object
    ) -> object:
        """As Gymnasium's wrappers answer; nothing is wrapped around a network."""
        if method == "set_wrapper_attr":
            self.set_of(name, value, [i])
            return True
        if method == "get_wrapper_attr":
            return self.get_of(name, [i])[0]
        return i in self._own_attributes.get(name, {}) or self._has(name)

    def _own_attribute(self, name: str, i: int) -> object:
        if i not in self._own_attributes[name]:
            raise AttributeError(f"network {i} has no attribute {name!r}: it was set for others")
        return self._own_attributes[name][i]

    def _has(self, name: str) -> bool:
        """Whether the game has it: as an attribute, or as a setting that was given to it."""
        return name in inspect.signature(type(self)).parameters or hasattr(self, name)

    def close_extras(self, **kwargs: object) -> None:
        self.batch.close()


def checked_render_mode(mode: str | None) -> str | None:
    if mode not in (None, "ansi"):
        raise ConfigError(f"render_mode of a batch must be 'ansi' (text) or left out, got {mode!r}")
    return mode
