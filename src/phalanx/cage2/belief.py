"""The exact belief of a defender, from the bits that it is shown and its own actions alone."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.belief import NO_PRIOR, Prior, begin_beliefs, believe_all, make_beliefs
from phalanx.cage2.rules.mind import Minds, make_minds
from phalanx.cage2.rules.network import Networks, Odds, begin_episode, network_dtype
from phalanx.cage2.rules.observation import TRUE
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, DEFAULT_RULES, EXPLOIT_PORTS
from phalanx.cage2.rules.web_decoys import counts_vsftpd
from phalanx.cage2.rules.world import Worlds, num_hosts_of
from phalanx.cage2.scenario.attackers import prior_there
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.cage2.scenario.several import Source, open_scenarios
from phalanx.cage2.scenario.worlds import green_chance
from phalanx.cage2.settings import (
    DEFAULT_PRIOR,
    checked_actions,
    checked_choice,
    checked_green,
    checked_horizon,
    checked_num_envs,
    prior_weights,
    red_agent_number,
    rule_set_number,
)
from phalanx.compiled.rule import kernel, records
from phalanx.errors import ConfigError

Scalar = TypeVar("Scalar", bound=np.generic)
SETS_OF_HOSTS = ("sessions", "root", "removable", "files", "known", "scanned")


@kernel
def begin_all(worlds: Worlds, nets: Networks, odds: Odds) -> None:
    for i in range(len(nets)):
        begin_episode(worlds[nets[i].world], nets[i], odds)


def prior_of(
    red_agents: str | Mapping[str, float],
    rules: str,
    horizon: int,
    worlds: Worlds = CAGE2_WORLDS,
) -> Prior:
    """That these attackers come as often as this, under these rules."""
    weights = {name: w for name, w in prior_weights(red_agents).items() if w > 0}
    nets = records(
        len(worlds) * len(weights), network_dtype(num_hosts_of(worlds), counts_vsftpd(worlds))
    )
    nets["world"] = np.repeat(np.arange(len(worlds)), len(weights))
    nets["red_plan"] = [red_agent_number(name) for name in weights] * len(worlds)
    nets["rules"], nets["horizon"] = rule_set_number(rules), checked_horizon(horizon)
    begin_all(worlds, nets, np.zeros(len(ALL_RED_AGENTS), np.int64))
    return Prior(nets, np.array(list(weights.values())))


def one_network(
    scenario: Source, green: float | None, by_host: bool | None = None
) -> tuple[Scenario, Worlds]:
    """The only network of a scenario, where green acts in this share of all turns, if told."""
    scenarios = open_scenarios(scenario)
    if len(scenarios.members) > 1:
        raise ConfigError(
            f"{scenarios.name} has {len(scenarios.members)} networks, and it must be known which "
            "of them is played: give one file, or random:…,network=0"
        )
    worlds = scenarios.worlds(by_host)
    if green is not None:
        worlds = worlds.copy()
        worlds["green_chance"] = green_chance(checked_green(green))
    return scenarios.members[0], worlds


def open_minds(
    size: int,
    kind: int,
    prior: str | Mapping[str, float],
    rules: str,
    horizon: int,
    worlds: Worlds = CAGE2_WORLDS,
) -> Minds:
    """What blue keeps from turn to turn, for observations of this kind."""
    known = prior_of(prior, rules, horizon, worlds) if kind >= TRUE else NO_PRIOR
    features = None
    if kind and worlds["shows_features"][0]:
        features = np.ascontiguousarray(worlds["features"].reshape(len(worlds), -1))
    return make_minds(size, kind, known, num_hosts_of(worlds), features)


class BeliefBatch:
    """The beliefs of N defenders side by side.

    beliefs = BeliefBatch(64, red_agents={"b_line": 0.5, "meander": 0.5})
    beliefs.observe(actions, bits)       # after each turn: actions played, bits returned
    beliefs.begin(ended)                 # where a new episode has begun
    beliefs[3].weights                   # one of them, as a `Belief`

    scenario: the network that all of them play, if it is not CAGE-2.
    green: how often green acts; as the scenario says, if not told.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        rules: str = DEFAULT_RULES,
        red_agents: str | Mapping[str, float] = DEFAULT_PRIOR,
        horizon: int = 100,
        green: float | None = None,
        scenario: Source = "cage2",
    ) -> None:
        self.num_envs = checked_num_envs(num_envs)
        self.scenario, self.worlds = one_network(scenario, green)
        expected = prior_there(red_agents, [self.scenario])
        self.beliefs = make_beliefs(num_envs, prior_of(expected, rules, horizon, self.worlds))
        self.begin()

    def begin(self, chosen: npt.NDArray[np.bool_] | None = None) -> None:
        """Begin an episode in the chosen networks (all of them if not told)."""
        begin_beliefs(self.beliefs, checked_choice(chosen, self.num_envs))

    def observe(self, actions: npt.ArrayLike, bits: npt.ArrayLike) -> None:
        """Take in a turn of each: its action, and the bits that it was shown, [N, 4 x hosts]."""
        shown = np.asarray(bits)
        size = (self.num_envs, 4 * len(self.scenario.hosts))
        if shown.shape != size:
            raise ConfigError(f"bits must have the shape {size}, got {shown.shape}")
        num_actions = int(self.worlds["num_actions"][0])
        played = checked_actions(np.asarray(actions), self.num_envs, num_actions)
        believe_all(self.worlds, self.beliefs, played, _as_words(shown))

    def __len__(self) -> int:
        return self.num_envs

    def __getitem__(self, i: int) -> "BeliefView":
        return BeliefView(self, range(self.num_envs)[i])

    def __iter__(self) -> Iterator["BeliefView"]:
        return (self[i] for i in range(self.num_envs))


