"""Searching the orders: what is tried, what is spent, what is believed, and how shards join."""

import csv
import dataclasses
import json
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phalanx.cage2.workflow import (
    DISTANCES,
    NAMED_ORDERS,
    NUM_ORDERS,
    order_name,
    order_number,
    short_name,
)
from phalanx.cli.commands import main
from phalanx.cli.search import draw, show_results, show_shard
from phalanx.errors import ConfigError, PhalanxError, RunError, WorkerError
from phalanx.play.cells import play_cells
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.search.config import SearchConfig
from phalanx.search.logs import (
    check_that_they_fit,
    joined_settings,
    read_shard,
    read_summary,
)
from phalanx.search.measurer import CONFIRM, FINAL
from phalanx.search.search import Search, search
from phalanx.search.surrogate import Surrogate, Visit
from phalanx.search.trainer import Trainer
from phalanx.settings.yaml_file import read_settings
from phalanx.training.schedules import learning_rate_at

pytestmark = pytest.mark.slow
SMALL: dict[str, Any] = {
    "num_envs": 40, "horizon": 20, "update_steps": 20, "hidden": (8,), "observation": "bits",
    "total_episodes": 4000, "measure_episodes": 60, "final_episodes": 50, "confirm_episodes": 80,
    "finalists": 3, "k_epochs": 1, "minibatch_size": 400, "compliance_threshold": 0.05,
    "max_episodes": 0, "finish_share": 0.25, "exhaustive": False,
    "margin": 0.0,
}  # fmt: skip


def small(tmp_path: Path, name: str, **changes: Any) -> SearchConfig:
    return SearchConfig(**{**SMALL, "output_dir": tmp_path, "name": name, **changes})


def table(path: Path, name: str) -> list[dict[str, str]]:
    with (path / f"{name}.csv").open() as file:
        return [
            {k: v for k, v in row.items() if k[-2:] != "_s" and k != "seconds"}
            for row in csv.DictReader(file)
        ]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Search:
    return search(small(tmp_path_factory.mktemp("search"), "s"))


OWN: dict[str, Any] = {"max_episodes": 280, "checkpoint_every": 2, "compliance_threshold": 0.14}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """A search in which orders get training of their own."""
    done = search(small(tmp_path_factory.mktemp("own"), "s", **OWN))
    assert max(visit.trained_episodes for visit in done.visits) > 120
    return done


def test_the_budget_is_counted_in_real_episodes(found: Search) -> None:
    """School, visits, finals and the winner's own training, to within one batch."""
    assert found.config.budget <= found.episodes <= found.config.budget + 40
    path = found.folder.path
    runs = ("school", "winner", *(f"workflows/{visit.workflow:03d}" for visit in found.visits))
    trained = sum(len(table(path / run, "episodes")) for run in runs if (path / run).exists())
    measured = sum(visit.episodes - visit.trained_episodes for visit in found.visits)
    finals = sum(row["episodes"] for row in found.finals)
    again = 50  # the winner after its own training
    assert found.episodes == trained + measured + finals + again
    assert measured % 60 == 0
    assert found.visits[-1].total_episodes == found.episodes - finals - found.spent["finish"]


def test_the_orders_that_have_names_come_first_and_none_comes_twice(found: Search) -> None:
    tried = [visit.workflow for visit in found.visits]
    assert tried[:6] == [order_number(order) for order in NAMED_ORDERS.values()]
    assert {visit.chosen_by for visit in found.visits[6:]} == {"gp_ucb"}
    assert len(set(tried)) == len(tried) > 8


def test_what_cannot_gain_more_than_the_margin_is_not_tried_and_the_winner_is_trained_for_longer(
    found: Search, tmp_path: Path
) -> None:
    eased = search(small(tmp_path, "s", margin=1000.0, baseline=False))
    assert [visit.chosen_by for visit in eased.visits] == ["named"] * 6
    assert eased.config.budget <= eased.episodes <= eased.config.budget + 40
    saved = (len(found.visits) - 6) * 60
    assert eased.spent["finish"] >= found.spent["finish"] + saved - 40
    c, winner = eased.config, read_settings(eased.folder.path / "winner" / "config.yaml")
    rates = [learning_rate_at(c, share) for share in (c.school_part, 0.0)]
    assert (
        rates[0] < float(str(winner["learning_rate"])) < rates[1]
    )  # there is more to come than planned


