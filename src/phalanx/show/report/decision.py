"""The part of a report that tells a search's decision: which orders may be best, what others cost.

Every number in it is in decision.json, measured.csv or obedience.csv of the search.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from phalanx.cage2.workflow import NUM_TYPES, UNIT_TYPES
from phalanx.errors import RunError
from phalanx.search.decided import Answer, Effect, Followed, Order, Side, WorstCase
from phalanx.search.obedience import read_obedience
from phalanx.search.words import in_words, read_decision
from phalanx.show.drawing.kendall_map import kendall_map
from phalanx.show.drawing.markup import Body, Cell, interval_cell, minus, with_interval
from phalanx.show.runs.curves import Curve, Floats, Panel
from phalanx.statistics import interval

STRONGEST = 36  # per cent of its colour that the largest effect has


def tell_decision(body: Body, folder: Path) -> bool:
    """All that decision.json says; whether there is one."""
    if not (folder / "decision.json").exists():
        return False
    try:
        decision = read_decision(folder)
    except RunError:
        body.heading("Which orders may be best")
        body.say("decision.json is not as a search writes it.", kind="amiss")
        return False
    body.heading("Which orders may be best")
    for sentence in in_words(decision):
        body.say(minus(sentence))
    sides = decision["against"]
    for name, side in sides.items():
        if len(sides) > 1:
            body.heading(f"Against {name}", 3)
        _tell_costs(body, side, decision)
    if decision["worst_case"]:
        _tell_worst_case(body, decision["worst_case"])
    last = list(sides.values())[-1]["orders"]
    body.heading("How orders lie to each other")
    body.add(kendall_map(last))
    _tell_following(body, last)
    _tell_agreement(body, last)
    return True


def tell_obedience(body: Body, folder: Path) -> None:
    """What it costs to obey, if that was measured."""
    try:
        rows = read_obedience(folder)
    except RunError as error:
        body.say(str(error), kind="amiss")
        return
    prices = sorted({row["defiance"] for row in rows})
    if len(prices) < 2:
        return
    body.heading("What obedience costs")
    by = [[row for row in rows if row["defiance"] == one] for one in prices]

    def curve(name: str, column: str, x: Floats) -> Curve:
        means = [interval([row[column] for row in some]) for some in by]
        mean, low, high = (
            np.array([np.nan if one[key] is None else one[key] for one in means], np.float64)
            for key in ("mean", "low", "high")
        )
        labels = tuple(f"defiance costs {price:g}" for price in prices)
        return Curve(name, x, mean, low, high, labels=labels)

    followed = np.array([np.mean([row["compliance"] for row in some]) for some in by]) * 100
    asked = np.array(prices)
    learners = len({row["learner"] for row in rows})
    about = f"Mean of all 120 orders; 95 % intervals over {learners} learners."
    body.charts_beside(
        [
            Panel(
                "price",
                "Return and compliance",
                about,
                [curve("return", "return", followed)],
                "compliance that was reached, in per cent",
            ),
            Panel(
                "reached",
                "Compliance by the price of defiance",
                "By their own orders, by the reverse ones, and by their own where these disagree. "
                + about,
                [
                    curve("own", "compliance", asked),
                    curve("reverse", "reverse_compliance", asked),
                    curve("own, disputed fixes", "disputed_compliance", asked),
                ],
                "points that a fix costs while a better-ranked host waits",
                is_share=True,
            ),
        ]
    )


def _tell_costs(body: Body, side: Side, decision: Answer) -> None:
    good = [order for order in side["orders"] if order["can_be_followed"]]
    if not good:
        return
    ranked = sorted(good, key=lambda order: (order["cost"], order["workflow"]))
    body.chart(_cost_panel(ranked, decision), is_wide=True)
    _tell_positions(body, side["positions"], len(good))
    edges = 0.0, max(order["high"] for order in ranked)
    rows: list[list[str | Cell]] = [
        [
            order["order"],
            minus(f"{order['return']:.2f}"),
            f"{order['cost']:.2f}",
            f"{order['low']:.2f} to {order['high']:.2f}",
            "yes" if order["may_be_best"] else "no",
            _share(order["compliance"]),
            _share(order["reverse_compliance"]),
            _share(order["disputed_compliance"]),
            _against_none(order["minus_no_order"]),
            interval_cell(order["cost"], order["low"], order["high"], edges),
        ]
        for order in ranked
    ]
    with body.fold(f"All {len(ranked)} orders that can be followed, the best first"):
        body.table(
            (
                "order",
                "return",
                "cost",
                "bounds",
                "may be best",
                "compliance",
                "by its reverse",
                "where these disagree",
                "minus no order",
                "",
            ),
            rows,
            ("words", *["number"] * 3, "", *["number"] * 4, "picture"),
        )


def _cost_panel(ranked: Sequence[Followed], decision: Answer) -> Panel:
    """What each order costs, with bounds that hold at once."""
    curves = []
    for name, is_in in (("may be best", True), ("costs more", False)):
        chosen = [(k, o) for k, o in enumerate(ranked, 1) if o["may_be_best"] == is_in]
        if chosen:
            columns = [[o[key] for _k, o in chosen] for key in ("cost", "low", "high")]
            cost, low, high = (np.array(column, np.float64) for column in columns)
            at = np.array([k for k, _o in chosen], np.float64)
            labels = tuple(o["order"] for _k, o in chosen)
            curves.append(Curve(name, at, cost, low, high, is_points=True, labels=labels))
    about = (
        "Points of return by which each order is behind the best one, which costs nothing. All "
        f"bounds hold at once with {decision['confidence']:.0%} confidence, learners' luck included"
        if decision["learners"] > 1
        else "Points of return by which each order is behind the best one, for this learner"
    )
    return Panel("costs", "What orders cost", f"{about}.", curves, "rank of the order")


def _tell_positions(body: Body, positions: Sequence[Sequence[Effect | None]], many: int) -> None:
    """Unit type by position, as a table with colours."""
    known = [cell for row in positions for cell in row if cell]
    if not known:
        return
    most = max(abs(cell["effect"]) for cell in known) or 1.0
    body.say(
        f"What a unit type's position is worth: mean of the orders that have it there minus the "
        f"mean of all {many}, in points; bold where it is surely not nothing."
    )
    heads = ["1, most urgent", *map(str, range(2, NUM_TYPES)), f"{NUM_TYPES}, least urgent"]
    rows: list[list[str | Cell]] = [
        [name, *(_heat(cell, most) for cell in row)]
        for name, row in zip(UNIT_TYPES, positions, strict=True)
    ]
    body.table(("unit type", *heads), rows, ("", *["number"] * NUM_TYPES))


def _heat(cell: Effect | None, most: float) -> Cell:
    if cell is None:
        return Cell("-")
    effect, reach = float(cell["effect"]), float(cell["reach"])
    colour = "c0" if effect >= 0 else "c1"
    share = round(STRONGEST * abs(effect) / most)
    words = minus(f"{effect:+.2f} ± {reach:.2f}")
    if abs(effect) > reach:
        words = f"<b>{words}</b>"
    shown = (
        f'<span class="heat" style="background:color-mix(in srgb, var(--{colour}) {share}%, '
        f'var(--page))">{words}</span>'
    )
    return Cell(shown, "number", is_markup=True)


def _tell_worst_case(body: Body, worst: WorstCase) -> None:
    ranked = sorted(worst["orders"], key=lambda order: order["cost"])
    if not ranked:
        body.say("No order can be followed against all attackers.")
        return
    with body.fold("Worst case: the largest cost of each order, whoever attacks"):
        edges = 0.0, max(order["high"] for order in ranked)
        body.table(
            ("order", "cost at worst", "bounds", "may be best", ""),
            [
                [
                    order["order"],
                    f"{order['cost']:.2f}",
                    f"{order['low']:.2f} to {order['high']:.2f}",
                    "yes" if order["may_be_best"] else "no",
                    interval_cell(order["cost"], order["low"], order["high"], edges),
                ]
                for order in ranked
            ],
            ("words", "number", "number", "", "picture"),
        )


def _tell_following(body: Body, orders: Sequence[Order]) -> None:
    """Compliance with the own order and with its reverse, for all of them."""
    known = [o for o in orders if o["compliance"] is not None]
    if not any(order["reverse_compliance"] is not None for order in known):
        return
    ranked = sorted(known, key=lambda order: (-(order["compliance"] or 0.0), order["workflow"]))
    at = np.arange(1.0, len(ranked) + 1)
    labels, nothing = tuple(o["order"] for o in ranked), np.full(len(ranked), np.nan)
    curves = [
        Curve(
            name,
            at,
            np.array([np.nan if share is None else share for share in shares], np.float64),
            nothing,
            nothing,
            is_points=True,
            labels=labels,
        )
        for name, shares in (
            ("own order", [o["compliance"] for o in ranked]),
            ("its reverse", [o["reverse_compliance"] for o in ranked]),
            ("own order, disputed fixes", [o["disputed_compliance"] for o in ranked]),
        )
    ]
    about = (
        "Share of all fixes that follow the order which a policy is told, and the share that would "
        "have followed the reverse of it. The two agree where red holds hosts of one type; the "
        "last points are of the fixes that only one of them allows."
    )
    panel = Panel(
        "following",
        "Whose order do policies follow?",
        about,
        curves,
        "rank of the order, by compliance",
        is_share=True,
    )
    body.chart(panel, is_wide=True)


def _tell_agreement(body: Body, orders: Sequence[Order]) -> None:
    """Does one half of the learners predict the other?"""
    good = [o for o in orders if o["can_be_followed"] and len(o["by_learner"]) > 1]
    if len(good) < 3 or len({len(o["by_learner"]) for o in good}) > 1:
        return
    table = np.array([o["by_learner"] for o in good], np.float64)
    table = table - table.mean(axis=0)
    half = table.shape[1] // 2
    first, second = table[:, :half].mean(axis=1), table[:, half:].mean(axis=1)
    spread = float(first.std() * second.std())
    alike = float(np.mean(first * second) / spread) if spread > 0 else 0.0
    nothing, labels = np.full(len(good), np.nan), tuple(o["order"] for o in good)
    ends = np.array([min(first.min(), second.min()), max(first.max(), second.max())])
    empty = np.full(2, np.nan)
    curves = [
        Curve("orders", first, second, nothing, nothing, is_points=True, labels=labels),
        Curve("equal", ends, ends, empty, empty),
    ]
    about = (
        f"Each order by the first {half} of {table.shape[1]} learners and by the others, as points "
        f"above the mean of all orders; correlation {alike:.2f}."
    )
    panel = Panel(
        "halves",
        "Predicted by some learners, measured by others",
        about,
        curves,
        "predicted, points above the mean",
    )
    body.charts_beside([panel])


def _against_none(gain: Mapping[str, Any] | None) -> str:
    return "-" if gain is None else with_interval(gain["mean"], gain["low"], gain["high"])


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
