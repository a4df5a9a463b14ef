"""A comparison as one HTML file: verdicts, intervals, learning side by side, settings."""

from collections.abc import Sequence

from phalanx.display import span
from phalanx.show.compare.compare import Comparison, Group, Pair, Standing
from phalanx.show.compare.learning import Learnt, axes_of, group_curve, read_learnt, stops
from phalanx.show.compare.scores import ALL
from phalanx.show.compare.words import chance, remarks, verdicts
from phalanx.show.drawing.markup import Body, Cell, interval_cell, minus, with_interval
from phalanx.show.drawing.page import text
from phalanx.show.runs.curves import Panel

MOST_CURVES = 8


def compare_page(comparison: Comparison) -> str:
    """The page; the folders of the runs are read again for their curves."""
    body = Body()
    body.heading(f"Comparison of {len(comparison.groups)} {_things(comparison)}", 1)
    body.add("<ul>")
    for sentence in verdicts(comparison):
        body.add(f"<li>{text(minus(sentence))}</li>")
    body.add("</ul>")
    for sentence in remarks(comparison):
        body.say(sentence)
    _tell_standings(body, comparison)
    _tell_pairs(body, comparison)
    _tell_learning(body, comparison)
    _tell_settings(body, comparison)
    names = " and ".join(group.name for group in comparison.groups[:2])
    more = "" if len(comparison.groups) < 3 else f" and {len(comparison.groups) - 2} more"
    return body.page(f"{names}{more} · phalanx compare")


def _tell_standings(body: Body, comparison: Comparison) -> None:
    body.heading("Scores")
    with_seeds = any(one.iqm is not None for one in comparison.standings)
    columns = ["", "runs", "mean", *(["interquartile mean", "its interval"] if with_seeds else [])]
    for task in comparison.tasks:
        standings = [one for one in comparison.standings if one.task == task]
        if len(comparison.tasks) > 1:
            body.heading("All attackers together" if task == ALL else f"Against {task}", 3)
        ends = [
            end for one in standings for end in (one.low, one.high, one.mean) if end is not None
        ]
        edges = min(ends), max(ends)
        rows = [_standing_row(one, edges, with_seeds) for one in standings]
        kinds = ["words", *["number"] * (len(columns) - 1), "picture"]
        body.table([*columns, ""], rows, kinds)


def _standing_row(one: Standing, edges: tuple[float, float], with_seeds: bool) -> list[str | Cell]:
    low, high = (one.mean if end is None else end for end in (one.low, one.high))
    seeds: list[str | Cell] = []
    if with_seeds:
        seeds = ["", ""]
        if one.iqm is not None:
            seeds = [minus(f"{one.iqm:.2f}"), minus(f"{one.iqm_low:.2f} to {one.iqm_high:.2f}")]
    picture = interval_cell(one.mean, low, high, edges)
    return [one.group, str(one.runs), with_interval(one.mean, one.low, one.high), *seeds, picture]


def _tell_pairs(body: Body, comparison: Comparison) -> None:
    body.heading("Differences")
    body.say(
        "First minus second, with its 95 % interval. p is corrected for the number of comparisons "
        "of a table (Holm); a verdict needs p below 0.05. The last column is the difference that "
        "would have been found in four of five cases."
    )
    main, *others = comparison.tasks
    _pair_table(body, [pair for pair in comparison.pairs if pair.task == main], is_one=True)
    if others:
        with body.fold("Against each attacker"):
            _pair_table(body, [pair for pair in comparison.pairs if pair.task != main])


def _pair_table(body: Body, pairs: Sequence[Pair], is_one: bool = False) -> None:
    ends = [end for pair in pairs for end in (pair.difference.low, pair.difference.high)]
    edges = min([*ends, 0.0]), max([*ends, 0.0])
    with_seeds = any(pair.improvement is not None for pair in pairs)
    columns = ["first", "second", *([] if is_one else ["attacker"]), "verdict", "difference", "p"]
    columns += ["chance that first wins"] if with_seeds else []
    rows: list[list[str | Cell]] = []
    for pair in pairs:
        d = pair.difference
        least = d.detectable(pair.comparisons)
        wins = ""
        if pair.improvement is not None:
            share, low, high = pair.improvement
            wins = f"{share:.0%} ({low:.0%} to {high:.0%})"
        who = [pair.first, pair.second, *([] if is_one else [pair.task]), pair.verdict]
        gained = minus(f"{d.mean:+.2f} ({d.low:.2f} to {d.high:.2f})")
        sure = chance(pair.p_adjusted).removeprefix("= ")
        picture = interval_cell(d.mean, d.low, d.high, edges)
        found = "" if least is None else f"{least:.2f}"
        rows.append([*who, gained, sure, *([wins] if with_seeds else []), picture, found])
    kinds = ["words", "words", *([] if is_one else [""]), "", "number", "number"]
    kinds += [*(["number"] if with_seeds else []), "picture", "number"]
    body.table([*columns, "", "detectable"], rows, kinds)


def _tell_learning(body: Body, comparison: Comparison) -> None:
    body.heading("Learning")
    found = {
        group.name: [one for row in group.runs if (one := read_learnt(row.path)) is not None]
        for group in comparison.groups
    }
    unknown = [name for name, runs in found.items() if not runs]
    if unknown:
        body.say(
            f"There are no curves of {', '.join(unknown)}: no tables can be read.", kind="amiss"
        )
    known = {name: runs for name, runs in found.items() if runs}
    if not known:
        return
    shown = dict(list(known.items())[:MOST_CURVES])
    if len(known) > MOST_CURVES:
        body.say(f"Curves are drawn of the {MOST_CURVES} best.")
    axes = axes_of(run for runs in known.values() for run in runs)
    for axis in axes:
        title = f"Learning per {axis.removesuffix('s')}"
        curves = [group_curve(name, runs, axis) for name, runs in shown.items()]
        about = "Mean return of training episodes; bands are 95 % intervals, over seeds where there"
        body.chart(Panel(axis, title, f"{about} are several.", curves, axis), is_wide=True)
    for axis in axes:
        _stop_table(body, known, axis)


def _stop_table(body: Body, groups: dict[str, list[Learnt]], axis: str) -> None:
    """What all had learnt by then, at points that all have reached."""
    found = stops(list(groups.values()), axis)
    if not found:
        return
    heads = [
        f"after {span(stop.after)}" if axis == "seconds" else f"after {stop.after:,.0f} {axis}"
        for stop in found
    ]
    rows = []
    for at, name in enumerate(groups):
        rows.append([name, *(with_interval(*stop.returns[at]) for stop in found)])
    body.table(["return in training", *heads], rows, ["words", *["number"] * len(heads)])


def _tell_settings(body: Body, comparison: Comparison) -> None:
    body.heading("What differs in the settings")
    names = comparison.differing
    if not names:
        body.say("Nothing but the seed.")
        return
    groups: Sequence[Group] = comparison.groups
    rows = [[name, *(group.settings[name] for group in groups)] for name in names]
    body.table(["setting", *(group.name for group in groups)], rows, ["setting"])


def _things(comparison: Comparison) -> str:
    return "runs" if not comparison.by else "groups of runs"
