"""Comparisons: on the same dice, over seeds, by hand; and what they refuse."""

import csv
import json
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from phalanx.agents import agent_path
from phalanx.cli.commands import main
from phalanx.errors import ConfigError
from phalanx.show.compare.compare import Comparison, Group, compare, flat, group_runs
from phalanx.show.compare.config import CompareConfig, short_names
from phalanx.show.compare.learning import group_curve, read_learnt, stops
from phalanx.show.compare.scores import Scored
from phalanx.show.compare.words import in_a_sentence, remarks, verdicts
from phalanx.show.runs.curves import Floats
from phalanx.show.runs.runs import read_run
from tests.show.run_folders import make_run, make_sweep


def comparison(scores: dict[str, list[list[float]]], by: str = "seed") -> Comparison:
    """Groups of runs, each with its returns on the same dice."""
    groups: list[Group] = []
    returns: dict[str, dict[str, Floats]] = {}
    for name, runs in scores.items():
        rows = [read_run(Path("none"), name=f"{name}{k}") for k in range(len(runs))]
        groups.append(Group(name, tuple(rows), {"gamma": name}))
        returns |= {row.name: {"b_line": np.array(r)} for row, r in zip(rows, runs, strict=True)}
    return Comparison(tuple(groups), Scored(returns, True, "Played."), by)


def seeds(level: float, count: int, seed: int) -> list[list[float]]:
    """Returns of some runs whose levels vary by 1, episodes by 5."""
    random = np.random.default_rng(seed)
    return [(random.normal(level) + random.normal(0, 5, 50)).tolist() for _unused in range(count)]


def test_seeds_not_episodes_decide_between_settings() -> None:
    """Runs of equal settings differ by luck of training, which thousands of episodes tell apart."""
    random = np.random.default_rng(1)
    dice = random.normal(0, 5, 4000)
    a = [(dice + level).tolist() for level in (0.0, 2.0, 1.0)]
    b = [(dice + level).tolist() for level in (0.5, 1.6, 1.5)]
    (pair,) = comparison({"a": a, "b": b}).pairs
    assert (pair.unit, pair.verdict, pair.difference.counts) == ("seeds", "no difference", (3, 3))
    (alone,) = comparison({"a": a[:1], "b": b[:1]}, by="").pairs
    assert (alone.unit, alone.verdict) == ("episodes", "worse")
    assert alone.difference.mean == pytest.approx(-0.5)


def test_a_planted_difference_is_told_with_its_size_and_how_sure_it_is() -> None:
    found = comparison({"new": seeds(5, 5, 2), "old": seeds(0, 5, 3)})
    (sentence,) = verdicts(found)
    assert sentence.startswith("new is better than old against b_line by")
    assert sentence.endswith("5 and 5 seeds.")
    (pair,) = found.pairs
    assert pair.improvement is not None
    assert pair.improvement[0] == 1.0
    turned = comparison({"old": seeds(0, 5, 3), "new": seeds(5, 5, 2)})
    assert in_a_sentence(turned.pairs[0]).startswith("old is worse than new against b_line by")


def test_no_difference_is_told_with_what_would_have_been_found() -> None:
    (sentence,) = verdicts(comparison({"a": seeds(0, 3, 4), "b": seeds(0, 3, 5)}))
    assert sentence.startswith("No difference between a and b")
    assert "would have been found in four of five cases" in sentence


def test_many_comparisons_are_corrected() -> None:
    groups = {f"g{k}": seeds(0, 3, k) for k in range(5)}
    pairs = comparison(groups).pairs
    assert len(pairs) == pairs[0].comparisons == 10
    assert all(pair.p_adjusted >= pair.difference.p for pair in pairs)
    assert min(pair.p_adjusted for pair in pairs) == pytest.approx(
        min(1.0, 10 * min(pair.difference.p for pair in pairs))
    )


def test_standings_have_interval_and_interquartile_mean_over_seeds() -> None:
    found = comparison({"a": [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [90.0, 90.0]], "b": [[0.0, 1.0]]})
    a, b = found.standings
    assert (a.runs, a.mean, a.iqm) == (4, 24.0, 2.5)
    assert a.iqm_low is not None
    assert a.iqm_low < 2.5
    assert (b.runs, b.mean, b.iqm) == (1, 0.5, None)
    json.dumps(found.as_dict(), allow_nan=False)


def test_all_attackers_together_is_the_sum_of_each() -> None:
    rows = [read_run(Path("none"), name=name) for name in "ab"]
    returns = {
        "a": {"b_line": np.array([1.0, 2.0]), "sleep": np.array([10.0, 20.0])},
        "b": {"b_line": np.array([0.0, 0.5]), "sleep": np.array([10.0, 20.0])},
    }
    groups = tuple(Group(row.name, (row,), {}) for row in rows)
    found = Comparison(groups, Scored(returns, True, ""), "")
    assert found.tasks == ("all", "b_line", "sleep")
    assert [pair.difference.mean for pair in found.pairs] == [1.25, 1.25, 0.0]
    assert found.standings[0].mean == 16.5
    assert [pair.comparisons for pair in found.pairs] == [1, 2, 2]


