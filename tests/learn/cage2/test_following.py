"""Orders of repair while training: drawn, told, judged and rewarded inside the compiled step."""

from typing import Any

import numpy as np
import pytest

from phalanx.cage2.batch import Batch
from phalanx.cage2.defenders import Greedy
from phalanx.cage2.referee import Referee, is_fix
from phalanx.cage2.rules.observation import TRUTH_SIZE
from phalanx.cage2.rules.scenario import HOST_OF_ACTION, NUM_ACTIONS, USER0
from phalanx.cage2.rules.scoring import NO_ORDERS, Orders, make_orders
from phalanx.cage2.workflow import CODE_SIZE, CODES, NUM_ORDERS, judge, parse_order
from phalanx.learn.cage2.games import Shaping
from phalanx.learn.cage2.greedy import play_out
from phalanx.learn.cage2.sampler import CompiledSampler
from phalanx.learn.cage2.torch_sampler import TorchSampler
from phalanx.learn.compiled.policy import Policy
from phalanx.learn.torch.networks import ActorCritic

HORIZON = 40
FLAT = Shaping(np.ones(HORIZON, np.float32), 0.0, 1.0, 1.0, 0.0)


def one_policy(told: int = CODE_SIZE, secrets: int = TRUTH_SIZE) -> Policy:
    policy = Policy(52 + told, NUM_ACTIONS, hidden=(16,), truth_size=secrets, seed=1)
    policy.theta += np.random.default_rng(2).normal(size=len(policy.theta)).astype(np.float32) / 10
    return policy


def make_sampler(
    orders: Orders,
    size: int = 300,
    turns: int = HORIZON,
    policy: Policy | None = None,
    threads: int = 1,
    kind: Any = CompiledSampler,
) -> Any:
    batch = Batch(size, red_agent="meander", horizon=HORIZON, seed=9, num_threads=threads)
    network = policy or one_policy()
    options: dict[str, Any] = {"useful": np.ones(NUM_ACTIONS, np.bool_), "orders": orders}
    options["condition"] = np.zeros((size, 0), np.float32)
    if kind is TorchSampler:
        options["truth_size"] = network.truth_size
    return kind(batch, ActorCritic(network) if kind is TorchSampler else network, turns, **options)


def all_orders(alignment: str = "delta", weight: float = 10.0) -> Orders:
    return make_orders(range(NUM_ORDERS), "host", alignment, weight)


@pytest.mark.parametrize("rule", ["host", "type"])
def test_the_compiled_step_judges_as_the_referee(rule: str) -> None:
    """Actions of a rollout, played again in a plain batch and judged turn by turn."""
    sampler = make_sampler(make_orders(range(NUM_ORDERS), rule, "delta", 10.0))
    drawn = sampler.conducts["order"].copy()
    rollout = sampler.collect(FLAT)
    batch = Batch(300, red_agent="meander", horizon=HORIZON, seed=9)
    referee = Referee(drawn, rule)
    score = np.zeros(300)
    for t in range(HORIZON):
        actions = rollout.actions[t].astype(np.int64)
        referee.before(actions, lambda: batch.nets["sessions"])
        rewards = batch.play(actions).rewards
        compliance = referee.compliant / np.maximum(1, referee.fixes)
        assert np.allclose(rollout.rewards[t] - rewards, 10 * compliance - score, atol=1e-4)
        score = 10 * compliance
    last = rollout.notes[-1]
    assert np.array_equal(last["fixes"], referee.fixes)
    assert np.array_equal(last["compliant"], referee.compliant)
    assert np.array_equal(last["order"], drawn)
    assert 0 < referee.compliant.sum() < referee.fixes.sum()


