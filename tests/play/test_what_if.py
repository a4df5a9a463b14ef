"""Games from what a defender knows: equal to the game itself, and to one another by their dice."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.belief import copy_likely, words_of
from phalanx.cage2.rules.mind import is_same_mind
from phalanx.cage2.rules.observation import OBS_SIZES, TRUTH_SIZE
from phalanx.cage2.rules.scenario import NUM_ACTIONS, action_index, useful_actions
from phalanx.cage2.settings import DEFAULT_PRIOR
from phalanx.compiled.rule import COMPILED
from phalanx.compiled.team import ThreadTeam
from phalanx.errors import ConfigError
from phalanx.learn.cage2.play_on import Counted, Starts, make_desks, play_on, play_on_blocks
from phalanx.learn.compiled.policy import Policy
from phalanx.play.plan import PlanningDefender
from phalanx.play.trained import TrainedDefender, load_defender
from phalanx.play.what_if import Knowledge, Question, TrueStates, WhatIf, turn_weights

KINDS = ("bits", "history", "memory", "belief")
RULES = "2.1-leaderboard"


def new_defender(observation: str = "memory", condition: tuple[float, ...] = ()) -> TrainedDefender:
    """A policy that has learnt nothing, and so does this and that."""
    size = OBS_SIZES[observation] + len(condition)
    policy = Policy(size, NUM_ACTIONS, hidden=(16,), truth_size=TRUTH_SIZE, seed=3)
    policy.actor[:] *= 30  # the last layer begins near zero
    return TrainedDefender(
        policy.logits,
        observation,
        40,
        RULES,
        DEFAULT_PRIOR,
        useful_actions(),
        condition=condition,
        policy=policy,
        turn_weights=np.ones(40),
        value_worth=np.full(40, 2.0),
    )


def in_mid_episode(defender: TrainedDefender, turns: int = 12) -> tuple[Batch, Knowledge]:
    batch = Batch(
        5,
        red_agent="meander",
        horizon=40,
        rules=RULES,
        observation=defender.observation,
        seed=4,
        same_step=False,
    )
    known = Knowledge(5, observation=defender.observation, rules=RULES, horizon=40)
    for _ in range(turns):
        actions = defender.act(batch.shown.obs, masks=batch.action_masks())
        batch.play(actions)
        known.observe(actions, batch.shown.obs)
    return batch, known


def rest_of(batch: Batch, defender: TrainedDefender, weights: Any) -> npt.NDArray[np.float64]:
    """What the episodes bring from now on, turn by turn, with the game's own dice."""
    total = np.zeros(batch.num_envs)
    for turn in range(int(batch.nets["turn"][0]), len(weights)):
        actions = defender.act(batch.shown.obs, masks=batch.action_masks())
        total += weights[turn] * batch.play(actions).rewards
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_playing_on_from_a_state_is_the_game_itself(kind: str) -> None:
    defender = new_defender(kind, condition=(0.5,))
    batch, known = in_mid_episode(defender)
    first = defender.act(batch.shown.obs, masks=batch.action_masks())
    told = np.full((5, 1), 0.5, np.float32)
    nets, rows = words_of(batch.nets).copy(), np.arange(5)
    starts = Starts(nets, rows, rows, first, known.minds, told)
    weights = np.linspace(1, 3, 30)
    assert defender.policy is not None
    desks = make_desks(2, batch.kind, defender.policy.actions, defender.useful, 1)
    returns = play_on(
        ThreadTeam(2), desks, defender.policy, starts, Counted(weights, 99, np.zeros(0))
    )
    assert returns == pytest.approx(rest_of(batch, defender, weights))
    assert len(set(returns)) > 1


def test_a_game_that_is_cut_is_closed_with_the_critics_value() -> None:
    defender = new_defender()
    _, known = in_mid_episode(defender)
    asked = [Question(i, np.array([0]), stream=9, number=1) for i in range(5)]
    closed = WhatIf(defender)(known, asked, games=3, turns=2)
    cut = WhatIf(defender, horizons=(14,))(known, asked, games=3)
    whole = WhatIf(defender)(known, asked, games=3)
    assert not np.allclose(whole[0].returns, cut[0].returns)
    assert not np.allclose(closed[0].returns, cut[0].returns)
    defender.policy.critic[:] = 0  # type: ignore[union-attr]
    defender.policy.critic[-1] = 2.0  # type: ignore[union-attr]
    closed = WhatIf(defender)(known, asked, games=3, turns=2)
    for a, b in zip(closed, cut, strict=True):
        assert (a.returns - b.returns)[0] == pytest.approx(2.0 * 2.0)  # a value of 2


