"""Settings of `phalanx search`: those of training, and how the orders are searched."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from phalanx.cage2.settings import OBSERVATIONS, check_simulator, original_red_agent_weights
from phalanx.cage2.workflow import ALIGNMENTS, NUM_ORDERS, parse_order
from phalanx.errors import ConfigError
from phalanx.machine import count_cores
from phalanx.settings.fields import (
    OneOf,
    Only,
    OrWord,
    Within,
    checked,
    section,
    setting_named,
    values_of,
)
from phalanx.training.config import MAX_NETWORKS, NOT_SAVED, TrainConfig
from phalanx.training.effects import GATE, NO_STEPS

SPENDING = ("school_share", "finish_share")
IN_TURN = Only("searches that try orders in turn", lambda search: not search.judges_all)
AT_ONCE = Only("searches that judge all orders", lambda search: search.judges_all)


@checked
@dataclass(frozen=True, kw_only=True)
class SearchConfig(TrainConfig):
    """In which order to repair? Say which orders may be best, and what each other one costs.

    Five networks learn all 120 orders, each from a seed of its own, and five learn without any
    order. All orders are judged on common dice; what the five differ in tells how much is luck.
    Then the winner is trained further on its own order. With --exhaustive false, or --policy
    separate, orders are measured one after the other, chosen by a Gaussian process. All flags of
    phalanx train that concern CAGE-2 and PPO can be given too; --help-all has them.
    """

    section("search")
    red_agent: str = "b_line"
    """attacker: b_line, meander, sleep, b_line_detour, meander_rescan, coin; or several, such as
    b_line,meander: a ranking against each, the mixture, and the worst case"""
    observation: Annotated[str, OneOf(*OBSERVATIONS)] = "belief"
    """what the actor sees: bits, history, memory, belief or truth, as in phalanx train"""
    total_episodes: Annotated[int | None, Within(1, 10**12), NO_STEPS] = None
    """budget in episodes, of all learners and shards together; default 30,000 a learner, only of
    training, or without --exhaustive 50,000, trained or measured"""
    num_envs: Annotated[int | str, Within(1, MAX_NETWORKS), OrWord("auto")] = field(
        default=256, metadata={"aliases": ("--n-envs",)}
    )
    """networks side by side"""
    policy: Annotated[str, OneOf("shared", "separate")] = "shared"
    """shared: one network, told its order; separate: one each, begun with the nearest order's"""
    exhaustive: bool | None = None
    """measure all 120 orders; if not given, where that is cheap: a shared built-in network, here,
    measured in phalanx"""
    simulator: str = "phalanx"
    """where orders are measured: phalanx; cyborg: the original, where it is installed; or
    module:factory of your own (docs/workflows.md). Networks are trained in phalanx"""
    learners: Annotated[int | str, Within(1, 100), OrWord("auto")] = "auto"
    """networks that are trained from different seeds; auto: 5, or 1 without --exhaustive"""
    ask: str | None = None
    """an order to tell of: what it costs against the best, and against no order; with --resume of
    a finished search at once"""
    margin: Annotated[float, Within(0, 1e6)] = 0.2
    """points that a team does not mind: only an order that costs more for certain is left out of
    those that may be best, and no order is tried that cannot gain more"""
    baseline: bool = True
    """train the same learners without workflows, for as many episodes, to compare with"""
    start_from: str | None = None
    """instead of school: the network of a run or checkpoint trained with --workflow all"""
    resume: Path | None = None
    """continue the search in this folder; its settings stay as they are"""
    shard: str = "1/1"
    """i/n: search the i-th of n parts of the orders, with its share of the budget"""
    merge: tuple[Path, ...] = ()
    """join the finished shards in these folders, with the settings that they were searched with"""

    section("search", rarely=True)
    alignment: Annotated[str, OneOf(*ALIGNMENTS)] = "gate"
    """gate: compliance is held just above its threshold; delta, per_fix: as in phalanx train"""
    gate_start: Annotated[float, Within(0, 1), GATE] = 0.1
    """gate: share of all training in which fixes are free but for defiance, whose price rises"""
    defiance: Annotated[float, Within(0, 1e6), GATE] = 6.0
    """gate: points that a fix costs, on top, of a host that red holds while it holds one of a
    better type; an order is only followed where obeying costs less"""
    school_share: Annotated[float, Within(0, 1), IN_TURN] = 0.4
    """share of the budget for what all orders have in common, if not all are judged"""
    finish_share: Annotated[float, Within(0, 1)] = 0.2
    """share of the budget, or of one learner's if all orders are judged, for training the winner on
    its own order"""
    judge_episodes: Annotated[int, Within(2, 10**7), AT_ONCE] = 4000
    """episodes by which each learner is judged with each order, beyond the budget: --exhaustive"""
    measure_episodes: Annotated[int, Within(2, 10**7), IN_TURN] = 250
    """... by which an order is measured with each learner, if not all orders are"""
    defiances: Annotated[tuple[float, ...], Within(0, 1e6)] = ()
    """also train learners for these prices of defiance: what obedience costs"""
    max_episodes: Annotated[int, Within(0, 10**9), IN_TURN] = 2000
    """training that an order may get of its own before it is measured"""
    patience: Annotated[int, Within(1, 10**6), IN_TURN] = 5
    """updates without a gain in return after which an order's own training ends"""
    gp_beta: Annotated[float, Within(0, 1e6), IN_TURN] = 2.0
    """how much uncertainty attracts: the next order has the highest mean + beta * std"""
    finalists: Annotated[int, Within(1, NUM_ORDERS), IN_TURN] = 5
    """orders that are played again before a winner is named"""
    final_episodes: Annotated[int, Within(2, 10**7)] = 500
    """... for so many episodes each"""
    confirm_episodes: Annotated[int, Within(2, 10**7)] = 4000
    """episodes of the last table, beyond the budget"""
    minibatch_size: Annotated[int, Within(1, 10**9)] = 1024
    """rows of a gradient step"""

    given: ClassVar[frozenset[str]]  # names of the settings that were given, not left to defaults

    def __new__(cls, **given: object) -> "SearchConfig":
        """Remember which settings were given: a merge takes the others from its shards."""
        config = super().__new__(cls)
        names = frozenset(setting_named(cls, name) for name in given)
        object.__setattr__(config, "given", names)
        return config

    def __post_init__(self) -> None:
        if self.workflow is None:
            object.__setattr__(self, "workflow", "all")
        if not self.algo:
            object.__setattr__(self, "algo", "ppo")
        if self.env != "cage2" or self.algo != "ppo":
            raise ConfigError("phalanx search trains with ppo on CAGE-2; leave out --env, --algo")
        if "," in self.red_agent and "=" not in self.red_agent:  # each as often as the others
            names = [name.strip() for name in self.red_agent.split(",")]
            mixture = ",".join(f"{name}={1 / len(names)!r}" for name in names)
            object.__setattr__(self, "red_agent", mixture)
        _ = self._shard  # what is none is refused here
        check_simulator(self.simulator)
        self._choose_method()
        super().__post_init__()
        if self.track is not None or self.quiet:
            raise ConfigError("--track and --quiet are for phalanx train; leave them out")
        if self.workflow != "all":
            raise ConfigError("phalanx search looks at all orders; leave out --workflow")
        if self.alignment_lambda == 0:
            raise ConfigError(
                "--alignment-lambda 0 rewards no order: nothing to search; give more than 0"
            )
        if self.simulator == "cyborg":
            original_red_agent_weights(self.red_agent)
        if ":" in self.simulator and self.runner == "ray":
            raise ConfigError(
                f"--simulator {self.simulator} is here, not on a cluster; leave out --runner ray"
            )
        shares = [getattr(self, name) for name in SPENDING]
        if sum(shares) >= 1:
            raise ConfigError(
                f"school_share and finish_share must leave something to measure with: "
                f"below 1 together, got {shares[0]} and {shares[1]}"
            )
        if self.total_steps is not None or self.duration is not None:
            raise ConfigError("the budget of a search is in episodes; give --total-episodes alone")
        if not isinstance(self.num_envs, int):
            raise ConfigError(
                f"phalanx search needs --n-envs as a number, such as 256; got {self.num_envs}"
            )
        if len(self.merge) == 1:
            raise ConfigError("--merge needs two folders or more")
        if self.merge and self.resume is not None:
            raise ConfigError("--merge begins a new folder; continue a merged search with --resume")

    def _choose_method(self) -> None:
        """Settle what was not given: whether all orders are judged, by how many, for how long."""
        is_cheap = self.policy == "shared" and self.is_one_search
        if self.exhaustive is None:
            cheap = is_cheap and self.network is None and self.start_from is None
            cheap = cheap and self.simulator == "phalanx"
            object.__setattr__(self, "exhaustive", cheap and not self.merge)
        if self.learners == "auto":
            many = 5 if self.judges_all and self.start_from is None else 1
            object.__setattr__(self, "learners", many)
        if int(self.learners) > 1 and not self.is_one_search:
            raise ConfigError(
                "--learners is for searches in one part on this machine; leave out --shard and "
                "--runner ray, or give --learners 1"
            )
        if int(self.learners) > 1 and self.start_from is not None:
            raise ConfigError("--start-from gives one network; leave out --learners")
        if self.total_episodes is None:
            each = 30_000 * int(self.learners) if self.judges_all else 50_000
            object.__setattr__(self, "total_episodes", each)
        if self.defiances and (self.alignment != "gate" or not self.judges_all):
            raise ConfigError("--defiances is for --exhaustive searches with --alignment gate")
        if self.ask is not None:
            parse_order(self.ask)

    @property
    def is_one_search(self) -> bool:
        """Neither a part of one, nor spread over a cluster."""
        return self.parts == 1 and self.runner == "local"

    @property
    def judges_all(self) -> bool:
        """All orders by learners that know all: training is the budget, judging comes on top."""
        return bool(self.exhaustive) and self.policy == "shared" and self.is_one_search

    @cached_property
    def _shard(self) -> tuple[int, int]:
        part, _, parts = self.shard.partition("/")
        if part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts) <= NUM_ORDERS:
            return int(part), int(parts)
        raise ConfigError(
            f"shard {self.shard!r} is none: give i/n with i from 1 to n, such as 1/2, n at most "
            f"{NUM_ORDERS}"
        )

    @property
    def parts(self) -> int:
        return self._shard[1]

    @property
    def budget(self) -> int:
        """Episodes of this shard."""
        return -(-int(self.total_episodes or 0) // self.parts)

    @property
    def school_part(self) -> float:
        """How much of all training is done in common."""
        school, finish = self.school_share, self.finish_share
        if self.judges_all and self.start_from is None:
            school, finish = self.school_episodes, self.finish_episodes
        return school / max(school + finish, 1e-9)

    @property
    def school_episodes(self) -> int:
        """Of each learner."""
        if self.start_from is not None:
            return 0
        if self.judges_all:
            return (self.budget - self.finish_episodes) // int(self.learners)
        return int(self.school_share * self.budget) // int(self.learners)

    @property
    def finish_episodes(self) -> int:
        """For training the winner; where all are judged, a share of what one learner has."""
        return int(self.finish_share * self.budget) // (
            int(self.learners) if self.judges_all else 1
        )

    @property
    def reserved(self) -> int:
        """Episodes for what comes after the visits."""
        finals = self.finalists * self.final_episodes * int(self.learners) // self.parts
        return self.finish_episodes + finals

    @property
    def episodes_of_a_visit(self) -> int:
        """By which an order is measured with a learner; all 120 share what the budget leaves."""
        if self.judges_all:
            return self.judge_episodes
        if not self.exhaustive:
            return self.measure_episodes
        return max(2, min(self.measure_episodes, self._left // len(self.candidates())))

    @property
    def _left(self) -> int:
        """Episodes for the visits; school may take a batch more than its share."""
        batch = int(self.num_envs) * -(-self.update_steps // self.horizon)
        school = (self.school_episodes + batch) * int(self.learners) if self.school_episodes else 0
        return self.budget - school - self.reserved

    def check_budget(self) -> None:
        """Refuse one that ends before an order is measured; or all, if all are to be."""
        if self.judges_all and self.start_from is None:
            if self.school_episodes < int(self.num_envs):
                raise ConfigError(
                    f"a budget of {self.budget} episodes leaves {self.school_episodes} to each of "
                    f"{self.learners} learners, less than one batch of {self.num_envs}; give more "
                    "--total-episodes, or fewer --learners"
                )
            return
        if self.judges_all:
            return
        learns = self.policy == "separate" and self.max_episodes >= int(self.num_envs)
        if self.school_episodes == 0 and self.start_from is None and not learns:
            raise ConfigError("without a school there is no network to measure; give --start-from")
        orders = len(self.candidates()) if self.exhaustive else 1
        needed = orders * self.episodes_of_a_visit * int(self.learners)
        if self._left < needed:
            raise ConfigError(
                f"a budget of {self.budget} episodes leaves {max(0, self._left)} to measure orders "
                f"with, but {needed} are needed; give more --total-episodes, or less of "
                "--school-share, --finish-share, --finalists, --final-episodes"
            )

    def candidates(self) -> list[int]:
        """The orders of this shard."""
        part, parts = self._shard
        return list(range(part - 1, NUM_ORDERS, parts))

    def train_settings(self) -> dict[str, Any]:
        """What a training run inside the search takes over."""
        own = {*SEARCH_ONLY, "merge", *NOT_SAVED, "total_episodes", "duration"}
        return values_of(self, but=own) | {"num_threads": self.threads}

    @property
    def threads(self) -> int | str:
        """Shards of one machine share its cores."""
        if self.num_threads != "auto":
            return self.num_threads
        return max(1, count_cores() // self.parts)

    def as_task(self) -> dict[str, Any]:
        """The settings for a task on another machine, which has one core for it."""
        mine = values_of(self, but={*NOT_SAVED, "start_from", "ray_address", "merge"})
        return mine | {"runner": "local", "num_threads": 1}

    def as_dict(self) -> dict[str, Any]:
        values = super().as_dict() | {"defiances": list(self.defiances)}
        return {name: value for name, value in values.items() if name not in ("merge", "ask")}


SEARCH_ONLY = SearchConfig.__dataclass_fields__.keys() - {"merge"}
SEARCH_ONLY -= TrainConfig.__dataclass_fields__.keys()
"""settings that training has not; `merge` is not saved"""
