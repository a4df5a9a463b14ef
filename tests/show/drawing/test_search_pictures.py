"""Pictures of a search: the right numbers, and whatever a folder is far enough for."""

import dataclasses
import json
import struct
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from phalanx.cage2.workflow import NUM_ORDERS, POSITIONS, order_name, short_name
from phalanx.errors import MissingError, RunError
from phalanx.search.surrogate import Surrogate, Visit
from phalanx.show.drawing.search_counts import (
    best_so_far,
    count_inside,
    episodes_so_far,
    is_inside,
    mean_by_position,
    read_search,
    tried_best_first,
    with_prediction,
)
from phalanx.show.drawing.search_pictures import (
    draw_beliefs,
    draw_best_so_far,
    draw_compliance,
    draw_predictions,
    draw_returns,
    draw_search,
    draw_types_by_position,
)

CONFIG = {
    "gp_beta": 2.0,
    "compliance_threshold": 0.9,
    "min_fixes": 1.0,
    "red_agent": "b_line",
    "horizon": 100,
}
ALL = (
    "return-by-workflow",
    "compliance-by-workflow",
    "best-so-far",
    "types-by-position",
    "beliefs",
    "predicted-and-measured",
)
WITHOUT_PASSED = ALL[:2]
WITHOUT_PREDICTION = ALL[:5]


def a_visit(iteration: int = 1, **changes: Any) -> Visit:
    plain: dict[str, Any] = {
        "iteration": iteration,
        "shard": "1/1",
        "workflow": iteration,
        "order": "",
        "chosen_by": "gp_ucb",
        "acquisition": None,
        "posterior_mean": None,
        "posterior_std": None,
        "chance_of_passing": None,
        "top_three": "",
        "measured_return": -16.0,
        "stderr": 0.5,
        "compliance": 0.95,
        "fixes_per_episode": 6.0,
        "share_without_fix": 0.0,
        "passed": True,
        "stopped_by": "none",
        "trained_episodes": 0,
        "measured_episodes": 500,
        "episodes": 500,
        "total_episodes": 50_000 + 500 * iteration,
        "model_updated": True,
        "seconds": 1.0,
    }
    return Visit(**(plain | changes))


def smooth(number: int) -> float:
    """A return that falls with the positions of the defender and of the operational server."""
    return float(-15 - 0.8 * POSITIONS[number, 0] - 0.4 * POSITIONS[number, 2])


def some_visits(count: int = 30) -> list[Visit]:
    """Orders far and wide; those with the defender in the last place fail the gate."""
    rng = np.random.default_rng(3)
    visits = []
    for k, number in enumerate(rng.permutation(NUM_ORDERS)[:count].tolist()):
        passed = bool(POSITIONS[number, 0] < 4)
        known = {"posterior_mean": smooth(number) + rng.normal(0, 0.5), "posterior_std": 0.5}
        visits.append(
            a_visit(
                k + 1,
                workflow=number,
                order=order_name(number),
                measured_return=smooth(number) + rng.normal(0, 0.4),
                stderr=0.4,
                compliance=0.95 if passed else 0.7,
                passed=passed,
                **(known if k else {}),
            )
        )
    return visits


def a_row(workflow: int | None, name: str, mean: float) -> dict[str, Any]:
    return {
        "workflow": workflow,
        "order": None,
        "name": name,
        "mean": mean,
        "stderr": 0.1,
        "low": mean - 0.196,
        "high": mean + 0.196,
        "episodes": 4000,
        "compliance": 0.95,
        "fixes_per_episode": 6.0,
        "share_without_fix": 0.0,
    }


def write_search(folder: Path, visits: list[Visit], **changes: Any) -> Path:
    """A finished search; the winner has the best return of those that passed."""
    good = [visit for visit in tried_best_first(visits) if visit.passed] or visits
    winner = good[0].workflow if good else None
    facts = {
        "winner": winner,
        "finals": [],
        "confirmed": [a_row(winner, "winner", -14.0), a_row(None, "without workflows", -15.0)],
        "config": CONFIG,
        "visits": [dataclasses.asdict(visit) for visit in visits],
    }
    folder.mkdir(exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(facts | changes))
    return folder


def names(files: list[Path]) -> tuple[str, ...]:
    return tuple(file.stem for file in files)


def texts(axes: Any) -> list[str]:
    return [label.get_text() for label in axes.get_xticklabels()]


def entry(axes: Any, label: str) -> Any:
    handles, labels = axes.get_legend_handles_labels()
    return next(h for h, text in zip(handles, labels, strict=True) if text.startswith(label))