def test_a_critic_of_other_units_is_not_asked() -> None:
    defender = new_defender()
    assert len(WhatIf(defender).value_worth) == 40
    assert len(WhatIf(defender, horizons=(30, 40)).value_worth) == 0


def test_equal_actions_have_equal_games_whoever_else_is_asked_and_on_any_threads() -> None:
    defender = new_defender()
    _, known = in_mid_episode(defender)
    restore = action_index("Restore", "User1")
    asked = [Question(i, np.array([restore, 0, restore]), 5 + i, number=2) for i in range(5)]
    together = WhatIf(defender, num_threads=2)(known, asked, games=60)
    for i, one in enumerate(together):
        assert np.array_equal(one.returns[0], one.returns[2])
        (alone,) = WhatIf(defender, num_threads=1)(known, asked[i : i + 1], games=60)
        assert np.array_equal(alone.returns, one.returns)
    other = WhatIf(defender)(known, [asked[0]._replace(number=3)], games=60)[0]
    assert not np.array_equal(other.returns, together[0].returns)


@pytest.mark.parametrize("least", [0.0, 1e-4])
@pytest.mark.parametrize("kind", [*KINDS, "champion"])
def test_an_action_brings_the_same_alone_and_beside_others(kind: str, least: float) -> None:
    defender = new_defender(kind) if kind in KINDS else load_defender(kind)
    _, known = in_mid_episode(defender)
    verbs = ("Analyse", "Remove", "Restore", "DecoyApache")
    tried = np.array([0, *(action_index(verb, "User2") for verb in verbs)])
    ask = WhatIf(defender, least=least)
    for turns in (None, 5):  # to the end, and closed by the critic
        beside = ask(known, [Question(i, tried, 5, 2) for i in range(5)], 40, turns)
        for k, action in enumerate(tried):
            alone = ask(known, [Question(i, np.array([action]), 5, 2) for i in range(5)], 40, turns)
            for one, other in zip(alone, beside, strict=True):
                assert np.array_equal(one.returns[0], other.returns[k])
    assert any(len(set(one.means.tolist())) > 1 for one in beside)
    assert any((one.returns[1:] == one.returns[0]).any() for one in beside)
    ask.close()


@pytest.mark.skipif(not COMPILED, reason="of what is compiled")
def test_games_are_compiled_once_whatever_a_policy_is_told() -> None:
    for told in ((), (0.5,)):
        defender = new_defender(condition=told)
        _, known = in_mid_episode(defender)
        WhatIf(defender)(known, [Question(0, np.array([0]), stream=9, number=1)], games=3)
        compiled = play_on_blocks.signatures  # type: ignore[attr-defined]
        minds = [starts.types[Starts._fields.index("minds")] for _, _, starts, *_ in compiled]
        assert len(set(minds)) == len(compiled)  # for what minds hold, and nothing else
        assert defender.told(5, None).shape == (5, len(told))


def test_games_begin_in_each_state_as_often_as_it_is_likely() -> None:
    from phalanx.play.what_if import _begin

    defender = new_defender()
    _, known = in_mid_episode(defender)
    beliefs = [known[i] for i in range(5)]
    assert max(len(one.weights) for one in beliefs) > 2
    for belief in beliefs:
        begun = _begin(belief, Question(0, np.array([0]), 5, 1), 500)
        games = begun.view(belief.states.dtype)[:, 0]
        assert len(set(games["episode"].tolist())) == 500  # each has dice of its own
        games["stream"], games["episode"] = belief.states["stream"][0], belief.states["episode"][0]
        times = Counter(repr(game.item()) for game in games)
        assert times.total() == 500
        for state, weight in zip(belief.states, belief.weights, strict=True):
            assert abs(times[repr(state.item())] - 500 * weight) <= 1


def test_intervals_are_paired() -> None:
    defender = new_defender()
    _, known = in_mid_episode(defender)
    asked = [Question(0, np.array([0, action_index("Restore", "User1")]), 1, 1)]
    (answer,) = WhatIf(defender)(known, asked, games=100)
    gains = answer.returns[1] - answer.returns[0]
    beside = answer.interval(1, beside=0)
    assert beside["mean"] == pytest.approx(gains.mean())
    assert beside["stderr"] == pytest.approx(gains.std(ddof=1) / 10)
    assert answer.interval(1)["mean"] == pytest.approx(answer.means[1])


