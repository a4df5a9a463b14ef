"""Where a search trains: ordinary training runs inside its folder, and orders that are tried."""

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from phalanx.cage2.workflow import DISTANCES, order_name
from phalanx.learn.rollout import Stopped
from phalanx.search.config import SearchConfig
from phalanx.search.logs import own_name, own_seed, school_name
from phalanx.search.measured import Figures, Row, figures_of
from phalanx.search.measurer import FINAL, Measurer
from phalanx.settings.fields import effective
from phalanx.statistics import interval
from phalanx.training.cage2_extension import compliance_of, passes_gate
from phalanx.training.checkpoint import last_checkpoint, load_checkpoint, save_checkpoint
from phalanx.training.config import TrainConfig
from phalanx.training.folder import RunFolder
from phalanx.training.loop import train
from phalanx.training.recipe import Network, find_network
from phalanx.training.run import Run
from phalanx.training.schedules import entropy_weight_at, learning_rate_at

GAIN = 0.01  # of the return: less is a plateau
NEAR = 0.1  # compliance that training on one order alone may bring


class Tried(NamedTuple):
    """An order that was tried with one learner."""

    rows: list[Row]
    """what was measured against each attacker"""
    trained: int
    """episodes of training"""
    why: str
    """what ended that training"""
    measured: int
    """episodes that were played to measure it"""


class Columns(Figures):
    """An order that was tried with all learners: columns of search.csv."""

    passed: bool
    stopped_by: str
    trained_episodes: int
    episodes: int
    model_updated: bool
    seconds: float


