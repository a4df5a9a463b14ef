"""The queue of samplers, link and learner, beside what algebra says of it."""

import pytest

from phalanx.bench.scaling import Costs, plan, simulate, with_step_cost

SLOW_PLAY = Costs(
    steps=100, play_s=1.0, learn_s=0.01, ask_s=0.0, rollout_bytes=1000, weights_bytes=0
)
SLOW_LINK = Costs(
    steps=100, play_s=0.1, learn_s=0.01, ask_s=0.0, rollout_bytes=125_000_000, weights_bytes=0
)


def test_few_samplers_are_never_waiting() -> None:
    for samplers in (1, 10, 50):
        assert simulate(SLOW_PLAY, samplers).steps_per_s == pytest.approx(100 * samplers, rel=0.03)
        assert simulate(SLOW_PLAY, samplers).samplers_busy > 0.97


def test_many_samplers_get_what_the_learner_can_do() -> None:
    outcome = simulate(SLOW_PLAY, 500)
    assert outcome.steps_per_s == pytest.approx(100 / SLOW_PLAY.learn_s, rel=0.01)
    assert outcome.learner_busy == pytest.approx(1, abs=0.01)
    assert outcome.samplers_busy == pytest.approx(0.2, abs=0.01)
    assert SLOW_PLAY.most_samplers == pytest.approx(100, rel=0.01)


def test_a_slow_link_is_the_bound_where_it_is_slower_than_the_learner() -> None:
    assert SLOW_LINK.link_s == pytest.approx(0.1)
    assert simulate(SLOW_LINK, 64).steps_per_s == pytest.approx(100 / SLOW_LINK.link_s, rel=0.01)


def test_a_slow_environment_keeps_more_samplers_busy() -> None:
    slow = with_step_cost(SLOW_PLAY, 3e-3)
    assert slow.play_s == pytest.approx(1.3)
    assert slow.most_samplers > SLOW_PLAY.most_samplers
    rows = plan(SLOW_PLAY)
    assert [row["2 samplers (steps/s)"] for row in rows] == pytest.approx(
        [2 * 100 / play_s for play_s in (1.0, 1.01, 1.3)], rel=0.03
    )
    assert rows[-1]["1000 samplers (learner busy)"] == pytest.approx(1, abs=0.01)
