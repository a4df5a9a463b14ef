"""Networks are played in blocks: what those of a block show, as lists of what is not zero."""

import numpy as np

from phalanx.compiled.rule import rule
from phalanx.learn.compiled.sparse import Lists, list_row
from phalanx.learn.rollout import Floats

BLOCK = 128  # networks that are played together


@rule
def empty_block(inputs: int) -> Lists:
    """Room for what the networks of a block show."""
    none, numbers = np.zeros(BLOCK, np.int64), BLOCK * inputs
    columns, values = np.empty(numbers, np.int32), np.empty(numbers, np.float32)
    return Lists(none, none.copy(), none.copy(), columns, values)


@rule
def list_block(obs: Floats, truth: Floats, lists: Lists) -> None:
    """What rows show; rows that are missing in a block show nothing."""
    at = 0
    for k in range(len(obs)):
        at = list_row(obs[k], truth[k], lists, k, at)
    for k in range(len(obs), BLOCK):
        lists.starts[k] = lists.middles[k] = lists.ends[k] = 0