class BeliefView:
    """One belief: the states that are possible, and how likely each is."""

    def __init__(self, batch: BeliefBatch, index: int) -> None:
        self.batch, self.index = batch, index

    def _half(self, array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        standing = self.batch.beliefs.standing[self.index]
        return array[self.index, standing["side"], : standing["count"]].copy()

    @property
    def states(self) -> npt.NDArray[np.void]:
        """NETWORK [K]: whole games that can be played on. Their dice are not the true game's."""
        return self._half(self.batch.beliefs.states)

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """[K] the chance of each state; they sum to 1."""
        return self._half(self.batch.beliefs.weights)

    @property
    def surprises(self) -> int:
        """Turns of this episode that no attacker of the prior explains."""
        return int(self.batch.beliefs.standing[self.index]["surprises"])

    @property
    def dropped(self) -> int:
        """How often in this episode a state found no room: the belief is exact while it is 0."""
        return int(self.batch.beliefs.standing[self.index]["dropped"])

    @property
    def entropy(self) -> float:
        """How much is not known, in bits."""
        weights = self.weights
        return float(-(weights * np.log2(weights)).sum()) + 0.0

    def sample(self, n: int, seed: int | np.random.Generator | None = None) -> npt.NDArray[np.void]:
        """NETWORK [n] states drawn by their chances."""
        chosen = np.random.default_rng(seed).choice(len(self.weights), n, p=self.weights)
        return self.states[chosen]

    def marginals(self) -> dict[str, Any]:
        """The chance of each single fact.

        Per host [13]: session (red is there), user, root, removable, file, known, scanned; ports
        that red remembers [13, exploits]; attackers by name; B-line's step [15] and target [13].
        Another network has another number of hosts.
        """
        states, weights = self.states, self.weights
        hosts = len(self.batch.scenario.hosts)
        sets = {name: weights @ _members(states[name], hosts) for name in SETS_OF_HOSTS}
        marginals: dict[str, object] = {
            "session": sets["sessions"],
            "user": weights @ _members(states["sessions"] & ~states["root"], hosts),
            "root": sets["root"],
            "removable": sets["removable"],
            "file": sets["files"],
            "known": sets["known"],
            "scanned": sets["scanned"],
        }
        ports = (states["ports"][:, :hosts, None] >> np.arange(len(EXPLOIT_PORTS))) & 1
        marginals["ports"] = np.tensordot(weights, ports, 1)
        marginals["attacker"] = {
            name: float(weights[states["red"] == k].sum()) for k, name in enumerate(ALL_RED_AGENTS)
        }
        for name, length in (("line_step", 15), ("line_target", hosts)):
            marginals[name] = weights @ (states[name][:, None] == np.arange(length))
        return marginals


class Belief(BeliefView):
    """What one defender can know, exactly.

    belief = Belief(rules="2.1-leaderboard", red_agents={"b_line": 0.5, "meander": 0.5})
    belief.observe(action, obs)          # after each turn: the action played, the 52 bits returned
    belief.states, belief.weights        # all that is possible, and how likely
    belief.marginals()["root"]           # the chance that red is root, per host

    scenario, green: see `BeliefBatch`.
    """

    def __init__(
        self,
        *,
        rules: str = DEFAULT_RULES,
        red_agents: str | Mapping[str, float] = DEFAULT_PRIOR,
        horizon: int = 100,
        green: float | None = None,
        scenario: Source = "cage2",
    ) -> None:
        one = BeliefBatch(
            1,
            rules=rules,
            red_agents=red_agents,
            horizon=horizon,
            green=green,
            scenario=scenario,
        )
        super().__init__(one, 0)

    def begin(self) -> None:
        """A new episode."""
        self.batch.begin()

    def observe(self, action: int, obs: npt.ArrayLike) -> None:
        """Take in a turn: blue's own action, and the bits that it was shown."""
        self.batch.observe([action], np.asarray(obs)[None])


def _members(sets: npt.NDArray[np.integer], hosts: int) -> npt.NDArray[np.integer]:
    """Sets of hosts [K] as bits [K, hosts]."""
    return (sets[:, None] >> np.arange(hosts)) & 1


def _as_words(shown: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """Bits [N, 4 x hosts] as rules keep them: int64 [N, words]."""
    whole = np.zeros((len(shown), -(-shown.shape[1] // 64) * 64), np.bool_)
    whole[:, : shown.shape[1]] = shown != 0
    return np.packbits(whole, axis=1, bitorder="little").view("<i8")
