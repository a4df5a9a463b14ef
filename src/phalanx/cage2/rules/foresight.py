"""All that a turn may lead to: what blue may be shown, how likely that is, what it believes then.

    count = foresee(world, beliefs, i, action, outcomes, row)     # states that are possible then
    for k in range(count):
        if not outcomes.is_told[row, k]:                          # that blue cannot tell apart
            chance, cost = believe_outcome(world, outcomes, row, count, k, verb, beliefs, i, later)

Then row `row` of the beliefs `later` is what blue will believe if it is shown what state k shows.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.rules.belief import (
    ANYTHING,
    CAPACITY,
    STANDING,
    Beliefs,
    Found,
    Words,
    copy_state,
    play_all,
    words_of,
)
from phalanx.cage2.rules.network import Networks
from phalanx.cage2.rules.scoring import cost
from phalanx.cage2.rules.surprise import differing_hosts
from phalanx.cage2.rules.world import World
from phalanx.compiled.rule import large_rule, records

MOST_OUTCOMES = 256  # states after a turn; the challenge's attackers leave some thirty


class Outcomes(NamedTuple):
    """Room for the states that a turn may lead to; a row for each thread."""

    states: Networks  # [threads, MOST_OUTCOMES + 2]
    words: Words  # the same memory, [threads, MOST_OUTCOMES + 2, words]
    weights: npt.NDArray[np.float64]  # [threads, MOST_OUTCOMES] how likely each is
    digests: Words  # [threads, MOST_OUTCOMES]
    standing: npt.NDArray[np.void]  # STANDING [threads]
    is_told: npt.NDArray[np.bool_]  # [threads, MOST_OUTCOMES] in an outcome already


def make_outcomes(threads: int, network: np.dtype[np.void]) -> Outcomes:
    states = records((threads, MOST_OUTCOMES + 2), network)
    weights, digests = np.zeros((2, threads, MOST_OUTCOMES))
    is_told = np.zeros(weights.shape, np.bool_)
    return Outcomes(
        states,
        words_of(states),
        weights,
        digests.view(np.uint64),
        records(threads, STANDING),
        is_told,
    )


@large_rule
def foresee(
    world: World, beliefs: Beliefs, i: int, action: int, outcomes: Outcomes, row: int
) -> int:
    """Play all that can happen after an action in network i; how many states are possible then.

    0 if there are more than can be held, as green's scans may bring about.
    """
    states, standing = outcomes.states[row], outcomes.standing[row]
    standing.dropped = 0
    room = Found(
        states, outcomes.words[row], outcomes.weights[row], outcomes.digests[row], standing
    )
    count = play_all(world, beliefs, i, action, states[0].seen, ANYTHING, room)
    for k in range(count):
        outcomes.is_told[row, k] = False
    return 0 if outcomes.standing[row].dropped else count


@large_rule
def believe_outcome(
    world: World,
    outcomes: Outcomes,
    row: int,
    count: int,
    first: int,
    verb: int,
    beliefs: Beliefs,
    i: int,
    later: Beliefs,
) -> tuple[float, float]:
    """What blue will believe if it is shown what state `first` shows: all that look the same.

    Returns the chance of that, and that chance times the cost (tenths) that is expected then.
    """
    states, weights = outcomes.states[row], outcomes.weights[row]
    chance, costs, kept = 0.0, 0.0, 0
    for k in range(first, count):
        if outcomes.is_told[row, k] or differing_hosts(states[k].seen, states[first].seen):
            continue
        outcomes.is_told[row, k] = True
        chance += weights[k]
        costs += weights[k] * cost(world, states[k], verb)
        if kept < CAPACITY:
            copy_state(later.states, outcomes.words[row, k], later.words[row, 0, kept])
            later.weights[row, 0, kept] = weights[k]
            kept += 1
    for k in range(kept):
        later.weights[row, 0, k] /= chance
    later.standing[row] = beliefs.standing[i]
    later.standing[row].count = kept
    later.standing[row].side = 0
    return chance, costs