def test_delta_adds_up_to_lambda_times_compliance_over_ten_thousand_episodes() -> None:
    sampler = make_sampler(all_orders(weight=10.0), size=2500, turns=4 * HORIZON, threads=2)
    plain = Batch(2500, red_agent="meander", horizon=HORIZON, seed=9)
    rollout = sampler.collect(FLAT)
    earned = np.stack([plain.play(row.astype(np.int64)).rewards.copy() for row in rollout.actions])
    aligned = rollout.rewards.astype(np.float64) - earned.astype(np.float32)
    sums = aligned.reshape(4, HORIZON, 2500).sum(axis=1)
    ended = rollout.notes[HORIZON - 1 :: HORIZON]
    assert ended.size == 10_000
    wanted = 10 * ended["compliant"] / np.maximum(1, ended["fixes"])
    assert np.abs(ended["score"] - wanted).max() < 1e-5
    assert np.abs(sums - wanted).max() < 1e-4  # the learner's rewards are float32 sums


def test_per_fix_gives_or_takes_a_twentieth() -> None:
    rollout = make_sampler(all_orders("per_fix", 4.0)).collect(FLAT)
    last = rollout.notes[-1]
    right = last["compliant"].astype(float)
    wrong = last["fixes"] - right
    assert np.allclose(last["score"], (right - wrong) * 4 / 20)
    assert right.any()
    assert wrong.any()


def test_gate_pays_for_fixes_that_evict_and_only_for_those() -> None:
    orders = make_orders([parse_order("critical_first")], "host", "gate", 10.0)
    orders.gains[:], orders.costs[:], orders.defied[:] = 1.0, 10.0, 100.0
    sampler = make_sampler(orders)
    rollout = sampler.collect(FLAT)
    batch = Batch(300, red_agent="meander", horizon=HORIZON, seed=9)
    seen: set[bool] = set()
    wanted: Any = np.zeros(300)
    defied = 0
    for t in range(HORIZON):
        actions = rollout.actions[t].astype(np.int64)
        before = batch.nets["sessions"].copy()
        targets = HOST_OF_ACTION[actions]
        right = judge("host", parse_order("critical_first"), targets, before) & is_fix(actions)
        held = (before >> targets & 1 != 0) & (targets != USER0)
        batch.play(actions)
        evicts = (batch.shown.infected_after >> targets) & 1 == 0
        price = np.where(held, -110, -10)  # of a healthy host, or of one that must wait
        wanted += np.where(right, np.where(evicts, 1, -1), price * is_fix(actions))
        seen |= {bool(one) for one in evicts[right]}
        defied += (held & is_fix(actions) & ~right).sum()
    assert np.allclose(rollout.notes[-1]["score"], wanted)
    assert seen == {True, False}
    assert defied > 0


def test_each_episode_draws_its_order_and_the_policy_is_told() -> None:
    sampler = make_sampler(all_orders(), size=3000, turns=2 * HORIZON)
    first = sampler.conducts["order"].copy()
    rollout = sampler.collect(FLAT)
    codes = rollout.obs[:, :, 52:]
    assert np.array_equal(codes[0], CODES[first])
    assert np.array_equal(codes[HORIZON - 1], CODES[first])
    second = rollout.notes[2 * HORIZON - 1]["order"]
    assert np.array_equal(codes[HORIZON], CODES[second])
    assert (first != second).mean() > 0.95
    counts = np.bincount(np.concatenate([first, second]), minlength=NUM_ORDERS)
    assert np.abs(counts - 50).max() < 5 * 50**0.5  # each about as often as the others
    assert np.array_equal(rollout.next_obs[:, 52:], CODES[sampler.conducts["order"]])


def test_neither_actor_nor_critic_knows_how_the_fixes_were_judged() -> None:
    """Told that, a critic holds fixes of healthy hosts against a policy for which they are free."""
    rollout = make_sampler(all_orders()).collect(FLAT)
    assert rollout.obs.shape[2] == 52 + CODE_SIZE
    assert rollout.truth.shape[2] == TRUTH_SIZE


@pytest.mark.parametrize("threads", [2, 3])
def test_rollouts_with_orders_do_not_depend_on_threads(threads: int) -> None:
    one = make_sampler(all_orders()).collect(FLAT)
    several = make_sampler(all_orders(), threads=threads).collect(FLAT)
    for name in one._fields:
        assert getattr(one, name).tobytes() == getattr(several, name).tobytes(), name


