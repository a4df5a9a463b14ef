"""Play a trained policy with all 120 orders of repair on the same dice: shared where it can be."""

from dataclasses import replace

import numpy as np

from phalanx.cage2.workflow import JUDGED, NUM_ORDERS, in_any_order, order_name, reverse_of
from phalanx.learn.cage2.all_orders import PlayedOrders, play_all_orders
from phalanx.play.episodes import begin_episodes, play_episodes
from phalanx.play.evaluate_config import Games
from phalanx.play.players import Player
from phalanx.play.trained import TrainedDefender

BY_ITSELF, BY_REVERSE, IN_ANY_ORDER = range(3)  # how fixes are judged
AT_ONCE = 512  # episodes of one compiled call: between two of them a search can be stopped


def play_with_all_orders(
    games: Games, player: Player, red_agent: str, horizon: int
) -> PlayedOrders:
    """[episodes, 120] what `play_episodes` gives for each order.

    Fixes are judged by the order itself, by its reverse, and by whether every order allows them.
    """
    policy = player.policy
    is_compiled = policy is not None and policy.policy is not None and policy.is_told
    if is_compiled and games.are_compiled and games.simulator == "phalanx":
        return _shared(games, player, red_agent, horizon)
    return _one_by_one(games, player, red_agent, horizon)


def _shared(games: Games, player: Player, red_agent: str, horizon: int) -> PlayedOrders:
    rule = games.compliance_rule
    own, reverse = JUDGED[rule], JUDGED[rule][[reverse_of(number) for number in range(NUM_ORDERS)]]
    judged = np.stack([own, reverse, JUDGED[in_any_order(rule)]])
    some: list[PlayedOrders] = []
    for begun in begin_episodes(games, replace(player, at_once=AT_ONCE), red_agent, (horizon,)):
        defender = begun.defender
        assert isinstance(defender, TrainedDefender)
        assert defender.policy is not None
        told = defender.told(NUM_ORDERS, np.arange(NUM_ORDERS))
        effective = defender.effective_in is not None
        some.append(
            play_all_orders(
                begun.batch, defender.policy, defender.useful, told, judged, horizon, effective
            )
        )
    returns, fixes, compliant = zip(*some, strict=True)
    return PlayedOrders(
        np.concatenate(returns), np.concatenate(fixes), np.concatenate(compliant, axis=1)
    )


def _one_by_one(games: Games, player: Player, red_agent: str, horizon: int) -> PlayedOrders:
    """Where games cannot be shared: other networks than the built-in ones, or another simulator."""
    shape, rule = (games.episodes, NUM_ORDERS), games.compliance_rule
    found = PlayedOrders(
        np.zeros(shape), np.zeros(shape, np.int64), np.zeros((3, *shape), np.int64)
    )
    for number in range(NUM_ORDERS):
        ways = {
            BY_ITSELF: games,
            BY_REVERSE: games._replace(judged_by=order_name(reverse_of(number))),
            IN_ANY_ORDER: games._replace(compliance_rule=in_any_order(rule)),
        }
        for way, judged in ways.items():
            told = np.full(games.episodes, number)
            played = play_episodes(judged, player, red_agent, (horizon,), told)
            found.returns[:, number] = played.returns[:, 0]
            found.fixes[:, number] = played.fixes[:, 0]
            found.compliant[way, :, number] = played.compliant[:, 0]
    return found
