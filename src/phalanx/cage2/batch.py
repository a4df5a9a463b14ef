"""Many networks side by side: their records, what they show, and the threads that play them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.belief import open_minds
from phalanx.cage2.rules.batch_turn import Shown, allocate, begin_episodes, play_turns
from phalanx.cage2.rules.masks import action_masks
from phalanx.cage2.rules.network import network_dtype, seed_networks
from phalanx.cage2.rules.observation import observation_kind, observation_size
from phalanx.cage2.rules.scenario import DEFAULT_RULES
from phalanx.cage2.rules.world import num_hosts_of
from phalanx.cage2.saved_games import (
    check_minds,
    check_networks,
    out_of_set,
    restore_minds,
    save_minds,
)
from phalanx.cage2.scenario.attackers import check_attackers
from phalanx.cage2.scenario.plan import Scenario
from phalanx.cage2.scenario.read import open_scenario
from phalanx.cage2.scenario.worlds import worlds_of
from phalanx.cage2.settings import (
    DEFAULT_PRIOR,
    RedAgent,
    checked_actions,
    checked_choice,
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
from phalanx.errors import ConfigError, choices

DTYPES = ("float32", "uint8")


class Batch:
    """N networks that play a turn each at every call.

    batch = Batch(4096, red_agent="meander", seed=7)
    batch.begin()                              # batch.shown.obs is the first observation
    batch.play(actions)                        # batch.shown holds what it gave, until the next
    batch.shown.access, batch.nets["decoys"]   # the truth, without copies
    saved = batch.save(); batch.restore(saved)
    batch.scenario.action_name(7)              # what an action is called in this network
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
        scenario: str | Path | Scenario = "cage2",
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
        self.scenario = open_scenario(scenario)
        self.worlds = worlds_of([self.scenario])
        plan, self.odds = red_agent_plan(red_agent, num_envs)
        check_attackers(self.scenario, red_agents_of(plan, self.odds))
        self.horizon = checked_horizon(horizon)
        number = rule_set_number(rules)
        self.num_envs, self.same_step = num_envs, same_step
        self.first_index = whole(
            "first_index", first_index, 0, 2**62 - 1, "a whole number, 0 or more"
        )
        self.team = ThreadTeam(checked_threads(num_threads, num_envs))

        hosts = num_hosts_of(self.worlds)
        self.num_actions = int(self.worlds["num_actions"][0])
        self.nets = records(num_envs, network_dtype(hosts))
        self.nets["red_plan"], self.nets["horizon"], self.nets["rules"] = plan, self.horizon, number
        self.minds = open_minds(num_envs, self.kind, prior, rules, self.horizon, self.worlds)
        self.shown = allocate(num_envs, observation_size(self.kind, self.worlds), name, hosts)
        self.reseed(seed)

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

    def play(self, actions: npt.NDArray[Any], into: Shown | None = None) -> Shown:
        """One turn everywhere: actions int [N], each 0..144 (in CAGE-2).

        What it gives is written into `shown`, or into other arrays of the same kind.
        """
        shown = self.shown if into is None else into
        played = checked_actions(actions, self.num_envs, self.num_actions)
        self.team.run(play_turns, self.turn_arguments(played, shown))
        return shown

    def turn_arguments(self, actions: npt.NDArray[np.int64], shown: Shown) -> tuple[Any, ...]:
        """What `play_turns` takes."""
        return self.worlds, self.nets, self.minds, actions, self.odds, self.same_step, shown

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """bool [N, actions]: False for decoys that blue knows it cannot place.

        A masked action is still a legal one.
        """
        self.team.settle()
        return action_masks(self.worlds, self.nets["world"], self.nets["decoys"])

    def save(self) -> dict[str, npt.NDArray[Any]]:
        """The whole game as arrays; a batch with the same settings can `restore` them."""
        self.team.settle()
        shown = self.shown
        return {
            "nets": self.nets.copy(),
            **save_minds(self.minds),
            "odds": self.odds.copy(),
            "infected": np.stack([shown.infected_before, shown.infected_after]),
        }

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from a saved state of a batch with the same settings."""
        self._check_saved(saved)
        self.team.settle()
        self.nets[:] = saved["nets"]
        restore_minds(self.minds, saved)
        self.begin(np.zeros(self.num_envs, np.bool_))  # shows what is there
        self.shown.infected_before[:], self.shown.infected_after[:] = saved["infected"]

    def _check_saved(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        mine = {"nets": self.nets, "memories": self.minds.memories, "odds": self.odds}
        for name, own in mine.items():
            other = saved.get(name)
            if other is None or other.shape != own.shape or other.dtype != own.dtype:
                raise ConfigError(
                    f"the saved state does not fit: its {name} are not {own.shape} of this kind; "
                    "restore into a batch with the settings of the saved one"
                )
        fields = ("horizon", "rules", "red_plan", "world")  # and the weights of attackers
        differ = [
            name for name in fields if not np.array_equal(saved["nets"][name], self.nets[name])
        ]
        if differ or not np.array_equal(saved["odds"], self.odds):
            raise ConfigError(
                f"the saved state has other settings ({', '.join(differ) or 'weights'}); "
                "restore into a batch with the settings of the saved one"
            )
        check_networks(saved["nets"], self.worlds)
        check_minds(self.minds, saved, self.worlds)
        sets = saved.get("infected")
        if not isinstance(sets, np.ndarray) or sets.shape != (2, self.num_envs):
            raise ConfigError("the saved state does not fit: it does not say what was infected")
        kind = self.shown.infected_before.dtype
        if sets.dtype != kind or out_of_set(sets, num_hosts_of(self.worlds)).any():
            raise ConfigError("the saved state is none of this game: infected hosts")

    def close(self) -> None:
        self.team.close()
