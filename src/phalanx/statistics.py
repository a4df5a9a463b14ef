"""Means of a few numbers, and how sure they are."""

from typing import Any

import numpy as np

HALF_WIDTH = 1.96  # of a 95 % interval, in standard errors


def interval(returns: Any) -> dict[str, Any]:
    """Mean of independent returns, its standard error and 95 % confidence interval."""
    mean, count = float(np.mean(returns)), len(returns)
    if count < 2:
        return {"mean": mean, "stderr": None, "low": None, "high": None, "episodes": count}
    stderr = float(np.std(returns, ddof=1)) / count**0.5
    low, high = mean - HALF_WIDTH * stderr, mean + HALF_WIDTH * stderr
    return {"mean": mean, "stderr": stderr, "low": low, "high": high, "episodes": count}
