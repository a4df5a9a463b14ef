"""Planning: better than its policy where that errs, the same where it does not, and repeatable."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phalanx
from phalanx.cage2.batch import Batch
from phalanx.cage2.cyborg import CyborgAgent
from phalanx.cage2.rules.scenario import ACTION_SLEEP
from phalanx.cli.commands import main
from phalanx.errors import ConfigError
from phalanx.play.plan import PlanningDefender, Round, rounds_of, still_hopeful, winner
from phalanx.play.plan_config import PlanConfig
from phalanx.play.what_if import Outcomes
from tests.play.test_what_if import new_defender

QUICK: dict[str, Any] = {"plan_candidates": 4, "plan_screen": 8, "plan_turns": 4, "plan_confirm": 8}
FEW: dict[str, Any] = {"red_agent": "b_line", "horizon": 12, "episodes": 3, "seed": 2, **QUICK}


def returns(defender: Any, **settings: Any) -> Any:
    return phalanx.evaluate(defender, **{**FEW, **settings}).cells[0].returns.tolist()


def test_planning_mends_a_policy_that_only_sleeps() -> None:
    base = new_defender("memory")
    base.policy.actor[:] = 0  # type: ignore[union-attr]
    base.policy.actor[-145 + ACTION_SLEEP] = 1.0  # type: ignore[union-attr]
    game: dict[str, Any] = {"red_agent": "b_line", "horizon": 30, "episodes": 4}
    asleep = phalanx.evaluate(base, **game).cells[0].mean
    settings = PlanConfig(plan_screen=8, plan_turns=20, plan_confirm=8)
    planned = phalanx.evaluate(PlanningDefender(base, settings), **game).cells[0].mean
    assert asleep < -100
    assert planned > asleep / 3


def test_without_a_sure_gain_the_policy_plays_as_it_would_alone() -> None:
    assert returns("champion+plan", plan_margin=100.0) == returns("champion")


def test_plans_depend_on_the_seed_and_on_nothing_else() -> None:
    settings = PlanConfig(**QUICK)
    game: dict[str, Any] = {"red_agent": "b_line", "horizon": 25, "seed": 2}
    (some,) = phalanx.evaluate(PlanningDefender(new_defender(), settings), episodes=3, **game).cells
    assert some.planning is not None
    assert some.planning["share_changed"] > 0
    assert len(set(some.returns)) > 1
    (more,) = phalanx.evaluate(
        PlanningDefender(new_defender(), settings), episodes=20, num_threads=1, **game
    ).cells
    assert more.returns[:3].tolist() == some.returns.tolist()


def test_after_a_surprise_the_policy_plays_alone() -> None:
    planner = phalanx.load_defender("champion+plan")
    planner.prior = "b_line"
    scores = phalanx.evaluate(planner, **{**FEW, "red_agent": "sleep"})
    planning = scores.cells[0].planning
    assert planning is not None
    assert planning["decisions"] == 36
    assert planning["share_planned"] < 0.5
    assert scores.cells[0].mean == 0


def test_planning_beside_the_original_is_planning_in_phalanx() -> None:
    settings = PlanConfig(**QUICK, plan_gain=0.0, plan_margin=0.0)
    base = phalanx.load_defender("champion")
    assert not isinstance(base, PlanningDefender)
    here = PlanningDefender(base, settings)
    agent = CyborgAgent(PlanningDefender(base, settings))
    batch = Batch(
        1, red_agent="meander", observation="belief", prior=base.prior, seed=6, same_step=False
    )
    for episode in range(2):
        for _ in range(8):
            action = here.act(batch.shown.obs, masks=batch.action_masks())
            assert action.tolist() == [agent.get_action(batch.shown.obs[0, :52])]
            batch.play(action)
        batch.begin()
        agent.end_episode()
        here.reset()
        assert here.spent.decisions == 8 * (episode + 1)


def test_a_planner_is_loaded_by_its_name() -> None:
    planner = phalanx.load_defender("champion+plan")
    assert isinstance(planner, PlanningDefender)
    assert planner.env_settings == phalanx.load_defender("champion").env_settings
    planner.act(np.zeros((2, 456), np.float32))
    with pytest.raises(ConfigError, match="2 episodes are under way, got 3"):
        planner.act(np.zeros((3, 456), np.float32))


def test_a_folder_of_that_name_is_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", "champion", "mine+plan.npz"]) == 0
    (tmp_path / "mine+plan.npz").rename(tmp_path / "mine+plan")
    assert not isinstance(phalanx.load_defender("mine+plan"), PlanningDefender)


def outcomes(*gains: Any) -> Outcomes:
    rows = np.array([[0.0] * len(gains[0]), *gains])
    return Outcomes(np.arange(len(rows)) + 10, rows - 5)


def test_finalists_are_the_best_that_are_worth_a_look() -> None:
    screened = outcomes([0.1, 0.1], [0.04, 0.04], [1, 0.5], [-1, 2], [0, 0])
    two = Round(2, 12, least=0.05, most=2)
    assert still_hopeful(screened, two).tolist() == [10, 13, 14]
    assert still_hopeful(screened, two._replace(most=None)).tolist() == [10, 13, 14, 11]


def test_what_few_games_do_not_rule_out_is_tried_further() -> None:
    glanced = outcomes([-0.1, 0.1], [-0.1, -0.08], [-1, 0.5])  # errors of 0.1, 0.01, 0.75
    glance = Round(2, 12, least=0.05)
    assert still_hopeful(glanced, glance).tolist() == [10]
    assert still_hopeful(glanced, glance._replace(hope=1.0)).tolist() == [10, 11, 13]


def test_rounds_grow_and_the_last_have_no_end_but_the_episodes() -> None:
    rounds = rounds_of(PlanConfig(plan_screen=48, plan_turns=12, plan_confirm=192), has_critic=True)
    assert [(one.games, one.turns) for one in rounds] == [
        (16, 12),
        (48, 12),
        (48, None),
        (192, None),
    ]
    unclosed = rounds_of(PlanConfig(plan_screen=2, plan_turns=12), has_critic=False)
    assert [(one.games, one.turns) for one in unclosed[:2]] == [(2, 36), (2, 36)]


def test_the_winner_is_the_best_of_those_that_are_surely_better() -> None:
    sure, unsure, small = [1.0, 1.1, 0.9, 1.0], [9.0, -6.0, 9.0, -6.0], [0.1, 0.1, 0.1, 0.11]
    assert winner(outcomes(small, sure, unsure), margin=2.0) == 2
    assert winner(outcomes(unsure), margin=2.0) == 0
    assert winner(outcomes([-1.0, -1.0]), margin=0.0) == 0


def test_a_gain_that_a_few_games_agree_on_is_not_certain() -> None:
    own = np.array([-9.0, -3.0, -12.0, -5.0, -2.0, -8.0, -4.0, -10.0])  # spread 3.6 in 8 games
    some, large = (Outcomes(np.arange(2), np.stack([own, own + gain])) for gain in (0.5, 1.0))
    assert winner(some, margin=2.0) == 0
    assert winner(large, margin=2.0) == 1


def test_gains_are_told_on_the_same_dice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "scores.json"
    flags = "--red-agent b_line --horizon 5 12 --episodes 3 --plan-screen 4 --plan-confirm 4"
    assert (
        main(["evaluate", "champion", "champion+plan", *flags.split(), "--json", str(where)]) == 0
    )
    facts = json.loads(where.read_text())
    (gain,) = facts["gains"]
    assert (gain["policy"], gain["over"], gain["episodes"]) == ("champion+plan", "champion", 3)
    assert gain["mean"] == pytest.approx(
        facts["totals"]["champion+plan"] - facts["totals"]["champion"]
    )
    shown = capsys.readouterr().out
    assert "champion+plan minus champion against b_line, on the same dice" in shown
    assert "champion+plan: 36 decisions" in shown


def test_a_planner_is_explained() -> None:
    flags = "--episodes 2 --horizon 4 --red-agent b_line --plan-screen 4 --plan-confirm 4"
    assert main(["explain", "champion+plan", *flags.split()]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("react-restore+plan", "plan on top of a trained policy"),
        ("nowhere+plan", "no run, checkpoint or agent nowhere"),
        ("mine:Blue+plan", "plan on top of a trained policy"),
        ("champion --plan-screen 9", "--plan-screen has no effect here"),
        ("champion+plan --plan-screen 1", "plan_screen must be from 2"),
        ("champion+plan --sample", "champion+plan has no probabilities"),
    ],
)
def test_bad_input_gets_one_line(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *arguments.split()]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