def test_each_choice_is_the_one_with_the_highest_bound_then(found: Search) -> None:
    c = found.config
    for k, visit in enumerate(found.visits):
        if visit.chosen_by != "gp_ucb":
            continue
        before = Surrogate(found.visits[:k], c.gp_beta, c.compliance_threshold, c.min_fixes)
        assert before.next(c.candidates()) == visit.workflow
        if before.know_returns:
            assert visit.acquisition == before.bounds[visit.workflow]
            assert visit.posterior_mean == before.returns.mean[visit.workflow]


def test_the_folder_holds_what_was_found(found: Search) -> None:
    path = found.folder.path
    rows = table(path, "search")
    assert len(rows) == len(found.visits)
    assert rows[0]["order"] == "defender,op_server,enterprise,op_host,user"
    updates = table(path, "updates")
    assert {"school", "training the winner"} <= {row["phase"] for row in updates}
    assert updates[-1]["order"] == order_name(found.winner or 0)
    totals = [int(row["total_episodes"]) for row in updates]
    assert totals == sorted(totals)
    summary = json.loads((path / "summary.json").read_text())
    assert summary["state"] == "finished"
    names = [row["name"] for row in summary["confirmed"]]
    assert names[0] == "winner"
    assert names[-1] == "without workflows"
    assert summary["confirmed"][0]["episodes"] == 80
    assert summary["winner_minus_baseline"]["mean"] == pytest.approx(
        summary["confirmed"][0]["mean"] - summary["confirmed"][-1]["mean"]
    )


def test_the_last_table_is_played_on_dice_of_its_own_that_all_share(found: Search) -> None:
    path, trainer = found.folder.path, found.trainer
    policies = {"winner": path / "policies" / "winner.npz", "without workflows": path / "baseline"}
    assert len(found.confirmed) > 2
    for row in found.confirmed:
        number: Any = found.winner if row["workflow"] is None else row["workflow"]
        policy = policies.get(row["name"]) or trainer.policy_of(number)
        for dice, is_equal in ((CONFIRM, True), (FINAL, False)):
            again = trainer.play(policy, number, 80, dice, "again").figures
            assert ((again["mean"], again["stderr"]) == (row["mean"], row["stderr"])) == is_equal


def test_the_winner_is_the_best_of_the_finals_that_passed(found: Search) -> None:
    best = max(found.finals, key=lambda row: float(row["mean"]))
    assert found.winner == best["workflow"]
    cells = list(
        play_cells(
            EvaluateConfig(
                target=(str(found.folder.path / "policies" / "winner.npz"),),
                red_agent=("b_line",), horizon=(20,), episodes=50,
            )
        )
    )  # fmt: skip
    assert cells[0].workflow == order_name(found.winner or 0)
    assert cells[0].compliance is not None


