"""What if: right where the answer is known, honest where it is not."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.network import NETWORK
from phalanx.cage2.rules.scenario import ALL_RED_AGENTS, NUM_ACTIONS, action_index, action_name
from phalanx.cage2.settings import DEFAULT_PRIOR
from phalanx.compiled.rule import records
from phalanx.learn.compiled.policy import Policy
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.players import open_players
from phalanx.play.trained import TrainedDefender
from phalanx.play.what_if import LEAST_STATE, Outcomes, Question, WhatIf
from phalanx.show.replay.episode import Chosen, Episode, record_episode
from phalanx.show.replay.place import Place
from phalanx.show.replay.regret import Heard, LookBack, candidates, look_back
from tests.cage2.game import Game

RULES = "2.1-leaderboard"


def always(action: int) -> TrainedDefender:
    """A policy that plays one action, whatever it sees."""
    policy = Policy(52, NUM_ACTIONS, hidden=(4,), truth_size=0, seed=0)
    policy.actor[:] = 0
    policy.actor[len(policy.actor) - NUM_ACTIONS + action] = 9.0
    useful = np.ones(NUM_ACTIONS, np.bool_)
    return TrainedDefender(policy.logits, "bits", 100, RULES, DEFAULT_PRIOR, useful, policy=policy)


def standing(game: Game, turns_left: int, action: int = 0) -> Episode:
    """An episode that stands at a state built by hand, one turn of which is played."""
    red_agent = ALL_RED_AGENTS[int(game.nets["red"][0])]
    batch = Batch(1, red_agent=red_agent, rules=RULES, horizon=turns_left, seed=3, same_step=False)
    game.put_into(batch)
    batch.begin(np.zeros(1, np.bool_))  # shows what is there
    episode = Episode(batch, name="sleeper", seed=3, policy=always(0), prior=None)
    episode.look()
    batch.play(np.array([action]))
    episode.note(action)
    return episode


def asked(episode: Episode, **settings: Any) -> tuple[dict[str, list[float]], list[float]]:
    """The rows of its first turn by the names of actions, and its regret."""
    look_back(episode, **settings)
    turns = episode.recorder.as_play()["turns"]
    rows = {action_name(row[0]): row[1:] for row in turns["what_if"][0]["actions"]}
    return rows, turns["regret"][0]


# --- states with a known best action --------------------------------------------------------------


def test_a_root_session_that_stays_is_worth_what_it_costs_until_the_end() -> None:
    rows, regret = asked(standing(Game("sleep").session("Enterprise1", "root"), 10))
    assert list(rows)[:2] == ["Sleep", "Restore Enterprise1"]
    assert set(rows) > {"Remove Enterprise1", "Analyse Enterprise1"}
    assert rows["Sleep"][0] == -10  # a point in each of ten turns
    assert rows["Restore Enterprise1"][:1] == [-1.0]
    assert rows["Restore Enterprise1"][3] == 9
    assert rows["Remove Enterprise1"][3] == 0
    assert regret == [9.0, 9.0, 9.0]


def test_a_service_that_stands_still_is_worth_most() -> None:
    game = Game("sleep").session("Op_Server0", "root").session("User2", "root")
    rows, regret = asked(standing(game.having(service=4), 7))
    assert rows["Restore Op_Server0"][3] == 7 * (10 + 1) - 1
    assert rows["Restore User2"][3] == pytest.approx(7 * 0.1 - 1)
    assert regret[0] == 76


def test_where_a_restore_costs_more_than_it_saves_nothing_is_regretted() -> None:
    rows, regret = asked(standing(Game("sleep").session("User1", "root"), 5))
    assert rows["Restore User1"][3] == pytest.approx(-0.5)
    assert regret == [0, 0, 0]


def test_a_shell_that_can_be_stopped_is_removed_not_restored() -> None:
    """Meander escalates next: Remove prevents it for nothing, Restore for a point."""
    game = Game("meander", RULES).session("Enterprise1", "removable")
    game.red_will("escalate", "Enterprise1")
    rows, regret = asked(standing(game, 3), games=40)
    assert max(rows, key=lambda name: rows[name][3]) == "Remove Enterprise1"
    assert rows["Remove Enterprise1"][3] > rows["Restore Enterprise1"][3] > 0
    assert regret[0] == rows["Remove Enterprise1"][3]
    assert regret[1] > 0


def test_an_action_that_was_bad_is_regretted_though_the_policy_would_not_have_played_it() -> None:
    needless = action_index("Restore", "User1")
    rows, regret = asked(standing(Game("sleep"), 5, needless))
    assert rows["Restore User1"][:1] == [-1.0]
    assert rows["Sleep"][3] == 1
    assert regret[0] == 1


# --- estimates ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def champion() -> Episode:
    config = EvaluateConfig(target=("champion",), seed=5, episodes=2)
    (player,) = open_players(config)
    return record_episode(config.games, player, Chosen("b_line", 30))


def test_the_chosen_action_is_estimated_as_the_policy_plays_it(champion: Episode) -> None:
    """Against the mean return of the policy from the same states, turn by turn, on other dice."""
    defender: Any = phalanx.load_defender("champion")
    turns = [0, 6, 14, 22]
    look_back(champion, games=400, turns=turns)
    what_if = champion.recorder.as_play()["turns"]["what_if"]
    assert [t for t, answer in enumerate(what_if) if answer] == turns
    for t in turns:
        _action, mean, low, high, *_gain, games = what_if[t]["actions"][0]
        batch = Batch(1500, red_agent="b_line", seed=99, same_step=False, **defender.env_settings)
        dice = batch.nets[["stream", "episode"]].copy()
        batch.nets[:] = champion.states.nets[t]
        batch.nets[["stream", "episode"]] = dice
        memories, remembered = batch.minds.memories, champion.states.minds.memories
        assert memories is not None
        assert remembered is not None
        memories[:] = remembered[t]
        mine, kept = batch.minds.beliefs, champion.states.minds.beliefs
        assert mine is not None
        assert kept is not None
        for name in ("states", "weights", "standing"):
            getattr(mine, name)[:] = getattr(kept, name)[t]
        batch.begin(np.zeros(1500, np.bool_))
        before = batch.nets["tenths"].copy()
        for _ in range(t, 30):
            batch.play(defender.act(batch.shown.obs, masks=batch.action_masks()))
        returns = (batch.nets["tenths"] - before) / 10
        error = np.hypot((high - low) / 4, returns.std() / 1500**0.5)
        assert abs(mean - returns.mean()) < 4 * error
        assert games >= 100
        assert returns.std() > 0


def test_a_belief_without_its_unlikeliest_states_plays_the_same_games() -> None:
    config = EvaluateConfig(target=("champion",), seed=5, episodes=2)
    (player,) = open_players(config)
    episode = record_episode(config.games, player, Chosen("meander", 40))
    asked = [
        Question(t, np.array([episode.recorder.turns[t].action]), 5, 0) for t in range(0, 38, 3)
    ]
    assert player.policy is not None
    exact, quick, rough = (
        np.stack([one.returns for one in WhatIf(player.policy, (40,), 2, least)(*games)])
        for least in (0.0, LEAST_STATE, 0.015)
        for games in [(episode.states, asked, 64)]
    )
    assert (exact == quick).mean() > 0.98
    assert (exact == rough).mean() < 0.98  # so that it could be seen


def test_it_does_not_matter_who_else_is_asked_nor_on_how_many_threads(champion: Episode) -> None:
    def answers(turns: list[int], threads: int) -> dict[int, Any]:
        for turn in turns:
            champion.recorder.answer(turn, {}, [])
        look_back(champion, games=16, turns=turns, num_threads=threads)
        told = champion.recorder.as_play()["turns"]
        return {t: (told["what_if"][t], told["regret"][t]) for t in turns}

    together = answers([3, 9, 12], 2)
    assert answers([9], 1)[9] == together[9]
    assert answers([3], 1)[3] == together[3]


def test_likely_actions_and_treatments_where_red_is_are_tried(champion: Episode) -> None:
    held = [t for t in range(30) if int(champion.states.nets[t]["sessions"]).bit_count() > 1]
    assert held
    for t in range(30):
        tried = candidates(champion, t).tolist()
        assert tried[0] == champion.recorder.turns[t].action
        assert len(set(tried)) == len(tried)
        assert int(champion.chances[t].argmax()) in tried
        names = [action_name(action) for action in tried]
        assert not any(name == "Restore User0" for name in names)
        if t in held:
            assert sum(name.split()[0] in ("Restore", "Remove", "Analyse") for name in names) >= 3


# --- honest intervals -----------------------------------------------------------------------------


class Noise:
    """Answers as if games were played: each action brings this much, and luck."""

    def __init__(self, better: dict[int, float], seed: int) -> None:
        self.better, self.dice = better, np.random.default_rng(seed)
        self.rounds: dict[int, set[int]] = {}

    def __call__(self, _states: Any, asked: list[Question], games: int) -> list[Outcomes]:
        self.rounds.setdefault(games, set()).update(one.number for one in asked)
        return [
            Outcomes(
                one.actions,
                np.array([[self.better.get(a, 0.0)] for a in one.actions.tolist()])
                + self.dice.normal(size=(len(one.actions), games)),
            )
            for one in asked
        ]


def regrets(better: dict[int, float], turns: int) -> Any:
    """Of as many turns in which action 0 was played, and five others might have been."""
    answers: dict[int, Any] = {}
    recorder = SimpleNamespace(
        turns=[SimpleNamespace(action=0)] * turns,
        facts={"seed": 1, "episode": 0},
        place=Place(),
        answer=lambda turn, _rows, regret: answers.__setitem__(turn, regret),
    )
    chances = np.zeros(NUM_ACTIONS)
    chances[:6] = 1 / 6
    states = SimpleNamespace(nets=records(turns, NETWORK))
    episode: Any = SimpleNamespace(recorder=recorder, chances=[chances] * turns, states=states)
    ask: Any = Noise(better, seed=7)
    silent: Heard = lambda *_: None  # noqa: E731
    LookBack(episode, ask, 100, silent).at(range(turns))
    assert ask.rounds == {100: {0}, 200: {1}}  # each round has dice of its own
    return np.array([answers[t] for t in range(turns)])


def test_the_luck_of_the_best_of_many_is_no_regret() -> None:
    found = regrets({}, turns=1000)
    assert (found[:, 1] > 0).sum() <= 5  # by chance, one or two in a thousand
    assert (found >= 0).all()


def test_a_better_action_is_found_and_its_gain_is_not_exaggerated() -> None:
    found = regrets({3: 0.6}, turns=400)
    sure = found[:, 1] > 0
    assert sure.mean() > 0.95
    error = 2**0.5 / 200**0.5 / sure.sum() ** 0.5  # of the mean of as many means of 200 games
    assert abs(found[sure, 0].mean() - 0.6) < 4 * error + 0.01
    inside = (found[sure, 1] <= 0.6) & (found[sure, 2] >= 0.6)
    assert 0.9 < inside.mean() < 0.99
