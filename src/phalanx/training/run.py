"""One training run: what it plays with, what it logs, and how it is saved and continued."""

import math
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from phalanx.arrays import Arrays
from phalanx.cage2.scenario.packed import pack
from phalanx.envs.faults import Fault
from phalanx.errors import CheckpointError, RunError
from phalanx.files import Facts
from phalanx.learn.rollout import Rollout, columns_of
from phalanx.stopwatch import IDLE, LEARNING, LOGGING, WAITING, Stopwatch, difference
from phalanx.training import checkpoint
from phalanx.training.config import TrainConfig
from phalanx.training.folder import RunFolder
from phalanx.training.going_on import check_same_settings, elapsed_before
from phalanx.training.recipe import Network, open_recipe
from phalanx.training.saved_networks import as_flags, misfits
from phalanx.training.saved_run import RunTables
from phalanx.training.schedules import entropy_weight_at, learning_rate_at, progress_of
from phalanx.training.sources import InStep, Replay
from phalanx.training.summary import summary
from phalanx.training.teacher import Taught, is_taught
from phalanx.training.time_split import barriers_s, old_split_as_new
from phalanx.training.trackers import Tracker
from phalanx.training.update_record import Episode, UpdateRecord, episodes_of, mean

LONGEST_TEXT = 50_000  # of a traceback: readers of CSV have a limit
FAULT_COLUMNS = ("update", "env", "worker", "exit_code", "signal", "lost", "what", "traceback")
EPISODE_COLUMNS = ("update", "env", "kind", "length", "return")
COUNTED = ("updates", "episodes", "steps")  # goes on from a checkpoint
TOLD_EVERY_S = 0.1  # least time between two rows for TensorBoard and trackers
REPLAYED = 16  # past rollouts that --replay chooses from


