"""The part of a report that tells of one training run."""

import math
import time
from collections.abc import Iterator
from pathlib import Path

from phalanx.display import span
from phalanx.show.drawing.markup import Body, minus, with_interval
from phalanx.show.drawing.page import text
from phalanx.show.runs.curves import (
    ALL,
    Moments,
    Panel,
    Timeline,
    changing_columns,
    compliance_curve,
    constant_columns,
    count_episodes,
    fixes_curve,
    read_timeline,
    return_curves,
    speed_curve,
    time_shares,
)
from phalanx.show.runs.runs import RunRow, listed, read_summary
from phalanx.show.runs.settings_told import told_settings
from phalanx.training.columns import UPDATES

MEASURES = {
    "own_return": ("Return under your own reward", "Mean of the episodes that ended."),
    "entropy": ("Entropy", "How undecided the policy is, in nats; it falls as the policy learns."),
    "kl": ("KL divergence", "How far an update moves the policy; large steps make learning shaky."),
    "clip_fraction": ("Clipped", "Share of the samples whose probability moved beyond the clip."),
    "value_loss": ("Value loss", "Squared error of the critic, in scaled rewards."),
    "explained_variance": (
        "Explained variance",
        "How much of the returns the critic foresees; 1 is all, 0 nothing.",
    ),
    "policy_loss": ("Policy loss", "The clipped objective, negative when the policy gains."),
    "grad_norm": ("Gradient norm", "Before it is bounded by max_grad_norm."),
    "learning_rate": ("Learning rate", "As its schedule has it."),
    "entropy_weight": ("Entropy weight", "As its schedule has it."),
    "restore_price": ("Price of Restore", "What the learner pays for one; 1 is the game's price."),
    "lag": ("Lag", "Age of the oldest weights that an update learnt from, in updates."),
    "dropped_steps": ("Dropped steps", "Too old to learn from."),
    "epochs": ("Epochs", "Passes over each rollout."),
    "alignment": ("Alignment", "Reward for following the workflow; not part of the return."),
    "total_return": ("Return with alignment", "What the learner is rewarded for."),
    "share_without_fix": ("Without a fix", "Share of the episodes in which nothing was repaired."),
}
COSTS = {
    "compile_s": "Compiling before the first update took {:.0f} s.",
    "peak_memory_mb": "At most {:,.0f} MB of memory.",
}
SCHEDULES = ("learning_rate", "entropy_weight", "restore_price")
SHARES = ("clip_fraction", "share_without_fix")
WITHIN = "The band reaches from the lowest to the highest update."


def tell_training(body: Body, folder: Path) -> None:
    """How it learnt, and how fast."""
    summary, _why = read_summary(folder)
    timeline, why = _timeline(folder)
    body.say(why, kind="amiss")
    if timeline is not None:
        tell_learning(body, folder, timeline)
        tell_speed(body, timeline, summary)


def tell_heading(body: Body, row: RunRow) -> None:
    body.add(
        f'<h1 id="{_anchor(row)}">{text(row.name)} '
        f'<span class="state {text(row.state)}">{text(row.state)}</span></h1>'
    )
    body.add(f'<p class="lead">{text(_lead(row))}</p>')
    if row.note:
        body.say(f"Not all of this folder can be read: {row.note}.", kind="amiss")
    body.tiles(
        {
            "return of the last episodes": None
            if row.mean is None
            else with_interval(row.mean, row.low, row.high),
            "sum of the nine cells": None if row.score is None else minus(f"{row.score:.2f}"),
            "episodes": _count(row.episodes),
            "updates": _count(row.updates),
            "episodes a second": _count(row.episodes_per_s),
            "time": None if row.seconds is None else span(row.seconds),
        }
    )


def tell_learning(body: Body, folder: Path, timeline: Timeline) -> None:
    body.heading("How it learnt")
    moments: Moments | None = None
    try:
        moments = count_episodes(folder, timeline)
    except OSError:
        body.say("Returns have no intervals: episodes.csv cannot be read.", kind="amiss")
    body.chart(return_panel(timeline, moments), is_wide=True)
    body.charts_beside(_learning_panels(timeline, moments))
    same = constant_columns(timeline)
    if same:
        words = ", ".join(f"{name} {value:g}" for name, value in same.items())
        body.say(f"The same throughout: {words}.")


def return_panel(timeline: Timeline, moments: Moments | None) -> Panel:
    """Returns by attacker (or of all episodes); from updates.csv if that is all there is."""
    title = "Mean return of training episodes"
    if moments is not None and moments.kinds:
        curves = return_curves(timeline, moments)
        about = "Actions are drawn, not the best ones. The bands are 95 % confidence intervals."
        return Panel("return", title, about, curves, timeline.axis)
    if "return" in timeline.columns:
        return Panel("return", title, WITHIN, [timeline.mean("return")], timeline.axis)
    return Panel("return", title, "updates.csv has no returns.", [])


