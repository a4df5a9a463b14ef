"""A simulator of the user's own that plays CAGE-2, with what `CyborgEnv` has."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from phalanx.arrays import Array
from phalanx.cage2.env import one_action
from phalanx.cage2.history import History
from phalanx.cage2.rules.observation import NUM_BITS, OBS_SIZES
from phalanx.cage2.rules.scenario import DEFAULT_RULES, NO_HOST, NUM_ACTIONS, NUM_HOSTS
from phalanx.cage2.settings import DEFAULT_PRIOR
from phalanx.errors import ConfigError
from phalanx.importing import find_named

WANTED = (
    "a simulator has reset(seed=) and step(action) as Gymnasium has them, with the 52 bits and 145 "
    "actions of CAGE-2; see docs/workflows.md"
)


class OwnSimulator(gymnasium.Env[Array, npt.ArrayLike]):
    """The user's Env of CAGE-2's bits and actions; any observation is made of its bits.

    make: called with those of red_agent, horizon and rules that it takes.
    """

    metadata: dict[str, object] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        make: Callable[..., Any],
        name: str,
        *,
        red_agent: str = "b_line",
        horizon: int = 100,
        rules: str = DEFAULT_RULES,
        observation: str = "bits",
        prior: str | Mapping[str, float] = DEFAULT_PRIOR,
    ) -> None:
        told = {"red_agent": red_agent, "horizon": horizon, "rules": rules}
        self.name, self._env = name, make(**_taken(make, told))
        if not (hasattr(self._env, "reset") and hasattr(self._env, "step")):
            raise ConfigError(f"{name} gave a {type(self._env).__name__}: {WANTED}")
        self._history = History(horizon=horizon, observation=observation, rules=rules, prior=prior)
        self.observation_space = spaces.Box(0, 1, (OBS_SIZES[observation],), np.float32)
        self.action_space = spaces.Discrete(NUM_ACTIONS)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, object] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        _bits, info = self._env.reset(seed=seed)
        return self._history.begin()[0], self._info(info)

    def step(self, action: npt.ArrayLike) -> tuple[Array, float, bool, bool, dict[str, object]]:
        action = one_action(action)
        bits, reward, terminated, truncated, info = self._env.step(action)
        shown = np.asarray(bits, np.float32).reshape(-1)
        if len(shown) != NUM_BITS:
            raise ConfigError(f"{self.name} shows {len(shown)} numbers a turn: {WANTED}")
        obs = self._history.observe([action], [shown])[0]
        return obs, float(reward), bool(terminated), bool(truncated), self._info(info)

    def true_state(self) -> tuple[Array, Array, Array]:
        """known, scanned and access, uint8 [13]: only the last one is asked for, to judge fixes."""
        env = getattr(self._env, "unwrapped", self._env)
        if not hasattr(env, "infected"):
            raise ConfigError(
                f"{self.name} does not say which hosts red holds, by which orders are judged: give "
                "it a method infected() with 13 numbers, not 0 where red has a session"
            )
        held = np.asarray(env.infected()).reshape(-1)
        if len(held) != NUM_HOSTS:
            raise ConfigError(f"infected() of {self.name} has {len(held)} numbers, not {NUM_HOSTS}")
        unknown = np.zeros(NUM_HOSTS, np.uint8)
        return unknown, unknown, (held != 0).astype(np.uint8)

    def _info(self, info: Mapping[str, Any]) -> dict[str, object]:
        return {
            "alert": int(info.get("alert", NO_HOST)),
            "action_mask": self._history.action_masks()[0].view(np.int8),
        }

    def close(self) -> None:
        if hasattr(self._env, "close"):
            self._env.close()


def open_own(name: str, green: float | None = None, **shown: Any) -> OwnSimulator:
    """The simulator that the user names as `module:factory`."""
    if green is not None:
        raise ConfigError(f"--green is for phalanx and cyborg; {name} has users of its own, if any")
    return OwnSimulator(find_named("--simulator", name), name, **shown)


def _taken(make: Callable[..., object], told: Mapping[str, object]) -> dict[str, object]:
    """Those of the settings that a factory has parameters for."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        raise ConfigError(f"{make!r:.80} cannot be called: give module:factory") from None
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return dict(told)
    names = {one.name for one in parameters}
    return {name: value for name, value in told.items() if name in names}
