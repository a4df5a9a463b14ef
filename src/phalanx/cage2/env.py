"""The game as Gymnasium knows games: one network as an Env."""

from collections.abc import Mapping
from types import EllipsisType

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from phalanx.arrays import Array
from phalanx.cage2.batch import Batch
from phalanx.cage2.picture import picture
from phalanx.cage2.rules.batch_turn import Shown
from phalanx.cage2.rules.scenario import DEFAULT_RULES, NUM_ACTIONS
from phalanx.cage2.scenario.several import Source
from phalanx.cage2.settings import DEFAULT_PRIOR, RedAgent, checked_seed
from phalanx.errors import ActionError

Info = dict[str, npt.NDArray[np.int8]]  # "action_mask"


def shown_as(name: str, about: str, row: int | EllipsisType = ...) -> property:
    """A property: what the batch shows under this name, in all of its networks or one."""
    return property(lambda self: getattr(self.batch.shown, name)[row], doc=about)


class Cage2Env(gymnasium.Env[Array, npt.ArrayLike]):
    """One network of CAGE Challenge 2: `gymnasium.make("phalanx/Cage2-v0", red_agent="meander")`.

    The settings mean what they mean in `Cage2VectorEnv`; without a seed, each Env plays other
    games. info["action_mask"] (int8 [145]) is 0 for decoys that blue knows it cannot place.
    """

    metadata: dict[str, object] = {"render_modes": ["ansi", "human"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        *,
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
        dtype: str = "float32",
        render_mode: str | None = None,
    ) -> None:
        self.batch = Batch(
            1,
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
            num_threads=1,
            same_step=False,
        )
        if seed is not None:
            checked_seed(seed)
        self.render_mode = render_mode
        self.observation_space = observation_space(self.batch.shown)
        self.action_space = spaces.Discrete(self.batch.num_actions)
        self._next_seed = seed
        self._began, self._over = False, True
        self._action = np.zeros(1, np.int64)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, object] | None = None
    ) -> tuple[Array, Info]:
        """Begin the next episode; with a seed, episode 0 of that seed."""
        if seed is None and not self._began:
            seed = self._next_seed
        super().reset(seed=seed)
        if seed is None and not self._began:
            seed = int(self.np_random.integers(2**63))
        if seed is not None:
            self.batch.reseed(seed)
        else:
            self.batch.begin()
        self._began, self._over = True, False
        if self.render_mode == "human":
            self.render()
        return self.batch.shown.obs[0].copy(), self._info()

    def step(self, action: npt.ArrayLike) -> tuple[Array, float, bool, bool, Info]:
        """Play one turn. The episode ends by truncation at the horizon."""
        if self._over:
            raise ResetNeeded("call reset() before step(): no episode has begun, or it is over")
        self._action[0] = one_action(action, self.batch.num_actions)
        shown = self.batch.play(self._action)
        self._over = bool(shown.truncated[0])
        if self.render_mode == "human":
            self.render()
        return shown.obs[0].copy(), float(shown.rewards[0]), False, self._over, self._info()

    def _info(self) -> Info:
        return {"action_mask": self.action_masks().view(np.int8)}

    def action_masks(self, *, effective: bool = False) -> npt.NDArray[np.bool_]:
        """bool [145]: False for decoys that blue knows it cannot place; they stay legal.

        effective: as `Cage2VectorEnv` has it.
        """
        return self.batch.action_masks(effective=effective)[0]

    known = shown_as("known", "Whose address red knows: uint8 [13].", 0)
    scanned = shown_as("scanned", "Whose ports red knows: uint8 [13].", 0)
    access = shown_as("access", "How far red has come: uint8 [13], 0 none, 1 user, 2 root.", 0)

    def render(self) -> str | None:
        """What blue sees beside what is true, as text."""
        if self.render_mode is None:
            return None
        batch = self.batch
        text = picture(batch.nets[0], batch.scenario_of(0).host_names, batch.red_agents)
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    def save(self) -> dict[str, Array]:
        """The whole state as arrays (see `restore`)."""
        return self.batch.save()

    def restore(self, saved: dict[str, Array]) -> Array:
        """Continue a saved state exactly; returns the observation at which it was saved."""
        self.batch.restore(saved)
        self._began, self._over = True, bool(self.batch.nets["turn"][0] >= self.batch.horizon)
        return self.batch.shown.obs[0].copy()

    def close(self) -> None:
        self.batch.close()


def observation_space(shown: Shown) -> spaces.Box:
    """The space of one row of observations; all values lie between 0 and 1."""
    return spaces.Box(0, 1, shown.obs.shape[1:], shown.obs.dtype.type)


def one_action(action: npt.ArrayLike, num_actions: int = NUM_ACTIONS) -> int:
    """An action of a single environment, checked."""
    if np.shape(action) in ((), (1,)) and np.asarray(action).dtype.kind in "iu":
        number = int(np.asarray(action).reshape(()))
        if 0 <= number < num_actions:
            return number
    raise ActionError(
        f"action {action!r} of environment 0 is not a whole number from 0 to {num_actions - 1}"
    )