class Trainer(Measurer):
    """Trains and measures policies in the folder of a search.

    school/          the training run that all orders have in common
    school-2/ ...    the same by other learners: networks that began with other seeds
    workflows/NNN/   training of an order's own, where it was needed
    winner/          the winner, trained further on its own order
    baseline/        the same learner without workflows, trained for as long as the winner
    free-1/ ...      learners without workflows that went to school for as long as the others

    heard: is told of each update of a training run.
    """

    def __init__(
        self,
        config: SearchConfig,
        folder: RunFolder,
        heard: Callable[[Run], None] = lambda run: None,
        network: Network | None = None,
    ) -> None:
        super().__init__(config, folder, network)
        self._heard = heard
        self.phase = "beginning"
        self.unfinished = 0  # episodes of a training that was stopped
        share = config.school_part  # what schedules have come to when the school is over:
        self._rate = learning_rate_at(config, share)
        self._entropy = entropy_weight_at(config, share)

    # --- training ---------------------------------------------------------------------------------

    def go_to_school(self, first: int, learner: int = 1) -> int:
        """What all orders have in common: a network that is told its order, on all of them.

        Separate networks begin with what that of the `first` order has learnt. Returns episodes.
        """
        c = self.config
        if c.school_episodes == 0:
            return 0
        name, phase = school_name(learner), "school"
        if int(c.learners) > 1:
            phase = f"school, learner {learner} of {c.learners}"
        number = None if c.policy == "shared" else first
        return self.train(name, phase, number, c.school_episodes, **self._schedule())

    def train_free(self, learner: int) -> int:
        """The same without workflows: it is told an order, and nobody minds what it does."""
        c = self.config
        return self.train(
            f"free-{learner}",
            f"without workflows, learner {learner} of {c.learners}",
            0,
            c.school_episodes,
            **self._schedule(),
            alignment_lambda=0.0,
        )

    def train_for_price(self, price: float, learner: int) -> Path:
        """What a learner would have become if defiance had another price."""
        c, name = self.config, f"obedience/{price:g}-{learner}"
        phase = f"defiance {price:g}, learner {learner} of {c.learners}"
        self.train(
            name,
            phase,
            None,
            c.school_episodes,
            **self._schedule(),
            defiance=price,
            # That of the learner's school: what differs is the price.
            seed=own_seed(c.seed, school_name(learner)),
        )
        return self.folder.path / name

    def _schedule(self) -> dict[str, Any]:
        """What changes over a whole training, as far as its first part goes."""
        c, share = self.config, max(self.config.school_part, 1e-9)
        return {
            "final_learning_rate": self._rate,
            "final_entropy": self._entropy,
            "restore_curriculum": min(1.0, c.restore_curriculum / share),
            "gate_start": min(1.0, c.gate_start / share),
        }

    def train_own(
        self, number: int, learner: int, episodes: int, tried: Sequence[int]
    ) -> tuple[int, str]:
        """Training on this order alone; its episodes, and what ended it."""
        c = self.config
        best, since, why = -math.inf, 0, "cap"

        def watch(run: Run) -> None:
            nonlocal best, since, why
            recent = list(run.recent)[-int(c.num_envs) :]
            gained = float(np.mean([episode.total for episode in recent]))
            since = 0 if gained > best + GAIN else since + 1
            best = max(best, gained)
            passed = passes_gate(compliance_of(recent), c)
            # A network of its own learns before it may stop; a shared one only if it must.
            if passed and (c.policy == "shared" or run.updates >= c.patience):
                run.enough, why = True, "gate"
            elif since >= c.patience:
                run.enough, why = True, "plateau"

        played = self.train(
            own_name(number, learner),
            "own training",
            number,
            episodes,
            watch,
            start_from=self.nearest(number, tried, learner),
            learning_rate=self._rate,
            entropy=self._entropy,
            final_learning_rate=self._rate,
            final_entropy=self._entropy,
            restore_curriculum=0.0,
            gate_start=0.0,
        )
        return played, why

    def finish(self, number: int, left: int, learner: int = 1) -> tuple[Path, int]:
        """Train the winner on its own order for what is left of the budget.

        Training that has clearly made it worse, in the games of the finals, is not kept. Returns
        where its policy lies, and the episodes played.
        """
        c = self.config
        left = left - c.final_episodes if c.finish_share else 0
        start = self.policy_of(number, learner)
        if left < int(c.num_envs):
            return start, 0
        share, school = c.school_part, c.school_episodes
        if school:  # where all of its training has come to by now: there may be more than planned
            share = school / (school + left)
        trained = self.train(
            "winner",
            "training the winner",
            number,
            left,
            start_from=str(start),
            learning_rate=learning_rate_at(c, share),
            entropy=entropy_weight_at(c, share),
            restore_curriculum=0.0,
            gate_start=0.0,
        )
        path = self.folder.path / "winner"
        after = self.play(path, number, c.final_episodes, FINAL, "finalist")
        before = self.play(start, number, c.final_episodes, FINAL, "finalist")  # as in the finals
        gained = interval(after.returns - before.returns)
        worse = gained["high"] < 0 or (before.passed and not after.passed)
        return start if worse else path, trained + c.final_episodes

    def train_baseline(self, number: int) -> Path:
        """The same learner without workflows for as many episodes; judged by the winner's order."""
        c = self.config
        episodes = int(c.total_episodes or 0)
        if c.judges_all:  # as many as the winner's own network
            episodes = c.school_episodes + c.finish_episodes
        self.train(
            "baseline",
            "training without workflows",
            number,
            episodes,
            start_from=None,
            alignment_lambda=0.0,
        )
        return self.folder.path / "baseline"

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
            config = effective(TrainConfig(**settings, output_dir=path.parent, name=path.name))
        else:
            _arrays, facts = load_checkpoint(last_checkpoint(path))
            # As it was written then: seen from elsewhere the same folder has another path.
            settings["start_from"] = facts["config"]["start_from"]
            config = effective(TrainConfig(**settings, resume=path))
            if facts["updates"] >= config.total_updates:
                return int(facts["episodes"])

        def on_update(run: Run) -> None:
            watch(run)
            self._heard(run)

        run = train(config, self.network, on_update, progress=False)
        if run.stopped:
            self.unfinished = run.episodes
            raise Stopped
        return run.episodes

    # --- trying an order --------------------------------------------------------------------------

    def try_order(self, number: int, left: int, tried: Sequence[int]) -> tuple[Columns, list[Row]]:
        """Measure an order with each learner, after training of its own where a policy needs it.

        left: episodes that this may cost. tried: orders that have been visited already.
        Returns columns of search.csv, and rows of measured.csv.
        """
        c, began = self.config, time.monotonic()
        learners = range(1, int(c.learners) + 1)
        each = [
            self.try_with(number, learner, left // len(learners), tried) for learner in learners
        ]
        rows = [row for one in each for row in one.rows]
        figures, trained = figures_of(rows, self.weights), sum(one.trained for one in each)
        passed = passes_gate(figures, c)
        columns: Columns = {
            **figures,
            "passed": passed,
            "stopped_by": " ".join(dict.fromkeys(one.why for one in each)),
            "trained_episodes": trained,
            "episodes": trained + sum(one.measured for one in each),
            "model_updated": passed,
            "seconds": time.monotonic() - began,
        }
        return columns, rows

    def try_with(self, number: int, learner: int, left: int, tried: Sequence[int]) -> "Tried":
        """Measure an order with one learner, after training where that is needed."""
        c, own_training = self.config, self.folder.path / own_name(number, learner)
        trained, why, measured = 0, "none", 0
        if own_training.exists():  # of a visit that was killed: what ended it depends on all of it
            shutil.rmtree(own_training)
        rows: list[Row] = []
        if c.policy == "shared":
            rows = self.measure(number, learner)
            measured += sum(row.episodes for row in rows)
        # A little training of its own may bring a shared policy through the gate, if it is near.
        figures = figures_of(rows, self.weights) if rows else None
        near = figures is None or (
            not passes_gate(figures, c)
            and (figures["compliance"] or 0.0) >= c.compliance_threshold - NEAR
        )
        if near:
            own = min(c.max_episodes, left - measured - c.episodes_of_a_visit)
            if own >= int(c.num_envs):
                trained, why = self.train_own(number, learner, own, tried)
            if trained or not rows:
                rows = self.measure(number, learner)
                measured += sum(row.episodes for row in rows)
        return Tried(rows, trained, why, measured)

    def nearest(self, number: int, tried: Sequence[int], learner: int = 1) -> str | None:
        """What an order's own training begins with: the shared network, or the nearest order's."""
        school = Path(self.config.start_from or self.folder.path / school_name(learner))
        start = str(school) if last_checkpoint(school).exists() else None
        if self.config.policy == "shared" or not tried:
            return start
        closest = min(tried, key=lambda other: (DISTANCES[number, other], other))
        return str(self.policy_of(closest, learner))

    def keep_policy(self, path: Path, number: int, name: str) -> None:
        """What a policy has learnt, as one file that follows this order: all but its games."""
        arrays, facts = load_checkpoint(last_checkpoint(path))
        facts["config"]["workflow"] = order_name(number)
        learnt = {k: v for k, v in arrays.items() if not k.startswith("sampler_")}
        (self.folder.path / "policies").mkdir(exist_ok=True)
        save_checkpoint(self.folder.path / "policies" / f"{name}.npz", learnt, facts)


def try_far_away(
    shared: tuple[dict[str, Any], dict[int, bytes]], number: int, left: int
) -> tuple[tuple[Columns, list[Row]], dict[str, bytes]]:
    """Try an order on another machine, in a folder of its own; returns the files of its training.

    shared: the settings, and for each order the checkpoint that it begins with.
    """
    settings, starts = shared
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(Path(place) / "search")
        config = SearchConfig(**settings)
        if number in starts:
            start = folder.path / "start.npz"
            start.write_bytes(starts[number])
            config = SearchConfig(**settings, start_from=str(start))
        trainer = Trainer(config, folder, network=find_network(config.network))
        tried = trainer.try_order(number, left, [])
        own = folder.path / own_name(number)
        files = {
            str(path.relative_to(own)): path.read_bytes()
            for path in own.rglob("*")
            if path.is_file() and path.name != ".lock"
        }
        folder.close()
    return tried, files
