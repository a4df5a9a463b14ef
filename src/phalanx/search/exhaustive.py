"""Judge all orders with all learners: what a search does where it is cheap."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from phalanx.cage2.settings import red_agent_weights
from phalanx.cage2.workflow import NUM_ORDERS, order_name
from phalanx.search.config import SearchConfig
from phalanx.search.measured import Row, figures_of
from phalanx.search.obedience import measure_obedience
from phalanx.search.surrogate import Outlook, Visit
from phalanx.training.cage2_extension import passes_gate

if TYPE_CHECKING:
    from phalanx.search.search import Search

NOTHING_EXPECTED: Outlook = {
    "acquisition": None,
    "posterior_mean": None,
    "posterior_std": None,
    "chance_of_passing": None,
    "top_three": "",
}


def judge_all(search: "Search") -> None:
    """Each learner plays all orders on the same dice; then those that learnt without workflows.

    What is judged is saved learner by learner, and goes on from there.
    """
    c, trainer = search.config, search.trainer
    for learner in range(1, int(c.learners) + 1):
        done = {row.workflow for row in search.rows if row.learner == learner}
        if len(done - {None}) < NUM_ORDERS:
            search.rows = [row for row in search.rows if row.learner != learner]
            search.phase = f"judging learner {learner} of {c.learners}"
            search.rows += trainer.measure_all(learner)
            search.save()
    if c.baseline and c.start_from is None:
        for learner in range(1, int(c.learners) + 1):
            trainer.train_free(learner)
            if not any(row.learner == learner and row.workflow is None for row in search.rows):
                search.rows += trainer.measure_free(learner)
                search.save()
    if not search.visits:
        search.visits = visits_of(c, search.rows, search.episodes)
        search.save()
    if c.defiances:
        measure_obedience(search)


def visits_of(config: SearchConfig, all_rows: Sequence[Row], episodes: int) -> list[Visit]:
    """All orders as if they had been visited one after the other.

    episodes: that had been played before, in training.
    """
    weights, found = red_agent_weights(config.red_agent), []
    by_number: dict[int, list[Row]] = {number: [] for number in range(NUM_ORDERS)}
    for row in all_rows:
        if row.workflow is not None:
            by_number[row.workflow].append(row)
    for number, rows in by_number.items():
        figures = figures_of(rows, weights)
        passed = passes_gate(figures, config)
        found.append(
            Visit(
                iteration=number + 1,
                shard=config.shard,
                workflow=number,
                order=order_name(number),
                chosen_by="exhaustive",
                passed=passed,
                model_updated=passed,
                stopped_by="none",
                trained_episodes=0,
                episodes=figures["measured_episodes"],
                seconds=0.0,
                total_episodes=episodes,
                **NOTHING_EXPECTED,
                **figures,
            )
        )
    return found