def _learning_panels(timeline: Timeline, moments: Moments | None) -> Iterator[Panel]:
    axis = timeline.axis
    if moments is not None and moments.of(ALL, "fixes").any():
        about = "Share of all fixes that followed the workflow, with its 95 % interval."
        obeyed = [compliance_curve(timeline, moments)]
        yield Panel("compliance", "Compliance", about, obeyed, axis, is_share=True)
        about = "Remove and Restore, mean and 95 % interval."
        yield Panel("fixes", "Fixes per episode", about, [fixes_curve(timeline, moments)], axis)
    known = list(MEASURES)
    names = sorted(
        changing_columns(timeline), key=lambda n: known.index(n) if n in known else len(known)
    )
    for name in names:
        title, about = MEASURES.get(name) or _explained(name)
        is_binned = timeline.last > timeline.points and name not in SCHEDULES
        curve = timeline.mean(name)
        about = f"{about} {WITHIN}" if is_binned else about
        yield Panel(name, title, about, [curve], axis, is_share=name in SHARES)


def _explained(name: str) -> tuple[str, str]:
    """Another column of updates.csv, in the words that explain it everywhere."""
    words = UPDATES.get(name, "a column of updates.csv")
    return name.replace("_", " ").capitalize(), f"{words[0].upper()}{words[1:]}."


def tell_speed(body: Body, timeline: Timeline, summary: dict[str, object]) -> None:
    body.heading("How fast")
    speed, shares = speed_curve(timeline), time_shares(timeline)
    panels = []
    if speed is not None:
        about = "From clock to clock."
        panels.append(Panel("speed", f"Speed, {speed.name}", about, [speed], timeline.axis))
    if shares:
        about = "Share of the time of each stretch of updates."
        panels.append(
            Panel("split", "Where the time went", about, shares, timeline.axis, style="stack")
        )
    if panels:
        body.charts_beside(panels)
    else:
        body.say("One update is too few to tell a speed.")
    facts = []
    split = summary.get("time_split")
    if isinstance(split, dict):
        parts = [f"{n} {v:.0%}" for n, v in split.items() if isinstance(v, int | float)]
        facts.append(f"In all: {', '.join(parts)}.")
    for name, words in COSTS.items():
        if isinstance(summary.get(name), int | float):
            facts.append(words.format(summary[name]))
    body.say(*facts)


def tell_settings(body: Body, folder: Path) -> None:
    """What was run: settings, versions, machine, and what went wrong on the way."""
    body.heading("What was run")
    settings, why = told_settings(folder)
    body.say(why, kind="amiss")
    columns = "setting", "value", "default", "what it is"
    kinds = "setting", "words", "words quiet", "about"
    differ = [one for one in settings if one.differs]
    if differ:
        body.say("Settings that differ from the defaults:")
        body.table(columns, differ, kinds)
    elif settings:
        body.say("All settings are the defaults.")
    others = [one for one in settings if not one.differs]
    if others:
        with body.fold(f"The {len(others)} settings that are the defaults"):
            told = [(one.name, one.value, one.about) for one in others]
            body.table(("setting", "value", "what it is"), told, ("setting", "words", "about"))
    summary, _why = read_summary(folder)
    tell_origin(body, summary)
    faults = summary.get("faults")
    if faults:
        words = f"{faults} environments failed and were replaced; faults.csv tells of each."
        body.say(words, kind="amiss")


def tell_origin(body: Body, summary: dict[str, object]) -> None:
    """Versions, machine and notes of a summary, as far as it has them."""
    body.say(*listed(summary, "notes", str))
    known = _words(summary.get("versions")) | _words(summary.get("machine"))
    known |= {name: str(summary[name]) for name in ("device", "threads") if summary.get(name)}
    if known:
        body.table(list(known), [list(known.values())])
    else:
        body.say("With which versions, and on which machine, a run says when it ends.")


def _timeline(folder: Path) -> tuple[Timeline | None, str]:
    try:
        timeline = read_timeline(folder)
    except FileNotFoundError:
        return None, "There are no curves: the run has no updates.csv."
    except OSError:
        return None, "There are no curves: updates.csv cannot be read."
    if timeline is None:
        return None, "There are no curves: updates.csv has no whole row."
    return timeline, ""


def _lead(row: RunRow) -> str:
    against = f" against {row.red_agent.replace(',', ', ')}" if row.red_agent else ""
    parts = [f"{row.algo or 'unknown algorithm'} on {row.env or 'an unknown environment'}{against}"]
    if row.seed is not None:
        parts.append(f"seed {row.seed}")
    if row.began is not None:
        parts.append(time.strftime("begun %Y-%m-%d %H:%M", time.localtime(row.began)))
    if row.state != "finished" and row.progress is not None:
        parts.append(f"{row.progress:.0%} done")
    return " · ".join(parts)


def _words(part: object) -> dict[str, str]:
    return {str(k): str(v) for k, v in part.items()} if isinstance(part, dict) else {}


def _count(value: float | None) -> str | None:
    return None if value is None or not math.isfinite(value) else f"{value:,.0f}"


def _anchor(row: RunRow) -> str:
    return "run-" + "".join(c if c.isalnum() and c.isascii() else "-" for c in row.name)
