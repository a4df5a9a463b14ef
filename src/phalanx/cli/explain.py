"""The command `phalanx explain`: plays a defender, and tells what it does and what that costs."""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

import phalanx
from phalanx.cage2.scenario.names import as_named, short_name
from phalanx.display import new_table, progress_display
from phalanx.files import write_json
from phalanx.play.explain import (
    LIGHT,
    Explanation,
    Move,
    explain,
    only_network,
    record_episodes,
)
from phalanx.play.explain_config import ExplainConfig
from phalanx.play.players import check_there, open_players, remarks

WORDS = ("turn", "most often", "next", "host", "decoy", "cause")  # columns that hold no numbers
_table = partial(new_table, words=WORDS, title_justify="left")


def main(config: ExplainConfig) -> int:
    """The command: tables for each attacker, and JSON and a picture if asked for."""
    figure = None
    if config.plot is not None:
        from phalanx.show.drawing.figure import blank_figure

        figure = blank_figure()
    total = config.episodes * config.horizon * len(config.red_agent)
    with progress_display("turns") as progress:
        task = progress.add_task("starting", total=total, note="")

        def played(red_agent: str, turns: int) -> None:
            progress.update(task, advance=turns, description=f"against {red_agent}")

        told = list(explanations(config, played))
    for one in told:
        show(config, one)
    if config.json is not None:
        facts = {
            "phalanx": phalanx.__version__,
            "policy": config.target,
            "rules": config.played.rules,
            "scenario": as_named(config.played.scenario),
            "workflow": config.workflow,
            "seed": config.seed,
            "attackers": [dataclasses.asdict(one) for one in told],
        }
        write_json(config.json, facts)
    if config.plot is not None:
        from phalanx.show.drawing.explain_picture import draw_explanations
        from phalanx.show.drawing.figure import save_picture

        title = f"What {config.target} does, and what that costs (rules {config.played.rules})"
        draw_explanations(figure, title, told)
        save_picture(figure, config.plot)
    return 0


def explanations(
    config: ExplainConfig, played: Callable[[str, int], None] = lambda *_: None
) -> Iterator[Explanation]:
    """The figures against each attacker. `played` hears: attacker, turns."""
    (player,) = open_players(config.played)
    only_network(config.played.scenario)
    check_there([player], config.played.scenario)
    for line in remarks([player], config.played.rules, config.played.scenario):
        print(f"phalanx: {line}", file=sys.stderr)
    for red_agent in config.red_agent:
        yield explain(red_agent, record_episodes(config, red_agent, player, played))


def show(config: ExplainConfig, told: Explanation) -> None:
    """All tables of one attacker."""
    console = Console(width=100)
    heading = f"{config.target} against {told.red_agent}: mean return {told.mean:.2f}"
    console.rule(Text(heading), characters="=")
    network, rules = short_name(config.played.scenario), config.played.rules
    print(
        f"{told.episodes} episodes of {told.horizon} turns on {network}, rules {rules}, "
        f"seed {config.seed}"
    )
    for table in tables(told):
        console.print(table)


def tables(told: Explanation) -> Iterator[Table]:
    title, columns = "Its opening: share of episodes", ("turn", "most often", "", "next", "")
    turns = [(str(one.turn), *_move(one.first), *_move(one.second)) for one in told.opening]
    yield _table(title, columns, turns)
    title = "Its decoys: share of episodes"
    columns = ("host", "decoy", "placed", "stands at the end", "first placed in turn")
    yield _table(title, columns, list(_decoys(told)) or [("none",)])
    title = "When it acts: times per episode, and what a Restore met"
    treated = ("host", "Analyse", "Remove", "Restore", "red was root", "red was user")
    yield _table(title, (*treated, "wasted: no red"), _treatments(told))
    title = "Where the loss comes from: points per episode"
    yield _table(title, ("cause", "red is root", "Restores", "in all", "share"), _losses(told))
    if told.targets:
        title = "By the user host that B-line goes for"
        goals = [(one.host, f"{one.share:.1%}", f"{one.mean:.2f}") for one in told.targets]
        yield _table(title, ("host", "share of episodes", "mean return"), goals)
    shares = [f"{float(name):.0%}" for name in told.quantiles]
    values = [f"{value:.1f}" for value in told.quantiles.values()]
    yield _table(
        "How it ends: quantiles of the return",
        (*shares, f"episodes that lose {LIGHT:g} at most"),
        [(*values, f"{told.share_light:.1%}")],
    )


def _decoys(told: Explanation) -> Iterator[tuple[str, ...]]:
    before = None
    for use in told.decoys:
        host, before = use.host if use.host != before else "", use.host
        yield host, use.decoy, f"{use.placed:.1%}", f"{use.stands:.1%}", f"{use.first_turn:.1f}"


def _treatments(told: Explanation) -> Iterator[tuple[str, ...]]:
    for acts in (*told.acts, told.acts_in_all):
        counts = (acts.analyse, acts.remove, acts.restore)
        met = (acts.restore_of_root, acts.restore_of_user, acts.wasted)
        if any(counts) or acts is told.acts_in_all:
            shares = ["-" if share is None else f"{share:.1%}" for share in met]
            yield acts.host, *(f"{count:.2f}" for count in counts), *shares


def _losses(told: Explanation) -> Iterator[tuple[str, ...]]:
    root, restore = (sum(getattr(one, name) for one in told.losses) for name in ("root", "restore"))
    rows = [
        (loss.host, f"{loss.root:.3f}", f"{loss.restore:.3f}", loss.total)
        for loss in sorted(told.losses, key=lambda loss: -loss.total)
        if loss.total
    ]
    rows.append(("operational service stopped", "", "", told.service_loss))
    rows.append(("all", f"{root:.3f}", f"{restore:.3f}", root + restore + told.service_loss))
    for *words, points in rows:
        yield *words, f"{points:.3f}", f"{points / -told.mean:.1%}" if told.mean else "-"


def _move(move: Move | None) -> tuple[str, str]:
    return ("-", "") if move is None else (move.action, f"{move.share:.1%}")