def points(axes: Any, label: str) -> list[tuple[float, float]]:
    """Where the marks stand whose entry in the legend begins with `label`."""
    handle = entry(axes, label)
    line = handle[0] if isinstance(handle, tuple) else handle
    return [(float(x), float(y)) for x, y in zip(*line.get_data(), strict=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_search(tmp_path_factory.mktemp("search"), some_visits())


@pytest.fixture(scope="module")
def files(folder: Path) -> list[Path]:
    return draw_search(folder)


@pytest.fixture
def figure() -> Any:
    return Figure(layout="constrained")


# --- files ----------------------------------------------------------------------------------------


def test_a_whole_search_gives_six_pictures(folder: Path, files: list[Path]) -> None:
    assert names(files) == ALL
    assert sorted(files) == sorted((folder / "plots").iterdir())


@pytest.mark.parametrize("name", ALL)
def test_a_picture_is_a_png_of_readable_size(files: list[Path], name: str) -> None:
    png = files[ALL.index(name)].read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    assert width >= 1000
    assert height >= 600
    assert len(png) > 20_000


def test_pictures_are_drawn_again_over_the_old_ones(tmp_path: Path) -> None:
    first = draw_search(write_search(tmp_path, some_visits(1)))
    before = first[0].read_bytes()
    second = draw_search(write_search(tmp_path, some_visits(3)))
    assert second[0] == first[0]
    assert second[0].read_bytes() != before


def test_all_orders_fit_on_one_axis(tmp_path: Path, figure: Any) -> None:
    visits = some_visits(NUM_ORDERS)
    draw_returns(figure, read_search(write_search(tmp_path, visits)))
    axes = figure.axes[0]
    assert len(set(texts(axes))) == NUM_ORDERS
    inches = figure.get_figwidth() / NUM_ORDERS
    assert inches * 72 > axes.get_xticklabels()[0].get_fontsize()


# --- numbers --------------------------------------------------------------------------------------


def test_orders_are_sorted_by_return_and_the_last_visit_counts() -> None:
    visits = [
        a_visit(1, workflow=7, measured_return=-10.0),
        a_visit(2, workflow=3, measured_return=-20.0),
        a_visit(3, workflow=5, measured_return=-15.0),
        a_visit(4, workflow=7, measured_return=-18.0),
    ]
    tried = tried_best_first(visits)
    assert [(visit.workflow, visit.measured_return) for visit in tried] == [
        (5, -15.0),
        (7, -18.0),
        (3, -20.0),
    ]


def test_best_so_far_counts_only_what_passed() -> None:
    measured = [(-12.0, False), (-19.0, True), (-21.0, True), (-11.0, False), (-17.5, True)]
    visits = [
        a_visit(k + 1, measured_return=value, passed=passed)
        for k, (value, passed) in enumerate(measured)
    ]
    expected = [np.nan, -19.0, -19.0, -19.0, -17.5]
    np.testing.assert_array_equal(best_so_far(visits), expected)


def test_episodes_of_shards_are_added() -> None:
    totals = [("1/2", 100), ("2/2", 90), ("1/2", 150), ("2/2", 200)]
    visits = [a_visit(shard=shard, total_episodes=total) for shard, total in totals]
    assert episodes_so_far(visits) == [100, 190, 240, 350]


def test_means_by_position_agree_with_a_double_loop() -> None:
    means = np.random.default_rng(0).normal(-16, 2, NUM_ORDERS)
    for unit in range(5):
        for position in range(5):
            fitting = [
                means[number]
                for number, order in enumerate(permutations(range(5)))
                if order[position] == unit
            ]
            assert len(fitting) == 24
            expected = sum(fitting) / 24
            assert mean_by_position(means)[unit, position] == pytest.approx(expected)


@pytest.mark.parametrize(("measured", "inside"), [(-15.1, True), (-24.9, True), (-14.9, False)])
def test_both_errors_make_the_interval(measured: float, inside: bool) -> None:
    """Errors of 1.5 and 2 are 2.5 together, and the interval reaches 5 to either side."""
    visit = a_visit(measured_return=measured, stderr=2.0, posterior_mean=-20.0, posterior_std=1.5)
    assert is_inside(visit) == inside


def test_the_share_inside_is_of_those_that_passed() -> None:
    known = {"posterior_mean": -16.0, "posterior_std": 0.3, "stderr": 0.4}  # reaches 1.0 far
    visits = [
        a_visit(1),
        a_visit(2, measured_return=-16.9, **known),
        a_visit(3, measured_return=-17.1, **known),
        a_visit(4, measured_return=-15.1, **known),
        a_visit(5, measured_return=-16.0, passed=False, **known),
        a_visit(6, measured_return=-14.9, **known),
    ]
    assert count_inside(visits) == (2, 4)


def test_nothing_is_predicted_before_an_order_passed() -> None:
    known = {"posterior_mean": -16.0, "posterior_std": 0.3}
    visits = [
        a_visit(1, passed=False),
        a_visit(2, passed=False, **known),
        a_visit(3, **known),
        a_visit(4, shard="2/2", **known),
        a_visit(5, **known),
        a_visit(6, shard="2/2", passed=False, **known),
    ]
    assert [visit.iteration for visit in with_prediction(visits)] == [5, 6]


# --- what stands in the pictures ------------------------------------------------------------------


def test_returns_are_drawn_best_first_with_baseline_and_winner(folder: Path, figure: Any) -> None:
    visits = some_visits()
    draw_returns(figure, read_search(folder))
    axes = figure.axes[0]
    tried = sorted(visits, key=lambda visit: -visit.measured_return)
    assert texts(axes) == [short_name(visit.workflow) for visit in tried]
    heights = [(float(at), visit.measured_return) for at, visit in enumerate(tried)]
    passed = [visit.passed for visit in tried]
    assert 0 < sum(passed) < len(passed)
    assert points(axes, "passed") == [p for p, good in zip(heights, passed, strict=True) if good]
    assert points(axes, "failed") == [
        p for p, good in zip(heights, passed, strict=True) if not good
    ]
    best = passed.index(True)
    assert points(axes, "winner, when") == [heights[best]]
    assert points(axes, "winner after") == [(best, -14.0)]
    assert [y for _, y in points(axes, "same learner")] == [-15.0, -15.0]


def test_intervals_are_of_95_percent(tmp_path: Path, figure: Any) -> None:
    visits = [a_visit(1, measured_return=-16.0, stderr=0.5, measured_episodes=10)]
    draw_returns(figure, read_search(write_search(tmp_path, visits)))
    (segment,) = entry(figure.axes[0], "passed")[2][0].get_segments()
    reach = 2.2622 * 0.5  # Student's t with nine degrees of freedom
    np.testing.assert_allclose(segment[:, 1], [-16 - reach, -16 + reach], rtol=1e-5)


def test_undefined_compliance_is_not_drawn_as_a_share(tmp_path: Path, figure: Any) -> None:
    visits = [
        a_visit(1, measured_return=-15.0, compliance=0.93),
        a_visit(2, compliance=None, fixes_per_episode=0.0, passed=False),
        a_visit(3, measured_return=-17.0, compliance=0.4, passed=False),
    ]
    draw_compliance(figure, read_search(write_search(tmp_path, visits)))
    above, below = figure.axes
    assert points(above, "passed") == [(0, 0.93)]
    assert points(above, "failed") == [(2, 0.4)]
    assert points(above, "no fix at all") == [(1, 0)]
    assert [y for _, y in points(above, "gate")] == [0.9, 0.9]
    assert points(below, "failed") == [(1, 0), (2, 6)]
    assert [y for _, y in points(below, "gate")] == [1, 1]


def test_best_so_far_is_drawn_by_iteration_and_by_episodes(folder: Path, figure: Any) -> None:
    visits = some_visits()
    draw_best_so_far(figure, read_search(folder))
    by_visit, by_episodes = (points(axes, "best so far") for axes in figure.axes)
    assert [x for x, _ in by_visit] == list(range(1, 31))
    assert [x for x, _ in by_episodes] == [visit.total_episodes for visit in visits]
    np.testing.assert_array_equal([y for _, y in by_visit], best_so_far(visits))
    dots = points(figure.axes[0], "passed") + points(figure.axes[0], "failed")
    assert sorted(dots) == [(visit.iteration, visit.measured_return) for visit in visits]


def test_the_cells_hold_the_believed_means(folder: Path, figure: Any) -> None:
    draw_types_by_position(figure, read_search(folder))
    means = mean_by_position(Surrogate(some_visits(), 2.0, 0.9, 1.0).returns.mean)
    written = {text.get_position(): text.get_text() for text in figure.axes[0].texts}
    assert written == {(x, y): f"{means[y, x]:.2f}" for x in range(5) for y in range(5)}
    assert means[0, 0] > means[0, 3]  # the defender first is better, as it was made to be


def test_beliefs_are_sorted_and_hold_the_measurements(folder: Path, figure: Any) -> None:
    visits = some_visits()
    draw_beliefs(figure, read_search(folder))
    axes = figure.axes[0]
    mean = Surrogate(visits, 2.0, 0.9, 1.0).returns.mean
    np.testing.assert_allclose([y for _, y in points(axes, "believed mean")], -np.sort(-mean))
    labels = texts(axes)
    assert len(set(labels)) == NUM_ORDERS
    dots = points(axes, "passed") + points(axes, "failed")
    assert {(labels[int(x)], y) for x, y in dots} == {
        (short_name(visit.workflow), visit.measured_return) for visit in visits
    }


def test_predictions_are_drawn_against_measurements_with_the_share(
    folder: Path, figure: Any
) -> None:
    visits = some_visits()
    draw_predictions(figure, read_search(folder))
    axes = figure.axes[0]
    first = next(k for k, visit in enumerate(visits) if visit.passed)
    later = visits[first + 1 :]
    dots = points(axes, "passed") + points(axes, "failed")
    assert sorted(dots) == sorted((v.posterior_mean, v.measured_return) for v in later)
    good = [v for v in later if v.passed]
    reach = 2 * (0.5**2 + 0.4**2) ** 0.5
    inside = sum(abs(v.measured_return - (v.posterior_mean or 0)) <= reach for v in good)
    assert f"{inside} of {len(good)} ({inside / len(good):.0%})" in axes.get_title()


# --- odd folders ----------------------------------------------------------------------------------


def test_one_visit_is_drawn_without_predictions(tmp_path: Path) -> None:
    assert names(draw_search(write_search(tmp_path, some_visits(1)))) == WITHOUT_PREDICTION


def test_returns_that_read_the_same_have_one_colour(tmp_path: Path, figure: Any) -> None:
    visits = [a_visit(1, stderr=1e-6), a_visit(118, measured_return=-16.0004, stderr=1e-6)]
    draw_types_by_position(figure, read_search(write_search(tmp_path, visits)))
    image = figure.axes[0].images[0]
    colours = image.to_rgba(image.get_array()).reshape(-1, 4)
    np.testing.assert_allclose(colours, colours[:1].repeat(25, 0), atol=0.02)


def test_where_nothing_passed_only_measurements_are_drawn(tmp_path: Path) -> None:
    visits = [dataclasses.replace(visit, passed=False) for visit in some_visits(6)]
    assert names(draw_search(write_search(tmp_path, visits))) == WITHOUT_PASSED


def test_predictions_of_failures_alone_have_no_share(tmp_path: Path, figure: Any) -> None:
    first, *others = some_visits(4)
    visits = [dataclasses.replace(first, passed=True)]
    visits += [dataclasses.replace(visit, passed=False) for visit in others]
    folder = write_search(tmp_path, visits)
    assert names(draw_search(folder)) == ALL
    draw_predictions(figure, read_search(folder))
    assert "none had a prediction" in figure.axes[0].get_title()


def test_without_a_baseline_no_line_is_drawn(tmp_path: Path, figure: Any) -> None:
    visits = some_visits(4)
    best = next(visit.workflow for visit in tried_best_first(visits) if visit.passed)
    folder = write_search(tmp_path, visits, confirmed=[a_row(best, "winner", -14.0)])
    assert names(draw_search(folder)) == ALL
    draw_returns(figure, read_search(folder))
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert not [label for label in labels if "without workflows" in label]


def test_a_search_that_was_stopped_is_drawn_without_a_winner(tmp_path: Path) -> None:
    folder = write_search(tmp_path, some_visits(5), winner=None, confirmed=[])
    assert names(draw_search(folder)) == ALL


def test_orders_that_never_fix_are_drawn(tmp_path: Path) -> None:
    idle = {"compliance": None, "fixes_per_episode": 0.0, "passed": False}
    visits = [a_visit(k, **idle) for k in range(1, 4)]
    assert names(draw_search(write_search(tmp_path, visits))) == WITHOUT_PASSED


def test_equal_returns_without_error_are_drawn(tmp_path: Path) -> None:
    known = {"posterior_mean": -16.0, "posterior_std": 0.0}
    visits = [a_visit(k, stderr=0.0, **known) for k in range(1, 4)]
    assert names(draw_search(write_search(tmp_path, visits))) == ALL


def test_a_search_before_its_first_visit_gives_no_picture(tmp_path: Path) -> None:
    assert draw_search(write_search(tmp_path, [], winner=None, confirmed=[])) == []
    assert not (tmp_path / "plots").exists()


@pytest.mark.parametrize("text", [None, "no json", "[]", '{"visits": [{}]}', '{"visits": []}'])
def test_a_folder_without_a_search_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "summary.json").write_text(text)
    with pytest.raises(RunError, match="holds no search to draw"):
        draw_search(tmp_path)


# --- matplotlib -----------------------------------------------------------------------------------


def test_a_missing_matplotlib_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingError, match=r"pip install 'phalanx\[plots\]'"):
        draw_search(write_search(tmp_path, some_visits(1)))


def test_matplotlib_waits_for_the_first_picture_and_pyplot_for_ever(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from phalanx.show.drawing import search_pictures
assert "matplotlib" not in sys.modules
search_pictures.draw_search(Path({str(write_search(tmp_path, some_visits(1)))!r}))
assert "matplotlib" in sys.modules
assert "matplotlib.pyplot" not in sys.modules
"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
