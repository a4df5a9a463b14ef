"""Which episode is shown: the worst, the best, the median, a typical one."""

import numpy as np
import pytest

import phalanx
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.players import open_players
from phalanx.show.replay.config import PICKS
from phalanx.show.replay.episode import Chosen, record_episode
from phalanx.show.replay.pick import choose, pick_episode


def test_the_first_of_those_that_fit() -> None:
    returns = np.array([-3.0, -9.0, -1.0, -9.0, -2.0, -1.0])[:, None]
    assert choose(returns, "worst") == 1
    assert choose(returns, "best") == 2
    assert choose(returns, "median") == 0
    assert choose(returns[:5], "median") == 0


def test_a_typical_episode_loses_when_others_do() -> None:
    late, early, even = [0, 0, 0, -4], [-4, -4, -4, -4], [-1, -2, -3, -4]
    so_far = np.array([late, early, even, [0, 0, -8, -8], [-1, -2, -3, -3.5]], float)
    assert choose(so_far, "typical") == 2
    assert choose(so_far[[3, 4, 3, 4, 1]], "typical") == 1


@pytest.mark.parametrize("name", ["random", "react-restore", "champion"])
def test_the_picked_episode_is_one_of_evaluate(name: str) -> None:
    scores = phalanx.evaluate(name, red_agent="meander", horizon=20, episodes=140, seed=3)
    returns = scores.cells[0].returns
    config = EvaluateConfig(target=(name,), episodes=140, seed=3)
    (player,) = open_players(config)
    chosen = Chosen("meander", 20)
    for pick in PICKS:
        number, all_returns = pick_episode(config.games, player, chosen, pick)
        assert all_returns.tolist() == returns.tolist()
        play = record_episode(config.games, player, chosen._replace(number=number))
        assert play.recorder.as_play()["return"] == pytest.approx(returns[number])
        if pick == "worst":
            assert returns[number] == returns.min()
        if pick == "best":
            assert returns[number] == returns.max()
        if pick == "median":
            assert (returns < returns[number]).sum() <= 70 <= (returns <= returns[number]).sum()