def test_a_killed_search_resumes_and_finds_the_same(found: Search, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        search(small(tmp_path, "s"), kill_when(lambda now, run: len(now.visits) == 4))
    again = search(small(tmp_path, "s", resume=tmp_path / "s"))
    assert table(tmp_path / "s", "search") == table(found.folder.path, "search")
    assert table(tmp_path / "s", "updates") == table(found.folder.path, "updates")
    assert (again.winner, again.episodes) == (found.winner, found.episodes)
    assert again.confirmed == found.confirmed


class Killed(Exception):
    """Nothing is saved after it: as SIGKILL."""


def kill_when(due: Callable[[Search, Any], bool]) -> Callable[..., None]:
    def heard(now: Search, run: Any = None) -> None:
        if due(now, run):
            raise Killed

    return heard


@pytest.mark.parametrize("place", ["workflows", "winner", "baseline"])
def test_a_search_killed_while_training_resumes_from_anywhere_and_finds_the_same(
    place: str, own: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def due(now: Search, run: Any) -> bool:
        return run is not None and place in run.folder.path.parts and run.updates == 3

    with pytest.raises(Killed):
        search(small(tmp_path, "s", **OWN), kill_when(due))
    monkeypatch.chdir(tmp_path)
    again = search(small(tmp_path, "s", **OWN, resume=Path("s")))
    assert table(tmp_path / "s", "search") == table(own.folder.path, "search")
    assert table(tmp_path / "s", "updates") == table(own.folder.path, "updates")
    assert (again.winner, again.spent) == (own.winner, own.spent)
    assert again.confirmed == own.confirmed


def test_a_stopped_search_says_what_its_training_had_played(tmp_path: Path) -> None:
    def interrupt(_now: Search, run: Any = None) -> None:
        if run is not None:
            signal.raise_signal(signal.SIGINT)

    stopped = search(small(tmp_path, "stopped"), interrupt)
    assert stopped.stopped
    unfinished = json.loads((tmp_path / "stopped" / "summary.json").read_text())["unfinished"]
    assert unfinished == stopped.trainer.unfinished > 0


def test_a_search_whose_ray_is_lost_has_failed_and_goes_on_from_there(
    found: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(trainer: Trainer, number: int, left: int, tried: list[int]) -> Any:
        if len(tried) == 4:
            raise WorkerError("Ray is lost")
        return try_order(trainer, number, left, tried)

    try_order = Trainer.try_order
    with monkeypatch.context() as patched, pytest.raises(WorkerError, match="Ray is lost"):
        patched.setattr(Trainer, "try_order", lost)
        search(small(tmp_path, "s"))
    assert json.loads((tmp_path / "s" / "summary.json").read_text())["state"] == "failed"
    assert len(table(tmp_path / "s", "search")) == 4
    again = search(small(tmp_path, "s", resume=tmp_path / "s"))
    assert again.confirmed == found.confirmed


def test_training_that_was_killed_before_its_summary_is_finished(
    own: Search, tmp_path: Path
) -> None:
    shutil.copytree(own.folder.path, tmp_path / "s")
    for path in (tmp_path / "s").glob("*/summary.json"):
        path.unlink()
    again = search(small(tmp_path, "s", **OWN, resume=tmp_path / "s"))
    assert again.spent == own.spent
    assert again.confirmed == own.confirmed


@pytest.mark.parametrize("policy", ["shared", "separate"])
def test_exhaustive_leaves_all_orders_their_share(policy: str, tmp_path: Path) -> None:
    """The first orders' own training does not use up what the last are measured with."""
    config = small(
        tmp_path, "all", exhaustive=True, policy=policy, shard="1/10", total_episodes=20_000,
        max_episodes=2000, measure_episodes=4, compliance_threshold=0.14, school_share=0.1,
        patience=100,
    )  # fmt: skip
    done = search(config)
    assert [visit.workflow for visit in done.visits] == list(range(0, NUM_ORDERS, 10))
    assert max(visit.trained_episodes for visit in done.visits) > 0
    assert done.episodes <= 2000 * 0.75 + 40


def test_separate_networks_begin_with_the_nearest_order(tmp_path: Path) -> None:
    config = small(tmp_path, "own", policy="separate", baseline=False, max_episodes=120)
    done = search(config)
    assert len(done.visits) > 3
    for k, visit in enumerate(done.visits):
        settings = json.loads(json.dumps(_config(done, f"workflows/{visit.workflow:03d}")))
        start = settings["start_from"]
        before = [other.workflow for other in done.visits[:k]]
        if not before:
            assert start.endswith("school")
        else:
            nearest = min(before, key=lambda other: (DISTANCES[visit.workflow, other], other))
            assert start.endswith(f"{nearest:03d}")
        assert visit.trained_episodes > 0


def _config(done: Search, name: str) -> Any:
    import yaml

    return yaml.safe_load((done.folder.path / name / "config.yaml").read_text())


# --- shards ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> tuple[Search, Search]:
    folder = tmp_path_factory.mktemp("shards")
    one, two = (search(small(folder, f"{k}", shard=f"{k}/2")) for k in (1, 2))
    return one, two


def test_shards_try_orders_of_their_own_with_half_the_budget(
    shards: tuple[Search, Search],
) -> None:
    one, two = ({visit.workflow for visit in shard.visits} for shard in shards)
    assert len(one) > 3
    assert not one & two
    assert all(shard.episodes <= 2000 + 40 for shard in shards)
    assert all(shard.winner is None for shard in shards)


def test_merged_logs_are_the_union(shards: tuple[Search, Search], tmp_path: Path) -> None:
    folders = tuple(shard.folder.path for shard in shards)
    both = search(SearchConfig(merge=folders, output_dir=tmp_path, name="both", baseline=False))
    rows = [row for folder in folders for row in table(folder, "search")]
    merged = table(tmp_path / "both", "search")
    assert sorted(map(str, merged)) == sorted(map(str, rows))
    updates = [row for folder in folders for row in table(folder, "updates")]
    kept = [row for row in table(tmp_path / "both", "updates") if row["shard"] != "1/1"]
    assert sorted(map(str, kept)) == sorted(map(str, updates))
    assert both.winner in {visit.workflow for shard in shards for visit in shard.visits}
    assert both.episodes <= 4000 + 40


def test_a_merge_takes_over_the_settings_of_its_shards(
    shards: tuple[Search, Search], tmp_path: Path
) -> None:
    folders = tuple(shard.folder.path for shard in shards)
    both = search(SearchConfig(merge=folders, output_dir=tmp_path, name="both"))
    assert both.config.as_dict() == shards[0].config.as_dict() | {"shard": "1/1"}
    assert both.config.confirm_episodes == SMALL["confirm_episodes"]
    assert {row["episodes"] for row in both.confirmed} == {SMALL["confirm_episodes"]}


def shard_with(tmp_path: Path, shards: tuple[Search, Search], **changes: Any) -> tuple[Path, ...]:
    """The same shards, searched with other settings."""
    folders = tuple(tmp_path / f"{k}" for k in range(len(shards)))
    for folder, shard in zip(folders, shards, strict=True):
        shutil.copytree(shard.folder.path, folder)
        facts = json.loads((folder / "summary.json").read_text())
        facts["config"] |= changes
        (folder / "summary.json").write_text(json.dumps(facts))
    return folders


def test_what_is_given_to_a_merge_takes_precedence_where_it_can(
    shards: tuple[Search, Search], tmp_path: Path
) -> None:
    folders = shard_with(tmp_path, shards, baseline=False, confirm_episodes=60)
    sources = [read_shard(folder) for folder in folders]
    joined = joined_settings(SearchConfig(merge=folders), sources)
    assert (joined.baseline, joined.confirm_episodes) == (False, 60)
    asked = SearchConfig(merge=folders, baseline=True, confirm_episodes=4000)  # the defaults
    joined = joined_settings(asked, sources)
    assert (joined.baseline, joined.confirm_episodes) == (True, 4000)
    with pytest.raises(RunError, match="seed is 3 here, and the shards were searched with 0"):
        joined_settings(SearchConfig(merge=folders, seed=3), sources)
    flags = ["--merge", *map(str, folders), "--seed", "3", "--output-dir", str(tmp_path / "runs")]
    assert main(["search", *flags]) == 2
    assert not (tmp_path / "runs").exists()


def test_a_shard_does_not_decide_what_code_runs(
    shards: tuple[Search, Search], tmp_path: Path
) -> None:
    folders = shard_with(tmp_path, shards, network="http.server:test")
    with pytest.raises(ConfigError, match="a file never decides what runs"):
        search(SearchConfig(merge=folders, output_dir=tmp_path, name="both"))


def test_a_shard_prints_its_table_also_when_no_order_passed(
    shards: tuple[Search, Search], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    failed = [dataclasses.replace(visit, passed=False) for visit in shards[0].visits]
    monkeypatch.setattr(shards[0], "visits", failed)
    show_shard(shards[0])
    said = capsys.readouterr().out
    assert said.count("did not pass the gate") == min(10, len(failed))
    assert all(short_name(visit.workflow) in said for visit in failed[:1])
    assert "phalanx search --merge" in said


def test_a_search_without_matplotlib_says_what_brings_its_plots(
    found: Search, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    draw(found)
    assert capsys.readouterr().out == (
        "no plots: plots need matplotlib: pip install 'phalanx[plots]'\n"
    )


def test_a_merge_that_was_killed_can_only_be_begun_anew(
    shards: tuple[Search, Search], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resumed, it would search all orders from the beginning."""
    folders = tuple(shard.folder.path for shard in shards)
    config = SearchConfig(merge=folders, output_dir=tmp_path, name="both", baseline=False)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Search, "save", kill_when(lambda *_: True))
        search(config)
    with pytest.raises(RunError, match="there is no search"):
        search(small(tmp_path, "both", resume=tmp_path / "both"))
    both = search(config)
    assert len(both.visits) == sum(len(shard.visits) for shard in shards)


def test_shards_that_do_not_belong_together_are_refused(
    shards: tuple[Search, Search], tmp_path: Path
) -> None:
    one, two = (shard.folder.path for shard in shards)
    other = search(small(tmp_path, "other", shard="2/2", seed=1, total_episodes=2000))
    with pytest.raises(RunError, match="total_episodes is 4000 and 2000"):
        search(SearchConfig(merge=(one, other.folder.path), output_dir=tmp_path, name="x"))
    with pytest.raises(RunError, match="given twice"):
        search(SearchConfig(merge=(one, one), output_dir=tmp_path, name="x"))
    with pytest.raises(RunError, match="holds no search"):
        search(SearchConfig(merge=(two, tmp_path), output_dir=tmp_path, name="x"))
    assert not (tmp_path / "x").exists()


# --- what is believed -----------------------------------------------------------------------------


def visit(number: int, mean: float, compliance: float | None, passed: bool) -> Visit:
    return Visit(
        iteration=1, shard="1/1", workflow=number, order=order_name(number), chosen_by="gp_ucb",
        acquisition=None, posterior_mean=None, posterior_std=None, chance_of_passing=None,
        top_three="", measured_return=mean, stderr=0.3, compliance=compliance,
        fixes_per_episode=5.0, share_without_fix=0.0, passed=passed, stopped_by="none",
        trained_episodes=0, measured_episodes=500, episodes=500, total_episodes=0,
        model_updated=passed,
        seconds=0.0,
    )  # fmt: skip


def test_an_order_may_gain_as_long_as_its_bound_is_ahead_of_the_best_by_more_than_the_margin() -> (
    None
):
    assert Surrogate([], 2.0, 0.9, 1.0).may_gain(50, 5.0)  # nothing is known
    visits = [visit(number, -10.0 - 0.1 * number, 0.99, passed=True) for number in (0, 1, 2)]
    surrogate = Surrogate(visits, 2.0, 0.9, 1.0)
    ahead = surrogate.bounds[50] - surrogate.returns.mean[0]
    assert ahead > 0
    assert surrogate.may_gain(50, ahead - 1e-6)
    assert not surrogate.may_gain(50, ahead + 1e-6)


def test_orders_that_failed_the_gate_are_not_tried_again_and_again() -> None:
    """An order with users first never passes; returns alone would make them the best."""
    users_first = DISTANCES[119] <= 0.3
    visits: list[Visit] = []
    for _ in range(40):
        surrogate = Surrogate(visits, 2.0, 0.9, 1.0)
        number = surrogate.next(range(NUM_ORDERS))
        assert number is not None
        fails = bool(users_first[number])
        visits.append(visit(number, -10.0 if fails else -14.0, 0.3 if fails else 0.95, not fails))
    tried = [one.workflow for one in visits]
    assert len(set(tried)) == 40
    failed = sum(users_first[tried])
    assert 1 <= failed <= 12  # of 49 that would fail
    assert not users_first[Surrogate(visits, 2.0, 0.9, 1.0).ranking()].any()


def test_without_a_fix_an_order_has_failed() -> None:
    surrogate = Surrogate([visit(0, -10.0, None, False)], 2.0, 0.9, 1.0)
    assert surrogate.passing is not None
    assert surrogate.passing[0] < 0.05
    assert surrogate.ranking() == []
    assert np.isfinite(surrogate.bounds).all()


GP = ("--exhaustive", "false")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--shard", "3/2"], "shard '3/2' is none"),
        (["--shard", "x"], "shard 'x' is none"),
        (["--alignment-lambda", "-1"], "alignment_lambda must be from 0 to"),
        (["--alignment-lambda", "0"], "nothing to search"),
        (["--compliance-threshold", "1.5"], "compliance_threshold must be from 0 to 1"),
        (["--policy", "both"], "unknown policy 'both'"),
        (["--school-share", "0.8", "--finish-share", "0.4"], "must leave something"),
        (["--merge", "one"], "two folders or more"),
        (["--workflow", "critical_first"], "leave out --workflow"),
        (["--resume", "nowhere"], "cannot read nowhere"),
        (["--env", "CartPole-v1"], "phalanx search trains with ppo on CAGE-2"),
        (["--n-envs", "auto"], "needs --n-envs as a number"),
        (["--duration", "1"], "give --total-episodes alone"),
        (["--measure-episodes", "1"], "measure_episodes must be from 2 to"),
        ([*GP, "--total-episodes", "6000"], "leaves 0 to measure orders with, but 250 are needed"),
        ([*GP, "--finalists", "120"], "less of --school-share, --finish-share, --finalists"),
        (
            ["--exhaustive", "--policy", "separate", "--total-episodes", "7140"],
            "leaves 100 to measure orders with",
        ),
        ([*GP, "--school-share", "0"], "without a school there is no network to measure"),
        (["--total-episodes", "900"], "leaves 172 to each of 5 learners, less than one batch"),
        (["--learners", "0"], "learners must be from 1 to 100"),
        (["--learners", "2", "--shard", "1/2"], "leave out --shard and --runner ray"),
        (["--learners", "2", "--start-from", "x"], "--start-from gives one network"),
        (["--defiances", "0.5", "-2"], "defiances must be from 0 to 1e+06, got -2.0"),
        ([*GP, "--defiances", "0.5"], "--defiances is for --exhaustive searches"),
        (["--ask", "defender,users"], "unknown unit type 'users'"),
        (["--red-agent", "b_line,nobody"], "unknown red agent 'nobody'"),
        (["--start-from", "nowhere"], "nowhere to start from"),
        (["--network", "no.such:thing"], "cannot find --network no.such:thing"),
    ],
)
def test_bad_flags_get_one_line(
    flags: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["search", "--output-dir", str(tmp_path / "runs"), *flags]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_winner_that_failed_the_gate_only_after_its_finals_is_told_from_one_that_never_passed(
    found: Search, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    last = [{**found.confirmed[0], "compliance": 0.01}, *found.confirmed[1:]]
    monkeypatch.setattr(found, "confirmed", last)
    show_results(found)
    assert "in the finals, but not in this table" in capsys.readouterr().out
    failed = [dataclasses.replace(visit, passed=False) for visit in found.visits]
    monkeypatch.setattr(found, "visits", failed)
    show_results(found)
    assert "no order passed the gate" in capsys.readouterr().out


def test_a_training_run_is_not_resumed_as_a_search(
    own: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", "--resume", str(own.folder.path / "school")]) == 2
    error = capsys.readouterr().err
    assert "there is no search in" in error
    assert error.count("\n") == 1


def test_a_search_starts_only_from_a_policy_that_fits(own: Search, tmp_path: Path) -> None:
    path = own.folder.path
    with pytest.raises(RunError, match="is not told an order"):
        search(small(tmp_path, "x", start_from=str(path / "baseline")))
    with pytest.raises(RunError, match="these settings make"):
        search(small(tmp_path, "x", start_from=str(path / "school"), hidden=(9,)))
    assert not (tmp_path / "x").exists()
    done = search(small(tmp_path, "x", start_from=str(path / "school"), baseline=False))
    assert done.spent["school"] == 0


@pytest.mark.parametrize(
    "change",
    [{"config": {"gamma": "x"}}, {"config": {"shard": "1/99999999"}}, {"visits": [{}]},
     {"visits": {}}, {"winner": "x"}, {"winner": ...}, {"spent": {"school": "x"}},
     {"seconds": None}, {"state": 3}, {"merged": 0}],
)  # fmt: skip
def test_a_summary_that_no_search_has_written_is_refused(
    own: Search, tmp_path: Path, change: dict[str, Any]
) -> None:
    facts = json.loads((own.folder.path / "summary.json").read_text())
    for name, value in change.items():
        facts[name] = facts["config"] | value if name == "config" and value else value
        if value is ...:
            del facts[name]
    (tmp_path / "summary.json").write_text(json.dumps(facts))
    with pytest.raises(PhalanxError, match=r"holds no search|is missing"):
        check_that_they_fit([tmp_path], [read_summary(tmp_path)])
