"""What a search found, and what its pictures count."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from phalanx.cage2.workflow import NUM_ORDERS, NUM_TYPES, ORDERS
from phalanx.errors import RunError
from phalanx.files import Facts
from phalanx.search.surrogate import Surrogate, Visit

Floats = npt.NDArray[np.float64]
SURE = 2.0  # standard deviations of a belief that its interval reaches to either side


@dataclass(frozen=True)
class Found:
    """What summary.json tells of a search."""

    visits: list[Visit]
    config: Facts
    winner: int | None
    confirmed: list[Facts]

    @cached_property
    def beliefs(self) -> Surrogate:
        c = self.config
        return Surrogate(self.visits, c["gp_beta"], c["compliance_threshold"], c["min_fixes"])


def read_search(folder: Path) -> Found:
    try:
        facts = json.loads((folder / "summary.json").read_text())
        visits = [Visit(**visit) for visit in facts["visits"]]
        return Found(visits, facts["config"], facts["winner"], facts["confirmed"])
    except (OSError, ValueError, KeyError, TypeError):
        raise RunError(
            f"{folder} holds no search to draw; give a folder of phalanx search"
        ) from None


def tried_best_first(visits: Sequence[Visit]) -> list[Visit]:
    """The last visit of each order, the highest return first."""
    last = {visit.workflow: visit for visit in visits}
    return sorted(last.values(), key=lambda visit: (-visit.measured_return, visit.workflow))


def were_judged_at_once(visits: Sequence[Visit]) -> bool:
    """Whether all orders were judged after all training: then none came before another."""
    return len(visits) == NUM_ORDERS and len({visit.total_episodes for visit in visits}) == 1


def best_so_far(visits: Sequence[Visit]) -> Floats:
    """[n]: the highest return among those that passed the gate up to each visit; NaN: none did."""
    passed = [visit.measured_return if visit.passed else -math.inf for visit in visits]
    best = np.maximum.accumulate(np.array(passed, np.float64))
    return np.where(np.isfinite(best), best, np.nan)


def episodes_so_far(visits: Sequence[Visit]) -> list[int]:
    """[n]: episodes played up to each visit; each shard of a search counts its own."""
    totals: dict[str, int] = {}
    sums = []
    for visit in visits:
        totals[visit.shard] = visit.total_episodes
        sums.append(sum(totals.values()))
    return sums


def mean_by_position(means: Floats) -> Floats:
    """[type, position]: the mean over the orders that have the type there; means: [120]."""
    has = ORDERS[:, None, :] == np.arange(NUM_TYPES)[:, None]  # [number, type, position]
    return np.tensordot(means, has, 1) / has.sum(axis=0)


def with_prediction(visits: Sequence[Visit]) -> list[Visit]:
    """Visits whose return was predicted from others.

    Until an order of its shard passed the gate, the model holds no return to predict from.
    """
    able: set[str] = set()
    predicted = []
    for visit in visits:
        if visit.shard in able and visit.posterior_mean is not None:
            predicted.append(visit)
        if visit.passed:
            able.add(visit.shard)
    return predicted


def is_inside(visit: Visit) -> bool:
    """Whether a return was measured where it was predicted: |y - mean| ≤ 2 √(std² + stderr²)."""
    assert visit.posterior_mean is not None
    assert visit.posterior_std is not None
    error = math.hypot(visit.posterior_std, visit.stderr)
    return abs(visit.measured_return - visit.posterior_mean) <= SURE * error


def count_inside(visits: Sequence[Visit]) -> tuple[int, int]:
    """How many were measured where they were predicted, and of how many.

    Only orders that passed the gate count: the prediction is of a policy that follows its order.
    """
    inside = [is_inside(visit) for visit in with_prediction(visits) if visit.passed]
    return sum(inside), len(inside)
