"""What runs that are compared brought: games on the same dice, or the end of their training."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from phalanx.cage2.rules.scenario import HORIZONS
from phalanx.errors import PhalanxError
from phalanx.show.compare.config import CompareConfig
from phalanx.show.runs.curves import Floats
from phalanx.show.runs.runs import RunRow, settings_of, whole
from phalanx.show.runs.tables import last_rows, number
from phalanx.training.checkpoint import RECENT, last_checkpoint

ALL = "all"  # of the attackers, added up


@dataclass(frozen=True)
class Scored:
    """What the runs returned, and how that was found out."""

    returns: dict[str, dict[str, Floats]]
    """run, then attacker (or environment): [episodes]; of all runs in the same order of dice"""
    on_same_dice: bool
    about: str
    """a sentence"""

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """What each run has a score of; first all together, if there are several."""
        each = list(next(iter(self.returns.values())))
        return tuple(each) if len(each) == 1 else (ALL, *each)

    def games(self, run: str, task: str) -> Floats:
        """[episodes]: of all attackers together, the sum of the i-th episodes against each."""
        own = self.returns[run]
        if task != ALL or ALL in own:
            return own[task]
        least = min(map(len, own.values()))
        return np.sum([one[:least] for one in own.values()], axis=0)

    def score(self, run: str, task: str) -> float:
        own = self.returns[run]
        if task != ALL or ALL in own:
            return float(own[task].mean())
        return float(sum(one.mean() for one in own.values()))


def score_runs(config: CompareConfig, progress: bool | None = False) -> Scored:
    """By games if all runs can be played, else by their training."""
    why = "They were not played, as was asked."
    if config.episodes:
        try:
            return _play(config, progress)
        except PhalanxError as error:
            why = f"They could not all be played: {error}."
    return _from_training(config.rows, why)


def _play(config: CompareConfig, progress: bool | None) -> Scored:
    for row in config.rows:
        if not last_checkpoint(row.path).is_file():
            raise PhalanxError(f"{row.name} has no checkpoint")
    from phalanx.play.cells import play_cells  # compiles, where nothing has yet
    from phalanx.play.evaluate_config import EvaluateConfig

    names = {str(row.path): row.name for row in config.rows}
    given: dict[str, Any] = {
        name: getattr(config, name) for name in ("seed", "env", "network", "num_threads")
    }
    if config.is_cage2:
        given |= {"red_agent": config.red_agent, "horizon": _horizons(config.rows)}
    asked = EvaluateConfig(target=tuple(names), episodes=max(2, config.episodes), **given)
    returns: dict[str, dict[str, Floats]] = {name: {} for name in names.values()}
    for cell in play_cells(asked, progress=progress):
        own = returns[names[cell.policy]]
        own[cell.red_agent] = own.get(cell.red_agent, 0.0) + cell.returns
    about = f"Each policy played the same {asked.episodes:,} episodes, with its best actions"
    if config.is_cage2:
        turns = " + ".join(map(str, asked.horizon))
        about += (
            f", against each of {', '.join(asked.red_agent)}; a score is the sum over horizons of "
            f"{turns} turns and all attackers, under the rules {asked.rules}"
        )
    return Scored(returns, True, f"{about}.")


def _horizons(rows: Sequence[RunRow]) -> tuple[int, ...]:
    """Those of the challenge that all runs have learnt."""
    known = [whole(settings_of(row.path)[0].get("horizon")) for row in rows]
    longest = min([horizon for horizon in known if horizon is not None] or [max(HORIZONS)])
    return tuple(one for one in HORIZONS if one <= longest) or (longest,)


def _from_training(rows: Sequence[RunRow], why: str) -> Scored:
    """The last episodes of each run, as they were trained on; actions were drawn."""
    returns: dict[str, dict[str, Floats]] = {}
    for row in rows:
        try:
            words = last_rows(row.path / "episodes.csv").column("return")[-RECENT:]
        except OSError:
            words = []
        known = [value for word in words if (value := number(word)) is not None]
        if len(known) < 2:
            raise PhalanxError(
                f"{row.name} cannot be compared: it has no checkpoint to play, and fewer than two "
                "episodes in episodes.csv"
            )
        returns[row.name] = {"return": np.array(known)}
    about = f"{why} Scores are mean returns of the last episodes of training, {RECENT:,} at most."
    return Scored(returns, False, about)
