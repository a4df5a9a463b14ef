"""A decision in sentences, and what it says of one order."""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from phalanx.cage2.workflow import NUM_TYPES, order_name
from phalanx.errors import RunError
from phalanx.files import read_plain
from phalanx.search.decided import Answer, Order, Side

LARGEST_DECISION = 1 << 24  # bytes; 120 orders and three attackers take a fiftieth of that
YES_OR_NO = ("tried", "can_be_followed", "may_be_best")
OTHER_ORDERS = ("reverse_compliance", "disputed_fixes", "disputed_compliance")


def in_words(decision: Answer) -> list[str]:
    """What a team should know, most important first."""
    said = []
    for name, side in decision["against"].items():
        said += _of_side(name, side, decision)
    worst = decision["worst_case"]
    if worst and worst["best"] is not None:
        best = next(one for one in worst["orders"] if one["workflow"] == worst["best"])
        many = sum(one["may_be_best"] for one in worst["orders"])
        said.append(
            f"Whoever attacks: {best['order']} costs least in the worst case, at most "
            f"{best['high']:.2f} points; {count(many, 'order')} may be best by that"
            f"{_or_nearly(decision)}."
        )
    if decision["learners"] == 1:
        said.append(
            "One learner was trained: how much of this is the luck of its training is not known, "
            "and not in the bounds; give --learners 5."
        )
    return said


def _of_side(name: str, side: Side, decision: Answer) -> list[str]:
    sure = f"{decision['confidence']:.0%} confidence for all orders at once"
    good = [order for order in side["orders"] if order["can_be_followed"]]
    if not good:
        return [f"Against {name} no order that was tried can be followed."]
    best = next(order for order in good if order["workflow"] == side["best"])
    may = [order for order in good if order["may_be_best"]]
    said = []
    if len(good) == 1:
        said.append(f"Against {name} {best['order']} is the only order that can be followed.")
    elif len(may) == len(good):
        most = max(order["high"] for order in good)
        said.append(
            f"Against {name} no order that can be followed is better than another by more than "
            f"{most:.2f} points ({sure}): choose by other reasons. {best['order']} is ahead."
        )
    else:
        rest = [order["cost"] for order in good if not order["may_be_best"]]
        low, high = f"{min(rest):.2f}", f"{max(rest):.2f}"
        said.append(
            f"Against {name} {count(len(may), 'order')} of {len(good)} may be the best one"
            f"{_or_nearly(decision)} ({sure}), {best['order']} before all; "
            + ("the other costs " if len(rest) == 1 else "the others cost ")
            + (f"{low} points." if low == high else f"{low} to {high} points.")
        )
        if len(may) > 1:
            most = max(order["high"] for order in may)
            said.append(f"None of those that may be best costs more than {most:.2f} points.")
    failed = [order for order in side["orders"] if not order["can_be_followed"]]
    if failed:
        why = " or ".join(f"{first} before {then}" for first, then in side["demands"])
        said.append(
            f"{count(len(failed), 'order')} cannot be followed"
            + (f": those that have {why}." if why else ".")
        )
    untried = sum(not order["tried"] for order in good)
    if untried:
        said.append(f"{count(untried, 'order')} of these were not tried: a model tells of them.")
    said += _where_it_matters(good)
    gain = best["minus_no_order"]
    if gain is not None:
        said.append(f"{best['order']} minus the same learners without any order: {_within(gain)}.")
    return said


def _where_it_matters(orders: Sequence[Order]) -> list[str]:
    """Whether policies follow their orders where these make a difference."""
    known = [order for order in orders if order["disputed_fixes"] is not None]
    if not known:
        return []
    fixes = sum(order["disputed_fixes"] or 0.0 for order in known)
    followed = sum(
        (order["disputed_fixes"] or 0.0) * (order["disputed_compliance"] or 0.0) for order in known
    )
    if not fixes:
        return [
            "Red never held two types of hosts when blue repaired one: each order was followed."
        ]
    return [
        f"An order and its reverse disagree on {fixes / len(known):.2f} fixes an episode; of these "
        f"{followed / fixes:.0%} followed the order that the policy was told."
    ]


