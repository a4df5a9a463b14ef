"""The answer of a search: for each attacker which orders may be best, and what the others cost."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from phalanx.cage2.settings import red_agent_weights
from phalanx.cage2.workflow import (
    NUM_ORDERS,
    NUM_TYPES,
    ORDERS,
    POSITIONS,
    UNIT_TYPES,
    order_name,
)
from phalanx.search.config import SearchConfig
from phalanx.search.decided import (
    Answer,
    AtWorst,
    Cost,
    Effect,
    Measured,
    Named,
    NoCost,
    Order,
    Side,
    WorstCase,
)
from phalanx.search.decision import Decision, Estimate, decide, quantile
from phalanx.search.measured import Row, disputed, figures_of, reverse_compliance
from phalanx.search.surrogate import Surrogate, Visit, returns_of
from phalanx.statistics import CONFIDENCE, interval
from phalanx.training.cage2_extension import passes_gate

MIXTURE = "mixture"
Known = tuple[npt.NDArray[np.int64], Estimate]  # some orders, and what is known of their returns
NO_COST: NoCost = {"may_be_best": False, "cost": None, "low": None, "high": None}
LIKELY = 0.5  # chance to pass the gate from which an order that was not tried counts


def answer(config: SearchConfig, visits: Sequence[Visit], rows: Sequence[Row]) -> Answer:
    """What decision.json holds."""
    weights = red_agent_weights(config.red_agent)
    each = {name: {name: 1.0} for name in weights if len(weights) > 1}
    sides = each | {MIXTURE if each else next(iter(weights)): weights}
    against, known = {}, {}
    for name, parts in sides.items():
        mine = _visits_against(config, visits, rows, parts)
        known[name] = known_of(config, mine)
        against[name] = _against(known[name], mine, rows, parts, config.margin)
    return {
        "confidence": CONFIDENCE,
        "margin": config.margin,
        "learners": int(config.learners),
        "rules": config.rules,
        "horizon": config.horizon,
        "weights": dict(weights),
        "exhaustive": config.exhaustive,
        "against": against,
        "worst_case": _worst_case([known[name] for name in each], config.margin),
    }


def _visits_against(
    config: SearchConfig, visits: Sequence[Visit], rows: Sequence[Row], weights: Mapping[str, float]
) -> list[Visit]:
    """The same visits, with what was measured against these attackers only."""
    if weights.keys() == red_agent_weights(config.red_agent).keys():
        return list(visits)
    found = []
    for visit in visits:
        mine = [r for r in rows if r.workflow == visit.workflow and r.attacker in weights]
        if mine:
            figures = figures_of(mine, weights)
            found.append(replace(visit, **figures, passed=passes_gate(figures, config)))
    return found


def known_of(config: SearchConfig, visits: Sequence[Visit]) -> Known:
    """The orders that can be followed, as far as is known, and what is known of their returns.

    If all were measured, the measurements speak for themselves. Else a Gaussian process tells of
    those that were not tried, too.
    """
    good = [visit for visit in visits if visit.passed]
    if len({visit.workflow for visit in visits}) == NUM_ORDERS or not good:
        return returns_of(good)
    c = config
    surrogate = Surrogate(visits, c.gp_beta, c.compliance_threshold, c.min_fixes)
    tried = {visit.workflow: visit.passed for visit in visits}
    assert surrogate.passing is not None
    numbers = np.array(
        [
            number
            for number in c.candidates()
            if tried.get(number, surrogate.passing[number] >= LIKELY)
        ],
        np.int64,
    )
    mean, covariance = surrogate.returns.mean, surrogate.returns.covariance
    return numbers, Estimate(mean, covariance, surrogate.freedom, surrogate.behind).of(numbers)


def _against(
    known: Known,
    visits: Sequence[Visit],
    rows: Sequence[Row],
    weights: Mapping[str, float],
    margin: float,
) -> Side:
    """The answer for one attacker, or for a mixture."""
    numbers, estimate = known
    decision = decide(estimate, margin=margin) if len(numbers) else None
    at = {int(number): k for k, number in enumerate(numbers)}
    last = {visit.workflow: visit for visit in visits}
    mine = [row for row in rows if row.attacker in weights]
    free = _by_learner([row for row in mine if row.workflow is None], weights)
    orders: list[Order] = []
    for number in sorted({*at, *last}):
        visit, k = last.get(number), at.get(number)
        own = [row for row in mine if row.workflow == number]
        named: Named = {
            "workflow": number,
            "order": order_name(number),
            "tried": visit is not None,
        }
        fixes, followed = disputed(own, weights)
        measured: Measured = {
            "compliance": visit.compliance if visit else None,
            "reverse_compliance": reverse_compliance(own, weights),
            "disputed_fixes": fixes,
            "disputed_compliance": followed,
            "fixes_per_episode": visit.fixes_per_episode if visit else None,
            "by_learner": visit.means if visit else [],
            "minus_no_order": _minus(_by_learner(own, weights), free),
        }
        if decision is None or k is None:
            mean = visit.measured_return if visit else None
            orders.append(
                {**named, "can_be_followed": False, **NO_COST, "return": mean, **measured}
            )
        else:
            cost, mean = _cost(decision, k), float(estimate.mean[k])
            orders.append({**named, "can_be_followed": True, **cost, "return": mean, **measured})
    return {
        "best": None if decision is None else int(numbers[decision.best]),
        "orders": orders,
        "positions": _positions(numbers, estimate),
        "no_order": None if not free else interval(list(free.values())),
        "demands": _demands({number for number, visit in last.items() if not visit.passed}, last),
    }


def _cost(decision: Decision, k: int) -> Cost:
    return {
        "may_be_best": bool(decision.may_be_best[k]),
        "cost": float(decision.cost[k]),
        "low": float(decision.low[k]),
        "high": float(decision.high[k]),
    }


def _by_learner(rows: Sequence[Row], weights: Mapping[str, float]) -> dict[int, float]:
    """The mean return by each learner."""
    found: dict[int, float] = {}
    for row in rows:
        found[row.learner] = found.get(row.learner, 0.0) + weights[row.attacker] * row.mean
    return found


def _minus(own: Mapping[int, float], free: Mapping[int, float]) -> Mapping[str, Any] | None:
    """An order minus no order, a pair of learners with the same dice for each seed."""
    both = sorted(own.keys() & free.keys())
    return interval([own[k] - free[k] for k in both]) if both else None


def _positions(numbers: npt.NDArray[np.int64], estimate: Estimate) -> list[list[Effect | None]]:
    """[type][position]: how far orders that have the type there are above the mean, and ±.

    Only orders that can be followed count; None where no such order has the type there.
    """
    cells: list[list[Effect | None]] = [[None] * NUM_TYPES for _type in range(NUM_TYPES)]
    if len(numbers) < 2:
        return cells
    has = ORDERS[numbers][:, None, :] == np.arange(NUM_TYPES)[:, None]  # [order, type, position]
    places = [(t, p) for t, p in np.ndindex(NUM_TYPES, NUM_TYPES) if has[:, t, p].sum() > 0]
    weights = np.array([has[:, t, p] / has[:, t, p].sum() - 1 / len(numbers) for t, p in places])
    effects, reaches = weights @ estimate.mean, quantile(estimate, weights)
    for (t, p), effect, reach in zip(places, effects, reaches, strict=True):
        cells[t][p] = {"effect": float(effect), "reach": float(reach)}
    return cells


def _demands(failed: set[int], tried: Collection[int]) -> list[list[str]]:
    """Pairs (a, b) such that orders failed the gate just if they have a before b."""
    found = []
    for a, b in permutations(range(NUM_TYPES), 2):
        before = {number for number in tried if POSITIONS[number, a] < POSITIONS[number, b]}
        if failed and len(failed ^ before) <= 0.05 * len(tried):
            found.append([UNIT_TYPES[a], UNIT_TYPES[b]])
    return found


def _worst_case(known: Sequence[Known], margin: float) -> WorstCase | None:
    """What each order costs whoever attacks: the largest of its costs against each of them.

    With n attackers each has its bounds with 1 - 0.05/n, so that all hold at once with 95 %.
    """
    if not known:
        return None
    sure = 1 - (1 - CONFIDENCE) / len(known)
    tables = [
        {int(number): _cost(decision, k) for k, number in enumerate(numbers)}
        for numbers, estimate in known
        if len(numbers) and (decision := decide(estimate, sure))
    ]
    common = sorted(set.intersection(*map(set, tables))) if len(tables) == len(known) else []
    found: list[AtWorst] = [
        {
            "workflow": number,
            "order": order_name(number),
            "cost": max(table[number]["cost"] for table in tables),
            "low": max(table[number]["low"] for table in tables),
            "high": max(table[number]["high"] for table in tables),
            "may_be_best": False,  # until all are known
        }
        for number in common
    ]
    least = min((one["high"] for one in found), default=0.0)
    for one in found:
        one["may_be_best"] = one["low"] <= least + margin
    best = min(found, key=lambda one: (one["cost"], one["workflow"]), default=None)
    return {"best": best["workflow"] if best else None, "orders": found}
