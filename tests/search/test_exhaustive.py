"""All orders judged by several learners: what is trained, what is measured, and what it says."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from phalanx.cage2.workflow import NUM_ORDERS, ORDERS, order_name, reverse_of
from phalanx.cli.commands import main
from phalanx.cli.search import show_decision, show_results
from phalanx.errors import RunError
from phalanx.search.config import SearchConfig
from phalanx.search.measured import Row, disputed, figures_of, read_rows
from phalanx.search.obedience import read_obedience
from phalanx.search.search import Search, search
from phalanx.search.words import asked, in_words, read_decision

pytestmark = pytest.mark.slow
SMALL: dict[str, Any] = {
    "num_envs": 20, "horizon": 10, "update_steps": 10, "hidden": (8,), "observation": "bits",
    "total_episodes": 600, "judge_episodes": 12, "confirm_episodes": 20, "final_episodes": 10,
    "k_epochs": 1, "minibatch_size": 200, "compliance_threshold": 0.005, "min_fixes": 0.1,
    "learners": 2, "red_agent": "b_line,meander", "num_threads": 1,
}  # fmt: skip


def small(tmp_path: Path, **changes: Any) -> SearchConfig:
    return SearchConfig(**{**SMALL, "output_dir": tmp_path, "name": "s", **changes})


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Search:
    return search(small(tmp_path_factory.mktemp("search"), defiances=(0.5,)))


def test_all_orders_are_judged_by_default_where_that_is_cheap() -> None:
    usual = SearchConfig()
    assert (usual.exhaustive, usual.learners, usual.total_episodes) == (True, 5, 150_000)
    assert usual.school_episodes * 5 + usual.finish_episodes == 150_000
    for name, value in (("policy", "separate"), ("shard", "1/2"), ("network", "a.b:c")):
        dear: dict[str, Any] = {name: value}
        config = SearchConfig(**dear)
        assert (config.exhaustive, config.learners, config.total_episodes) == (False, 1, 50_000)


def test_each_learner_plays_each_order_against_each_attacker(found: Search) -> None:
    judged = [(row.attacker, row.learner, row.workflow) for row in found.rows]
    orders = [*range(NUM_ORDERS), None]
    assert len(judged) == len(set(judged)) == 2 * 2 * len(orders)
    assert {row.episodes for row in found.rows} == {12}
    assert [visit.workflow for visit in found.visits] == list(range(NUM_ORDERS))
    assert read_rows(found.folder.path / "measured.csv") == found.rows


def test_learners_are_taught_to_follow_before_they_know_how_to_defend_without(
    found: Search,
) -> None:
    """With the prices of --alignment gate alone they ignore every order that costs something."""
    school = yaml.safe_load((found.folder.path / "school" / "config.yaml").read_text())
    assert (school["alignment"], school["defiance"]) == ("gate", 6.0)
    assert school["gate_start"] == pytest.approx(0.1 / found.config.school_part)
    assert school["turn_weights"] == "leaderboard"
    free = yaml.safe_load((found.folder.path / "free-1" / "config.yaml").read_text())
    assert free["alignment_lambda"] == 0


def test_training_is_the_budget_and_judging_comes_on_top(found: Search) -> None:
    assert found.config.budget <= found.episodes <= found.config.budget + 3 * 20
    assert found.summary()["judged"] == 2 * 2 * 121 * 12
    names = {path.name for path in found.folder.path.iterdir()}
    assert {"school", "school-2", "free-1", "free-2", "winner", "baseline"} <= names


def test_learners_meet_dice_of_their_own_and_orders_the_same_ones(found: Search) -> None:
    """Network 1 told another order, on the dice of its row, again gives that row."""
    for learner in (1, 2):
        own = [r for r in found.rows if r.workflow == 7 and r.learner == learner]
        alone = found.trainer.measure(7, learner)
        judged_again = ("reverse_compliance", "disputed_fixes", "disputed_compliance")
        known = [{name: getattr(row, name) for name in judged_again} for row in own]
        assert [dataclasses.replace(row, **k) for row, k in zip(alone, known, strict=True)] == own
    one, two = (
        found.trainer.play(found.folder.path / "school", 7, 12, dice, "x").returns
        for dice in (2_000_003, 2_000_003 + 10_000_019)
    )
    assert not np.array_equal(one, two)


def test_a_search_killed_while_judging_resumes_and_decides_the_same(
    found: Search, tmp_path: Path
) -> None:
    class Killed(Exception):
        pass

    def kill(now: Search, _run: Any = None) -> None:
        if now.phase.startswith("judging learner 2"):
            raise Killed

    with pytest.raises(Killed):
        search(small(tmp_path, defiances=(0.5,)), kill)
    again = search(small(tmp_path, defiances=(0.5,), resume=tmp_path / "s"))
    assert again.decision == found.decision
    assert again.confirmed == found.confirmed
    assert read_obedience(tmp_path / "s") == read_obedience(found.folder.path)


def test_a_decision_is_told_for_each_attacker_the_mixture_and_the_worst_case(
    found: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    decision = read_decision(found.folder.path)
    assert decision == json.loads(json.dumps(found.decision))
    assert list(decision["against"]) == ["b_line", "meander", "mixture"]
    sides = [decision["against"][name] for name in ("b_line", "meander", "mixture")]
    for one, other, both in zip(*(side["orders"] for side in sides), strict=True):
        middle = [(a + b) / 2 for a, b in zip(one["by_learner"], other["by_learner"], strict=True)]
        assert both["by_learner"] == pytest.approx(middle, abs=1e-4)
    assert decision["worst_case"] is not None
    worst = {order["workflow"]: order for order in decision["worst_case"]["orders"]}
    for number, order in worst.items():
        costs = [side["orders"][number]["cost"] or 0.0 for side in sides[:2]]
        assert order["cost"] == max(costs)
        assert order["low"] <= order["cost"] <= order["high"]
    show_decision(decision)
    show_results(found)
    out = capsys.readouterr().out
    for words in ("against meander: what orders cost", "Whoever attacks:", "without any order"):
        assert words in out


def test_a_finished_search_is_asked_without_playing_again(
    found: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phalanx.cli.search.search", None)
    folder = str(found.folder.path)
    assert main(["search", "--resume", folder, "--ask", "balanced"]) == 0
    out = capsys.readouterr().out
    assert "defender,enterprise,op_server,user,op_host costs" in out
    assert out.count("Against no order at all") == 3


def test_a_decision_that_is_none_is_one_line(found: Search, tmp_path: Path) -> None:
    text = (found.folder.path / "decision.json").read_text()
    for old, new in (
        ('"may_be_best"', '"may"'), ('"cost": 0.0', '"cost": "<b>"'), ('"against"', '"for"'),
        ('"defender,enterprise,op_server,op_host,user"', '"<script>"'), ("{", "["),
    ):  # fmt: skip
        assert old in text
        (tmp_path / "decision.json").write_text(text.replace(old, new))
        with pytest.raises(RunError, match="holds no decision"):
            read_decision(tmp_path)


def test_obedience_is_measured_for_each_price_and_the_searchs_own(found: Search) -> None:
    rows = read_obedience(found.folder.path)
    assert [(row["defiance"], row["learner"]) for row in rows] == [
        (0.5, 1), (0.5, 2), (6.0, 1), (6.0, 2),
    ]  # fmt: skip
    for row in rows:
        own, reverse, followed = (
            row[f"{which}compliance"] for which in ("", "reverse_", "disputed_")
        )
        assert 0 <= own <= 1
        assert row["return"] < 0
        # an order and its reverse differ in the fixes that only one of them allows
        assert (own > reverse) == (followed > 0.5)


def test_an_exhaustive_search_of_an_older_phalanx_is_refused(found: Search, tmp_path: Path) -> None:
    shutil.copytree(found.folder.path, tmp_path / "s")
    settings = tmp_path / "s" / "config.yaml"
    kept = [line for line in settings.read_text().splitlines() if "learners" not in line]
    settings.write_text("\n".join(kept) + "\n")
    with pytest.raises(RunError, match="was begun by an older phalanx"):
        search(small(tmp_path, resume=tmp_path / "s"))


def test_orders_are_tried_in_turn_by_several_learners(tmp_path: Path) -> None:
    """What the Gaussian process is told is their mean, with the luck that they differ in."""
    config = small(
        tmp_path, exhaustive=False, learners=3, measure_episodes=10, total_episodes=1500,
        finish_share=0.1, finalists=2, max_episodes=0, defiances=(), red_agent="b_line",
        baseline=False,
    )  # fmt: skip
    done = search(config)
    assert len(done.visits) > 7
    assert {len(visit.means) for visit in done.visits} == {3}
    assert done.episodes <= 1500 + 3 * 20
    for visit in done.visits:
        own = [row for row in done.rows if row.workflow == visit.workflow]
        assert sorted(row.learner for row in own) == [1, 2, 3]
        assert visit.measured_return == pytest.approx(np.mean([row.mean for row in own]))
    assert done.surrogate().freedom < np.inf
    assert done.decision is not None
    assert not all(order["tried"] for order in done.decision["against"]["b_line"]["orders"])


# --- what is counted ------------------------------------------------------------------------------

ROW = Row(
    attacker="b_line", learner=1, workflow=3, episodes=100, mean=-10.0, stderr=0.3,
    paired_stderr=0.1, compliance=0.9, fixes_per_episode=4.0, share_without_fix=0.1,
    reverse_compliance=0.2, disputed_fixes=2.0, disputed_compliance=0.75,
)  # fmt: skip


def test_figures_of_learners_and_attackers_are_weighted_and_pooled() -> None:
    rows = [
        ROW,
        dataclasses.replace(ROW, attacker="meander", mean=-20.0, compliance=0.5),
        dataclasses.replace(ROW, learner=2, mean=-12.0, fixes_per_episode=0.0, compliance=None),
        dataclasses.replace(ROW, learner=2, attacker="meander", mean=-24.0, fixes_per_episode=2.0),
    ]
    figures = figures_of(rows, {"b_line": 0.75, "meander": 0.25})
    assert figures["by_learner"] == "-12.5 -15"
    assert figures["measured_return"] == -13.75
    fixes = (0.75 * 4 + 0.25 * 4 + 0.25 * 2) / 2
    followed = (0.75 * 4 * 0.9 + 0.25 * 4 * 0.5 + 0.25 * 2 * 0.9) / 2
    assert figures["fixes_per_episode"] == pytest.approx(fixes)
    assert figures["compliance"] == pytest.approx(followed / fixes)
    assert figures["stderr"] == pytest.approx(0.3 * np.sqrt(2 * (0.75**2 + 0.25**2)) / 2)
    assert figures["measured_episodes"] == 400


def test_fixes_on_which_an_order_and_its_reverse_disagree_are_pooled() -> None:
    rows = [
        ROW,
        dataclasses.replace(ROW, learner=2, disputed_fixes=1.0, disputed_compliance=0.0),
        dataclasses.replace(ROW, learner=3, disputed_fixes=0.0, disputed_compliance=None),
    ]
    fixes, followed = disputed(rows, {"b_line": 1.0})
    assert (fixes, followed) == (1.0, 0.5)
    assert disputed(rows[2:], {"b_line": 1.0}) == (0.0, None)
    unknown = [dataclasses.replace(ROW, disputed_fixes=None, disputed_compliance=None)]
    assert disputed(unknown, {"b_line": 1.0}) == (None, None)


def test_they_are_counted_in_the_games_of_a_search(found: Search) -> None:
    """By whom they are followed is all that an order and its reverse differ in."""
    counted = 0.0
    for row in found.rows:
        if row.workflow is not None and row.compliance is not None:
            assert row.reverse_compliance is not None
            assert row.disputed_fixes is not None
            gap = row.fixes_per_episode * (row.compliance - row.reverse_compliance)
            share = row.disputed_compliance or 0.0
            assert gap == pytest.approx(row.disputed_fixes * (2 * share - 1), abs=1e-4)
            assert row.disputed_fixes <= row.fixes_per_episode
            counted += row.disputed_fixes
    assert counted > 0


def test_a_reverse_has_the_least_urgent_first() -> None:
    for number in range(NUM_ORDERS):
        assert ORDERS[reverse_of(number)].tolist() == ORDERS[number].tolist()[::-1]


def order(number: int, cost: float | None, **more: Any) -> dict[str, Any]:
    known, cost = cost is not None, cost or 0.0
    return {
        "workflow": number, "order": order_name(number), "tried": True, "can_be_followed": known,
        "may_be_best": known and cost < 0.3, "cost": cost if known else None,
        "low": max(0.0, cost - 0.3), "high": cost + 0.3, "return": -10.0 - cost, "compliance": 0.95,
        "reverse_compliance": 0.1, "disputed_fixes": 2.0, "disputed_compliance": 0.9 - cost / 2,
        "fixes_per_episode": 4.0, "by_learner": [-10.0], "minus_no_order": None, **more,
    }  # fmt: skip


def test_words_say_what_may_be_best_what_cannot_be_followed_and_what_is_not_known() -> None:
    gain = {"mean": 0.12, "low": -0.4, "high": 0.64}
    side: Any = {
        "best": 0, "orders": [order(0, 0.0, minus_no_order=gain), order(1, 1.0), order(119, None)],
        "demands": [["user", "enterprise"]], "no_order": None, "positions": [],
    }  # fmt: skip
    decision: Any = {
        "confidence": 0.95, "margin": 0.0, "learners": 1, "against": {"b_line": side},
        "worst_case": None,
    }  # fmt: skip
    said = " ".join(in_words(decision))
    for words in (
        "Against b_line 1 order of 2 may be the best one", "the other costs 1.00 points",
        "disagree on 2.00 fixes an episode; of these 65% followed",
        "1 order cannot be followed: those that have user before enterprise.",
        "minus the same learners without any order: +0.12 points (-0.40 to +0.64).",
        "luck of its training is not known",
    ):  # fmt: skip
        assert words in said
    two = side | {"orders": [order(0, 0.0), order(1, 0.2), order(2, 0.5), order(3, 0.7)]}
    said = " ".join(in_words(decision | {"against": {"b_line": two}}))
    assert "2 orders of 4 may be the best one" in said
    assert "the others cost 0.50 to 0.70 points. None of those that may be best costs more" in said
    assert "more than 0.50 points." in said
    said = " ".join(in_words(decision | {"against": {"b_line": two}, "margin": 0.2}))
    assert "2 orders of 4 may be the best one, or within 0.2 points of it (95%" in said
    near = decision | {"margin": 0.8}
    side["orders"][1] |= {"may_be_best": True}
    assert "it is not the best order, but may be within 0.8 points of it, c" in asked(near, 1)[0]
    side["orders"][1] |= {"low": 0.0}
    decision["learners"] = 5
    said = " ".join(in_words(decision))
    assert "no order that can be followed is better than another by more than 1.30" in said
    assert "luck of its training" not in said
    alone = decision | {"against": {"b_line": side | {"orders": side["orders"][:1]}}}
    assert f"{order_name(0)} is the only order that can be followed." in in_words(alone)[0]
    assert asked(decision, 1)[0].endswith("it may be the best order, compliance 95.0%.")
    assert "cannot be followed against b_line" in asked(decision, 119)[0]
    assert "nothing is known" in asked(decision, 5)[0]
