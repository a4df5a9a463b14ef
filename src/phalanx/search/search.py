"""Which order of repair is best? Try one, measure it, believe, until the budget is spent."""

import contextlib
import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from phalanx.agents import agent_path
from phalanx.cage2.scenario.names import CAGE2_NAME
from phalanx.cage2.workflow import NAMED_ORDERS, order_name, order_number
from phalanx.cluster.ray import connected, count_cpus, run_tasks
from phalanx.errors import RunError, WorkerError
from phalanx.learn.rollout import Stopped
from phalanx.machine import describe_hardware, describe_versions, peak_memory_mb
from phalanx.play.episodes import open_simulator
from phalanx.play.trained import load_defender
from phalanx.search.conclude import conclude
from phalanx.search.config import SEARCH_ONLY, SearchConfig
from phalanx.search.decided import Answer
from phalanx.search.exhaustive import judge_all
from phalanx.search.logs import (
    MAY_CHANGE,
    UPDATE_COLUMNS,
    Summary,
    as_csv,
    check_that_they_fit,
    find_policy,
    joined_settings,
    own_name,
    read_shard,
    read_summary,
    read_updates,
    update_rows,
)
from phalanx.search.measured import COLUMNS, Row, as_rows, read_rows
from phalanx.search.surrogate import Outlook, Surrogate, Visit
from phalanx.search.trainer import Columns, Trainer, try_far_away
from phalanx.settings.fields import check_same
from phalanx.settings.yaml_file import read_settings
from phalanx.training.checkpoint import last_checkpoint
from phalanx.training.folder import RunFolder, open_new
from phalanx.training.on_cage2 import make_policy
from phalanx.training.recipe import Network, find_network
from phalanx.training.run import Run


class Choice(NamedTuple):
    """An order to try, why, and what was believed of it then: columns of search.csv."""

    number: int
    why: str
    outlook: Outlook


Heard = Callable[["Search", Run | None], None]


def search(config: SearchConfig, heard: Heard = lambda *_: None) -> "Search":
    """Search until the budget is spent, or SIGINT or SIGTERM.

    heard: is told of each phase, of each update of a training run, and of each visit.
    """
    if config.resume is not None and not is_search(config.resume):
        raise RunError(f"there is no search in {config.resume}; give its folder to --resume")
    if config.resume is not None and is_of_old(config.resume):
        raise RunError(
            f"{config.resume} was begun by an older phalanx, whose --exhaustive spends the budget "
            "in another way; begin a new search, or go on with the phalanx that began it"
        )
    sources = [read_shard(folder) for folder in config.merge]
    check_that_they_fit(config.merge, sources)
    if sources:
        config = joined_settings(config, sources)
    elif config.resume is None:
        config.check_budget()
    network = find_network(config.network)
    if config.simulator != "phalanx":  # what is not there is refused before anything is trained
        open_simulator(config.simulator, rules=config.rules, horizon=config.horizon).close()
    if config.start_from is not None:
        check_start(agent_path(config.start_from), config, network)
    with contextlib.ExitStack() as until_the_end:
        if config.runner == "ray":
            until_the_end.enter_context(connected(config.ray_address))
        folder = open_folder(config)
        until_the_end.callback(folder.close)
        found = Search(config, folder, heard, network)
        if config.resume is not None:
            found.load()
        if sources:
            found.take_over(config.merge, sources)
        if config.resume is None:  # only now: what was not wholly taken over cannot be resumed
            folder.write_config(config.as_dict())
        found.go()
    return found


def open_folder(config: SearchConfig) -> RunFolder:
    """The folder to go on in, or a new one."""
    if config.resume is not None:
        return RunFolder(config.resume, goes_on=True)
    path = config.output_dir / (config.name or "")
    if config.name is not None and (path / "config.yaml").exists():
        raise RunError(f"{path} holds a search already; give another --name, or --resume {path}")
    return open_new(config.output_dir, config.name, for_search=True)


def is_search(path: Path) -> bool:
    """Whether a folder holds the settings of a search: those that training has not."""
    settings = path / "config.yaml"
    return settings.exists() and not SEARCH_ONLY.isdisjoint(read_settings(settings))


def is_of_old(path: Path) -> bool:
    """Whether a search was begun before all orders were judged by several learners."""
    settings = read_settings(path / "config.yaml")
    return settings.get("exhaustive") == "true" and "learners" not in settings


def check_start(path: Path, config: SearchConfig, network: Network | None) -> None:
    """Refuse to start from a policy that is not told its order, or has other sizes."""
    if not last_checkpoint(path).is_file():
        raise RunError(f"there is no run or checkpoint {path} to start from")
    defender = load_defender(path, network)
    if not defender.is_told:
        raise RunError(f"{path} is not told an order; start from a run of train --workflow all")
    if defender.policy is not None:
        theirs, ours = defender.policy.theta.size, make_policy(config).wide().theta.size
        if theirs != ours:
            raise RunError(
                f"cannot start from {path}: it has {theirs} weights, these settings make {ours}; "
                "give it the --observation, --hidden and --condition of that run"
            )


