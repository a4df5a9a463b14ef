"""The part of a report that tells of a sweep: its grid, best first, and how all of them learnt."""

import csv
import time
from pathlib import Path

from phalanx.files import read_plain
from phalanx.show.compare.learning import Learnt, axes_of, group_curve, read_learnt
from phalanx.show.drawing.markup import Body, Cell, interval_cell, with_interval
from phalanx.show.drawing.page import text
from phalanx.show.report.run import tell_origin
from phalanx.show.runs.curves import Panel
from phalanx.show.runs.runs import LARGEST_SUMMARY, RunRow, listed, read_summary, real
from phalanx.show.runs.tables import number

MOST_CURVES = 8
Trial = dict[str, str]


def tell_sweep(body: Body, row: RunRow) -> None:
    summary, _why = read_summary(row.path)
    trials = read_trials(row.path)
    body.add(
        f'<h1>{text(row.name)} <span class="state {text(row.state)}">{text(row.state)}</span></h1>'
    )
    over = listed(summary, "over", str)
    words = [f"sweep over {', '.join(over)}" if over else "sweep"]
    if row.began is not None:
        words.append(time.strftime("begun %Y-%m-%d %H:%M", time.localtime(row.began)))
    body.add(f'<p class="lead">{text(" · ".join(words))}</p>')
    if row.note:
        body.say(f"Not all of this folder can be read: {row.note}.", kind="amiss")
    _tell_combinations(body, summary)
    _tell_learning(body, row.path, trials)
    _tell_trials(body, trials)
    tell_origin(body, summary)


def read_trials(folder: Path) -> list[Trial]:
    """The rows of sweep.csv; none if it cannot be read."""
    try:
        content = read_plain(folder / "sweep.csv", LARGEST_SUMMARY).decode(errors="replace")
    except OSError:
        return []
    rows = csv.DictReader(content.replace("\0", "?").splitlines(keepends=True))
    return [{k: v or "" for k, v in row.items() if k and not isinstance(v, list)} for row in rows]


def _tell_combinations(body: Body, summary: dict[str, object]) -> None:
    body.heading("Which combination is best")
    known = [
        one for one in listed(summary, "combinations", dict) if real(one.get("mean")) is not None
    ]
    if not known:
        body.say("No trial has ended yet.")
        return
    body.say(
        "Mean return of the last episodes and its 95 % interval: over seeds if there are several, "
        "else over episodes. phalanx compare --by seed tells whether the differences are luck."
    )
    rows: list[list[str | Cell]] = []
    ends = [(float(one["mean"]), real(one.get("half_width")) or 0.0) for one in known]
    edges = min(m - r for m, r in ends), max(m + r for m, r in ends)
    for one, (mean, reach) in zip(known, ends, strict=True):
        speed = real(one.get("episodes_per_s"))
        seeds = ", ".join(map(str, listed(one, "seeds", int)))
        interval = mean, mean - reach, mean + reach
        told = [with_interval(*interval), "" if speed is None else f"{speed:,.0f}"]
        rows.append([str(one.get("name")), seeds, *told, interval_cell(*interval, edges)])
    kinds = ("words", "", "number", "number", "picture")
    body.table(("combination", "seeds", "return", "episodes/s", ""), rows, kinds)


def _tell_learning(body: Body, folder: Path, trials: list[Trial]) -> None:
    """A curve for each combination, its seeds together."""
    groups: dict[str, list[Learnt]] = {}
    for trial in trials:
        place = Path(trial.get("folder", ""))
        if place.is_absolute() or ".." in place.parts:
            continue  # a file does not decide what is read
        learnt = read_learnt(folder / place)
        if learnt is not None:
            name = place.parent.name.partition("-")[2] or place.parent.name  # without its number
            groups.setdefault(name, []).append(learnt)
    axis, _seconds = axes_of(run for runs in groups.values() for run in runs)
    curves = [group_curve(name, runs, axis) for name, runs in groups.items()]
    if not curves:
        return
    curves.sort(key=lambda curve: -float(curve.mean[-1]))
    title = "Learning" if len(curves) <= MOST_CURVES else f"Learning, the {MOST_CURVES} best"
    about = "Mean return of training episodes; bands are 95 % intervals, over seeds if several."
    body.chart(Panel("learning", title, about, curves[:MOST_CURVES], axis), is_wide=True)


def _tell_trials(body: Body, trials: list[Trial]) -> None:
    body.heading("Trials")
    if not trials:
        body.say("sweep.csv cannot be read.", kind="amiss")
        return
    names = [name for name in trials[0] if name not in ("stderr", "half_width")]
    failed = sum(trial.get("state") == "failed" for trial in trials)
    if failed:
        body.say(f"{failed} of {len(trials)} trials failed.", kind="amiss")
    rows = [[_short(trial.get(name, "")) for name in names] for trial in trials]
    kinds = ["number" if name in ("mean", "episodes", "seconds") else "words" for name in names]
    with body.fold(f"All {len(trials)} trials"):
        body.table(names, rows, kinds)


def _short(word: str) -> str:
    value = number(word)
    return f"{value:.6g}" if value is not None and "." in word else word
