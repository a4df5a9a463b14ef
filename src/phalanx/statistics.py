"""Means of a few numbers, and how sure they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from phalanx.arrays import Array

CONFIDENCE = 0.95
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Numbers = Sequence[float] | Array
Interval = dict[str, Any]  # numbers; all but mean and episodes are None if there is only one


def interval(values: Numbers) -> Interval:
    """Mean of independent numbers, its standard error and 95 % confidence interval.

    The interval is Student's: mean ± t₀.₉₇₅(n - 1) · s / √n.
    """
    mean, count = float(np.mean(values)), len(values)
    stderr = low = high = None
    if count > 1:
        stderr = float(np.std(values, ddof=1)) / count**0.5
        reach = half_width(stderr, count)
        low, high = mean - reach, mean + reach
    return {"mean": mean, "stderr": stderr, "low": low, "high": high, "episodes": count}


def half_width(stderr: float, count: int) -> float:
    """How far the 95 % interval of a mean of `count` numbers reaches to either side.

    With few numbers their spread is itself a guess: two reach 12.7 standard errors, ten 2.26, and
    very many 1.96.
    """
    return float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * stderr


def quantiles(values: Numbers) -> dict[str, float]:
    return {str(q): float(np.quantile(values, q)) for q in QUANTILES}
