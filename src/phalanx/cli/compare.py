"""The command `phalanx compare`: a table, sentences, and a page, CSV or JSON if asked for."""

import csv
import io
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from phalanx.display import new_table, plus_minus, span
from phalanx.files import write_json, write_text
from phalanx.show.compare.compare import Comparison, Standing, compare, flat
from phalanx.show.compare.config import CompareConfig
from phalanx.show.compare.learning import Learnt, axes_of, read_learnt, stops
from phalanx.show.compare.scores import ALL
from phalanx.show.compare.words import remarks, verdicts
from phalanx.show.drawing.chart import check_installed

LEAST_WIDTH = 110


def main(config: CompareConfig) -> int:
    """Play, compare and tell."""
    if config.out is not None:
        check_installed()
    found = compare(config, progress=True)
    console = Console()
    if not console.is_terminal:
        console = Console(width=LEAST_WIDTH)
    _print_standings(console, found)
    for sentence in (*verdicts(found), *remarks(found)):
        console.print(Text(sentence))
    _print_learning(console, found)
    _print_settings(console, found)
    if config.csv is not None:
        write_text(config.csv, _as_csv(found))
    if config.json is not None:
        write_json(config.json, found.as_dict())
    if config.out is not None:
        from phalanx.show.compare.page import compare_page

        write_text(config.out, compare_page(found))
        print(f"{config.out}: open it in a browser")
    return 0


def _print_standings(console: Console, found: Comparison) -> None:
    rows = []
    for group in found.groups:
        own = {one.task: one for one in found.standings if one.group == group.name}
        iqm = own[found.tasks[0]]
        cells = [group.name, str(len(group.runs)), *(_mean(own[task]) for task in found.tasks)]
        if found.by:
            known = iqm.iqm is not None
            cells.append(
                f"{iqm.iqm:.2f} ({iqm.iqm_low:.2f} to {iqm.iqm_high:.2f})" if known else ""
            )
        rows.append([Text(cell) for cell in cells])
    heads = ["all together" if task == ALL else task for task in found.tasks]
    columns = ["run" if not found.by else "runs", "count", *heads]
    columns += ["interquartile mean"] if found.by else []
    title = "Score and its 95 % interval, best first"
    console.print(new_table(title, columns, rows, columns[:1], overflow="fold"))


def _print_learning(console: Console, found: Comparison) -> None:
    """What all returned after as many episodes, and after as many seconds."""
    groups: list[list[Learnt]] = [
        [one for row in group.runs if (one := read_learnt(row.path)) is not None]
        for group in found.groups
    ]
    for axis in axes_of(run for runs in groups for run in runs):
        points = stops(groups, axis)
        if not points:
            continue
        heads = [span(p.after) if axis == "seconds" else f"{p.after:,.0f}" for p in points]
        rows: list[Sequence[Text]] = []
        for at, group in enumerate(found.groups):
            means = [p.returns[at] for p in points]
            cells = [
                f"{mean:.2f}" if low is None or high is None else plus_minus(mean, (high - low) / 2)
                for mean, low, high in means
            ]
            rows.append([Text(cell) for cell in (group.name, *cells)])
        title = f"Return in training after so many {axis}"
        console.print(new_table(title, ["run", *heads], rows, ["run"], overflow="fold"))


def _print_settings(console: Console, found: Comparison) -> None:
    names = found.differing
    if not names:
        console.print("The settings are the same, but for the seed.")
        return
    columns = ["setting", *(group.name for group in found.groups)]
    rows = [
        [Text(cell) for cell in (name, *(group.settings[name] for group in found.groups))]
        for name in names
    ]
    title = "Settings that differ"
    console.print(new_table(title, map(_plain, columns), rows, ["setting"], overflow="fold"))


def _as_csv(found: Comparison) -> str:
    rows = [flat(pair) for pair in found.pairs]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _mean(one: Standing) -> str:
    if one.low is None or one.high is None:
        return f"{one.mean:.2f}"
    return plus_minus(one.mean, (one.high - one.low) / 2)


def _plain(name: str) -> str:
    """A heading is markup to rich: brackets of a name are not."""
    return name.replace("[", r"\[")
