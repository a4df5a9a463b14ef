"""Games of all orders are shared, and give what each order gives alone."""

import numpy as np
import pytest

from phalanx.cage2.batch import Batch
from phalanx.cage2.rules.masks import useful_actions_in
from phalanx.cage2.rules.scoring import make_orders
from phalanx.cage2.workflow import CODE_SIZE, CODES, JUDGED, NUM_ORDERS, in_any_order, reverse_of
from phalanx.learn.cage2.all_orders import PlayedOrders, play_all_orders
from phalanx.learn.cage2.greedy import play_out
from phalanx.learn.compiled.policy import Policy

EPISODES, TURNS = 6, 25
ANY = in_any_order("host")


def begun(observation: str, threads: int = 1) -> Batch:
    settings = {"red_agent": "b_line=0.5,meander=0.5", "horizon": TURNS, "seed": 3}
    return Batch(EPISODES, observation=observation, num_threads=threads, **settings)  # type: ignore[arg-type]


def policy_for(batch: Batch) -> Policy:
    """An untrained one that takes what it is told to heart."""
    size = batch.shown.obs.shape[1] + CODE_SIZE
    policy = Policy(
        obs_size=size,
        truth_size=0,
        num_actions=batch.num_actions,
        hidden=(16,),
        seed=5,
    )
    first = policy.networks.actor.theta[: size * 16].reshape(size, 16)
    first[-CODE_SIZE:] *= 3
    return policy


def together(observation: str, threads: int = 1, effective: bool = False) -> PlayedOrders:
    batch = begun(observation, threads)
    reverse = JUDGED["host"][[reverse_of(number) for number in range(NUM_ORDERS)]]
    judged = np.stack([JUDGED["host"], reverse, JUDGED[ANY]])
    useful = useful_actions_in(batch.worlds)
    return play_all_orders(batch, policy_for(batch), useful, CODES, judged, TURNS, effective)


@pytest.mark.parametrize(("observation", "effective"), [("bits", False), ("belief", True)])
def test_shared_games_give_what_each_order_gives_alone(observation: str, effective: bool) -> None:
    shared = together(observation, effective=effective)
    for number in range(0, NUM_ORDERS, 7):
        ways = ((number, "host"), (reverse_of(number), "host"), (number, ANY))
        for k, (judge, rule) in enumerate(ways):
            batch = begun(observation)
            told, judges = np.tile(CODES[number], (EPISODES, 1)), np.full(EPISODES, judge)
            useful, orders = useful_actions_in(batch.worlds), make_orders([0], rule)
            alone = play_out(
                batch, policy_for(batch), useful, told, orders, judges, (TURNS,), effective
            )
            assert np.array_equal(alone.returns[:, 0], shared.returns[:, number])
            assert np.array_equal(alone.fixes[:, 0], shared.fixes[:, number])
            assert np.array_equal(alone.compliant[:, 0], shared.compliant[k, :, number])


def test_orders_part_ways_and_some_stay_together() -> None:
    returns = together("belief", effective=True).returns
    different = [len(np.unique(row)) for row in returns]
    assert max(different) > 3
    assert min(different) < NUM_ORDERS


def test_threads_make_no_difference() -> None:
    one, two = together("belief"), together("belief", threads=2)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a, b)