class Run(RunTables):
    """One training run: what it plays with, where it keeps things, and how far it has come."""

    def __init__(
        self, config: TrainConfig, folder: RunFolder, network: Network | None = None
    ) -> None:
        self.folder, self.recipe = folder, open_recipe(config, network)
        self.taught: Taught | None = None
        if is_taught(config):
            self.taught = Taught(self.recipe.config, self.recipe.sampler.actions)
        self.config, self.extension = self.recipe.config, self.recipe.extension
        self.source, self.learner = self.recipe.source, self.recipe.learner
        self.workers = self.recipe.workers
        replayed = config.replay if config.algo == "impala" else 0
        self.replay = Replay(replayed, REPLAYED, np.random.default_rng([config.seed, 3]))
        self._scenario = pack(config.scenario)  # it goes with the policy
        self.updates = self.episodes = self.steps = self.dropped_steps = 0
        self.lags: Counter[int] = Counter()
        self.rollouts: Counter[str] = Counter()  # learnt from, or dropped because too old
        self.watch = Stopwatch()  # of this thread; with a3c, of what workers do side by side
        self._logged_s = 0.0  # when the last row was written
        if self.workers is None:
            self.source.time_by(self.watch)
        self.compile_s = 0.0  # before the first update, and in none of these seconds
        self.recent: deque[Episode] = deque(maxlen=checkpoint.RECENT)
        self.schedule_progress = 0.0  # at the last update: its schedules follow it
        self._began, self._ended, self._before_s = time.monotonic(), math.inf, 0.0
        self.opened = time.perf_counter()
        self.state = "running"
        self.latest: Facts = {}  # the last row of updates.csv
        self.tracker: Tracker | None = None  # also told of rows
        self._is_told, self._told_at = True, -math.inf
        self.notes = [self.recipe.note] if self.recipe.note else []  # chosen at the start, and why
        self.stopped = False
        self.enough = False  # whoever watches may end the run before its budget is spent
        self.faults_recorded = 0
        self._over, self._telling = False, threading.Lock()  # samplers have threads of their own

    @property
    def sampler(self) -> Any:
        """As the recipe has it."""
        return self.recipe.sampler

    def __repr__(self) -> str:
        returns = [episode.total for episode in self.recent]
        words = f"mean return {mean(returns):.2f} of the last {len(returns):,}, " if returns else ""
        return f"<Run: {self.state}, {self.episodes:,} episodes, {words}{self.folder.path}>"

    @property
    def path(self) -> Path:
        return self.folder.path

    def _write_all(self) -> None:
        self.folder.flush()

    @property
    def progress(self) -> float:
        """How much of the run is done, 0 to 1."""
        done = self.updates, self.episodes, self.steps
        return progress_of(self.config, *done, self.elapsed_s)

    def begin(self) -> None:
        """Now its time begins to count."""
        self._began, self.opened = time.monotonic(), time.perf_counter()
        self.watch.restart(IDLE)

    @property
    def elapsed_s(self) -> float:
        """Seconds of training, including those before it was continued."""
        return self._before_s + min(time.monotonic(), self._ended) - self._began

    @property
    def seconds(self) -> dict[str, float]:
        """Those spent on updates and checkpoints, by part."""
        return self.watch.seconds

    @property
    def spent_s(self) -> float:
        """Seconds spent on updates; never 0, so that a run stopped at once can be summed up too."""
        return max(sum(self.seconds.values()), 1e-9)

    def step(self) -> bool:
        """One update: sample, learn, record; or what workers did meanwhile, which may be nothing"""
        self.schedule_progress = self.progress
        if self.workers is not None:
            self.workers.tell_time(self.elapsed_s)
            return self._record_all(self.workers.hear)
        self.watch.restart(WAITING)  # what others did since the last update is not ours
        self.record(self._update())
        self.watch.lap()
        return True

    def _record_all(self, updates: Callable[[], list[UpdateRecord]]) -> bool:
        """Record what workers did meanwhile: side by side, and what is left of the time is idle."""
        assert self.workers is not None
        records = updates()
        for one in records:
            self.record(one)
            for part, seconds in one.split.items():
                self.watch.move(IDLE, part, seconds / self.workers.num_workers)
        self.watch.lap()
        return bool(records)

    def _update(self) -> UpdateRecord:
        """Sample, learn."""
        c, f = self.config, self.schedule_progress
        before, began = dict(self.seconds), time.perf_counter()
        shaped = self.extension.shaping(f)
        self.extension.before_update(self.source.samplers, f)
        dropped, nothing = 0, True
        while nothing:  # unless all of it was too old; the next is younger by as much
            sampled = self.source.next(self.learner.stepper.weights, self.updates, shaped)
            rollout, too_old = self._without_the_too_old(sampled)
            dropped, nothing = dropped + too_old, rollout.rewards.size == 0
            self.rollouts["dropped" if nothing else "learnt"] += 1
        self.watch.switch(LEARNING)
        collected, waited_s = time.perf_counter(), barriers_s(self.learner.stepper)
        rate, entropy_weight = learning_rate_at(c, f), entropy_weight_at(c, f)
        rollout = self.recipe.intake(rollout)
        metrics = self.learner.update(rollout, rate, entropy_weight)
        for old in self.replay.add(rollout):
            self.learner.update(old, rate, entropy_weight)
        if self.taught is not None:
            metrics |= self.taught.update(self.learner, rate, f, self.updates)
        self.extension.after_update(rollout, f)
        learnt = time.perf_counter()
        self.watch.switch(LOGGING)
        self.watch.move(LEARNING, WAITING, barriers_s(self.learner.stepper) - waited_s)
        split = difference(self.seconds, before)
        split[LOGGING] = self.seconds[LOGGING] - self._logged_s  # of the update before
        self._logged_s = self.seconds[LOGGING]
        return UpdateRecord(
            updates=1,
            steps=rollout.rewards.size,
            dropped=dropped,
            lags=Counter((self.updates - rollout.versions).tolist()),
            episodes=episodes_of(rollout, self.extension.kinds),
            rate=rate,
            entropy_weight=entropy_weight,
            metrics=metrics,
            collect_s=collected - began,
            learn_s=learnt - collected,
            split=split,
        )

    def record(self, update: UpdateRecord) -> None:
        """Count what updates gave, and write it down."""
        self.updates += update.updates
        self.steps += update.steps
        self.dropped_steps += update.dropped
        self.lags.update(update.lags)
        wrong = [name for name, value in update.metrics.items() if not math.isfinite(value)]
        if wrong:
            self._fail(f"a {wrong[0]} that is no number")
        means = self._record_episodes(update.episodes)
        row = {
            "update": self.updates,
            "episodes": self.episodes,
            "steps": self.steps,
            **means,
            **self.extension.figures(update.episodes),
            "learning_rate": update.rate,
            "entropy_weight": update.entropy_weight,
            **self.extension.schedules(self.schedule_progress),
            **update.metrics,
            **update.costs,
            "elapsed_s": self.elapsed_s,
            "wall_time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        values = [f"{one:.6g}" if isinstance(one, float) else one for one in row.values()]
        self.folder.table("updates").add(tuple(row), [values])
        self.latest, self._is_told = row, False
        if time.monotonic() - self._told_at >= TOLD_EVERY_S:
            self._tell_others()

    def _tell_others(self) -> None:
        """Show TensorBoard and trackers the last row; a few a second do, the table has all."""
        if self.latest and not self._is_told:
            self._is_told, self._told_at = True, time.monotonic()
            step = self.latest["steps"]
            self.folder.events.add(step, self.latest)
            if self.tracker is not None:
                self.tracker.add(step, self.latest)

    def end(self, state: str) -> None:
        """Sum up what there is: the run is finished, stopped or failed.

        What fails from now on, in samplers that play ahead, costs nothing.
        """
        with self._telling:
            self._over = True
        self._tell_others()
        self.state = state
        self.folder.write_summary(summary(self, state))

    def rest(self) -> None:
        """Let workers stop, and record what they have finished; no more time is counted."""
        if self.workers is not None:
            self._record_all(self.workers.finish)
        self._ended = time.monotonic()

    def _without_the_too_old(self, rollout: Rollout) -> tuple[Rollout, int]:
        """PPO learns from columns begun with weights at most `sync_every` updates old."""
        fresh = self.updates - rollout.versions <= self.config.sync_every
        if self.config.algo != "ppo" or fresh.all():
            return rollout, 0
        kept = columns_of(rollout, np.flatnonzero(fresh))
        return kept, rollout.rewards.size - kept.rewards.size

    def _fail(self, what: str) -> NoReturn:
        """Stop at weights that are good for nothing, and name those that were kept."""
        self.end("failed")
        last = self.folder.checkpoint
        kept = "there is no checkpoint of the time before"
        if last.exists():
            kept = f"{last} holds the weights of the checkpoint before"
        raise RunError(f"update {self.updates} gave {what}; {kept}; try a lower --learning-rate")

    def _record_episodes(self, ended: list[Episode]) -> dict[str, float]:
        """Log episodes; their mean returns, in all and by kind."""
        self.episodes += len(ended)
        add_row = self.extension.episode_row
        rows = [(self.updates, e.env, e.kind, e.length, e.total, *add_row(e)) for e in ended]
        names = EPISODE_COLUMNS + self.extension.episode_columns
        self.folder.table("episodes").add(names, rows)
        self.recent.extend(ended)
        kinds = {f"return_{name}": name for name in self.extension.kinds}
        return {"return": mean([e.total for e in ended])} | {
            name: mean([e.total for e in ended if e.kind == kind]) for name, kind in kinds.items()
        }

    def warnings(self) -> list[str]:
        """What whoever watches should know of."""
        failed = self.faults_recorded
        words = [f"{failed:,} failure{'s' if failed > 1 else ''}, see faults.csv"] if failed else []
        if self.tracker is not None and self.tracker.failure:
            words.append(f"{self.tracker.name} hears no more of this run")
        return words

    def record_fault(self, fault: Fault) -> None:
        """Log what failed in the environments, at once: a run that is killed has it on disk."""
        place = (fault.env_id, fault.worker, fault.exit_code, fault.signal, len(fault.lost))
        words = (fault.what[:LONGEST_TEXT], fault.traceback[-LONGEST_TEXT:])
        row = (self.updates, *place, *words)
        with self._telling:
            if self._over:
                return
            table = self.folder.table("faults")
            table.add(FAULT_COLUMNS, [row])
            table.flush()
            self.faults_recorded += 1
        print(f"phalanx: {fault.what}; training goes on", file=sys.stderr)

    # --- continuing -------------------------------------------------------------------------------

    def save(self) -> None:
        """A checkpoint from which `load` continues bit for bit."""
        if self.workers is None:
            self.watch.restart(LOGGING)
        arrays, facts = self._saved()
        if not all(np.isfinite(one).all() for one in arrays.values() if one.dtype.kind == "f"):
            self._fail("weights that are no numbers")
        facts |= {
            **{name: getattr(self, name) for name in (*COUNTED, "seconds")},
            "config": self.config.as_dict(),
            "scenario": self._scenario,
            "elapsed_s": self.elapsed_s,
            "recent": list(self.recent),
            "tables": {name: self.folder.table(name).size() for name in checkpoint.TABLES},
        }
        checkpoint.save_checkpoint(self.folder.checkpoint, arrays, facts)
        self.watch.lap()

    def _saved(self) -> tuple[Arrays, Facts]:
        """What was learnt, and the games under way; those of samplers that play ahead are not."""
        arrays, facts = self.learner.save()
        if isinstance(self.source, InStep):
            for name, array in self.sampler.save().items():
                arrays[f"{checkpoint.GAMES}{name}"] = array
        if self.taught is not None:
            arrays |= self.taught.save()
        return arrays | self._saved_beside(), facts

    def _saved_beside(self) -> Arrays:
        """What goes with the networks."""
        return self.extension.save() | self.recipe.intake.save()

    def _load_beside(self, arrays: Arrays) -> None:
        self.extension.load(arrays)
        self.recipe.intake.load(arrays)

    def begin_with(self, path: Path) -> None:
        """Begin with what another run has learnt; with its optimiser, if the file has that too."""
        arrays, facts = checkpoint.load_checkpoint(checkpoint.last_checkpoint(path))
        mine, my_facts = self.learner.save()
        if misfits(arrays, mine | self.learner.stepper.optimiser()):
            raise CheckpointError(
                f"cannot start from {path}: its networks are not of these sizes; give it the "
                f"settings of that run{as_flags(facts.get('config', {}), self.config)}"
            )
        if "adam_steps" not in facts:  # exported: the weights alone
            arrays, facts = mine | arrays, my_facts
        try:
            self.learner.load(arrays, my_facts | facts)
            self._load_beside(self._saved_beside() | arrays)  # it may not have had such
        except _UNFIT as error:
            raise CheckpointError(f"cannot start from {path} ({error!s:.200})") from None

    def load(self) -> None:
        """Continue from the last checkpoint; one that does not fit is refused in one line."""
        template = self._saved()[0] | self.learner.stepper.optimiser()
        arrays, facts = checkpoint.load_checkpoint(self.folder.checkpoint, template)
        check_same_settings(self.folder.path, self.config, facts)
        games = {
            k.removeprefix(checkpoint.GAMES): v
            for k, v in arrays.items()
            if k.startswith(checkpoint.GAMES)
        }
        try:
            self.learner.load(arrays, facts)
            if isinstance(self.source, InStep):
                self.sampler.load(games)
            self._load_beside(arrays)
            if self.taught is not None:
                self.taught.load(arrays)
            for name in COUNTED:
                setattr(self, name, facts[name])
            self.watch.seconds |= old_split_as_new(facts["seconds"])
            self._logged_s = self.seconds[LOGGING]
            self.recent.extend(Episode(*values) for values in facts["recent"])
            for name in checkpoint.TABLES:
                self.folder.table(name).cut(facts["tables"][name])
        except _UNFIT as error:
            raise CheckpointError(
                f"{self.folder.checkpoint} does not fit this run ({error!s:.200})"
            ) from None
        self._before_s = elapsed_before(facts)
        if self.workers is not None:
            self.workers.go_on_from(self.episodes, self.steps)
        self.folder.events.forget_after(self.steps)
        self.faults_recorded = self.folder.count_rows("faults")  # what failed has failed


# What a checkpoint of other networks, or one that somebody has made up, makes a learner raise.
_UNFIT = (KeyError, TypeError, ValueError, OverflowError, AttributeError, IndexError, RuntimeError)
