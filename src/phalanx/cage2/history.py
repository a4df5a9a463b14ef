"""Observations made outside the game, beside the original for instance."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from phalanx.cage2.belief import one_network, open_minds
from phalanx.cage2.rules.masks import action_masks
from phalanx.cage2.rules.mind import Minds, begin_mind, take_in, write_mind
from phalanx.cage2.rules.observation import HISTORY, TRUE, observation_kind, read_bits
from phalanx.cage2.rules.scenario import DEFAULT_RULES
from phalanx.cage2.rules.sizes import observation_size
from phalanx.cage2.rules.world import HOSTS_PER_WORD, Worlds
from phalanx.cage2.scenario.attackers import prior_there
from phalanx.cage2.scenario.several import Source
from phalanx.cage2.settings import (
    DEFAULT_PRIOR,
    checked_actions,
    checked_horizon,
    checked_num_envs,
)
from phalanx.compiled.bits import number
from phalanx.compiled.rule import kernel
from phalanx.errors import ConfigError


@kernel
def take_in_turns(
    worlds: Worlds,
    minds: Minds,
    actions: npt.NDArray[np.int64],
    bits: npt.NDArray[np.float32],
    seen: npt.NDArray[np.int64],
    horizon: int,
    obs: npt.NDArray[np.float32],
) -> None:
    """A turn of each network; all play the first of the worlds. seen: room for one's bits."""
    world = worlds[0]
    for i in range(len(obs)):
        read_bits(world, bits[i], seen)
        take_in(world, minds, i, number(actions[i]), seen)
        write_mind(world, minds, i, seen, horizon, obs[i])


@kernel
def begin_minds(
    worlds: Worlds,
    minds: Minds,
    nothing: npt.NDArray[np.int64],
    horizon: int,
    obs: npt.NDArray[np.float32],
) -> None:
    for i in range(len(obs)):
        begin_mind(minds, i, 0)
        write_mind(worlds[0], minds, i, nothing, horizon, obs[i])


class History:
    """Observations made outside the game, from the 52 bits and blue's own actions alone.

    history = History(num_envs=1, horizon=100)
    obs = history.begin()                   # float32 [N, HISTORY_SIZE]
    obs = history.observe(actions, bits)    # after each turn: actions played, bits returned
    history.action_masks()                  # bool [N, 145]: False for decoys that cannot be placed

    observation: bits, history, memory or belief.
    rules, prior, green: of beliefs: the rules of the game, how likely each attacker is, and how
        often green acts; as the scenario says, if not told.
    scenario, by_host: the network, if it is not CAGE-2, and how it is shown: see `Cage2VectorEnv`.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        horizon: int = 100,
        observation: str = "history",
        rules: str = DEFAULT_RULES,
        prior: str | Mapping[str, float] = DEFAULT_PRIOR,
        green: float | None = None,
        scenario: Source = "cage2",
        by_host: bool | None = None,
    ) -> None:
        self.horizon = checked_horizon(horizon)
        self.kind = observation_kind(observation)
        if self.kind == TRUE:
            raise ConfigError("truth observations are made inside the game only; give another")
        self.scenario, self.worlds = one_network(scenario, green, by_host)
        self.num_actions = int(self.worlds["num_actions"][0])
        self.obs_size = observation_size(self.kind, self.worlds)
        kept = max(self.kind, HISTORY)  # to know which decoys stand; the bits are its first numbers
        expected = prior_there(prior, [self.scenario]) if kept >= TRUE else prior
        size = checked_num_envs(num_envs)
        self.minds = open_minds(size, kept, expected, rules, self.horizon, self.worlds)
        self._shape = size, observation_size(kept, self.worlds)
        self.begin()

    def begin(self) -> npt.NDArray[np.float32]:
        obs = np.empty(self._shape, np.float32)
        begin_minds(self.worlds, self.minds, self._no_bits(), self.horizon, obs)
        return np.ascontiguousarray(obs[:, : self.obs_size])

    def observe(self, actions: npt.ArrayLike, bits: npt.ArrayLike) -> npt.NDArray[np.float32]:
        size = self._shape[0]
        obs = np.empty(self._shape, np.float32)
        played = checked_actions(np.asarray(actions), size, self.num_actions)
        shown = np.asarray(bits, np.float32)
        wanted = (size, 4 * len(self.scenario.hosts))
        if shown.shape != wanted:
            raise ConfigError(f"bits must have the shape {wanted}, got {shown.shape}")
        shown = np.ascontiguousarray(shown)
        take_in_turns(self.worlds, self.minds, played, shown, self._no_bits(), self.horizon, obs)
        return np.ascontiguousarray(obs[:, : self.obs_size])

    def action_masks(self) -> npt.NDArray[np.bool_]:
        assert self.minds.memories is not None
        decoys = self.minds.memories["decoys"]
        return action_masks(self.worlds, np.zeros(len(decoys), np.uint16), decoys)

    def _no_bits(self) -> npt.NDArray[np.int64]:
        """Room for the bits of one network."""
        return np.zeros(-(-len(self.scenario.hosts) // HOSTS_PER_WORD), np.int64)
