"""Games of CAGE-2 that a policy plays: what it is told, what it sees, and a turn of one of them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.batch_turn import write_obs
from phalanx.cage2.rules.green import green_host
from phalanx.cage2.rules.mind import Minds, take_in
from phalanx.cage2.rules.network import (
    Network,
    Odds,
    dice,
    high_die,
    low_die,
    turn_dice,
)
from phalanx.cage2.rules.own_reward import own_reward
from phalanx.cage2.rules.scoring import Conduct, Orders, align, begin_conduct
from phalanx.cage2.rules.turn import play_turn
from phalanx.cage2.rules.world import Worlds, host_of, verb_of
from phalanx.compiled.bits import number
from phalanx.compiled.rule import kernel, rule
from phalanx.learn.cage2.choices import outputs_of
from phalanx.learn.compiled.distributions import Bools
from phalanx.learn.rollout import Floats


class Games(NamedTuple):
    """Networks of CAGE-2 that play side by side, and what each is to follow and is told."""

    worlds: Worlds  # the plans of their networks
    nets: npt.NDArray[np.void]  # records of networks [N]
    minds: Minds  # what blue keeps from turn to turn
    odds: Odds  # of attackers
    has_orders: bool  # looked at in every turn: the orders themselves would cost time
    orders: Orders  # of repair that are to be followed
    conducts: npt.NDArray[np.void]  # CONDUCT [N]
    actions: npt.NDArray[np.int64]  # [A] of each of the policy's outputs
    outputs: npt.NDArray[np.int64]  # [actions] of each action; NO_OUTPUT: it is never chosen
    effective: bool  # whether what a belief says is in vain is not chosen either
    condition: npt.NDArray[np.float32]  # [N, C] put after every observation of network i
    own_returns: npt.NDArray[np.float64]  # [N] so far, if there is a reward of the user's own


NO_OWN_RETURNS = np.zeros(0)


def games_of(
    batch: Batch,
    orders: Orders,
    conducts: npt.NDArray[np.void],
    useful: Bools,
    actions: npt.NDArray[np.int64],
    condition: Floats,
    own_returns: npt.NDArray[np.float64] = NO_OWN_RETURNS,
    effective: bool = False,
) -> Games:
    """Those of a batch.

    useful: bool [all actions], those that may be chosen. actions: [A] of the policy's outputs.
    effective: leave out what by the belief that is shown can change and show nothing in a turn.
    """
    return Games(
        batch.worlds,
        batch.nets,
        batch.minds,
        batch.odds,
        len(orders.allowed) > 0,
        orders,
        conducts,
        actions,
        outputs_of(actions, useful),
        effective,
        condition,
        own_returns,
    )


class Shaping(NamedTuple):
    """How the learner's reward differs from the game's. The game itself is never changed."""

    weights: npt.NDArray[np.float32]  # [horizon] of the reward in each turn of an episode
    restore_discount: float  # share of Restore's price that is given back
    scale: float
    gamma: float
    final_gamma: float  # in an episode's last turn: gamma if it was merely cut, 0 if it is over


@rule
def begin_following(net: Network, conduct: Conduct, orders: Orders, told: Floats) -> None:
    """Draw the order of a new episode, and tell the policy (in the last columns of `told`)."""
    begin_conduct(conduct, orders, high_die(dice(net, 0)))
    first = len(told) - orders.codes.shape[1]
    for c in range(orders.codes.shape[1]):
        told[first + c] = orders.codes[conduct.order, c]


@kernel
def begin_following_everywhere(games: Games) -> None:
    for i in range(len(games.nets)):
        begin_following(games.nets[i], games.conducts[i], games.orders, games.condition[i])


@rule
def write_input(games: Games, net: Network, i: int, row: Floats) -> None:
    """What the actor sees of network i: the observation, and after it what it was told."""
    write_obs(games.worlds[net.world], net, games.minds, i, row)
    write_told(games.condition[i], row)


@rule
def write_told(told: Floats, row: Floats) -> None:
    """What a policy is told, after what it sees."""
    first = len(row) - len(told)
    for c in range(len(told)):
        row[first + c] = told[c]


@rule
def play_one(games: Games, net: Network, i: int, action: int) -> tuple[int, float, float]:
    """One turn of network i with its own dice, and what blue makes of it: what it cost (tenths),
    its alignment reward, and what the user's own reward gives, if there is one.
    """
    counted = play_unseen(games, net, i, action)
    take_in(games.worlds[net.world], games.minds, i, action, net.seen)
    return counted


@rule
def play_unseen(games: Games, net: Network, i: int, action: int) -> tuple[int, float, float]:
    """The same, but what blue was shown is still to be taken in."""
    world, infected = games.worlds[net.world], number(net.sessions)
    first, second = turn_dice(net)
    target_die, exploit_die, detection_die = low_die(first), high_die(first), low_die(second)
    green = green_host(world, net)
    tenths, left, _decoy, move, target, _chosen = play_turn(
        world, net, action, target_die, exploit_die, detection_die, green
    )
    aligned = 0.0
    if games.has_orders:
        verb, host = verb_of(world, action), host_of(world, action)
        aligned = align(games.conducts[i], games.orders, infected, left, verb, host)
    own = 0.0
    if world.reward:
        own = own_reward(world, net, tenths, action, infected, move, target)
    return tenths, aligned, own
