"""A person's score is set beside games on the same dice, and means of the same cell."""

import pytest

from phalanx.play.trained import load_defender
from phalanx.ui.beside import EPISODES, beside, published
from phalanx.ui.live_game import GameSettings, LiveGame


def game_of(**settings: object) -> LiveGame:
    return LiveGame(GameSettings(**settings))  # type: ignore[arg-type]


def test_published_scores_are_those_of_the_cell() -> None:
    found = published(game_of(red_agent="meander", horizon=50))
    assert [one["return"] for one in found] == [-8.69, -10.33, -10.13]
    assert published(game_of(red_agent="meander", horizon=51)) == []
    assert published(game_of(red_agent="meander", horizon=50, rules="2.1-final")) == []
    assert published(game_of(red_agent="coin", horizon=50)) == []
    assert published(game_of(red_agent="b_line=0.5,meander=0.5", horizon=50)) == []


def test_who_plays_as_the_champion_gets_its_return_on_the_same_dice() -> None:
    from phalanx.ui.advice import Adviser

    game = game_of(red_agent="b_line", horizon=30, seed=9)
    adviser, heard = Adviser(game), list[float]()
    while not game.is_over:
        game.play(adviser.likely()[0][0])
    found = beside(game, lambda share, _note: heard.append(share))
    assert found["same_dice"] == game.total
    assert found["episodes"] == EPISODES
    assert found["low"] <= found["mean"] <= found["high"]
    assert -4.5 < found["mean"] < -2  # what docs/champion.md says, roughly
    assert 0 <= found["better_than"] < 1
    assert heard == sorted(heard)
    adviser.close()


@pytest.mark.parametrize("name", ["champion", "champion-final"])
def test_each_rule_set_has_its_champion(name: str) -> None:
    from phalanx.ui.advice import CHAMPIONS

    assert CHAMPIONS[load_defender(name).rules] == name