def test_a_reward_counts_once_for_each_horizon_that_it_comes_before() -> None:
    assert turn_weights((2, 3)).tolist() == [2, 2, 1]


def test_who_sees_the_truth_cannot_plan() -> None:
    with pytest.raises(ConfigError, match="sees the true state"):
        PlanningDefender(new_defender("truth"))


# --- from the true state --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "truth"])
@pytest.mark.parametrize("least", [0.0, 1e-12])
def test_games_from_the_true_state_are_the_game_itself(kind: str, least: float) -> None:
    """The same as if every network had been played on, turn by turn, on the same new dice."""
    defender = new_defender(kind)
    batch = Batch(
        40, red_agent="meander", horizon=40, rules=RULES, observation=kind, seed=4, same_step=False
    )
    states, saved = TrueStates(batch, turns=3), []
    for turn in range(12):
        if turn in (0, 5, 11):
            states.add(batch.nets[7], batch.minds, 7)
            saved.append(batch.save())
        batch.play(defender.act(batch.shown.obs, masks=batch.action_masks()))
    restore = action_index("Restore", "User1")
    asked = [Question(k, np.array([0, restore]), stream=9, number=1) for k in range(3)]
    answers = WhatIf(defender, horizons=(40,), least=least)(states, asked, games=40)
    for k, answer in enumerate(answers):
        for action, returns in zip(answer.actions, answer.returns, strict=True):
            _stand_at(batch, saved[k], 7)
            played = batch.play(np.full(40, action)).rewards.copy()
            assert returns == pytest.approx(played + rest_of(batch, defender, np.ones(40)))
        assert answer.returns.std() > 0


def _stand_at(batch: Batch, saved: dict[str, Any], row: int) -> None:
    """Let every network be where one of them stood, each with dice of its own."""
    everywhere = {
        name: np.repeat(array[row : row + 1], 40, axis=0)
        for name, array in saved.items()
        if name in ("nets", "memories", "belief_words", "belief_weights", "belief_standing")
        and len(array) == 40
    }
    batch.restore({**saved, **everywhere})
    batch.nets["stream"], batch.nets["episode"] = 9, 2**16 + np.arange(40)


def test_unlikely_states_are_left_out_of_a_belief_that_is_played_on() -> None:
    """So that it is another game if they are not unlikely, and the same one if they are."""
    defender = new_defender("belief")
    _, known = in_mid_episode(defender)
    asked = [Question(i, np.array([0]), stream=9, number=1) for i in range(5)]
    exact, same, other = (
        np.stack([one.returns for one in WhatIf(defender, least=least)(known, asked, games=40)])
        for least in (0.0, 1e-9, 0.015)
    )
    assert np.array_equal(exact, same)
    assert not np.array_equal(exact, other)


@pytest.mark.parametrize("kind", KINDS)
def test_minds_are_the_same_if_all_that_they_will_show_is(kind: str) -> None:
    _, known = in_mid_episode(new_defender(kind))
    minds = known.minds
    if minds.memories is not None:
        minds.memories[1] = minds.memories[0]
    if minds.beliefs is not None:
        copy_likely(minds.beliefs, 0, minds.beliefs, 1, 0.0)
        assert minds.beliefs.standing["count"][0] > 1
    assert is_same_mind(minds, 0, 1)
    fields = ["decoys"] if kind == "belief" else ["decoys", "remove_turn", "exploits", "scan_turn"]
    for field in fields if minds.memories is not None else []:
        kept = minds.memories[field]  # type: ignore[index]
        kept[1, 3] += 1
        assert not is_same_mind(minds, 0, 1)
        kept[1, 3] -= 1
    if minds.beliefs is not None:
        side = minds.beliefs.standing["side"][1]
        minds.beliefs.weights[1, side, 1] += 1e-6
        assert not is_same_mind(minds, 0, 1)
        minds.beliefs.weights[1, side, 1] -= 1e-6
        minds.beliefs.states[1, side, 1]["known"] ^= 1
        assert not is_same_mind(minds, 0, 1)
        minds.beliefs.states[1, side, 1]["known"] ^= 1
    assert is_same_mind(minds, 0, 1)
