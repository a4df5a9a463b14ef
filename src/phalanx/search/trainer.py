"""Where a search trains and plays: ordinary training runs inside its folder, and measurements."""

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.workflow import DISTANCES, order_name
from phalanx.learn.rollout import Stopped
from phalanx.play.episodes import play_episodes
from phalanx.play.evaluate_config import Games
from phalanx.play.players import trained_player
from phalanx.play.trained import TrainedDefender, load_defender
from phalanx.search.config import SearchConfig
from phalanx.search.logs import find_policy, own_name, own_seed
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
MEASURE, FINAL, CONFIRM = 2_000_003, 3_000_017, 4_000_037  # added to the seed: dice of their own


class Measured(NamedTuple):
    """A policy that was told an order, over some episodes."""

    figures: dict[str, Any]
    """as summary.json has them"""
    returns: npt.NDArray[np.float64]
    passed: bool
    """the gate"""


class Trainer:
    """Trains and measures policies in the folder of a search.

    school/          the training run that all orders have in common
    workflows/NNN/   training of an order's own, where it was needed
    winner/          the winner, trained further on its own order
    baseline/        the same learner without workflows

    heard: is told of each update of a training run.
    """

    def __init__(
        self,
        config: SearchConfig,
        folder: RunFolder,
        heard: Callable[[Run], None] = lambda run: None,
        network: Network | None = None,
    ) -> None:
        self.config, self.folder, self._heard, self.network = config, folder, heard, network
        self.phase = "beginning"
        self.unfinished = 0  # episodes of a training that was stopped
        self._defenders: dict[Path, TrainedDefender] = {}
        share = config.school_part  # what schedules have come to when the school is over:
        self._rate = learning_rate_at(config, share)
        self._entropy = entropy_weight_at(config, share)

    # --- training ---------------------------------------------------------------------------------

    def go_to_school(self, first: int) -> int:
        """What all orders have in common: a network that is told its order, on all of them.

        Separate networks begin with what that of the `first` order has learnt. Returns episodes.
        """
        c, share = self.config, max(self.config.school_part, 1e-9)
        if c.school_episodes == 0:
            return 0
        return self.train(
            "school", "school", None if c.policy == "shared" else first, c.school_episodes,
            final_learning_rate=self._rate, final_entropy=self._entropy,
            restore_curriculum=min(1.0, c.restore_curriculum / share),
            gate_start=min(1.0, c.gate_start / share),
        )  # fmt: skip

    def train_own(self, number: int, episodes: int, tried: Sequence[int]) -> tuple[int, str]:
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
            own_name(number), "own training", number, episodes, watch,
            start_from=self.nearest(number, tried), learning_rate=self._rate, entropy=self._entropy,
            final_learning_rate=self._rate, final_entropy=self._entropy, restore_curriculum=0.0,
            gate_start=0.0,
        )  # fmt: skip
        return played, why

    def finish(self, number: int, left: int) -> tuple[Path, int]:
        """Train the winner on its own order for what is left of the budget.

        Training that has clearly made it worse, in the games of the finals, is not kept. Returns
        where its policy lies, and the episodes played.
        """
        c = self.config
        left = left - c.final_episodes if c.finish_share else 0
        start = self.policy_of(number)
        if left < int(c.num_envs):
            return start, 0
        trained = self.train(
            "winner", "training the winner", number, left, start_from=str(start),
            learning_rate=self._rate, entropy=self._entropy, restore_curriculum=0.0, gate_start=0.0,
        )  # fmt: skip
        path = self.folder.path / "winner"
        after = self.play(path, number, c.final_episodes, FINAL, "finalist")
        before = self.play(start, number, c.final_episodes, FINAL, "finalist")  # as in the finals
        gained = interval(after.returns - before.returns)
        worse = gained["high"] < 0 or (before.passed and not after.passed)
        return start if worse else path, trained + c.final_episodes

    def train_baseline(self, number: int) -> Path:
        """The same learner without workflows for as many episodes; judged by the winner's order."""
        c = self.config
        self.train(
            "baseline", "training without workflows", number, int(c.total_episodes or 0),
            start_from=None, alignment_lambda=0.0,
        )  # fmt: skip
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

    # --- measuring --------------------------------------------------------------------------------

    def try_order(self, number: int, left: int, tried: Sequence[int]) -> dict[str, Any]:
        """Measure an order, after training of its own where its policy needs that.

        left: episodes that this may cost. tried: orders that have been visited already.
        Returns columns of search.csv.
        """
        c, began, own_training = self.config, time.monotonic(), self.folder.path / own_name(number)
        trained, why = 0, "none"
        if own_training.exists():  # of a visit that was killed: what ended it depends on all of it
            shutil.rmtree(own_training)
        measured = [] if c.policy == "separate" else [self.measure(number)]
        # A little training of its own may bring a shared policy through the gate, if it is near.
        near = [one.figures["compliance"] or 0.0 for one in measured if not one.passed]
        if not measured or (near and near[0] >= c.compliance_threshold - NEAR):
            own = min(c.max_episodes, left - (1 + len(measured)) * c.episodes_of_a_visit)
            if own >= int(c.num_envs):
                trained, why = self.train_own(number, own, tried)
                measured.append(self.measure(number))
        if not measured:
            measured.append(self.measure(number))
        figures, _returns, passed = measured[-1]
        names = ("stderr", "compliance", "fixes_per_episode", "share_without_fix")
        return {
            "measured_return": figures["mean"],
            **{name: figures[name] for name in names},
            "passed": passed,
            "stopped_by": why,
            "trained_episodes": trained,
            "measured_episodes": figures["episodes"],
            "episodes": trained + sum(len(one.returns) for one in measured),
            "model_updated": passed,
            "seconds": time.monotonic() - began,
        }

    def measure(self, number: int) -> Measured:
        """Play an order's policy; all orders meet the same dice."""
        path, episodes = self.policy_of(number), self.config.episodes_of_a_visit
        return self.play(path, number, episodes, MEASURE, order_name(number))

    def play(self, path: Path, number: int, episodes: int, dice: int, name: str) -> Measured:
        """Play a policy that is told an order; equal `dice` are equal games for all policies."""
        c = self.config
        if path not in self._defenders:
            self._defenders[path] = load_defender(path, self.network)
        seed, player = (c.seed + dice) % 2**63, trained_player(name, self._defenders[path])
        games = Games(episodes, c.rules, seed, c.threads, c.compliance_rule)
        orders = np.full(episodes, number)
        played = play_episodes(games, player, c.red_agent, (c.horizon,), orders)
        returns, fixes, compliant = played.returns[:, 0], played.fixes[:, 0], played.compliant[:, 0]
        figures = {
            "workflow": number,
            "order": order_name(number),
            "name": name,
            **interval(returns),
            "compliance": float(compliant.sum() / fixes.sum()) if fixes.any() else None,
            "fixes_per_episode": float(fixes.mean()),
            "share_without_fix": float((fixes == 0).mean()),
        }
        return Measured(figures, returns, passes_gate(figures, c))

    def policy_of(self, number: int) -> Path:
        return find_policy(self.folder.path, self.config.start_from, number)

    def nearest(self, number: int, tried: Sequence[int]) -> str | None:
        """What an order's own training begins with: the shared network, or the nearest order's."""
        school = Path(self.config.start_from or self.folder.path / "school")
        start = str(school) if last_checkpoint(school).exists() else None
        if self.config.policy == "shared" or not tried:
            return start
        return str(self.policy_of(min(tried, key=lambda other: (DISTANCES[number, other], other))))

    def keep_policy(self, path: Path, number: int, name: str) -> None:
        """What a policy has learnt, as one file that follows this order: all but its games."""
        arrays, facts = load_checkpoint(last_checkpoint(path))
        facts["config"]["workflow"] = order_name(number)
        learnt = {k: v for k, v in arrays.items() if not k.startswith("sampler_")}
        (self.folder.path / "policies").mkdir(exist_ok=True)
        save_checkpoint(self.folder.path / "policies" / f"{name}.npz", learnt, facts)


def try_far_away(
    shared: tuple[dict[str, Any], dict[int, bytes]], number: int, left: int
) -> tuple[dict[str, Any], dict[str, bytes]]:
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
