"""What a policy thinks: probabilities of what it may play, and its critic's value in points."""

from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.observation import OBS_SIZES, TRUTH_SIZE, write_truth
from phalanx.cage2.rules.scenario import NUM_ACTIONS, NUM_HOSTS, useful_actions
from phalanx.cage2.settings import DEFAULT_PRIOR
from phalanx.learn.compiled.policy import Policy
from phalanx.play.trained import TrainedDefender
from phalanx.show.replay.policy_view import PolicyView, likeliest, truth_of


def new_policy(**more: Any) -> TrainedDefender:
    size = OBS_SIZES["memory"]
    policy = Policy(size, NUM_ACTIONS, hidden=(16,), truth_size=TRUTH_SIZE, seed=3)
    policy.actor[:] *= 30
    settings = {
        "turn_weights": np.ones(100),
        "value_worth": np.full(100, 2.0),
        "policy": policy,
        **more,
    }
    return TrainedDefender(
        policy.logits, "memory", 100, "2.1-leaderboard", DEFAULT_PRIOR, useful_actions(), **settings
    )


def in_mid_episode(turns: int) -> Batch:
    batch = Batch(1, red_agent="b_line", observation="memory", seed=2)
    for action in range(turns):
        batch.play(np.array([action]))
    return batch


def test_the_truth_for_critics_is_that_of_training() -> None:
    net = in_mid_episode(25).nets[0]
    net["sessions"] |= 1  # as a user of the first host
    assert net["root"].bit_count() > 1
    row = np.zeros(TRUTH_SIZE, np.float32)
    fields: Any = _Fields(net)
    getattr(write_truth, "py_func", write_truth)(fields, NUM_HOSTS, row)
    assert np.array_equal(truth_of(net), row)


class _Fields:
    """A record as plain Python reads it."""

    def __init__(self, net: Any) -> None:
        self.known, self.scanned = int(net["known"]), int(net["scanned"])
        self.sessions, self.root = int(net["sessions"]), int(net["root"])


def test_what_may_not_be_played_has_no_probability() -> None:
    policy, batch = new_policy(), in_mid_episode(3)
    mask = batch.action_masks()[0]
    chances = PolicyView(policy, 100).probabilities(batch.shown.obs[0], mask)
    assert chances.sum() == pytest.approx(1)
    assert (chances[~(mask & policy.useful)] == 0).all()
    assert (chances[mask & policy.useful] > 0).all()
    assert chances.argmax() == policy.act(batch.shown.obs, masks=mask[None])[0]
    logits = policy.logits(batch.shown.obs)[0].astype(np.float64)
    two = np.argsort(-chances)[:2]
    assert np.log(chances[two[0]] / chances[two[1]]) == pytest.approx(
        logits[two[0]] - logits[two[1]]
    )


def test_a_value_is_in_points_to_come() -> None:
    batch = in_mid_episode(20)
    obs, net = batch.shown.obs[0], batch.nets[0]
    policy = new_policy()
    value = PolicyView(policy, 100).value(obs, net)
    assert policy.policy is not None
    policy.policy.critic[:] = 0
    policy.policy.critic[-1] = -4.0
    assert value != pytest.approx(-8)
    assert PolicyView(policy, 100).value(obs, net) == pytest.approx(-8)  # -4 * value_worth
    weights = np.repeat([3.0, 2.0, 1.0], [30, 20, 50])  # as it counts in training
    uneven = new_policy(turn_weights=weights, policy=policy.policy)
    assert PolicyView(uneven, 100).value(obs, net) == pytest.approx(-8 * 80 / weights[20:].sum())
    assert PolicyView(uneven, 30).value(obs, net) == pytest.approx(-8 * 10 / weights[20:].sum())


def test_without_a_critic_in_such_units_there_is_no_value() -> None:
    batch = in_mid_episode(2)
    obs, net = batch.shown.obs[0], batch.nets[0]
    assert PolicyView(new_policy(value_worth=np.zeros(0)), 100).value(obs, net) is None
    assert PolicyView(new_policy(policy=None), 100).value(obs, net) is None
    assert PolicyView(new_policy(turn_weights=np.ones(2)), 100).value(obs, net) is None


def test_the_champions_values_are_near_what_it_gets() -> None:
    champion: Any = phalanx.load_defender("champion")
    batch = Batch(200, red_agent="b_line", seed=1, same_step=False, **champion.env_settings)
    view = PolicyView(champion, 100)
    for _ in range(10):
        batch.play(champion.act(batch.shown.obs, masks=batch.action_masks()))
    values: Any = [view.value(batch.shown.obs[i], batch.nets[i]) for i in range(200)]
    before = batch.nets["tenths"].copy()
    for _ in range(90):
        batch.play(champion.act(batch.shown.obs, masks=batch.action_masks()))
    to_come = (batch.nets["tenths"] - before) / 10
    assert np.mean(values) == pytest.approx(to_come.mean(), rel=0.25)


def test_the_action_that_was_played_is_always_told() -> None:
    chances = np.zeros(NUM_ACTIONS)
    chances[:8] = [0.3, 0.2, 0.2, 0.1, 0.1, 0.0599, 0.04, 0.0001]
    assert [action for action, _ in likeliest(chances, 0)] == [0, 1, 2, 3, 4]
    assert [action for action, _ in likeliest(chances, 6)] == [0, 1, 2, 3, 6]
    assert likeliest(chances, 100)[-1] == (100, 0.0)
    sure = np.zeros(NUM_ACTIONS)
    sure[4] = 1
    assert likeliest(sure, 4) == [(4, 1.0)]
