"""Actions that a belief says are in vain: they do what Sleep does, and a policy leaves them out."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.hidden import HIDDEN_SIZE
from phalanx.cage2.rules.masks import effective_actions
from phalanx.cage2.rules.observation import OPEN_SIZE
from phalanx.cage2.rules.scenario import (
    ACTION_SLEEP,
    ANALYSE,
    NUM_HOSTS,
    REMOVE,
    useful_actions,
)
from phalanx.cage2.rules.scoring import NO_ORDERS
from phalanx.cage2.scenario.read import CAGE2_WORLDS
from phalanx.cage2.vector import Cage2VectorEnv
from phalanx.errors import ConfigError
from phalanx.learn.cage2.games import Shaping
from phalanx.learn.cage2.greedy import play_out
from phalanx.learn.cage2.sampler import CompiledSampler
from phalanx.learn.compiled.policy import Policy
from phalanx.play.trained import TrainedDefender
from phalanx.training.config import TrainConfig
from phalanx.training.on_cage2 import leaves_out_vain

SIZE, TURNS = 128, 40
LOOKED_AT = 2 + NUM_HOSTS * np.array([[ANALYSE], [REMOVE]]) + np.arange(NUM_HOSTS)  # actions


def games(observation: str, rules: str = "2.1-leaderboard") -> Batch:
    settings: dict[str, Any] = {"red_agent": "meander", "horizon": 100, "num_threads": 1}
    return Batch(SIZE, observation=observation, rules=rules, seed=3, same_step=False, **settings)


def a_policy() -> Policy:
    policy = Policy(OPEN_SIZE + HIDDEN_SIZE, 145, hidden=(8, 8), truth_size=0, seed=1)
    policy.theta += np.random.default_rng(2).normal(size=len(policy.theta)).astype(np.float32) / 10
    return policy


def after(batch: Batch, actions: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.void], Any]:
    """The networks and what is shown after these actions; the batch stays where it is."""
    saved = batch.save()
    batch.play(actions)
    seen = batch.nets.copy(), batch.shown.obs.copy()
    batch.restore(saved)
    return seen


@pytest.mark.parametrize("rules", ["2.1-leaderboard", "2.1-final"])
@pytest.mark.parametrize("observation", ["belief", "truth"])
def test_what_is_in_vain_does_and_tells_what_sleep_does(observation: str, rules: str) -> None:
    """On the same dice: the same true state, and the same belief of it; what is not in vain makes a
    difference.
    """
    batch, rng = games(observation, rules), np.random.default_rng(1)
    in_vain = differing = 0
    for _ in range(TURNS):
        tried = rng.choice(LOOKED_AT.ravel(), size=SIZE)
        is_vain = ~effective_actions(batch.worlds, batch.shown.obs)[np.arange(SIZE), tried]
        (slept, shown), (nets, told) = (
            after(batch, actions) for actions in (np.full(SIZE, ACTION_SLEEP), tried)
        )
        for name in slept.dtype.names or ():
            if name != "seen":  # the bits, which blue could have foreseen
                assert np.array_equal(slept[name][is_vain], nets[name][is_vain]), name
        is_same = np.isclose(shown[:, OPEN_SIZE:], told[:, OPEN_SIZE:], atol=1e-6).all(axis=1)
        assert is_same[is_vain].all()
        in_vain += int(is_vain.sum())
        differing += int((~is_same & ~is_vain).sum())
        batch.play(rng.choice(np.flatnonzero(useful_actions()), size=SIZE))
    assert in_vain > 1000
    assert differing > 0


def test_all_but_analyse_and_remove_are_left_and_all_after_a_surprise() -> None:
    batch = games("belief")
    first = effective_actions(batch.worlds, batch.shown.obs)
    assert not first[:, LOOKED_AT].any()  # nothing has happened yet
    first[:, LOOKED_AT.ravel()] = True
    assert first.all()
    surprised = batch.shown.obs.astype(np.float32)
    surprised[:, -1] = 0.25
    assert effective_actions(batch.worlds, surprised).all()


def test_environments_tell_what_is_effective_where_they_show_a_belief() -> None:
    envs = Cage2VectorEnv(8, red_agent="meander", observation="belief")
    envs.reset(seed=1)
    masks = envs.action_masks(effective=True)
    assert np.array_equal(
        masks, envs.action_masks() & effective_actions(CAGE2_WORLDS, envs.batch.shown.obs)
    )
    assert not masks[:, LOOKED_AT].any()
    with pytest.raises(ConfigError, match="observation='belief'"):
        games("memory").action_masks(effective=True)


def test_rollouts_mask_what_is_in_vain() -> None:
    batch, useful = games("belief"), useful_actions()
    options: dict[str, Any] = {"useful": useful, "condition": np.zeros((SIZE, 0), np.float32)}
    sampler = CompiledSampler(batch, a_policy(), TURNS, effective=True, **options)
    rollout = sampler.collect(Shaping(np.ones(100, np.float32), 0.0, 1.0, 0.9, 0.9))
    again = games("belief")
    for t in range(TURNS):
        allowed, effective = (again.action_masks(effective=some) & useful for some in (False, True))
        assert np.array_equal(rollout.masks[t], effective)
        assert (allowed & ~effective).any()
        again.play(rollout.actions[t].astype(np.int64))


def test_whole_episodes_in_one_call_are_those_turn_by_turn() -> None:
    policy, useful, returns = a_policy(), useful_actions(), {}
    for effective in (True, False):
        batch = games("belief")
        worlds = batch.worlds if effective else None
        shown: dict[str, Any] = {"observation": "belief", "horizon": 100, "rules": "", "prior": ""}
        defender = TrainedDefender(policy.logits, useful=useful, effective_in=worlds, **shown)
        for _ in range(TURNS):
            batch.play(defender.act(batch.shown.obs, masks=batch.action_masks()))
        told, numbers = np.zeros((SIZE, 0), np.float32), np.zeros(SIZE, np.int64)
        played = play_out(
            games("belief"), policy, useful, told, NO_ORDERS, numbers, (TURNS,), effective
        )
        assert np.allclose(played.returns[:, 0], batch.nets["tenths"] / 10)
        returns[effective] = played.returns
    assert not np.allclose(returns[True], returns[False])


def test_a_policy_leaves_out_what_is_in_vain_only_if_it_was_trained_so() -> None:
    config = TrainConfig()
    assert leaves_out_vain(config)
    assert not leaves_out_vain(replace(config, actions="useful"))
    assert not leaves_out_vain(replace(config, observation="memory"))
