"""The part of a report that tells of a search: its winner, the orders tried, what it believes."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from phalanx.cage2.workflow import NUM_ORDERS, NUM_TYPES, UNIT_TYPES, order_name
from phalanx.errors import RunError
from phalanx.search.surrogate import Visit
from phalanx.show.compare.learning import group_curve, read_learnt
from phalanx.show.drawing.markup import Body, Cell, interval_cell, minus, with_interval
from phalanx.show.drawing.search_counts import (
    SURE,
    Found,
    best_so_far,
    count_inside,
    episodes_so_far,
    mean_by_position,
    read_search,
    tried_best_first,
    were_judged_at_once,
)
from phalanx.show.report.decision import tell_decision, tell_obedience
from phalanx.show.runs.curves import Curve, Floats, Panel
from phalanx.show.runs.runs import read_summary, real
from phalanx.statistics import half_width

NEEDED = ("gp_beta", "compliance_threshold", "min_fixes")  # settings that beliefs depend on
INSIDE = {"school": "school", "winner": "winner's own training", "baseline": "without workflows"}


def tell_search(body: Body, folder: Path) -> None:
    """All that summary.json has; a sentence if it has nothing yet."""
    try:
        found = _checked(read_search(folder))
    except RunError:
        body.say("The search has measured no order yet.", kind="amiss")
        return
    is_decided = tell_decision(body, folder)
    tell_obedience(body, folder)
    _tell_winner(body, folder, found)
    if found.visits and not (is_decided and were_judged_at_once(found.visits)):
        _tell_orders(body, found)
        _tell_beliefs(body, found)
    _tell_training(body, folder)


def _checked(found: Found) -> Found:
    """A summary that somebody has changed by hand may hold anything."""
    numbers = [real(found.config.get(n)) for n in NEEDED] if isinstance(found.config, dict) else []
    is_order = found.winner is None or found.winner in range(NUM_ORDERS)
    if None in numbers or len(numbers) < len(NEEDED) or not is_order:
        raise RunError("summary.json is not as a search writes it")
    rows = found.confirmed if isinstance(found.confirmed, list) else []
    good = [
        row
        for row in rows
        if isinstance(row, dict)
        and None not in [real(row.get(name)) for name in ("mean", "low", "high", "episodes")]
    ]
    return replace(
        found, confirmed=good, winner=None if found.winner is None else int(found.winner)
    )


def _tell_winner(body: Body, folder: Path, found: Found) -> None:
    body.heading("The winner")
    if found.winner is None:
        body.say("No winner is named yet.")
    else:
        body.say(f"The winner is {order_name(found.winner)}, most urgent first.")
    rows = found.confirmed
    if not rows:
        return
    ends = [float(row[end]) for row in rows for end in ("low", "high")]
    edges = min(ends), max(ends)
    body.say(
        f"All on the same fresh dice, {rows[0]['episodes']:,} episodes each; mean return "
        "and its 95 % interval."
    )
    body.table(
        ("", "order", "return", "compliance", ""),
        [
            (
                str(row.get("name")),
                str(row.get("order") or "none"),
                with_interval(row["mean"], row["low"], row["high"]),
                _share(row.get("compliance")),
                interval_cell(row["mean"], row["low"], row["high"], edges),
            )
            for row in rows
        ],
        ("", "words", "number", "number", "picture"),
    )
    gain = _difference(folder)
    if gain is not None:
        body.say(
            minus(
                "The winner minus the same learner without workflows: "
                f"{gain['mean']:+.2f} points ({gain['low']:.2f} to {gain['high']:.2f})."
            )
        )


def _tell_orders(body: Body, found: Found) -> None:
    tried = tried_best_first(found.visits)
    body.heading("Orders that were tried")
    body.charts_beside([_best_panel(found)])
    rows: list[list[str | Cell]] = []
    reaches = [half_width(visit.stderr, visit.measured_episodes) for visit in tried]
    lows = [visit.measured_return - reach for visit, reach in zip(tried, reaches, strict=True)]
    highs = [visit.measured_return + reach for visit, reach in zip(tried, reaches, strict=True)]
    for visit, low, high in zip(tried, lows, highs, strict=True):
        mean = visit.measured_return
        rows.append(
            [
                str(visit.iteration),
                visit.order,
                with_interval(mean, low, high),
                _share(visit.compliance),
                f"{visit.fixes_per_episode:.1f}",
                "yes" if visit.passed else "no",
                visit.chosen_by,
                interval_cell(mean, low, high, (min(lows), max(highs))),
            ]
        )
    with body.fold(f"All {len(tried)} orders, best first"):
        body.table(
            ("tried as", "order", "return", "compliance", "fixes", "passed the gate", "why", ""),
            rows,
            ("number", "words", "number", "number", "number", "", "", "picture"),
        )


def _tell_beliefs(body: Body, found: Found) -> None:
    body.heading("What it believes of all orders")
    if not any(visit.passed for visit in found.visits):
        body.say("No order has passed the gate: the model holds no return to learn from.")
        return
    body.chart(_belief_panel(found), is_wide=True)
    inside, of = count_inside(found.visits)
    if of:
        body.say(
            f"Of {of} orders that passed the gate and had been predicted, {inside} were measured "
            f"within {SURE:g} standard deviations of prediction and measurement together."
        )
    means = mean_by_position(found.beliefs.returns.mean)
    body.say(
        "Believed return by where a unit type stands, mean over the orders that have it there:"
    )
    heads = ["1, most urgent", *map(str, range(2, NUM_TYPES)), f"{NUM_TYPES}, least urgent"]
    body.table(
        ("unit type", *heads),
        [
            [name, *(Cell(minus(f"{v:.2f}"), _bold(v, means)) for v in row)]
            for name, row in zip(UNIT_TYPES, means.tolist(), strict=True)
        ],
        ("", *["number"] * NUM_TYPES),
    )


def _belief_panel(found: Found) -> Panel:
    """The Gaussian process over all orders, best first, and what was measured of some."""
    returns = found.beliefs.returns
    ranking = np.argsort(-returns.mean, kind="stable")
    mean, reach = returns.mean[ranking], SURE * returns.std[ranking]
    rank = np.arange(1.0, NUM_ORDERS + 1)
    names = tuple(order_name(int(number)) for number in ranking)
    curves = [Curve("believed", rank, mean, mean - reach, mean + reach, labels=names)]
    place = {int(number): float(at) for at, number in enumerate(ranking, 1)}
    for name, passed in (("passed the gate", True), ("failed it", False)):
        visits = [v for v in tried_best_first(found.visits) if v.passed == passed]
        if visits:
            curves.append(_measured(name, [place[v.workflow] for v in visits], visits))
    about = (
        f"Believed mean ± {SURE:g} standard deviations of each of {NUM_ORDERS} orders, best first; "
        "dots are measured, with 95 % intervals. The model learns from those that passed the gate."
    )
    return Panel("beliefs", "Believed and measured return", about, curves, "rank of the order")


def _best_panel(found: Found) -> Panel:
    best, at = best_so_far(found.visits), np.array(episodes_so_far(found.visits), np.float64)
    nothing = np.full(len(at), np.nan)
    curves = [
        Curve("best so far", at, best, nothing, nothing),
        _measured("measured", list(at), found.visits),
    ]
    about = "Best return of an order that passed the gate, and all that were measured."
    return Panel("best", "Best so far", about, curves)


def _measured(name: str, places: list[float], visits: list[Visit]) -> Curve:
    mean = np.array([visit.measured_return for visit in visits])
    reach = np.array([half_width(visit.stderr, visit.measured_episodes) for visit in visits])
    labels = tuple(order_name(visit.workflow) for visit in visits)
    return Curve(name, np.array(places, np.float64), mean, mean - reach, mean + reach, True, labels)


def _tell_training(body: Body, folder: Path) -> None:
    """The training runs inside: what all orders share, the winner's own, and the one without."""
    known = {INSIDE[name]: read_learnt(folder / name) for name in INSIDE}
    curves = [group_curve(name, [run], "episodes") for name, run in known.items() if run]
    if curves:
        about = "Mean return of training episodes; bands are 95 % confidence intervals."
        body.chart(Panel("inside", "Training inside the search", about, curves), is_wide=True)


def _difference(folder: Path) -> dict[str, float] | None:
    gain = read_summary(folder)[0].get("winner_minus_baseline")
    good = isinstance(gain, dict) and all(
        real(gain.get(n)) is not None for n in ("mean", "low", "high")
    )
    return gain if good else None


def _bold(value: float, means: Floats) -> str:
    return "number best" if value == means.max() else "number"


def _share(value: object) -> str:
    return "-" if real(value) is None else f"{value:.1%}"