def test_the_torch_sampler_follows_the_same_orders() -> None:
    compiled = make_sampler(all_orders()).collect(FLAT)
    plain = make_sampler(all_orders(), kind=TorchSampler).collect(FLAT)
    same = (compiled.actions == plain.actions).all(axis=0)
    assert same.mean() > 0.97
    assert np.array_equal(compiled.notes[:, same], plain.notes[:, same])
    assert np.array_equal(compiled.truth[:, same], plain.truth[:, same])
    assert np.array_equal(compiled.obs[:, same], plain.obs[:, same])


def test_games_in_the_middle_are_saved_with_their_orders() -> None:
    whole, halves = (make_sampler(all_orders(), turns=15) for _ in range(2))
    whole.collect(FLAT)
    halves.collect(FLAT)
    saved = {name: array.copy() for name, array in halves.save().items()}
    again = make_sampler(all_orders(), turns=15)
    again.load(saved)
    for _ in range(3):
        one, other = whole.collect(FLAT), again.collect(FLAT)
        assert all(getattr(one, k).tobytes() == getattr(other, k).tobytes() for k in one._fields)


def test_without_a_price_nothing_is_told_and_games_are_as_without_orders() -> None:
    silent = make_orders(range(NUM_ORDERS), "host", "delta", 0.0)
    policy = one_policy(0, TRUTH_SIZE)
    judged = make_sampler(silent, policy=policy).collect(FLAT)
    free = make_sampler(NO_ORDERS, policy=policy).collect(FLAT)
    for name in set(free._fields) - {"notes"}:
        assert getattr(judged, name).tobytes() == getattr(free, name).tobytes(), name
    assert judged.notes[-1]["fixes"].sum() > 0


@pytest.mark.parametrize("red_agent", ["b_line", "meander"])
def test_the_greedy_defender_follows_every_order_exactly(red_agent: str) -> None:
    orders = np.arange(NUM_ORDERS)
    batch = Batch(NUM_ORDERS, red_agent=red_agent, horizon=100, seed=3)
    defender, referee = Greedy(orders), Referee(orders, "host")
    for _ in range(99):
        actions = defender.act_on_truth(batch.nets)
        referee.before(actions, lambda: batch.nets["sessions"])
        batch.play(actions)
    assert (referee.fixes > 5).all()
    assert np.array_equal(referee.compliant, referee.fixes)


def test_whole_episodes_are_played_as_turn_by_turn() -> None:
    policy = one_policy()
    orders = np.arange(256) % NUM_ORDERS
    useful = np.ones(NUM_ACTIONS, np.bool_)
    batch = Batch(256, red_agent="meander", horizon=HORIZON, seed=5, same_step=False)
    played = play_out(batch, policy, useful, CODES[orders], make_orders([0]), orders, (10, HORIZON))
    plain = Batch(256, red_agent="meander", horizon=HORIZON, seed=5, same_step=False)
    referee = Referee(orders, "host")
    for turn in range(1, HORIZON + 1):
        obs = np.hstack([plain.shown.obs, CODES[orders]])
        actions = policy.act(obs, plain.action_masks())
        referee.before(actions, lambda: plain.nets["sessions"])
        plain.play(actions)
        if turn in (10, HORIZON):
            k = (10, HORIZON).index(turn)
            assert np.allclose(played.returns[:, k], plain.nets["tenths"] / 10)
            assert np.array_equal(played.fixes[:, k], referee.fixes)
            assert np.array_equal(played.compliant[:, k], referee.compliant)
    assert referee.fixes.any()


def test_parse_and_codes_are_one_hot_by_position() -> None:
    code = CODES[parse_order("user,op_host,op_server,enterprise,defender")].reshape(5, 5)
    assert code.argmax(axis=1).tolist() == [4, 3, 2, 1, 0]
