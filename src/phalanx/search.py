"""Which order of repair is best? Try one, measure it, believe, until the budget is spent."""

import dataclasses
import json
import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.beliefs import Beliefs, Visit
from phalanx.cage2.workflow import DISTANCES, NAMED_ORDERS, order_name, order_number
from phalanx.checkpoint import last_checkpoint, load_checkpoint, save_checkpoint
from phalanx.config import EvaluateConfig, TrainConfig
from phalanx.errors import RunError
from phalanx.evaluate import interval
from phalanx.learn.sampler import Stopped
from phalanx.machine import describe_versions, peak_memory_mb
from phalanx.play import play_episodes
from phalanx.recipe import Network, entropy_weight_at, find_network, learning_rate_at
from phalanx.results import write_json, write_text
from phalanx.run import Run
from phalanx.run_folder import RunFolder, read_config
from phalanx.search_config import SearchConfig
from phalanx.search_logs import (
    UPDATE_COLUMNS,
    as_csv,
    check_that_they_fit,
    find_policy,
    joined_settings,
    own_seed,
    read_csv,
    read_shard,
    update_rows,
)
from phalanx.tally import compliance_of
from phalanx.trained import TrainedDefender, load_defender, policy_for
from phalanx.training import train

GAIN = 0.01  # of the return: less is a plateau
NEAR = 0.1  # compliance that training on one order alone may bring
MEASURE, FINAL, CONFIRM = 2_000_003, 3_000_017, 4_000_037  # added to the seed: dice of their own
MAY_CHANGE = ("num_threads", "baseline", "confirm_episodes", "checkpoint_every")


@dataclass(frozen=True)
class Measured:
    """A policy that was told an order, over some episodes."""

    workflow: int | None
    """None: the learner without workflows, judged by the winner's order"""
    name: str
    returns: npt.NDArray[np.float64]
    fixes: npt.NDArray[np.int64]
    compliant: npt.NDArray[np.int64]

    @property
    def compliance(self) -> float | None:
        return float(self.compliant.sum() / self.fixes.sum()) if self.fixes.any() else None

    def passes(self, config: SearchConfig) -> bool:
        """The gate: it follows its order, and by more than a lucky fix."""
        enough = self.fixes.mean() >= config.min_fixes
        return bool(enough) and (self.compliance or 0.0) >= config.compliance_threshold

    def figures(self) -> dict[str, Any]:
        """As summary.json has them."""
        return {
            "workflow": self.workflow,
            "order": None if self.workflow is None else order_name(self.workflow),
            "name": self.name,
            **interval(self.returns),
            "compliance": self.compliance,
            "fixes_per_episode": float(self.fixes.mean()),
            "share_without_fix": float((self.fixes == 0).mean()),
        }


Heard = Callable[["Search", Run | None], None]


def search(config: SearchConfig, heard: Heard = lambda *_: None) -> "Search":
    """Search until the budget is spent, or SIGINT or SIGTERM.

    heard: is told of each update of a training run, and of each visit.
    """
    path = config.resume or config.output_dir / (config.name or time.strftime("%Y%m%d-%H%M%S"))
    if config.resume is not None and not is_search(path):
        raise RunError(f"there is no search in {path}; give its folder to --resume")
    sources = [read_shard(folder) for folder in config.merge]
    check_that_they_fit(config.merge, sources)
    if sources:
        config = joined_settings(config, sources[0])
    elif config.resume is None:
        config.check_budget()
    network = find_network(config.network)
    if config.start_from is not None:
        check_start(Path(config.start_from), config, network)
    folder = RunFolder(path)
    try:
        if config.resume is None and (path / "config.yaml").exists():
            raise RunError(
                f"{path} holds a search already; give another --name, or --resume {path}"
            )
        found = Search(config, folder, heard, network)
        if config.resume is not None:
            found.load()
        if sources:
            found.take_over(config.merge, sources)
        if config.resume is None:  # only now: what was not wholly taken over cannot be resumed
            folder.write_config(config.as_dict())
        found.go()
    finally:
        folder.close()
    return found


def is_search(path: Path) -> bool:
    """Whether a folder holds the settings of a search; those of a training run are fewer."""
    settings = path / "config.yaml"
    return settings.exists() and "school_share" in read_config(settings)


