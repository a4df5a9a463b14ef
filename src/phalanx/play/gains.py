"""By how much one defender is better than another: episode by episode, on the same dice."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.play.cells import Cell
from phalanx.statistics import interval


class Gain(NamedTuple):
    """How much better a defender is than another against one attacker, all horizons together."""

    policy: str
    over: str
    red_agent: str
    mean: float
    stderr: float
    low: float
    high: float
    episodes: int


def paired_gains(cells: Sequence[Cell]) -> tuple[Gain, ...]:
    """Of every later defender over the first: episode i of both has the same dice."""
    rows: dict[tuple[str, str, str | None], dict[int, npt.NDArray[np.float64]]] = {}
    for cell in cells:
        key = cell.policy, cell.red_agent, cell.workflow
        rows.setdefault(key, {})[cell.horizon] = cell.returns
    first = cells[0].policy if cells else ""
    gains = []
    for (policy, red_agent, workflow), own in rows.items():
        others = rows.get((first, red_agent, workflow), {})
        if policy != first and own.keys() == others.keys():  # else it was interrupted
            gained = np.asarray(sum(own.values()) - sum(others.values()))
            gains.append(Gain(policy, first, red_agent, **interval(gained)))
    return tuple(gains)
