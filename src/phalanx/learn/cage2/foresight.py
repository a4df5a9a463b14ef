"""The luck of the dice is taken out of what is learnt: a turn counts as it does on average.

An advantage is made of r + V', a turn's reward and the discounted value of what is seen next. Both
depend on red's dice, and nearly all of the noise of a gradient comes from there. But a belief knows
all that a turn may lead to, and how likely that is. So learners are given, in place of the reward,

    E[r + V' | belief, action] - V'

With it a turn counts as the mean over all outcomes does. Advantages stay the same on average,
whatever the critic says, but have lost the luck (Zinkevich et al., 2006: advantage sum estimators).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.batch_turn import write_obs
from phalanx.cage2.rules.belief import Beliefs, Prior, copy_ahead, turn_to
from phalanx.cage2.rules.foresight import Outcomes, believe_outcome, foresee, make_outcomes
from phalanx.cage2.rules.memory import Memories, remember
from phalanx.cage2.rules.mind import Minds, make_minds
from phalanx.cage2.rules.network import Network
from phalanx.cage2.rules.scenario import RESTORE
from phalanx.cage2.rules.surprise import differing_hosts
from phalanx.cage2.rules.world import num_hosts_of, verb_of
from phalanx.compiled.bits import number
from phalanx.compiled.rule import large_rule, records, rule
from phalanx.learn.cage2.blocks import BLOCK, list_block
from phalanx.learn.cage2.games import Games, Shaping, write_told
from phalanx.learn.compiled.mlp import Network as Layers
from phalanx.learn.compiled.sparse import Lists, forward_lists
from phalanx.learn.rollout import Floats, Rollout

Floats64 = npt.NDArray[np.float64]


class Foresight(NamedTuple):
    """What threads need to look at outcomes; a row for each."""

    outcomes: Outcomes
    later: Minds  # what blue will know after one of them


def make_foresight(batch: Batch) -> Foresight:
    """For the threads of a batch whose observations show a belief."""
    assert batch.minds.beliefs is not None
    threads, network = batch.team.num_threads, batch.minds.beliefs.states.dtype
    nobody = Prior(records(1, network), np.ones(1))  # episodes begin elsewhere
    hosts, features = num_hosts_of(batch.worlds), batch.minds.features
    later = make_minds(threads, batch.kind, nobody, hosts, features)
    return Foresight(make_outcomes(threads, network), later)


class Critic(NamedTuple):
    """A critic, and what may be seen next until there is enough of it to be valued at once."""

    layers: Layers
    first: Floats  # its first layer, as `copy_first` gives it
    lists: Lists
    work: Floats
    rows: Floats  # [BLOCK, D] what may be seen
    nothing: Floats  # [BLOCK, 0]
    owners: npt.NDArray[np.int64]  # [BLOCK] by which network of the block
    shares: Floats64  # [BLOCK] how much a value counts there


@rule
def critic_of(layers: Layers, first: Floats, lists: Lists, work: Floats, width: int) -> Critic:
    rows, nothing = np.zeros((BLOCK, width), np.float32), np.zeros((BLOCK, 0), np.float32)
    owners, shares = np.zeros(BLOCK, np.int64), np.zeros(BLOCK)
    return Critic(layers, first, lists, work, rows, nothing, owners, shares)


@rule
def foresee_turn_if_any(
    foresight: Foresight | None,
    games: Games,
    shaping: Shaping,
    critic: Critic,
    net: Network,
    i: int,
    action: int,
    waiting: int,
    thread: int,
    means: Floats64,
    k: int,
    next_row: Floats,
) -> tuple[int, bool]:
    """Begin means[k], what the turn that network i has just played is worth on average, E[r + V'];
    what may be seen after it waits for the critic. NaN where that is not known: without foresight,
    and after a surprise.

    Returns how many rows wait then, and whether what was seen is one of the outcomes, as it nearly
    always is: then blue's mind has taken it in, and what blue sees now stands in `next_row`, unless
    the episode is over.
    """
    means[k] = np.nan
    if foresight is not None:
        return foresee_turn(
            foresight,
            foresight.later.beliefs,
            foresight.later.memories,
            games.minds.beliefs,
            games.minds.memories,
            games,
            shaping,
            critic,
            net,
            i,
            action,
            waiting,
            thread,
            means,
            k,
            next_row,
        )
    return waiting, False


@rule
def foresee_turn(
    foresight: Foresight,
    later: Beliefs | None,
    later_memories: Memories | None,
    beliefs: Beliefs | None,
    memories: Memories | None,
    games: Games,
    shaping: Shaping,
    critic: Critic,
    net: Network,
    i: int,
    action: int,
    waiting: int,
    thread: int,
    means: Floats64,
    k: int,
    next_row: Floats,
) -> tuple[int, bool]:
    has_taken_in = False
    if (
        later is not None
        and later_memories is not None
        and beliefs is not None
        and memories is not None
    ):
        if beliefs.standing[i].surprises:
            return waiting, False
        outcomes, world = foresight.outcomes, games.worlds[net.world]
        verb, is_last = verb_of(world, action), net.turn >= net.horizon
        gamma = shaping.final_gamma if is_last else shaping.gamma
        worth = shaping.weights[net.turn - 1] * shaping.scale / 10.0  # of a tenth
        given_back = 0.0
        if verb == RESTORE:
            given_back = shaping.restore_discount * number(world.action_costs[RESTORE])
        count = foresee(world, beliefs, i, action, outcomes, thread)
        if count == 0:
            return waiting, False
        means[k], states = 0.0, 0
        for first in range(count):
            if outcomes.is_told[thread, first]:
                continue
            chance, costs = believe_outcome(
                world, outcomes, thread, count, first, verb, beliefs, i, later
            )
            means[k] += worth * (given_back * chance - costs)
            if gamma == 0:
                continue
            outcome, row = outcomes.states[thread, first], critic.rows[waiting]
            later_memories[thread] = memories[i]
            remember(world, later_memories[thread], action, outcome.seen)
            write_obs(world, outcome, foresight.later, thread, row)
            write_told(games.condition[i], row)
            if differing_hosts(outcome.seen, net.seen) == 0:
                states = copy_ahead(later, thread, beliefs, i)
                for c in range(len(row)):
                    next_row[c] = row[c]
            critic.owners[waiting], critic.shares[waiting] = k, chance * gamma
            waiting += 1
            if waiting == BLOCK:
                value_outcomes(critic, waiting, means)
                waiting = 0
        if states:
            turn_to(beliefs, i, states)
            remember(world, memories[i], action, net.seen)
            has_taken_in = True
    return waiting, has_taken_in


@large_rule
def value_outcomes(critic: Critic, waiting: int, means: Floats64) -> None:
    """Let the critic value the rows that wait."""
    list_block(critic.rows[:waiting], critic.nothing[:waiting], critic.lists)
    ends = critic.lists.ends[:waiting]
    values = forward_lists(critic.layers, critic.first, critic.lists, ends, critic.work)
    for r in range(waiting):
        means[critic.owners[r]] += critic.shares[r] * values[r, 0]


@rule
def value_outcomes_if_any(
    foresight: Foresight | None, critic: Critic, waiting: int, means: Floats64
) -> None:
    if foresight is not None:
        value_outcomes(critic, waiting, means)


@rule
def take_out_luck(rollout: Rollout, means: Floats64, start: int, stop: int) -> None:
    """Where means are known, they stand in place of rewards: leave what is not the value of what
    was seen next. means: [T, BLOCK].
    """
    for t in range(len(means)):
        for i in range(start, stop):
            if not np.isnan(means[t, i - start]):
                rollout.rewards[t, i] -= rollout.discounts[t, i] * rollout.next_values[t, i]
