"""Are sets of orders true as often as they say, where only some orders were tried?"""

from typing import Any

import numpy as np
import pytest

from phalanx.cage2.workflow import DISTANCES, NUM_ORDERS, order_name
from phalanx.search.answer import known_of
from phalanx.search.config import SearchConfig
from phalanx.search.decision import Floats, decide
from phalanx.search.surrogate import Surrogate, Visit
from tests.search.test_gp_ucb import draw

pytestmark = pytest.mark.slow
NOTHING: dict[str, Any] = {
    "shard": "1/1", "chosen_by": "gp_ucb", "acquisition": None, "posterior_mean": None,
    "posterior_std": None, "chance_of_passing": None, "top_three": "", "stderr": 0.3,
    "compliance": 0.97, "fixes_per_episode": 5.0, "share_without_fix": 0.0, "passed": True,
    "stopped_by": "none", "trained_episodes": 0, "measured_episodes": 750, "episodes": 750,
    "model_updated": True, "seconds": 0.1,
}  # fmt: skip
TRIED = 13


def visit(number: int, iteration: int, means: Floats, paired: float) -> Visit:
    return Visit(
        **NOTHING, iteration=iteration, workflow=number, order=order_name(number),
        measured_return=float(means.mean()), paired_stderr=paired, total_episodes=iteration,
        by_learner=" ".join(f"{mean:.6g}" for mean in means) if len(means) > 1 else "",
    )  # fmt: skip


@pytest.mark.parametrize("learners", [1, 3])
def test_sets_hold_the_best_order_also_if_it_was_never_tried(learners: int) -> None:
    """Of 30 searches that try 13 orders, at least 27; with one learner there is only dice luck."""
    config = SearchConfig(exhaustive=False, learners=learners)
    rng, held, sizes = np.random.default_rng(7), 0, []
    for _ in range(30):
        truth = -15 + draw(0.6, 0.4, rng)
        luck = 0.25**2 * (0.6 * np.exp(-DISTANCES / 0.4) + 0.4 * np.eye(NUM_ORDERS))
        if learners == 1:
            luck = 0.05**2 * np.eye(NUM_ORDERS)
        table = truth[:, None] + rng.normal(size=learners)
        table += rng.multivariate_normal(np.zeros(NUM_ORDERS), luck, learners).T
        visits: list[Visit] = []
        for k in range(TRIED):
            number: int | None = 7 * k
            if k >= 6:
                number = Surrogate(visits, 2.0, 0.9, 1.0).next(config.candidates())
            assert number is not None
            visits.append(visit(number, k + 1, table[number], 0.05))
        numbers, estimate = known_of(config, visits)
        assert len(numbers) == NUM_ORDERS
        found = decide(estimate)
        held += bool(found.may_be_best[truth.argmax()])
        sizes.append(found.may_be_best.sum())
    assert held >= 27
    assert np.mean(sizes) < 0.9 * NUM_ORDERS  # and say something


def test_what_one_learner_fails_at_is_known_where_orders_are_tried_in_turn() -> None:
    rng = np.random.default_rng(11)
    table = -15 + 0.05 * rng.normal(size=(NUM_ORDERS, 3))
    table[14, 1] -= 2.0
    visits = [visit(7 * k, k + 1, table[7 * k], 0.05) for k in range(TRIED)]
    _, estimate = known_of(SearchConfig(exhaustive=False, learners=3), visits)
    assert isinstance(estimate.behind, np.ndarray)
    assert estimate.behind[14] == pytest.approx(2 * 2.0 / 3, rel=0.3)
    assert estimate.behind[np.arange(NUM_ORDERS) != 14].max() < 0.2
