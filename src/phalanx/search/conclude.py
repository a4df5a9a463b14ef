"""The end of a search: decide, name a winner, train it further, and play it beside the others."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phalanx.errors import RunError
from phalanx.search.answer import answer
from phalanx.search.measured import figures_of
from phalanx.search.measurer import CONFIRM, FINAL
from phalanx.statistics import interval
from phalanx.training.cage2_extension import passes_gate

if TYPE_CHECKING:
    from phalanx.search.search import Search


def conclude(search: "Search") -> None:
    """All that is left when orders have been measured."""
    c, trainer, surrogate = search.config, search.trainer, search.surrogate()
    ranking = surrogate.ranking() or surrogate.nearest_to_passing()
    if not ranking:
        raise RunError(
            f"the budget of {c.budget} episodes ended before an order was measured; give more "
            "--total-episodes, or a smaller --school-share"
        )
    search.phase = "deciding"
    search.decision = answer(c, search.visits, search.rows)
    search.folder.write("decision.json", json.dumps(search.decision, indent=1) + "\n")
    if search.winner is None:
        side = list(search.decision["against"].values())[-1]
        if not search.judges_all:
            search.winner = play_finals(search, ranking)
        else:
            search.winner = ranking[0] if side["best"] is None else int(side["best"])
        search.save()
    left = c.budget - search.episodes + search.spent["finish"]
    learner = best_learner(search, search.winner)
    winner, search.spent["finish"] = trainer.finish(search.winner, left, learner)
    baseline = trainer.train_baseline(search.winner) if c.baseline else None
    confirm(search, winner, baseline, learner)


def play_finals(search: "Search", ranking: Sequence[int]) -> int:
    """Play the best few again, on fresh dice; the best of them that passes wins."""
    c, trainer = search.config, search.trainer
    search.phase = "finals"
    search.finals, search.spent["finals"] = [], 0
    for number in ranking[: c.finalists]:
        played = [
            trainer.play(
                trainer.policy_of(number, learner), number, c.final_episodes, FINAL, "finalist"
            ).figures
            for learner in range(1, int(c.learners) + 1)
        ]
        search.spent["finals"] += sum(figures["episodes"] for figures in played)
        search.finals.append(mean_figures(played))
    good = [figures for figures in search.finals if passes_gate(figures, c)] or search.finals
    return int(max(good, key=lambda figures: float(figures["mean"]))["workflow"])


def mean_figures(played: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One order by several learners: their mean; compliance counts as nothing where it has none."""
    if len(played) == 1:
        return played[0]
    means = interval([figures["mean"] for figures in played])
    names = ("compliance", "fixes_per_episode", "share_without_fix")
    rest = {name: sum(f[name] or 0.0 for f in played) / len(played) for name in names}
    return played[0] | means | rest | {"episodes": sum(f["episodes"] for f in played)}


def best_learner(search: "Search", number: int) -> int:
    """Who plays an order best, among those who follow it."""
    values = {}
    for learner in range(1, int(search.config.learners) + 1):
        own = [r for r in search.rows if r.workflow == number and r.learner == learner]
        if own:
            figures = figures_of(own, search.trainer.weights)
            values[learner] = passes_gate(figures, search.config), figures["measured_return"]
    return max(values, key=lambda learner: values[learner], default=1)


def confirm(search: "Search", winner: Path, baseline: Path | None, learner: int) -> None:
    """The last table: all on the same fresh dice."""
    assert search.winner is not None
    search.phase = "confirming"
    trainer, episodes = search.trainer, search.config.confirm_episodes
    first = trainer.play(winner, search.winner, episodes, CONFIRM, "winner")
    table = [first.figures]
    for number in [int(figures["workflow"]) for figures in search.finals] or [search.winner]:
        name = "winner before its own training" if number == search.winner else "runner-up"
        path = trainer.policy_of(number, learner)
        if winner != path or number != search.winner:
            table.append(trainer.play(path, number, episodes, CONFIRM, name).figures)
    if baseline is not None:
        other = trainer.play(baseline, search.winner, episodes, CONFIRM, "without workflows")
        table.append(other.figures | {"workflow": None, "order": None})
        search.difference = interval(first.returns - other.returns)
    search.confirmed = table
    trainer.keep_policy(winner, search.winner, "winner")
    search.save()
