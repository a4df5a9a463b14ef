"""What a turn costs."""

import pytest

from phalanx.cage2.rules.network import ACTIVE
from phalanx.cage2.rules.scenario import HOSTS
from tests.cage2.game import Game

PRICES = dict(zip(HOSTS, (1, 10, 10, 10, 1, 1, 1, 10, 0, 1, 1, 1, 1), strict=True))


@pytest.mark.parametrize(("host", "price"), PRICES.items())
def test_each_host_has_its_price_while_red_is_root(host: str, price: int) -> None:
    assert Game(red="sleep").session(host, "root").turn().cost == price


@pytest.mark.parametrize("kind", ["removable", "stuck"])
def test_user_level_sessions_cost_nothing(kind: str) -> None:
    assert Game(red="sleep").session("Enterprise1", kind).turn().cost == 0


def test_the_stopped_service_costs_ten() -> None:
    assert Game(red="sleep").having(service=ACTIVE).turn().cost == 100


def test_costs_add_up_and_are_charged_after_red_has_moved() -> None:
    game = Game().session("Enterprise1", "root").session("User1", "root").session("User2", "stuck")
    game.red_will("escalate", "User2").turn("Restore User4")
    assert game.cost == 10 + 1 + 1 + 10
    assert game.tenths == -22


def test_a_host_restored_in_this_turn_is_not_charged() -> None:
    game = Game(red="sleep").session("Enterprise1", "root").turn("Restore Enterprise1")
    assert game.cost == 10
