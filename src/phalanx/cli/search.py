"""The command `phalanx search`: a live table of the best orders, the decision, the last table."""

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from phalanx.cage2.workflow import NUM_ORDERS, order_name, parse_order, short_name
from phalanx.display import new_table, plus_minus, progress_display
from phalanx.errors import MissingError
from phalanx.search.config import SearchConfig
from phalanx.search.decided import Answer
from phalanx.search.logs import read_summary
from phalanx.search.search import Search, search
from phalanx.search.words import asked, in_words, read_decision
from phalanx.statistics import half_width
from phalanx.training.cage2_extension import compliance_in_words, compliance_of, passes_gate
from phalanx.training.run import Run
from phalanx.trust import asked_again

COLUMNS = ("workflow", "number", "return", "compliance", "fixes")
SHOWN = 10  # orders of the live table
JUDGING = 8  # episodes that are judged in the time in which one is trained with, about
SURE = 1.96  # standard deviations that the 95 % interval of a Gaussian belief reaches


def main(config: SearchConfig) -> int:
    """Search with a live table, then say what may be best, who won, and by how much."""
    if config.ask is not None and config.resume is not None and is_decided(config.resume):
        tell_asked(read_decision(config.resume), config.ask)
        return 0
    with progress_display(None) as progress:
        task = progress.add_task("searching", total=None, note="")

        def heard(found: Search, run: Run | None) -> None:
            if run is None:  # not in the middle of training
                if progress.below is None:
                    progress.say(opening(found))
                progress.below = best_so_far(found)
            note = how_it_goes(found, run)
            progress.update(
                task, description=found.phase, completed=share(found, run), total=1.0, note=note
            )

        found = search(config, heard)
    judged = found.summary()["judged"]
    print(
        f"{found.episodes:,} episodes{f' and {judged:,} judged' if judged else ''} in "
        f"{found.seconds:.0f} s, {len(found.visits)} of "
        f"{len(found.config.candidates())} orders tried; folder {found.folder.path}"
    )
    if found.stopped:
        if found.trainer.unfinished:
            print(f"and {found.trainer.unfinished:,} of a training that was under way, saved")
        again = f"--resume {found.folder.path}{asked_again(found.config.as_dict())}"
        print(f"stopped; continue with phalanx search {again}", file=sys.stderr)
        return 130
    if found.config.parts > 1:
        show_shard(found)
        return 0
    if found.decision is not None:
        show_decision(found.decision)
    show_results(found)
    draw(found)
    if config.ask is not None and found.decision is not None:
        tell_asked(found.decision, config.ask)
    return 0


def is_decided(folder: Path) -> bool:
    """Whether a search has come to its end, so that a question needs no more games."""
    return (folder / "decision.json").is_file() and read_summary(folder)["state"] == "finished"


def tell_asked(decision: Answer, order: str) -> None:
    for sentence in asked(decision, parse_order(order)):
        print(sentence)


def show_decision(decision: Answer) -> None:
    """For each attacker the orders that cost least; then all of it in words."""
    for name, side in decision["against"].items():
        good = [order for order in side["orders"] if order["can_be_followed"]]
        ranked = sorted(good, key=lambda order: (order["cost"], order["workflow"]))
        rows = [
            [
                short_name(order["workflow"]),
                str(order["workflow"]),
                f"{order['return']:.2f}",
                f"{order['cost']:.2f}",
                f"{order['low']:.2f} to {order['high']:.2f}",
                "yes" if order["may_be_best"] else "no",
                _share(order["compliance"]),
                _share(order["reverse_compliance"]),
                _share(order["disputed_compliance"]),
            ]
            for order in ranked[:SHOWN]
        ]
        title = f"against {name}: what orders cost in points, {len(rows)} of {len(good)}"
        columns = (
            "workflow",
            "number",
            "return",
            "cost",
            "95 % bounds",
            "may be best",
            "compliance",
            "by reverse",
            "disputed",
        )
        Console(width=100).print(new_table(title, columns, rows, words=("workflow",)))
    for sentence in in_words(decision):
        print(sentence)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def draw(found: Search) -> None:
    """The plots, where matplotlib is installed."""
    try:
        from phalanx.show.drawing.search_pictures import draw_search

        draw_search(found.folder.path)
    except MissingError as error:
        print(f"no plots: {error}")


def opening(found: Search) -> str:
    """What is searched, and where."""
    c = found.config
    return (
        f"searching {len(c.candidates())} orders against {c.red_agent}, {c.budget:,} episodes; "
        f"folder {found.folder.path}"
    )


