"""What blue can know of any network, exactly, from what it is shown and its own actions alone."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from phalanx.cage2.belief import BeliefBatch, BeliefView, prior_of
from phalanx.cage2.rules.belief import believe_all, make_beliefs
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS
from phalanx.cage2.scenario.attackers import prior_there
from phalanx.show.replay.place import Place

HORIZON = 100  # of the states that are followed; nothing in a turn depends on it
Floats = npt.NDArray[np.float64]


class _There(BeliefBatch):
    """A belief about one network."""

    def __init__(self, place: Place, rules: str, prior: str | Mapping[str, float]) -> None:
        self.num_envs, self.worlds = 1, place.alone
        expected = prior_there(prior, [place.scenario])
        self.beliefs = make_beliefs(1, prior_of(expected, rules, HORIZON, self.worlds))
        self.begin()


class BlueBelief(BeliefView):
    """The belief of one defender, about the network of an episode.

    belief = BlueBelief(place, rules="2.1-leaderboard", prior="b_line=0.5,meander=0.5")
    belief.observe(action, net)          # after each turn: only what it shows is looked at
    belief.chances("root")               # [hosts]
    """

    def __init__(self, place: Place, rules: str, prior: str | Mapping[str, float]) -> None:
        super().__init__(_There(place, rules, prior), 0)
        self._hosts = np.arange(len(place.hosts))

    def observe(self, action: int, net: np.void) -> None:
        """Take in a turn: blue's own action, and what it was shown."""
        seen = net["seen"][None].copy()
        believe_all(self.batch.worlds, self.batch.beliefs, np.array([action]), seen)

    def chances(self, name: str) -> Floats:
        """That a host is in one of a record's sets: [hosts]."""
        sets: Floats = self.weights @ ((self.states[name][:, None] >> self._hosts) & 1)
        return sets

    def attackers(self) -> dict[str, float]:
        """The chance of each."""
        red, weights = self.states["red"], self.weights
        return {name: float(weights[red == k].sum()) for k, name in enumerate(ALL_RED_AGENTS)}
