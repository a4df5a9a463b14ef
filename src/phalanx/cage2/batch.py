"""Many networks side by side: their records, what they show, and the threads that play them."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from phalanx.cage2.attack.own_red import OwnRed
from phalanx.cage2.belief import open_minds
from phalanx.cage2.rewards import reward_of
from phalanx.cage2.rules.batch_turn import Shown, allocate, begin_episodes, play_turns
from phalanx.cage2.rules.masks import action_masks, effective_actions
from phalanx.cage2.rules.network import network_dtype, seed_networks
from phalanx.cage2.rules.observation import BELIEVED, TRUE, observation_kind
from phalanx.cage2.rules.scenario import ABOUT_HOSTS, ALL_RED_AGENTS, ALL_VERBS, DEFAULT_RULES
from phalanx.cage2.rules.sizes import observation_size
from phalanx.cage2.rules.web_decoys import counts_vsftpd
from phalanx.cage2.rules.world import num_hosts_of
from phalanx.cage2.saved_games import (
    Saved,
    check_minds,
    check_networks,
    memories_to_save,
    out_of_set,
    restore_minds,
    save_minds,
)
from phalanx.cage2.scenario.attackers import check_attackers, prior_there
from phalanx.cage2.scenario.features import adjacency_of
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.several import Source, open_scenarios
from phalanx.cage2.scenario.worlds import green_chance
from phalanx.cage2.settings import (
    DEFAULT_PRIOR,
    RedAgent,
    checked_actions,
    checked_choice,
    checked_green,
    checked_horizon,
    checked_num_envs,
    checked_seed,
    checked_threads,
    red_agent_plan,
    red_agents_of,
    rule_set_number,
    seeds_of_each,
    whole,
)
from phalanx.compiled.rule import records
from phalanx.compiled.team import ThreadTeam
from phalanx.errors import ActionError, ConfigError, choices

DTYPES = ("float32", "uint8")


class Batch:
    """N networks that play a turn each at every call.

    batch = Batch(4096, red_agent="meander", seed=7)
    batch.begin()                              # batch.shown.obs is the first observation
    batch.play(actions)                        # batch.shown holds what it gave, until the next
    batch.shown.access, batch.nets["decoys"]   # the truth, without copies
    saved = batch.save(); batch.restore(saved)
    batch.scenario.action_name(7)              # what an action is called in this network

    scenario: one network or many (scenario/several.py): of many, each episode draws its own.
    by_host: observations have as many numbers for each host, and end with its features, as they do
        for many networks if it is not said.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        red_agent: RedAgent = "b_line",
        horizon: int = 100,
        rules: str = DEFAULT_RULES,
        observation: str = "bits",
        dtype: str = "float32",
        seed: int = 0,
        first_index: int = 0,
        num_threads: int | str = "auto",
        same_step: bool = True,
        prior: str | Mapping[str, float] = DEFAULT_PRIOR,
        scenario: Source = "cage2",
        by_host: bool | None = None,
        green: float | None = None,
        reward: object = None,
    ) -> None:
        num_envs = checked_num_envs(num_envs)
        self.kind = observation_kind(observation)
        name = getattr(dtype, "__name__", str(dtype))  # "uint8" and np.uint8 alike
        if name not in DTYPES:
            raise ConfigError(choices("dtype", name, DTYPES))
        if self.kind and name != "float32":
            raise ConfigError(
                f"{observation} observations are float32, got dtype {name}; leave it out"
            )
        self.scenarios = open_scenarios(scenario)
        self.worlds = self.scenarios.worlds(by_host)
        if green is not None:
            self.worlds = self.worlds.copy()  # they are others' too
            self.worlds["green_chance"] = green_chance(checked_green(green))
        self.reward = reward_of(reward)
        if self.reward is not None:
            self.worlds = self.worlds.copy()
            self.worlds["reward"] = self.reward.address()
        plan, self.odds, named = red_agent_plan(red_agent, num_envs)
        for one in self.scenarios.members:
            check_attackers(one, red_agents_of(plan, self.odds))
        self.own_red: OwnRed | None = None
        if named:
            self.worlds = self.worlds.copy()
            self.own_red = OwnRed(named, self.worlds, self.scenarios.members)
        if self.kind == BELIEVED:
            prior = prior_there(prior, self.scenarios.members)
        self.horizon = checked_horizon(horizon)
        number = rule_set_number(rules)
        self.num_envs, self.same_step = num_envs, same_step
        self.first_index = whole(
            "first_index", first_index, 0, 2**62 - 1, "a whole number, 0 or more"
        )
        self.team = ThreadTeam(checked_threads(num_threads, num_envs))
        if self.own_red is not None:
            self.own_red.check_kind(observation)
            self.team.on_done = self._check_moves

        hosts = num_hosts_of(self.worlds)
        self.num_actions = int(self.worlds["num_actions"][0])
        kind = network_dtype(hosts, counts_vsftpd(self.worlds), self.own_red is not None)
        self.nets = records(num_envs, kind)
        self.nets["red_plan"], self.nets["horizon"], self.nets["rules"] = plan, self.horizon, number
        self.minds = open_minds(num_envs, self.kind, prior, rules, self.horizon, self.worlds)
        self.shown = allocate(num_envs, observation_size(self.kind, self.worlds), name, hosts)
        self.reseed(seed)

    @property
    def scenario(self) -> Scenario:
        """The network, if all play the same."""
        if len(self.scenarios.members) > 1:
            raise ConfigError("this batch plays many networks: ask for scenario_of(i)")
        return self.scenarios.members[0]

    def scenario_of(self, i: int) -> Scenario:
        """The network that is played in place i in this episode."""
        return self.scenarios.members[int(self.nets["world"][i])]

    def action_name(self, action: int, i: int = 0) -> str:
        """What an action is called in place i; a host that is not there has a number."""
        if not 0 <= action < self.num_actions:
            raise ActionError(f"action {action} is not one of 0..{self.num_actions - 1}")
        verb, host = (int(self.worlds[f"{n}_of_action"][0, action]) for n in ("verb", "host"))
        names = self.scenario_of(i).host_names
        if ALL_VERBS[verb] not in ABOUT_HOSTS:
            return ALL_VERBS[verb]
        return f"{ALL_VERBS[verb]} {names[host] if host < len(names) else host}"

    @property
    def host_features(self) -> npt.NDArray[np.float32]:
        """float32 [N, hosts, FEATURES] what the plan says of each host; 0 where there is none."""
        return self.worlds["features"][self.nets["world"]]

    @property
    def adjacency(self) -> npt.NDArray[np.uint8]:
        """uint8 [N, hosts, hosts]: SAME_SUBNET and POINTS_TO as bits (scenario/features.py)."""
        return self._adjacencies[self.nets["world"]]

    @cached_property
    def _adjacencies(self) -> npt.NDArray[np.uint8]:
        room = num_hosts_of(self.worlds)
        return np.stack([adjacency_of(one, room) for one in self.scenarios.members])

    def reseed(self, seed: int | Sequence[int]) -> None:
        """Begin episode 0 with the dice of (seed, index), or with a seed (and index 0) for each."""
        self.team.settle()
        if np.ndim(seed) == 0:
            seeds = np.full(self.num_envs, checked_seed(seed), np.uint64)  # type: ignore[arg-type]
            seed_networks(self.nets, seeds, self.first_index, 1)
        else:
            seeds = seeds_of_each(seed, self.num_envs)  # type: ignore[arg-type]
            seed_networks(self.nets, seeds, 0, 0)
        self.begin()

    def give_dice(self, seeds: npt.NDArray[np.uint64], chosen: npt.NDArray[np.bool_]) -> None:
        """Let the next episode of the chosen networks be episode 0 of their seeds (and index 0)."""
        self.team.settle()
        nets = self.nets[chosen]
        seed_networks(nets, seeds[chosen], 0, 0)
        self.nets[chosen] = nets

    def begin(self, chosen: npt.NDArray[np.bool_] | None = None) -> None:
        """Begin the next episode in the chosen networks (all of them if not told)."""
        begun = checked_choice(chosen, self.num_envs)
        self.team.settle()
        begin_episodes(self.worlds, self.nets, self.minds, begun, self.odds, self.shown)

    def play(self, actions: npt.NDArray[np.integer], into: Shown | None = None) -> Shown:
        """One turn everywhere: actions int [N], each 0..144 (in CAGE-2).

        What it gives is written into `shown`, or into other arrays of the same kind.
        """
        shown = self.shown if into is None else into
        played = checked_actions(actions, self.num_envs, self.num_actions)
        self.team.run(play_turns, self.turn_arguments(played, shown))
        return shown

    def turn_arguments(self, actions: npt.NDArray[np.int64], shown: Shown) -> tuple[object, ...]:
        """What `play_turns` takes."""
        return self.worlds, self.nets, self.minds, actions, self.odds, self.same_step, shown

    @property
    def red_agents(self) -> tuple[str, ...]:
        """Attackers by the number in `nets["red"]`, the user's own last."""
        own = [] if self.own_red is None else self.own_red.attackers
        return (*ALL_RED_AGENTS, *(attacker.name for attacker in own))

    def _check_moves(self) -> None:
        """Stop where an attacker of the user's own made a move that red cannot make."""
        if self.own_red is not None and self.worlds["refused"].any():
            self.own_red.refuse(self.nets)

    def action_masks(self, *, effective: bool = False) -> npt.NDArray[np.bool_]:
        """bool [N, actions]: False for decoys that blue knows it cannot place.

        A masked action is still a legal one.

        effective: also False for Analyse and Remove where they can show and change nothing, by the
            belief (or the truth) that is shown.
        """
        self.team.settle()
        masks = action_masks(self.worlds, self.nets["world"], self.nets["decoys"])
        if not effective:
            return masks
        if self.kind < TRUE:
            raise ConfigError("what is effective is known by a belief; give observation='belief'")
        return masks & effective_actions(self.worlds, self.shown.obs)

    def save(self) -> Saved:
        """The whole game as arrays; a batch with the same settings can `restore` them."""
        if self.own_red is not None:
            self.own_red.check_saved()
        self.team.settle()
        shown = self.shown
        return {
            "nets": self.nets.copy(),
            **save_minds(self.minds, self.worlds),
            "odds": self.odds.copy(),
            "infected": np.stack([shown.infected_before, shown.infected_after]),
        }

    def restore(self, saved: Saved) -> None:
        """Go on from a saved state of a batch with the same settings."""
        self._check_saved(saved)
        self.team.settle()
        self.nets[:] = saved["nets"]
        restore_minds(self.minds, saved, self.worlds)
        self.begin(np.zeros(self.num_envs, np.bool_))  # shows what is there
        self.shown.infected_before[:], self.shown.infected_after[:] = saved["infected"]

    def _check_saved(self, saved: Saved) -> None:
        memories = memories_to_save(self.minds, self.worlds)
        mine = {"nets": self.nets, "memories": memories, "odds": self.odds}
        for name, own in mine.items():
            other = saved.get(name)
            if other is None or other.shape != own.shape or other.dtype != own.dtype:
                raise ConfigError(
                    f"the saved state does not fit: its {name} are not {own.shape} of this kind; "
                    "restore into a batch with the settings of the saved one"
                )
        fields = ("horizon", "rules", "red_plan")  # and the weights of attackers
        differ = [
            name for name in fields if not np.array_equal(saved["nets"][name], self.nets[name])
        ]
        if differ or not np.array_equal(saved["odds"], self.odds):
            raise ConfigError(
                f"the saved state has other settings ({', '.join(differ) or 'weights'}); "
                "restore into a batch with the settings of the saved one"
            )
        check_networks(saved["nets"], self.worlds, len(self.odds))
        check_minds(self.minds, saved, self.worlds)
        sets = saved.get("infected")
        if not isinstance(sets, np.ndarray) or sets.shape != (2, self.num_envs):
            raise ConfigError("the saved state does not fit: it does not say what was infected")
        kind = self.shown.infected_before.dtype
        if sets.dtype != kind or out_of_set(sets, num_hosts_of(self.worlds)).any():
            raise ConfigError("the saved state is none of this game: infected hosts")

    def close(self) -> None:
        self.team.close()

    def __setstate__(self, state: dict[str, object]) -> None:
        """Made elsewhere: the code of attackers lies at other addresses here."""
        self.__dict__.update(state)
        if self.own_red is not None:
            self.own_red.worlds = self.worlds
            self.own_red.tell()
            self.team.on_done = self._check_moves