def check_start(path: Path, config: SearchConfig, network: Network | None) -> None:
    """Refuse to start from a policy that is not told its order, or has other sizes."""
    if not last_checkpoint(path).exists():
        raise RunError(f"there is no run or checkpoint {path} to start from")
    defender = load_defender(path, network)
    if not defender.is_told:
        raise RunError(f"{path} is not told an order; start from a run of train --workflow all")
    if defender.policy is not None:
        theirs, ours = defender.policy.theta.size, policy_for(config).theta.size
        if theirs != ours:
            raise RunError(
                f"cannot start from {path}: it has {theirs} weights, these settings make {ours}; "
                "give it the --observation, --hidden and --condition of that run"
            )


class Search:
    """A search: what it has measured, where it keeps things, and how far it has come.

    school/          the training run that all orders have in common
    workflows/NNN/   training of an order's own, where it was needed
    winner/          the winner, trained further on its own order
    baseline/        the same learner without workflows
    """

    def __init__(
        self, config: SearchConfig, folder: RunFolder, heard: Heard, network: Network | None
    ) -> None:
        self.config, self.folder, self._heard, self.network = config, folder, heard, network
        self.visits: list[Visit] = []
        self.finals: list[dict[str, Any]] = []
        self.confirmed: list[dict[str, Any]] = []
        self.winner: int | None = None
        self.difference: dict[str, Any] | None = None
        self.spent: dict[str, int] = {}  # episodes by phase
        self.phase = "beginning"
        self.stopped = False
        self.seconds = 0.0
        self._began = time.monotonic()
        self._defenders: dict[Path, TrainedDefender] = {}
        self.merged: list[str] = []  # folders of the shards that this search was joined from
        self._merged_updates: list[dict[str, Any]] = []

    @property
    def episodes(self) -> int:
        """Played within the budget, trained or measured."""
        return sum(self.spent.values())

    @property
    def beliefs(self) -> Beliefs:
        c = self.config
        return Beliefs(self.visits, c.gp_beta, c.compliance_threshold, c.min_fixes)

    def go(self) -> None:
        """All of it, or what is left of it."""
        try:
            if not self.merged:
                self.go_to_school()
                while (choice := self.choose()) is not None:
                    self.visit(*choice)
            if self.config.parts == 1:
                self.conclude()
        except (Stopped, KeyboardInterrupt):
            self.stopped = True
        self.phase = "stopped" if self.stopped else "finished"
        self.save()

    # --- learning ---------------------------------------------------------------------------------

    def go_to_school(self) -> None:
        """What all orders have in common: a network that is told its order, on all of them.

        Separate networks begin with what the first order's has learnt.
        """
        c = self.config
        if c.school_episodes == 0:
            return
        first = None if c.policy == "shared" else self.first_orders()[0]
        share = c.school_share / max(c.school_share + c.finish_share, 1e-9)
        self.spent["school"] = self.train(
            "school", "school", first, c.school_episodes,
            learning_rate=c.learning_rate, final_learning_rate=learning_rate_at(c, share),
            entropy=c.entropy, final_entropy=entropy_weight_at(c, share),
            restore_curriculum=min(1.0, c.restore_curriculum / max(share, 1e-9)),
            gate_start=min(1.0, c.gate_start / max(share, 1e-9)),
        )  # fmt: skip

    def train_own(self, number: int, episodes: int) -> tuple[int, str]:
        """Training on this order alone; its episodes, and what ended it."""
        c = self.config
        share = c.school_share / max(c.school_share + c.finish_share, 1e-9)
        rate, entropy = learning_rate_at(c, share), entropy_weight_at(c, share)
        best, since, why = -math.inf, 0, "cap"

        def watch(run: Run) -> None:
            nonlocal best, since, why
            recent = list(run.recent)[-int(c.num_envs) :]
            gained = float(np.mean([episode.total for episode in recent]))
            since = 0 if gained > best + GAIN else since + 1
            best = max(best, gained)
            figures = compliance_of(recent)
            passed = figures["compliance"] >= c.compliance_threshold
            passed = passed and figures["fixes_per_episode"] >= c.min_fixes
            # A network of its own learns before it may stop; a shared one only if it must.
            if passed and (c.policy == "shared" or run.updates >= c.patience):
                run.enough, why = True, "gate"
            elif since >= c.patience:
                run.enough, why = True, "plateau"

        played = self.train(
            f"workflows/{number:03d}", "own training", number, episodes, watch,
            start_from=self.nearest(number), learning_rate=rate, final_learning_rate=rate,
            entropy=entropy, final_entropy=entropy, restore_curriculum=0.0, gate_start=0.0,
        )  # fmt: skip
        return played, why

    def train(
        self,
        name: str,
        phase: str,
        number: int | None,
        episodes: int,
        watch: Callable[[Run], None] = lambda run: None,
        **changes: Any,
    ) -> int:
        """An ordinary training run inside this folder; returns its episodes. Once is enough.

        number: the order that it is to follow; None: all of them.
        """
        self.phase = phase
        path = self.folder.path / name
        settings = self.config.train_settings() | {
            "total_episodes": max(1, episodes),
            "workflow": "all" if number is None else order_name(number),
            "seed": own_seed(self.config.seed, name),
        }
        settings |= changes
        if not last_checkpoint(path).exists():
            config = TrainConfig(**settings, output_dir=path.parent, name=path.name)
        else:
            _arrays, facts = load_checkpoint(last_checkpoint(path))
            # As it was written then: seen from elsewhere the same folder has another path.
            settings["start_from"] = facts["config"]["start_from"]
            config = TrainConfig(**settings, resume=path)
            if facts["updates"] >= config.total_updates:
                return int(facts["episodes"])

        def on_update(run: Run) -> None:
            watch(run)
            self._heard(self, run)

        run = train(config, self.network, on_update)
        if run.stopped:
            raise Stopped
        return run.episodes

    # --- trying orders ----------------------------------------------------------------------------

    def first_orders(self) -> list[int]:
        """Where the search begins: the orders that have names, as far as they are candidates."""
        named = [order_number(order) for order in NAMED_ORDERS.values()]
        candidates = self.config.candidates()
        return [number for number in named if number in candidates] or candidates[:1]

    def choose(self) -> tuple[int, str] | None:
        """The order to try now, and why; None when the budget or the orders are used up."""
        c = self.config
        if self.episodes + c.episodes_of_a_visit > c.budget - c.reserved:
            return None
        visited = {visit.workflow for visit in self.visits}
        if c.exhaustive:
            left = [number for number in c.candidates() if number not in visited]
            return (left[0], "exhaustive") if left else None
        for number in self.first_orders():
            if number not in visited:
                return number, "named"
        best = self.beliefs.next(c.candidates())
        return None if best is None else (best, "gp_ucb")

    def visit(self, number: int, chosen_by: str) -> None:
        """Measure an order, after training of its own where its policy needs that."""
        c, began, before = self.config, time.monotonic(), self.beliefs
        self.phase = f"trying {order_name(number)}"
        trained, why = 0, "none"
        self.forget_training_of(number)
        measured = [] if c.policy == "separate" else [self.measure(number)]
        if not measured or self.is_nearly_there(measured[0]):
            left = c.budget - c.reserved - self.episodes
            if c.exhaustive:
                left //= len(c.candidates()) - len(self.visits)
            own = min(c.max_episodes, left - (1 + len(measured)) * c.episodes_of_a_visit)
            if own >= int(c.num_envs):
                trained, why = self.train_own(number, own)
                measured.append(self.measure(number))
        if not measured:
            measured.append(self.measure(number))
        playing = sum(len(one.returns) for one in measured)
        self.spent["visits"] = self.spent.get("visits", 0) + trained + playing
        known = before.know_returns
        figures, passed = measured[-1].figures(), measured[-1].passes(c)
        self.visits.append(
            Visit(
                iteration=len(self.visits) + 1,
                shard=c.shard,
                workflow=number,
                order=order_name(number),
                chosen_by=chosen_by,
                acquisition=float(before.bounds[number]) if known else None,
                posterior_mean=float(before.returns.mean[number]) if known else None,
                posterior_std=float(before.returns.std[number]) if known else None,
                chance_of_passing=None if before.passing is None else float(before.passing[number]),
                top_three=" ".join(map(str, before.top_three(c.candidates()))) if known else "",
                measured_return=figures["mean"],
                stderr=figures["stderr"],
                compliance=figures["compliance"],
                fixes_per_episode=figures["fixes_per_episode"],
                share_without_fix=figures["share_without_fix"],
                passed=passed,
                stopped_by=why,
                trained_episodes=trained,
                measured_episodes=len(measured[-1].returns),
                episodes=trained + playing,
                total_episodes=self.episodes,
                model_updated=passed,
                seconds=time.monotonic() - began,
            )
        )
        self.save()
        self._heard(self, None)

    def forget_training_of(self, number: int) -> None:
        """A visit that was killed begins anew: what ended its training depends on all of it."""
        path = self.folder.path / f"workflows/{number:03d}"
        if path.exists():
            shutil.rmtree(path)

    def is_nearly_there(self, measured: Measured) -> bool:
        """Whether a little training of its own may bring a shared policy through the gate."""
        near = (measured.compliance or 0.0) >= self.config.compliance_threshold - NEAR
        return near and not measured.passes(self.config)

    def measure(self, number: int) -> Measured:
        """Play an order's policy; all orders meet the same dice."""
        path, episodes = self.policy_of(number), self.config.episodes_of_a_visit
        return self.play(path, number, episodes, MEASURE, order_name(number))

    def play(self, path: Path, number: int, episodes: int, dice: int, name: str) -> Measured:
        c = self.config
        settings = EvaluateConfig(
            policy=("sleep",), episodes=episodes, rules=c.rules, seed=(c.seed + dice) % 2**63,
            num_threads=c.train_settings()["num_threads"], compliance_rule=c.compliance_rule,
            horizon=(c.horizon,),
        )  # fmt: skip
        if path not in self._defenders:
            self._defenders[path] = load_defender(path, self.network)
        orders = np.full(episodes, number)
        played = play_episodes(
            settings, name, c.red_agent, (c.horizon,), orders, trained=self._defenders[path]
        )
        return Measured(
            number, name, played.returns[:, 0], played.fixes[:, 0], played.compliant[:, 0]
        )

    def policy_of(self, number: int) -> Path:
        return find_policy(self.folder.path, self.config.start_from, number)

    def nearest(self, number: int) -> str | None:
        """What an order's own training begins with: the shared network, or the nearest order's."""
        school = Path(self.config.start_from or self.folder.path / "school")
        start = str(school) if last_checkpoint(school).exists() else None
        if self.config.policy == "shared" or not self.visits:
            return start
        tried = [visit.workflow for visit in self.visits]
        return str(self.policy_of(min(tried, key=lambda other: (DISTANCES[number, other], other))))

    # --- the end ----------------------------------------------------------------------------------

    def conclude(self) -> None:
        """Name a winner, train it further, and play it beside the others."""
        c = self.config
        ranking = self.beliefs.ranking() or self.beliefs.nearest_to_passing()
        if not ranking:
            raise RunError(
                f"the budget of {c.budget} episodes ended before an order was measured; give more "
                "--total-episodes, or a smaller --school-share"
            )
        if not self.finals:
            self.phase = "finals"
            played = [
                self.play(self.policy_of(number), number, c.final_episodes, FINAL, "finalist")
                for number in ranking[: c.finalists]
            ]
            self.spent["finals"] = sum(len(one.returns) for one in played)
            good = [one for one in played if one.passes(c)] or played
            self.winner = max(good, key=lambda one: float(one.returns.mean())).workflow
            self.finals = [one.figures() for one in played]
            self.save()
        assert self.winner is not None
        winner = self.finish(self.winner)
        baseline = self.train_baseline(self.winner) if c.baseline else None
        self.confirm(winner, baseline)

    def finish(self, number: int) -> Path:
        """Train the winner on its own order with what is left of the budget."""
        c = self.config
        share = c.school_share / max(c.school_share + c.finish_share, 1e-9)
        others = self.episodes - self.spent.get("finish", 0)
        left = c.budget - others if c.finish_share else 0
        start = self.policy_of(number)
        if left < int(c.num_envs):
            return start
        self.spent["finish"] = self.train(
            "winner", "training the winner", number, left, start_from=str(start),
            learning_rate=learning_rate_at(c, share), entropy=entropy_weight_at(c, share),
            restore_curriculum=0.0, gate_start=0.0,
        )  # fmt: skip
        return self.folder.path / "winner"

    def train_baseline(self, number: int) -> Path:
        """The same learner without workflows for as many episodes; judged by the winner's order."""
        c = self.config
        self.train(
            "baseline", "training without workflows", number, int(c.total_episodes or 0),
            start_from=None, alignment_lambda=0.0,
        )  # fmt: skip
        return self.folder.path / "baseline"

    def confirm(self, winner: Path, baseline: Path | None) -> None:
        """The last table: all on the same fresh dice."""
        assert self.winner is not None
        self.phase = "confirming"
        episodes = self.config.confirm_episodes
        first = self.play(winner, self.winner, episodes, CONFIRM, "winner")
        table = [first]
        for figures in self.finals:
            number = int(figures["workflow"])
            name = "winner before its own training" if number == self.winner else "runner-up"
            if winner != self.policy_of(number) or number != self.winner:
                table.append(self.play(self.policy_of(number), number, episodes, CONFIRM, name))
        if baseline is not None:
            other = self.play(baseline, self.winner, episodes, CONFIRM, "without workflows")
            table.append(dataclasses.replace(other, workflow=None))
            self.difference = interval(first.returns - other.returns)
        self.confirmed = [one.figures() for one in table]
        self.keep_policy(winner, "winner")
        self.save()

    def keep_policy(self, path: Path, name: str) -> None:
        """What a policy has learnt, as one file: all but the games that it was in."""
        arrays, facts = load_checkpoint(last_checkpoint(path))
        learnt = {k: v for k, v in arrays.items() if not k.startswith("sampler_")}
        (self.folder.path / "policies").mkdir(exist_ok=True)
        save_checkpoint(self.folder.path / "policies" / f"{name}.npz", learnt, facts)

    # --- keeping ----------------------------------------------------------------------------------

    def save(self) -> None:
        """search.csv, updates.csv and summary.json as they are now, each whole."""
        path = self.folder.path
        now = time.monotonic()
        self.seconds, self._began = self.seconds + now - self._began, now
        write_text(
            path / "search.csv", as_csv(Visit.columns(), map(dataclasses.asdict, self.visits))
        )
        before_finish = self.episodes - self.spent.get("finish", 0)
        own = update_rows(path, self.config.shard, self.visits, before_finish)
        updates = self._merged_updates + own
        write_text(path / "updates.csv", as_csv(UPDATE_COLUMNS, updates))
        write_json(path / "summary.json", self.summary())

    def load(self) -> None:
        """Continue from what `save` wrote."""
        path = self.folder.path / "summary.json"
        if not path.exists():
            return
        saved = json.loads(path.read_text())
        mine = self.config.as_dict()
        differ = [k for k in mine if k not in MAY_CHANGE and mine[k] != saved["config"].get(k)]
        if differ:
            raise RunError(
                f"{self.folder.path} was searched with another {', '.join(differ)}; leave that "
                "out, or begin a new search"
            )
        self.visits = [Visit(**visit) for visit in saved["visits"]]
        self.finals, self.winner = saved["finals"], saved["winner"]
        self.spent, self.seconds = saved["spent"], saved["seconds"]
        self.merged = saved["merged"]
        if self.merged:
            rows = read_csv(self.folder.path / "updates.csv")
            self._merged_updates = [row for row in rows if row["shard"] != self.config.shard]

    def take_over(self, folders: Sequence[Path], shards: Sequence[dict[str, Any]]) -> None:
        """What the shards have found, as one search would have logged it."""
        self.merged = [str(folder) for folder in folders]
        for folder, shard in zip(folders, shards, strict=True):
            self.visits += [Visit(**visit) for visit in shard["visits"]]
            for phase, episodes in shard["spent"].items():
                self.spent[phase] = self.spent.get(phase, 0) + episodes
            self._merged_updates += read_csv(folder / "updates.csv")
            self.seconds += float(shard["seconds"])
            for visit in shard["visits"]:
                number = int(visit["workflow"])
                path = find_policy(folder, shard["config"]["start_from"], number)
                self.keep_policy(path, f"{number:03d}")
        self.visits.sort(key=lambda visit: (visit.iteration, visit.shard))
        self.save()

    def summary(self) -> dict[str, Any]:
        return {
            "state": self.phase,
            "winner": self.winner,
            "order": None if self.winner is None else order_name(self.winner),
            "winner_minus_baseline": self.difference,
            "confirmed": self.confirmed,
            "finals": self.finals,
            "episodes": self.episodes,
            "spent": self.spent,
            "merged": self.merged,
            "seconds": self.seconds,
            "peak_memory_mb": peak_memory_mb(),
            "versions": describe_versions(),
            "config": self.config.as_dict(),
            "visits": [dataclasses.asdict(visit) for visit in self.visits],
        }
