"""Settings of `phalanx search`: those of training, and how the orders are searched."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from phalanx.cage2.settings import OBSERVATIONS
from phalanx.cage2.workflow import ALIGNMENTS, NUM_ORDERS
from phalanx.errors import ConfigError
from phalanx.machine import count_cores
from phalanx.settings.fields import (
    OneOf,
    OrWord,
    Within,
    checked,
    section,
    setting_named,
    values_of,
)
from phalanx.training.config import MAX_NETWORKS, NO_STEPS, NOT_SAVED, TrainConfig

SPENDING = ("school_share", "finish_share")


@checked
@dataclass(frozen=True, kw_only=True)
class SearchConfig(TrainConfig):
    """Find the order of repair with the best return among those that a policy can follow.

    One network first learns all 120 orders (or, with --policy separate, the first one). Then orders
    are measured one after the other, chosen by a Gaussian process; the best few are played again on
    fresh dice, the winner is trained further on its own order, and at the end it is played beside
    the runners-up and beside the same learner without workflows. All flags of phalanx train that
    concern CAGE-2 and PPO can be given too; --help-all has them.
    """

    section("search")
    red_agent: str = "b_line"
    """attacker: b_line, meander, sleep, b_line_detour, meander_rescan, coin, or a mixture"""
    observation: Annotated[str, OneOf(*OBSERVATIONS)] = "history"
    """what the actor sees: bits, history, memory, belief or truth, as in phalanx train"""
    total_episodes: Annotated[int | None, Within(1, 10**12), NO_STEPS] = 100_000
    """budget of the search, in episodes played by all networks, trained or measured; all shards"""
    num_envs: Annotated[int | str, Within(1, MAX_NETWORKS), OrWord("auto")] = field(
        default=200, metadata={"aliases": ("--n-envs",)}
    )
    """networks side by side"""
    policy: Annotated[str, OneOf("shared", "separate")] = "shared"
    """shared: one network, told its order; separate: one each, begun with the nearest order's"""
    exhaustive: bool = False
    """measure all 120 orders, in the order of their numbers"""
    baseline: bool = True
    """train the same learner without workflows, for as many episodes, to compare with"""
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
    school_share: Annotated[float, Within(0, 1)] = 0.5
    """share of the budget for what all orders have in common"""
    finish_share: Annotated[float, Within(0, 1)] = 0.4
    """share of the budget for training the winner on its own order"""
    measure_episodes: Annotated[int, Within(2, 10**7)] = 250
    """episodes by which an order is measured, with the same dice for all"""
    max_episodes: Annotated[int, Within(0, 10**9)] = 2000
    """training that an order may get of its own before it is measured"""
    patience: Annotated[int, Within(1, 10**6)] = 5
    """updates without a gain in return after which an order's own training ends"""
    gp_beta: Annotated[float, Within(0, 1e6)] = 2.0
    """how much uncertainty attracts: the next order has the highest mean + beta * std"""
    finalists: Annotated[int, Within(1, NUM_ORDERS)] = 5
    """orders that are played again before a winner is named"""
    final_episodes: Annotated[int, Within(2, 10**7)] = 500
    """... for so many episodes each"""
    confirm_episodes: Annotated[int, Within(2, 10**7)] = 4000
    """episodes of the last table, beyond the budget"""
    turn_weights: Annotated[str, OneOf("leaderboard", "flat")] = "flat"
    """flat: the return of whole episodes; or leaderboard"""
    minibatch_size: Annotated[int, Within(1, 10**9)] = 1000
    """rows of a gradient step"""

    given: ClassVar[frozenset[str]]  # names of the settings that were given, not left to defaults

    def __new__(cls, **given: Any) -> "SearchConfig":
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
        super().__post_init__()
        if self.track is not None or self.quiet:
            raise ConfigError("--track and --quiet are for phalanx train; leave them out")
        if self.workflow != "all":
            raise ConfigError("phalanx search looks at all orders; leave out --workflow")
        if self.alignment_lambda == 0:
            raise ConfigError(
                "--alignment-lambda 0 rewards no order: nothing to search; give more than 0"
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
                f"phalanx search needs --n-envs as a number, such as 200; got {self.num_envs}"
            )
        _ = self._shard  # what is none is refused here
        if len(self.merge) == 1:
            raise ConfigError("--merge needs two folders or more")
        if self.merge and self.resume is not None:
            raise ConfigError("--merge begins a new folder; continue a merged search with --resume")

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
        return self.school_share / max(self.school_share + self.finish_share, 1e-9)

    @property
    def school_episodes(self) -> int:
        return 0 if self.start_from is not None else int(self.school_share * self.budget)

    @property
    def reserved(self) -> int:
        """Episodes for what comes after the visits."""
        finals = self.finalists * self.final_episodes // self.parts
        return int(self.finish_share * self.budget) + finals

    @property
    def episodes_of_a_visit(self) -> int:
        """By which an order is measured; all 120 share what the budget leaves for that."""
        if not self.exhaustive:
            return self.measure_episodes
        return max(2, min(self.measure_episodes, self._left // len(self.candidates())))

    @property
    def _left(self) -> int:
        """Episodes for the visits; school may take a batch more than its share."""
        batch = int(self.num_envs) * -(-self.update_steps // self.horizon)
        school = self.school_episodes + batch if self.school_episodes else 0
        return self.budget - school - self.reserved

    def check_budget(self) -> None:
        """Refuse one that ends before an order is measured; or all, if all are to be."""
        learns = self.policy == "separate" and self.max_episodes >= int(self.num_envs)
        if self.school_episodes == 0 and self.start_from is None and not learns:
            raise ConfigError("without a school there is no network to measure; give --start-from")
        orders = len(self.candidates()) if self.exhaustive else 1
        needed = orders * self.episodes_of_a_visit
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
        return {name: value for name, value in super().as_dict().items() if name != "merge"}


SEARCH_ONLY = SearchConfig.__dataclass_fields__.keys() - {"merge"}
SEARCH_ONLY -= TrainConfig.__dataclass_fields__.keys()
"""settings that training has not; `merge` is not saved"""
