"""The champion's advice: its own chances, honest dice, and nothing that no player can know."""

import numpy as np
import pytest

from phalanx.cage2 import Cage2Env, action_index
from phalanx.play.trained import load_defender
from phalanx.ui.advice import GAMES, MOST_GAMES, Adviser
from phalanx.ui.live_game import GameSettings, LiveGame


@pytest.fixture(scope="module")
def game() -> LiveGame:
    """A game in which red has come far: nobody has done anything for 12 turns."""
    game = LiveGame(GameSettings(red_agent="b_line", horizon=20, seed=1))
    for _ in range(12):
        game.play(0)
    return game


def test_it_would_do_what_the_champion_does_when_it_plays_itself() -> None:
    champion = load_defender("champion")
    game = LiveGame(GameSettings(red_agent="meander", horizon=100, seed=5))
    adviser = Adviser(game)
    env = Cage2Env(red_agent="meander", seed=5, **champion.env_settings)
    obs, _info = env.reset()
    for _ in range(15):
        action = int(champion.act(obs[None], masks=env.action_masks()[None])[0])
        assert adviser.likely()[0][0] == action
        obs, _reward, _terminated, _truncated, _info = env.step(action)
        game.play(action)
    assert game.total == env.batch.nets["tenths"][0] / 10
    adviser.close()


def test_chances_are_those_of_the_policy_and_fall(game: LiveGame) -> None:
    adviser = Adviser(game)
    likely = adviser.likely()
    shares = [share for _action, share in likely]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1002
    assert adviser.probabilities().sum() == pytest.approx(1)
    adviser.close()


def test_saving_the_service_is_worth_what_its_stop_would_cost(game: LiveGame) -> None:
    """Red is about to stop the operational service: ten points in each of the last turns.

    Whoever lets it come so far is where the champion has never been: its own choice is no good.
    """
    adviser = Adviser(game)
    rescue = action_index("Restore", "Op_Server0")
    for _ in range(MOST_GAMES // GAMES):
        answer = adviser.ask([0, rescue])
    assert (answer["games"], answer["is_settled"]) == (MOST_GAMES, True)
    rows = {int(row[0]): row for row in answer["actions"]}
    own = answer["actions"][0]
    assert own[0] == adviser.likely()[0][0]
    assert own[4:] == [0, 0, 0]  # it is its own measure
    _action, mean, low, high, gain, gain_low, gain_high = rows[rescue]
    assert low <= mean <= high
    assert gain == pytest.approx(mean - own[1], abs=0.002)
    assert gain_low <= gain <= gain_high
    assert gain_low > 40
    assert rows[0][1] < -50  # sleeping on
    adviser.close()


def test_asking_again_sharpens_an_answer_up_to_a_limit(game: LiveGame) -> None:
    adviser = Adviser(game)
    first = adviser.ask([0])
    second = adviser.ask([0])
    assert (first["games"], second["games"]) == (GAMES, 2 * GAMES)
    other = adviser.ask([1])  # a newcomer has all dice to catch up with
    assert other["games"] == GAMES
    again = Adviser(game)
    assert again.ask([0]) == first  # equal seeds, equal answers
    for one in (adviser, again):
        one.close()


def test_advice_depends_on_what_the_player_has_seen_alone() -> None:
    """Two games that differ in their attacker, and look alike, have the same advice."""
    mixture = "b_line=0.5,meander=0.5"
    games = [LiveGame(GameSettings(red_agent=mixture, horizon=30, seed=k)) for k in range(30)]
    for one in games:
        one.play(0)
    first = games[0]
    other = next(
        one
        for one in games
        if one.nets[-1]["red"] != first.nets[-1]["red"] and np.array_equal(one.bits, first.bits)
    )
    advisers = Adviser(first), Adviser(other)
    assert np.array_equal(advisers[0].probabilities(), advisers[1].probabilities())
    assert advisers[0].is_exact
    for adviser in advisers:
        adviser.close()