def asked(decision: Answer, number: int) -> list[str]:
    """What one order costs, against each attacker."""
    said = []
    for name, side in decision["against"].items():
        own = next((order for order in side["orders"] if order["workflow"] == number), None)
        if own is None or (own["cost"] is None and not own["tried"]):
            said.append(f"{order_name(number)}: nothing is known of it against {name}.")
            continue
        followed = "" if own["compliance"] is None else f", compliance {own['compliance']:.1%}"
        if own["cost"] is None:
            said.append(
                f"{own['order']} cannot be followed against {name}{followed}: policies that were "
                f"told it had a return of {own['return']:.2f}."
            )
            continue
        verdict = "it is not the best order"
        if own["may_be_best"] and own["low"] == 0:
            verdict = "it may be the best order"
        elif own["may_be_best"]:
            verdict += f", but may be within {decision['margin']:g} points of it"
        said.append(
            f"{own['order']} costs {own['cost']:.2f} points against the best for {name} "
            f"({own['low']:.2f} to {own['high']:.2f}): {verdict}{followed}."
        )
        if own["minus_no_order"] is not None:
            said.append(f"Against no order at all: {_within(own['minus_no_order'])}.")
    return said


def _or_nearly(decision: Answer) -> str:
    """What else counts as the best order."""
    return f", or within {decision['margin']:g} points of it" if decision["margin"] else ""


def count(many: int, what: str) -> str:
    """`1 order`, `3 orders`."""
    return f"{many} {what}" if many == 1 else f"{many} {what}s"


def _within(gain: Mapping[str, Any]) -> str:
    """`+0.12 points (-0.40 to +0.64)`."""
    if gain["low"] is None:
        return f"{gain['mean']:+.2f} points"
    return f"{gain['mean']:+.2f} points ({gain['low']:+.2f} to {gain['high']:+.2f})"


# --- from a file ----------------------------------------------------------------------------------


def read_decision(folder: Path) -> Answer:
    """decision.json of a search."""
    path = folder / "decision.json"
    try:
        decision: Answer = json.loads(read_plain(path, LARGEST_DECISION))
        decision.setdefault("margin", 0.0)
        for side in decision["against"].values():
            for order in side["orders"]:
                order.setdefault("disputed_fixes", None)
                order.setdefault("disputed_compliance", None)
        _check(decision)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise RunError(
            f"{folder} holds no decision; let phalanx search --resume {folder} come to its end"
        ) from None
    return decision


def _check(decision: Any) -> None:
    """Whoever may have written it: what sentences and pictures are made of is of its kind."""
    _numbers(decision, ("confidence", "margin", "learners"))
    sides = decision["against"]
    if not isinstance(sides, dict) or not sides or not all(isinstance(n, str) for n in sides):
        raise TypeError
    tables = [side["orders"] for side in sides.values()]
    worst = decision["worst_case"]
    if worst is not None:
        tables.append(worst["orders"])
        if worst["best"] is not None:
            _ = [order["workflow"] for order in worst["orders"]].index(worst["best"])
        if any(type(order["may_be_best"]) is not bool for order in worst["orders"]):
            raise TypeError
    for side in sides.values():
        known = [order["workflow"] for order in side["orders"] if order["can_be_followed"] is True]
        if (side["best"] in known) != bool(known):
            raise ValueError
        if len(side["positions"]) != NUM_TYPES:
            raise ValueError
        for row in side["positions"]:
            if len(row) != NUM_TYPES:
                raise ValueError
            for cell in row:
                if cell is not None:
                    _numbers(cell, ("effect", "reach"))
        for first, then in side["demands"]:
            if not isinstance(first, str) or not isinstance(then, str):
                raise TypeError
        for order in side["orders"]:
            if any(type(order[name]) is not bool for name in YES_OR_NO):
                raise TypeError
            if order["can_be_followed"]:
                _numbers(order, ("return",))
            _numbers(order, ("return", "compliance", *OTHER_ORDERS), or_none=True)
            for value in order["by_learner"]:
                _numbers({"value": value}, ("value",))
            if order["minus_no_order"] is not None:
                _numbers(order["minus_no_order"], ("mean",))
                _numbers(order["minus_no_order"], ("low", "high"), or_none=True)
    for table in tables:
        for order in table:
            if order["order"] != order_name(order["workflow"]):
                raise ValueError
            is_open = order.get("can_be_followed") is False  # the worst case knows no others
            _numbers(order, ("cost", "low", "high"), or_none=is_open)


def _numbers(found: Any, names: Sequence[str], or_none: bool = False) -> None:
    for name in names:
        value = found[name]
        if value is None and or_none:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise TypeError
