"""Many networks side by side: their records, what they show, and the threads that play them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.crew import Crew
from phalanx.cage2.kernel import Shown, begin_episodes, play_turns
from phalanx.cage2.network import NETWORK, seed_networks
from phalanx.cage2.observation import HISTORY_SIZE, MEMORY, NUM_BITS, action_masks
from phalanx.cage2.rule import announce_compilation, records
from phalanx.cage2.scenario import NUM_ACTIONS, NUM_HOSTS
from phalanx.cage2.settings import (
    RedAgent,
    checked_horizon,
    checked_num_envs,
    checked_seed,
    checked_threads,
    red_agent_plan,
    rule_set_number,
)
from phalanx.errors import ActionError, ConfigError, choices

OBSERVATIONS = ("bits", "history")
DTYPES = ("float32", "uint8")


class Batch:
    """N networks that play a turn each at every call.

    batch = Batch(4096, red_agent="meander", seed=7)
    batch.begin()                              # batch.shown.obs is the first observation
    batch.play(actions)                        # batch.shown holds what it gave, until the next
    batch.shown.access, batch.nets["decoys"]   # the truth, without copies
    saved = batch.save(); batch.restore(saved)
    """

    def __init__(
        self,
        num_envs: int,
        *,
        red_agent: RedAgent = "b_line",
        horizon: int = 100,
        rules: str = "2.1-final",
        observation: str = "bits",
        dtype: str = "float32",
        seed: int = 0,
        first_index: int = 0,
        num_threads: int | str = "auto",
        same_step: bool = True,
    ) -> None:
        num_envs = checked_num_envs(num_envs)
        if observation not in OBSERVATIONS:
            raise ConfigError(choices("observation", observation, OBSERVATIONS))
        name = getattr(dtype, "__name__", str(dtype))  # "uint8" and np.uint8 alike
        if name not in DTYPES:
            raise ConfigError(choices("dtype", name, DTYPES))
        self.history = observation == "history"
        if self.history and name != "float32":
            raise ConfigError(f"history observations are float32, got dtype {name}; leave it out")
        plan, self._odds = red_agent_plan(red_agent, num_envs)
        self.horizon = checked_horizon(horizon)
        number = rule_set_number(rules)
        self.num_envs, self.same_step = num_envs, same_step
        self.first_index = first_index
        self.crew = Crew(checked_threads(num_threads, num_envs))

        self.nets = records(num_envs, NETWORK)
        self.nets["red_plan"], self.nets["horizon"], self.nets["rules"] = plan, self.horizon, number
        self.memories = records(num_envs if self.history else 1, MEMORY)
        self.shown = self._allocate(np.dtype(name))
        announce_compilation()
        self.reseed(seed)

    def _allocate(self, dtype: np.dtype[Any]) -> Shown:
        size, n = HISTORY_SIZE if self.history else NUM_BITS, self.num_envs
        return Shown(
            obs=np.zeros((n, size), dtype),
            final_obs=np.empty((n, size), dtype),
            rewards=np.zeros(n, np.float64),
            truncated=np.zeros(n, np.bool_),
            known=np.zeros((n, NUM_HOSTS), np.uint8),
            scanned=np.zeros((n, NUM_HOSTS), np.uint8),
            access=np.zeros((n, NUM_HOSTS), np.uint8),
            infected_before=np.zeros(n, np.uint16),
            infected_after=np.zeros(n, np.uint16),
            returns=np.zeros(n, np.float64),
        )

    def reseed(self, seed: int | Sequence[int]) -> None:
        """Begin episode 0 with the dice of (seed, index), or with a seed (and index 0) for each."""
        if np.ndim(seed) == 0:
            seeds = np.full(self.num_envs, checked_seed(seed))  # type: ignore[arg-type]
            seed_networks(self.nets, seeds, self.first_index, 1)
        else:
            seeds = np.array([checked_seed(one) for one in seed], np.uint64)  # type: ignore[union-attr]
            if len(seeds) != self.num_envs:
                raise ConfigError(
                    f"got {len(seeds)} seeds for {self.num_envs} networks; give one or one each"
                )
            seed_networks(self.nets, seeds, 0, 0)
        self.begin()

    def begin(self, chosen: npt.NDArray[np.bool_] | None = None) -> None:
        """Begin the next episode in the chosen networks (all of them if not told)."""
        if chosen is None:
            chosen = np.ones(self.num_envs, np.bool_)
        begin_episodes(self.nets, self.memories, self.history, chosen, self._odds, self.shown)

    def play(self, actions: npt.NDArray[Any], into: Shown | None = None) -> Shown:
        """One turn everywhere: actions int [N], each 0..144.

        Written into `shown`, or into other arrays like it.
        """
        check_actions(actions, self.num_envs)
        shown = into or self.shown
        self.crew.run(
            play_turns,
            (self.nets, self.memories, self.history, actions, self._odds, self.same_step, shown),
        )
        return shown

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """bool [N, 145]: False for decoys that blue knows it cannot place.

        A masked action is still a legal one.
        """
        return action_masks(self.nets["decoys"])

    def save(self) -> dict[str, npt.NDArray[Any]]:
        """The whole game as arrays; a batch of the same settings that restores them continues
        identically.
        """
        return {"nets": self.nets.copy(), "memories": self.memories.copy()}

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        for name, into in (("nets", self.nets), ("memories", self.memories)):
            if saved[name].shape != into.shape or saved[name].dtype != into.dtype:
                raise ConfigError(
                    f"saved {name} are {saved[name].shape} of {saved[name].dtype.itemsize} bytes, "
                    f"this batch has {into.shape} of {into.dtype.itemsize}; restore into a batch "
                    "with the settings of the saved one"
                )
        self.nets[:] = saved["nets"]
        self.memories[:] = saved["memories"]
        self.begin(np.zeros(self.num_envs, np.bool_))

    def close(self) -> None:
        self.crew.close()


def check_actions(actions: npt.NDArray[Any], num_envs: int) -> None:
    """Refuse actions that are not one of 0..144 for each network, before anything is played."""
    if not isinstance(actions, np.ndarray) or actions.shape != (num_envs,):
        raise ActionError(
            f"actions must be an array of shape ({num_envs},), one whole number per environment; "
            f"got {type(actions).__name__} of shape {np.shape(actions)}"
        )
    if actions.dtype.kind not in "iu":
        raise ActionError(
            f"actions must be whole numbers 0..{NUM_ACTIONS - 1}, got dtype {actions.dtype}"
        )
    if actions.min() < 0 or actions.max() >= NUM_ACTIONS:
        i = int(np.flatnonzero((actions < 0) | (actions >= NUM_ACTIONS))[0])
        raise ActionError(
            f"action {actions[i]} of environment {i} is not one of 0..{NUM_ACTIONS - 1}"
        )