def share(found: Search, run: Run | None) -> float:
    """How far the budget is spent, the training under way included."""
    if found.judges_all:
        return share_of_all(found, run)
    done = found.episodes
    if run is not None and found.phase != "training without workflows":
        done += run.episodes
    return min(1.0, done / found.config.budget)


def share_of_all(found: Search, run: Run | None) -> float:
    """The same where most of the work is beside the budget: judging, and who learns no order."""
    c, each = found.config, found.config.school_episodes
    orders = NUM_ORDERS * len(found.trainer.weights) * int(c.learners)
    free = [row for row in found.rows if row.workflow is None]
    done = found.episodes + len({row.learner for row in free}) * each
    done += (len(found.rows) - len(free)) * c.judge_episodes // JUDGING
    work = c.budget + orders * c.judge_episodes // JUDGING
    if c.baseline:
        work += (int(c.learners) + 1) * each + c.finish_episodes
    done += 0 if run is None else run.episodes
    return min(1.0, done / work)


def how_it_goes(found: Search, run: Run | None) -> str:
    """How many orders were tried; of a training run under way, how fast and how well."""
    words = [f"{len(found.visits)} orders tried"]
    if run is not None and run.recent:
        mean = sum(episode.total for episode in run.recent) / len(run.recent)
        words.append(f"{run.episodes:,} episodes at {run.episodes / run.spent_s:,.0f} a second")
        words += [f"return {mean:.1f}", compliance_in_words(compliance_of(run.recent))]
    return " · ".join(words)


def best_so_far(found: Search) -> Table:
    """The best orders by what is believed of them; below those that came nearest to the gate."""
    title, rows = f"best of {len(found.visits)} orders tried", []
    surrogate = found.surrogate()
    by_number = {visit.workflow: visit for visit in found.visits}
    passed = surrogate.ranking()
    others = [number for number in surrogate.nearest_to_passing() if number not in passed]
    for number in (passed + others)[:SHOWN]:
        visit = by_number[number]
        reach = half_width(visit.stderr, visit.measured_episodes)
        believed = plus_minus(surrogate.returns.mean[number], SURE * surrogate.returns.std[number])
        rows.append(
            [
                short_name(number),
                str(number),
                plus_minus(visit.measured_return, reach),
                f"{visit.compliance or 0:.1%}",
                f"{visit.fixes_per_episode:.1f}",
                believed if visit.passed else "did not pass the gate",
            ]
        )
    return new_table(title, (*COLUMNS, "believed"), rows, words=("workflow", "believed"))


def show_shard(found: Search) -> None:
    Console(width=100).print(best_so_far(found))
    print(
        f"shard {found.config.shard}; when all are done: phalanx search --merge "
        f"{found.folder.path} ..."
    )


def show_results(found: Search) -> None:
    """The winner beside the runners-up and the learner without workflows, on the same dice."""
    config = found.config
    title = (
        f"{config.red_agent}, {config.horizon} turns, rules {config.rules}: mean return ± 95 %, "
        f"{config.confirm_episodes} fresh episodes each"
    )
    rows = [
        [
            "-" if row["workflow"] is None else short_name(row["workflow"]),
            "-" if row["workflow"] is None else str(row["workflow"]),
            plus_minus(row["mean"], row["high"] - row["mean"]),
            "-" if row["compliance"] is None else f"{row['compliance']:.1%}",
            f"{row['fixes_per_episode']:.1f}",
            row["name"],
        ]
        for row in found.confirmed
    ]
    table = new_table(title, (*COLUMNS, "what"), rows, words=("workflow", "what"))
    Console(width=100).print(table)
    assert found.winner is not None
    print(
        f"winner: {order_name(found.winner)} (number {found.winner}); its policy: "
        f"{found.folder.path / 'policies' / 'winner.npz'}"
    )
    gate = (
        f"the gate (compliance {config.compliance_threshold:.0%}, {config.min_fixes:g} fixes an "
        "episode)"
    )
    if not any(visit.passed for visit in found.visits):
        print(
            f"no order passed {gate}: the winner is the best of those that came nearest; more "
            "--alignment-lambda or --total-episodes may help"
        )
    elif not passes_gate(found.confirmed[0], config):
        where = "when all orders were judged" if found.judges_all else "in the finals"
        print(f"the winner passed {gate} {where}, but not in this table")
    if found.difference is not None:
        d = found.difference
        each = int(config.total_episodes or 0)
        if found.judges_all:
            each = config.school_episodes + config.finish_episodes
        print(
            f"winner minus the learner without workflows, at {each:,} episodes "
            f"each and on the same dice: {d['mean']:+.2f} ± {d['high'] - d['mean']:.2f}"
        )