def test_runs_are_grouped_by_their_settings_but_for_the_seed(tmp_path: Path) -> None:
    rows = []
    for gamma, seed in product((0.9, 0.99), (0, 1)):
        path = tmp_path / f"{gamma}-{seed}"
        rows.append(read_run(make_run(path, gamma=gamma, seed=seed, num_threads=seed + 1)))
    groups = group_runs(rows, "seed")
    assert [(group.name, len(group.runs)) for group in groups] == [
        ("gamma=0.9", 2),
        ("gamma=0.99", 2),
    ]
    assert groups[0].settings == {"gamma": "0.9"}
    assert [group.name for group in group_runs(rows, "")] == [row.name for row in rows]
    assert len(group_runs(rows, "folder")) == 1


def test_policies_are_played_on_the_same_dice(tmp_path: Path) -> None:
    """The same policy twice differs by nothing at all; another one by something."""
    agents = {"one": "champion", "same": "champion", "other": "champion-final"}
    for name, agent in agents.items():
        path = make_run(tmp_path / name, red_agent="meander")
        shutil.copy(agent_path(agent), path / "checkpoints" / "last.npz")
    found = compare(CompareConfig(runs=(tmp_path,), episodes=20, red_agent=("meander",)))
    gaps = {frozenset((pair.first, pair.second)): pair.difference for pair in found.pairs}
    same = gaps[frozenset(("one", "same"))]
    assert (same.mean, same.low, same.high, same.is_paired) == (0.0, 0.0, 0.0, True)
    assert gaps[frozenset(("one", "other"))].mean != 0.0
    assert "Each policy played the same 20 episodes" in found.scored.about


def test_training_is_compared_where_nothing_can_be_played(tmp_path: Path) -> None:
    for level in (-10.0, -20.0):
        for seed in range(3):
            make_run(
                tmp_path / f"{level}-{seed}",
                level=level - seed / 10,
                seed=seed,
                gamma=0.9 if level < -15 else 0.99,
            )
    found = compare(CompareConfig(runs=(tmp_path,), by="seed"))
    assert [group.name for group in found.groups] == ["gamma=0.99", "gamma=0.9"]
    (pair,) = found.pairs
    assert (pair.verdict, pair.unit) == ("better", "seeds")
    assert pair.difference.mean == pytest.approx(10.0)
    told = " ".join(remarks(found))
    assert "has no checkpoint" in told
    assert "Welch" in told


def test_equal_settings_with_other_seeds_are_called_luck(tmp_path: Path) -> None:
    for seed in range(2):
        make_run(tmp_path / str(seed), seed=seed, level=-10.0 - seed)
    found = compare(CompareConfig(runs=(tmp_path,), episodes=0))
    assert any("luck of training" in remark for remark in remarks(found))
    with pytest.raises(ConfigError, match="--by seed makes all 2 runs one group"):
        compare(CompareConfig(runs=(tmp_path,), by="seed"))


def test_curves_are_aligned_by_episodes_and_by_seconds(tmp_path: Path) -> None:
    slow = make_run(tmp_path / "slow", updates=6, per_update=20)
    fast = make_run(tmp_path / "fast", updates=12, per_update=20, level=-8.0)
    learnt = [one for path in (slow, fast) if (one := read_learnt(path)) is not None]
    curve = group_curve("both", learnt, "episodes")
    assert curve.x[-1] == 120.0  # as far as both have come
    assert curve.mean[-1] == pytest.approx((-10.0 - 10.5) / 2)
    last = stops([[learnt[0]], [learnt[1]]], "seconds")[-1]
    assert last.after == pytest.approx(0.6)
    assert last.returns[0][0] == pytest.approx(-10.0)
    assert stops([[learnt[0]], []], "episodes") == []


def test_names_are_as_short_as_they_can_be() -> None:
    assert short_names(["runs/a", "runs/b"]) == ["a", "b"]
    assert short_names(["x/a/seed=0", "y/a/seed=0"]) == ["x/a/seed=0", "y/a/seed=0"]
    assert short_names(["runs/a"]) == ["a"]


def test_the_command_tells_and_writes_all_that_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vl_convert")
    sweep = make_sweep(tmp_path / "grid")
    make_run(
        tmp_path / "grid" / "1-learning_rate=3e-4" / "seed=1",
        level=-15.0,
        learning_rate=3e-4,
        seed=1,
    )
    page, table, facts = (tmp_path / name for name in ("c.html", "c.csv", "c.json"))
    arguments = [str(sweep), "--by", "seed", "--out", str(page), "--csv", str(table)]
    assert main(["compare", *arguments, "--json", str(facts)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "learning_rate=0.001" in told
    assert "Return in training after so many seconds" in told
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["verdict"] for row in rows] == ["better"]
    assert json.loads(facts.read_text())["pairs"][0]["first"] == "learning_rate=0.001"
    assert "Learning per second" in page.read_text()


def test_what_cannot_be_compared_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = str(make_run(tmp_path / "one"))
    cart = str(make_run(tmp_path / "cart", env="CartPole-v1", total_episodes=None, red_agent=None))
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, why in (
        ([one], "compare needs 2 to 1,000 run folders, got 1"),
        ([one, one], "got 1"),
        ([one, cart], "compare runs of one environment"),
        ([one, "nowhere"], "there is no run folder nowhere"),
        ([one, str(empty)], "empty cannot be compared"),
        ([one, one, "--red-agent", "nobody"], "nobody"),
    ):
        assert main(["compare", *arguments]) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert why in error


def test_a_flat_row_names_its_numbers() -> None:
    row = flat(comparison({"a": seeds(0, 3, 4), "b": seeds(9, 3, 5)}).pairs[0])
    assert (row["first"], row["second"], row["n_first"], row["verdict"]) == ("a", "b", 3, "worse")
