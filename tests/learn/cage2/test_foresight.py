"""Foresight: all that a turn may lead to, and rewards without the luck of the dice."""

from typing import Any

import numpy as np
import pytest

from phalanx.cage2.attack import attacker, sleep
from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.batch_turn import write_obs
from phalanx.cage2.rules.foresight import believe_outcome, foresee
from phalanx.cage2.rules.memory import remember
from phalanx.cage2.rules.scenario import useful_actions
from phalanx.cage2.rules.scoring import NO_ORDERS, Orders, make_orders
from phalanx.cage2.rules.surprise import differing_hosts
from phalanx.cage2.rules.world import verb_of
from phalanx.compiled.rule import kernel
from phalanx.learn.cage2.foresight import make_foresight
from phalanx.learn.cage2.games import Shaping
from phalanx.learn.cage2.sampler import CompiledSampler
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.rollout import Rollout
from phalanx.training.config import TrainConfig

SIZE, TURNS, HORIZON = 256, 40, 50
GAMMA, FINAL_GAMMA, SCALE, DISCOUNT = 0.9, 0.5, 0.1, 0.3
PRIOR = "b_line=0.5,meander=0.5"


def rollout_of(
    foresight: bool,
    red_agent: str = PRIOR,
    threads: int = 1,
    orders: Orders = NO_ORDERS,
    **more: Any,
) -> tuple[Rollout, Policy, Batch]:
    settings: dict[str, Any] = {"horizon": HORIZON, "seed": 4, "prior": PRIOR, **more}
    batch = Batch(SIZE, red_agent=red_agent, observation="belief", num_threads=threads, **settings)
    told = 1 + orders.codes.shape[1]
    policy = Policy(batch.shown.obs.shape[1] + told, 145, hidden=(8, 8), truth_size=0, seed=1)
    policy.theta += np.random.default_rng(2).normal(size=len(policy.theta)).astype(np.float32) / 5
    condition = np.full((SIZE, 1), 0.5, np.float32)
    options = {"useful": useful_actions(), "condition": condition, "orders": orders}
    sampler = CompiledSampler(batch, policy, TURNS, foresight=foresight, **options)
    weights = np.linspace(3, 1, HORIZON).astype(np.float32)
    return sampler.collect(Shaping(weights, DISCOUNT, SCALE, GAMMA, FINAL_GAMMA)), policy, batch


@kernel
def look_ahead(
    batch: Any, foresight: Any, actions: Any, seen: Any, rows: Any, chances: Any
) -> None:
    """What the observation will be where `seen` is what is seen next; all chances, and its own."""
    worlds, nets, minds = batch
    outcomes, later = foresight
    for i in range(len(nets)):
        world = worlds[0]
        verb = verb_of(world, actions[i])
        count = foresee(world, minds.beliefs, i, actions[i], outcomes, 0)
        for k in range(count):
            if outcomes.is_told[0, k]:
                continue
            chance, _cost = believe_outcome(
                world, outcomes, 0, count, k, verb, minds.beliefs, i, later.beliefs
            )
            chances[i, 0] += chance
            if differing_hosts(outcomes.states[0, k].seen, seen[i]) == 0:
                chances[i, 1] = chance
                later.memories[0] = minds.memories[i]
                remember(world, later.memories[0], actions[i], seen[i])
                write_obs(world, outcomes.states[0, k], later, 0, rows[i])