class Search:
    """A search: what it has measured, what it believes, and how far it has come."""

    def __init__(
        self, config: SearchConfig, folder: RunFolder, heard: Heard, network: Network | None
    ) -> None:
        self.config, self.folder, self._heard = config, folder, heard
        self.trainer = Trainer(config, folder, lambda run: heard(self, run), network)
        self.visits: list[Visit] = []
        self.rows: list[Row] = []  # of measured.csv
        self.decision: Answer | None = None
        self.finals: list[dict[str, Any]] = []
        self.confirmed: list[dict[str, Any]] = []
        self.winner: int | None = None
        self.difference: dict[str, Any] | None = None
        self.spent = Counter[str]()  # episodes by phase
        self.stopped = False
        self.seconds = 0.0
        self._began = time.monotonic()
        self.merged: list[str] = []  # folders of the shards that this search was joined from
        self._merged_updates: list[Mapping[str, object]] = []

    @property
    def phase(self) -> str:
        """What is being done."""
        return self.trainer.phase

    @phase.setter
    def phase(self, phase: str) -> None:
        self.trainer.phase = phase
        self._heard(self, None)

    @property
    def episodes(self) -> int:
        """Played within the budget, trained or measured."""
        return sum(self.spent.values())

    @property
    def judges_all(self) -> bool:
        """Whether all orders are judged; what shards have visited is only joined."""
        return self.config.judges_all and not self.merged

    def surrogate(self, pending: Sequence[int] = ()) -> Surrogate:
        """What is believed while some orders are being tried."""
        c = self.config
        return Surrogate(self.visits, c.gp_beta, c.compliance_threshold, c.min_fixes, pending)

    def go(self) -> None:
        """All of it, or what is left of it."""
        self._heard(self, None)
        try:
            if not self.merged:
                self.learn()
                self.trainer.reference = self.first_orders()[0]
                if self.judges_all:
                    judge_all(self)
                while choices := self.choose():
                    self.visit(choices)
            if self.config.parts == 1:
                conclude(self)
        except (Stopped, KeyboardInterrupt):
            self.stopped = True
        except WorkerError:
            self.phase = "failed"
            self.save()
            raise
        self.phase = "stopped" if self.stopped else "finished"
        self.save()

    # --- trying orders ----------------------------------------------------------------------------

    def learn(self) -> None:
        """What all orders have in common, by each learner."""
        first, played = self.first_orders()[0], 0
        for learner in range(1, int(self.config.learners) + 1):
            played += self.trainer.go_to_school(first, learner)
            self.spent["school"] = played

    def first_orders(self) -> list[int]:
        """Where the search begins: the orders that have names, as far as they are candidates."""
        named = [order_number(order) for order in NAMED_ORDERS.values()]
        candidates = self.config.candidates()
        return [number for number in named if number in candidates] or candidates[:1]

    def choose(self) -> list[Choice]:
        """The orders to try now, and why; none when the budget or the orders are used up, or when
        none is left that may be better by more than the margin.
        """
        if self.judges_all:
            return []
        many = count_cpus() if self.config.runner == "ray" else 1
        left = self.config.budget - self.config.reserved - self.episodes
        choices: list[Choice] = []
        each = self.config.episodes_of_a_visit * int(self.config.learners)
        while len(choices) < min(many, left // each):
            choice = self.choose_beside([choice.number for choice in choices])
            if choice is None:
                break
            choices.append(choice)
        return choices

    def choose_beside(self, pending: list[int]) -> Choice | None:
        """The next order, while others are being tried."""
        candidates, surrogate = self.config.candidates(), self.surrogate(pending)
        taken = {visit.workflow for visit in self.visits} | set(pending)
        why, first = "named", self.first_orders()
        if self.config.exhaustive:
            why, first = "exhaustive", candidates
        number = next((number for number in first if number not in taken), None)
        if number is None and why == "named":
            why, number = "gp_ucb", surrogate.next(candidates)
            if number is not None and not surrogate.may_gain(number, self.config.margin):
                return None  # what is left of the budget goes to the winner
        if number is None:
            return None
        return Choice(number, why, surrogate.outlook(number, candidates))

    def visit(self, choices: list[Choice]) -> None:
        """Try some orders, here one after the other or on a cluster at the same time."""
        c, before = self.config, [visit.workflow for visit in self.visits]
        self.phase = f"trying {', '.join(order_name(choice.number) for choice in choices)}"
        left = c.budget - c.reserved - self.episodes
        # All orders share what is left where all are to be tried, else those that are tried now.
        left //= len(c.candidates()) - len(before) if c.exhaustive else len(choices)
        if c.runner == "ray":
            tried = self.try_on_ray([choice.number for choice in choices], left, before)
        else:
            tried = [self.trainer.try_order(one.number, left, before) for one in choices]
        for choice, (columns, rows) in zip(choices, tried, strict=True):
            self.rows += rows
            self.spent["visits"] += columns["episodes"]
            visit = Visit(
                iteration=len(self.visits) + 1,
                shard=c.shard,
                workflow=choice.number,
                order=order_name(choice.number),
                chosen_by=choice.why,
                total_episodes=self.episodes,
                **choice.outlook,
                **columns,
            )
            self.visits.append(visit)
        self.save()
        self._heard(self, None)

    def try_on_ray(
        self, numbers: list[int], left: int, before: list[int]
    ) -> list[tuple[Columns, list[Row]]]:
        """The same as tasks of a cluster; what they trained comes back as files."""
        starts = {
            number: last_checkpoint(Path(start)).read_bytes()
            for number in numbers
            if (start := self.trainer.nearest(number, before)) is not None
        }
        jobs = [(number, left) for number in numbers]
        answers = run_tasks(try_far_away, jobs, (self.config.as_task(), starts))
        for number, (_tried, files) in zip(numbers, answers, strict=True):
            for name, content in files.items():
                path = self.folder.path / own_name(number) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        return [tried for tried, _files in answers]

    # --- keeping ----------------------------------------------------------------------------------

    def save(self) -> None:
        """search.csv, updates.csv and summary.json as they are now, each whole."""
        now = time.monotonic()
        self.seconds, self._began = self.seconds + now - self._began, now
        visits = [dataclasses.asdict(visit) for visit in self.visits]
        self.folder.write("search.csv", as_csv(tuple(Visit.__dataclass_fields__), visits))
        before_finish = self.episodes - self.spent["finish"]
        own = update_rows(
            self.folder.path,
            self.config.shard,
            self.visits,
            before_finish,
            int(self.config.learners),
        )
        self.folder.write("measured.csv", as_csv(COLUMNS, as_rows(self.rows)))
        self.folder.write("updates.csv", as_csv(UPDATE_COLUMNS, [*self._merged_updates, *own]))
        self.folder.write_summary(self.summary())

    def load(self) -> None:
        """Continue from what `save` wrote."""
        path = self.folder.path
        if not (path / "summary.json").exists():
            return
        saved = read_summary(path)
        lacking = {"scenario": CAGE2_NAME, "defiances": []}  # what older searches do not say
        theirs = lacking | saved["config"]
        check_same(path, self.config.as_dict(), theirs, MAY_CHANGE, "searched")
        self.visits, self.finals, self.winner = saved["visits"], saved["finals"], saved["winner"]
        self.seconds, self.merged = saved["seconds"], saved["merged"]
        self.spent.update(saved["spent"])
        self.rows = read_rows(path / "measured.csv")
        if self.merged:
            rows = read_updates(path / "updates.csv")
            self._merged_updates = [row for row in rows if row["shard"] != self.config.shard]

    def take_over(self, folders: Sequence[Path], shards: Sequence[Summary]) -> None:
        """What the shards have found, as one search would have logged it."""
        self.merged = [str(folder) for folder in folders]
        for folder, shard in zip(folders, shards, strict=True):
            self.visits += shard["visits"]
            self.spent.update(shard["spent"])
            self._merged_updates += read_updates(folder / "updates.csv")
            self.rows += read_rows(folder / "measured.csv")
            self.seconds += float(shard["seconds"])
            for visit in shard["visits"]:
                number = visit.workflow
                path = find_policy(folder, shard["config"]["start_from"], number)
                self.trainer.keep_policy(path, number, f"{number:03d}")
        self.visits.sort(key=lambda visit: (visit.iteration, visit.shard))
        self.save()

    def summary(self) -> dict[str, object]:
        return {
            "state": self.phase,
            "winner": self.winner,
            "order": None if self.winner is None else order_name(self.winner),
            "winner_minus_baseline": self.difference,
            "confirmed": self.confirmed,
            "finals": self.finals,
            "episodes": self.episodes,
            "spent": self.spent,
            "judged": sum(row.episodes for row in self.rows) if self.judges_all else 0,
            "unfinished": self.trainer.unfinished,
            "merged": self.merged,
            "seconds": self.seconds,
            "peak_memory_mb": peak_memory_mb(),
            "versions": describe_versions(),
            "machine": describe_hardware(),
            "config": self.config.as_dict(),
            "visits": [dataclasses.asdict(visit) for visit in self.visits],
        }
