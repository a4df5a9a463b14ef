"""What episodes and updates come to, counted by hand."""

import math
from collections import Counter
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from phalanx.cage2.rules.scoring import CONDUCT
from phalanx.learn.rollout import empty_rollout
from phalanx.stopwatch import PARTS, Stopwatch
from phalanx.training.cage2_extension import (
    Cage2Extension,
    compliance_in_words,
    compliance_of,
    passes_gate,
)
from phalanx.training.config import TrainConfig
from phalanx.training.run import Run
from phalanx.training.update_record import Episode, UpdateRecord, added_up, episodes_of


def test_an_episode_without_a_workflow_followed_none() -> None:
    assert Episode(3, "b_line", 30, -1.0) == (3, "b_line", 30, -1.0, 0, 0, 0, 0.0, 0.0)


def followed(*fixes: tuple[int, int]) -> dict[str, float]:
    """By episodes of so many fixes, so many of them compliant."""
    return compliance_of([Episode(0, "b_line", 30, -1.0, 0, n, k) for n, k in fixes])


def test_compliance_is_pooled_over_fixes_not_over_episodes() -> None:
    figures = followed((8, 8), (2, 0), (0, 0), (0, 0))
    assert figures == {"compliance": 0.8, "fixes_per_episode": 2.5, "share_without_fix": 0.5}
    assert compliance_in_words(figures) == "compliance 80.0%, 2.5 fixes, 50% without"


def test_without_fixes_there_is_no_compliance() -> None:
    figures = followed((0, 0))
    assert math.isnan(figures["compliance"])
    assert figures["share_without_fix"] == 1
    assert compliance_in_words(figures).startswith("compliance -, 0.0 fixes")
    assert all(math.isnan(value) for value in followed().values())


@pytest.mark.parametrize(
    ("fixes", "passes"),
    [((10, 9), True), ((10, 8), False), ((1, 1), True), ((0, 0), False), ((20, 19), True)],
)
def test_a_policy_passes_at_its_threshold_and_with_enough_fixes(
    fixes: tuple[int, int], passes: bool
) -> None:
    config = TrainConfig(compliance_threshold=0.9, min_fixes=1)
    assert passes_gate(followed(fixes), config) is passes
    few = TrainConfig(compliance_threshold=0.9, min_fixes=fixes[0] + 1)
    assert passes_gate(followed(fixes), few) is False


def test_episodes_that_count_are_taken_from_a_rollout() -> None:
    notes = np.zeros((3, 2), CONDUCT)
    rollout = empty_rollout(3, np.zeros((2, 1), np.float32), 0, 2, notes=notes)
    rollout.ended[1], rollout.counted[1, 1] = True, True
    rollout.returns[1, 1], rollout.lengths[1, 1], rollout.kinds[1, 1] = -2.5, 7, 1
    conduct = rollout.notes[1, 1]
    conduct["order"], conduct["fixes"], conduct["compliant"], conduct["score"] = 5, 4, 3, 0.5
    wanted = Episode(11, "meander", 7, -2.5, 5, 4, 3, 0.5)
    assert episodes_of(rollout, ("b_line", "meander"), first_env=10) == [wanted]


def test_most_games_note_nothing_of_an_episode() -> None:
    rollout = empty_rollout(1, np.zeros((1, 1), np.float32), 0, 2)
    rollout.counted[:], rollout.returns[:], rollout.lengths[:] = True, 3.0, 9
    assert episodes_of(rollout, ("CartPole-v1",)) == [Episode(0, "CartPole-v1", 9, 3.0)]


def updated(number: int, **changes: Any) -> UpdateRecord:
    parts: dict[str, Any] = {
        "updates": number,
        "steps": 10 * number,
        "dropped": number,
        "lags": Counter({0: 1, number: 2}),
        "episodes": [Episode(number, "b_line", 30, -1.0)],
        "rate": 0.1 * number,
        "entropy_weight": 0.01 * number,
        "metrics": {"kl": float(number)},
        "collect_s": 1.5,
        "learn_s": 0.5,
        "split": {"simulator": 1.5, "learning": 0.5},
    }
    return UpdateRecord(**parts | changes)


def test_updates_are_added_up_or_averaged_and_schedules_are_the_latest() -> None:
    total = added_up([updated(1), updated(3)])
    assert (total.updates, total.steps, total.dropped) == (4, 40, 4)
    assert total.lags == {0: 2, 1: 2, 3: 2}
    assert [episode.env for episode in total.episodes] == [1, 3]
    assert total.rate == pytest.approx(0.3)
    assert total.entropy_weight == 0.03
    assert total.metrics == {"kl": 2.0}
    assert (total.collect_s, total.learn_s) == (3.0, 1.0)
    assert total.split == {"simulator": 3.0, "learning": 1.0}


def test_the_row_of_an_episode_that_follows_a_workflow_has_four_decimals() -> None:
    episode = Episode(0, "b_line", 30, -1.0, 5, 4, 3, -0.123456)
    assert Cage2Extension(TrainConfig(workflow="all")).episode_row(episode) == (5, 4, 3, -0.1235)
    assert Cage2Extension(TrainConfig()).episode_row(episode) == ()


def test_the_time_of_workers_is_spent_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Mock(perf_counter=Mock(side_effect=[100.0, 103.0, 103.5]))
    monkeypatch.setattr("phalanx.stopwatch.time", clock)
    run = Mock(watch=Stopwatch())
    run.workers.num_workers = 2
    spent = dict.fromkeys(PARTS, 0.0) | {"simulator": 1.5, "learning": 0.5}
    assert Run._record_all(run, lambda: [updated(1), updated(2)])
    assert run.watch.seconds == spent | {"idle": 1.0}
    assert not Run._record_all(run, list)
    assert run.watch.seconds == spent | {"idle": 1.5}


def test_returns_have_four_decimals() -> None:
    rollout = empty_rollout(1, np.zeros((1, 1), np.float32), 0, 2)
    rollout.counted[:], rollout.returns[:], rollout.lengths[:] = True, -12.3, 9
    assert episodes_of(rollout, ("b_line",)) == [Episode(0, "b_line", 9, -12.3)]


def test_only_where_a_workflow_is_followed_it_is_said_how_well() -> None:
    episodes = [Episode(0, "b_line", 30, -1.0, 0, 4, 3)]
    words = "compliance 75.0%, 4.0 fixes, 0% without"
    assert Cage2Extension(TrainConfig(workflow="all")).in_words(episodes) == {"workflow": words}
    assert Cage2Extension(TrainConfig()).in_words(episodes) == {}