@pytest.mark.parametrize("green", [None, 0.5])
def test_what_happens_was_foreseen_with_what_blue_then_believes(green: float | None) -> None:
    """Of all outcomes, one shows what is seen next; what blue sees then is known before."""
    settings: dict[str, Any] = {"horizon": 100, "seed": 5, "prior": PRIOR, "green": green}
    batch = Batch(SIZE, red_agent=PRIOR, observation="belief", num_threads=1, **settings)
    foresight, rng, all_chances = make_foresight(batch), np.random.default_rng(1), []
    for _ in range(TURNS // 2):
        actions = rng.choice(np.flatnonzero(useful_actions()), size=SIZE)
        before = batch.save()
        batch.play(actions)
        seen, shown = batch.nets["seen"].copy(), batch.shown.obs.copy()
        batch.restore(before)
        rows, chances = np.zeros_like(shown), np.zeros((SIZE, 2))
        look_ahead((batch.worlds, batch.nets, batch.minds), foresight, actions, seen, rows, chances)
        known = chances[:, 0] > 0
        assert known.all() or (green and known.mean() > 0.5)  # green makes for many outcomes
        assert np.allclose(chances[known, 0], 1)
        assert np.allclose(rows[known], shown[known], atol=1e-5)
        all_chances.append(chances[known, 1])
        batch.play(actions)
    happened = np.concatenate(all_chances)
    assert (happened > 0).all()
    assert 0.1 < (happened < 0.5).mean() < 0.9


def worth(rollout: Rollout) -> Any:
    """What each turn counts: its reward, and the discounted value of what was seen next."""
    return rollout.rewards + rollout.discounts * rollout.next_values


@pytest.mark.parametrize("rules", ["2.1-leaderboard", "2.1-final"])
def test_turns_count_the_same_on_average_and_vary_less(rules: str) -> None:
    """The games are the same, to the bit; so the difference of what turns count is luck alone."""
    plain, foreseen = (rollout_of(foresight, rules=rules)[0] for foresight in (False, True))
    for name in ("obs", "actions", "log_probs", "values", "next_values", "ended", "returns"):
        assert np.array_equal(getattr(plain, name), getattr(foreseen, name), equal_nan=True), name
    luck = (worth(plain) - worth(foreseen)).astype(np.float64)
    # Luck of turns that follow each other is not correlated, so all turns count as independent.
    for some in (luck, luck[:10], luck[10:], luck[plain.values > np.median(plain.values)]):
        assert abs(some.mean()) < 4 * some.std() / some.size**0.5
    assert luck.std() > 0.01
    assert abs(np.mean(luck * worth(foreseen)) - luck.mean() * worth(foreseen).mean()) < 0.002


@attacker
def idle(net: Any, memory: Any, die: int) -> int:
    memory[0] += 1
    return sleep()


def test_what_follows_is_foreseen_beside_an_attacker_of_the_user_too() -> None:
    """Its networks hold more than a belief's states."""
    mixture: Any = f"b_line=0.5,{__name__}:idle=0.5"
    plain, foreseen = (rollout_of(foresight, mixture)[0] for foresight in (False, True))
    assert np.isfinite(foreseen.obs).all()
    for name in ("obs", "actions", "log_probs", "values", "next_values"):
        assert np.array_equal(getattr(plain, name), getattr(foreseen, name)), name
    assert np.isfinite(foreseen.rewards).all()


def test_threads_do_not_matter() -> None:
    one, two = (rollout_of(True, threads=threads)[0] for threads in (1, 2))
    assert np.array_equal(one.rewards, two.rewards)


@pytest.mark.parametrize("orders", [NO_ORDERS, make_orders([7], "host", "per_fix", 10.0)])
def test_without_luck_rewards_are_those_of_the_game(orders: Orders) -> None:
    """Against an attacker that only sleeps, nothing is left to chance; fixes are judged as ever."""
    plain, foreseen = (
        rollout_of(foresight, "sleep", prior="sleep=1", orders=orders)[0]
        for foresight in (False, True)
    )
    assert np.allclose(plain.rewards, foreseen.rewards, atol=1e-5)
    assert (plain.rewards != 0).any()


def test_what_was_not_foreseen_counts_as_it_happened() -> None:
    """An attacker that the belief does not expect: from the first surprise of an episode on."""
    plain, foreseen = (
        rollout_of(foresight, "coin", prior="b_line=1")[0] for foresight in (False, True)
    )
    surprised = np.vstack([plain.obs[1:, :, -2], plain.next_obs[None, :, -2]]) > 0
    same = np.isclose(plain.rewards, foreseen.rewards, atol=1e-6)
    assert surprised.mean() > 0.5
    assert same[surprised].all()
    assert not same[~surprised].all()


@pytest.mark.parametrize(
    "changes",
    [
        {"observation": "memory"},
        {"critic_truth": True},
        {"algo": "impala"},
        {"learner": "torch"},
        {"env": "CartPole-v1"},
    ],
)
def test_foresight_is_the_default_where_it_can_be_had(changes: dict[str, Any]) -> None:
    assert TrainConfig().foresight
    assert not TrainConfig(foresight=False).foresight
    assert not TrainConfig(**changes).foresight
