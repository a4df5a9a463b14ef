"""The command `phalanx explain`: plays a defender, and tells what it does and what that costs."""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

import phalanx
from phalanx.display import new_table, progress_display
from phalanx.files import write_json
from phalanx.play.explain import LIGHT, Explanation, Move, explain
from phalanx.play.explain_config import ExplainConfig
from phalanx.play.players import open_players, remarks
from phalanx.play.recording import record_episodes

WORDS = ("turn", "most often", "next", "host", "decoy", "cause")  # columns that hold no numbers
_table = partial(new_table, words=WORDS, title_justify="left")


def main(config: ExplainConfig) -> int:
    """The command: tables for each attacker, and JSON and a picture if asked for."""
    figure = None
    if config.plot is not None:
        from phalanx.show.figure import blank_figure

        figure = blank_figure()
    told: list[Explanation] = []
    with progress_display("turns") as progress:
        total = config.episodes * config.horizon * len(config.red_agent)
        task = progress.add_task("starting", total=total, note="")

        def played(red_agent: str, turns: int) -> None:
            progress.update(task, advance=turns, description=f"against {red_agent}")

        told.extend(explanations(config, played))
    for one in told:
        show(config, one)
    if config.json is not None:
        write_json(config.json, as_json(config, told))
    if config.plot is not None:
        from phalanx.show.explain_picture import draw_explanations
        from phalanx.show.figure import save_picture

        title = f"What {config.target} does, and what that costs (rules {config.played.rules})"
        draw_explanations(figure, title, told)
        save_picture(figure, config.plot)
    return 0


# --- playing --------------------------------------------------------------------------------------


def explanations(
    config: ExplainConfig, played: Callable[[str, int], None] = lambda *_: None
) -> Iterator[Explanation]:
    """The figures against each attacker. `played` hears: attacker, turns."""
    (player,) = open_players(config.played)
    for line in remarks([player], config.played.rules):
        print(f"phalanx: {line}", file=sys.stderr)
    for red_agent in config.red_agent:
        yield explain(red_agent, record_episodes(config, red_agent, player, played))


# --- telling --------------------------------------------------------------------------------------


def show(config: ExplainConfig, told: Explanation) -> None:
    """All tables of one attacker."""
    console = Console(width=100)
    heading = f"{config.target} against {told.red_agent}: mean return {told.mean:.2f}"
    console.rule(Text(heading), characters="=")
    print(
        f"{told.episodes} episodes of {told.horizon} turns, rules {config.played.rules}, "
        f"seed {config.seed}"
    )
    for table in (opening(told), decoys(told), treatments(told), losses(told)):
        console.print(table)
    if told.targets:
        console.print(targets(told))
    console.print(endings(told))


def opening(told: Explanation) -> Table:
    table = _table("Its opening: share of episodes", "turn", "most often", "", "next", "")
    for turn in told.opening:
        table.add_row(str(turn.turn), *_move(turn.first), *_move(turn.second))
    return table


def decoys(told: Explanation) -> Table:
    title = "Its decoys: share of episodes"
    table = _table(title, "host", "decoy", "placed", "stands at the end", "first placed in turn")
    before = None
    for use in told.decoys:
        table.add_row(
            use.host if use.host != before else "", use.decoy, f"{use.placed:.1%}",
            f"{use.stands:.1%}", f"{use.first_turn:.1f}",
        )  # fmt: skip
        before = use.host
    if not told.decoys:
        table.add_row("none", "", "", "", "")
    return table


def treatments(told: Explanation) -> Table:
    table = _table(
        "When it acts: times per episode, and what a Restore met",
        "host", "Analyse", "Remove", "Restore", "red was root", "red was user", "wasted: no red",
    )  # fmt: skip
    for acts in (*told.acts, told.acts_in_all):
        counts = (acts.analyse, acts.remove, acts.restore)
        met = (acts.restore_of_root, acts.restore_of_user, acts.wasted)
        if any(counts) or acts is told.acts_in_all:
            shares = ["-" if share is None else f"{share:.1%}" for share in met]
            table.add_row(acts.host, *(f"{count:.2f}" for count in counts), *shares)
    return table


def losses(told: Explanation) -> Table:
    title = "Where the loss comes from: points per episode"
    table = _table(title, "cause", "red is root", "Restores", "in all", "share")
    total = -told.mean

    def row(name: str, root: str, restore: str, points: float) -> None:
        share = f"{points / total:.1%}" if total else "-"
        table.add_row(name, root, restore, f"{points:.3f}", share)

    for loss in sorted(told.losses, key=lambda loss: -loss.total):
        if loss.total:
            row(loss.host, f"{loss.root:.3f}", f"{loss.restore:.3f}", loss.total)
    row("operational service stopped", "", "", told.service_loss)
    root, restore = (sum(getattr(one, name) for one in told.losses) for name in ("root", "restore"))
    row("all", f"{root:.3f}", f"{restore:.3f}", root + restore + told.service_loss)
    return table


def targets(told: Explanation) -> Table:
    title = "By the user host that B-line goes for"
    table = _table(title, "host", "share of episodes", "mean return")
    for target in told.targets:
        table.add_row(target.host, f"{target.share:.1%}", f"{target.mean:.2f}")
    return table


def endings(told: Explanation) -> Table:
    quantiles = [f"{float(name):.0%}" for name in told.quantiles]
    names = (*quantiles, f"episodes that lose {LIGHT:g} at most")
    table = _table("How it ends: quantiles of the return", *names)
    values = (f"{value:.1f}" for value in told.quantiles.values())
    table.add_row(*values, f"{told.share_light:.1%}")
    return table


def _move(move: Move | None) -> tuple[str, str]:
    return ("-", "") if move is None else (move.action, f"{move.share:.1%}")


def as_json(config: ExplainConfig, told: list[Explanation]) -> dict[str, Any]:
    return {
        "phalanx": phalanx.__version__,
        "policy": config.target,
        "rules": config.played.rules,
        "workflow": config.workflow,
        "seed": config.seed,
        "attackers": [dataclasses.asdict(one) for one in told],
    }
