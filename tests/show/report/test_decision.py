"""A search's decision in a report: words, costs, positions, the map, and odd files."""

import json
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from phalanx.cage2.workflow import DISTANCES, NUM_ORDERS
from phalanx.search.words import read_decision
from phalanx.show.drawing.kendall_map import map_places
from phalanx.show.report.report import report_page
from phalanx.show.runs.curves import Curve
from tests.browser import OpenPage
from tests.show.report.test_report import Words, charts_of
from tests.show.report.test_report_in_browser import FAINT, MODES
from tests.show.run_folders import make_decision

pytest.importorskip("vl_convert")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_decision(tmp_path_factory.mktemp("decided") / "orders")


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return report_page([folder], episodes=0)


def test_a_decision_is_told_in_words_and_numbers(folder: Path, page: str) -> None:
    words, decision = Words(page), read_decision(folder)
    assert "60 orders cannot be followed: those that have user before enterprise." in words
    assert "Whoever attacks: " in words
    assert "All 60 orders that can be followed, the best first" in words
    cell = decision["against"]["mixture"]["positions"][1][0]  # enterprise first
    assert cell is not None
    assert f"+{cell['effect']:.2f} ± {cell['reach']:.2f}" in words
    assert decision["against"]["mixture"]["positions"][1][4] is None
    charts = charts_of(page).values()
    costs = next(c for c in charts if c["series"][0]["name"] == "may be best")
    assert sum(len(series["mean"]) for series in costs["series"]) == 60
    follow = next(c for c in charts if "its reverse" in [s["name"] for s in c["series"]])
    assert [len(series["mean"]) for series in follow["series"]] == [NUM_ORDERS] * 3
    price = next(c for c in charts if [s["name"] for s in c["series"]] == ["return"])
    assert price["series"][0]["x"] == [0.0, 50.0, 90.0]
    reached = next(c for c in charts if c["series"][0]["name"] == "own")
    assert [series["mean"][-1] for series in reached["series"]] == [0.9, 0.05, 0.45]


def test_all_orders_are_on_the_map_and_those_that_may_be_best_are_told(
    folder: Path, page: str
) -> None:
    orders = read_decision(folder)["against"]["mixture"]["orders"]
    may = sum(order["may_be_best"] for order in orders)
    assert page.count('<circle class="may"') == may > 0
    assert page.count("<circle ") == NUM_ORDERS


def test_neighbours_on_the_map_differ_little() -> None:
    places = map_places()
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    others = ~np.eye(NUM_ORDERS, dtype=bool)
    assert apart[others].min() > 4  # no dot hides another
    assert np.corrcoef(apart[others], DISTANCES[others])[0, 1] > 0.5


def test_whatever_a_decision_holds_a_report_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'
    fake = SimpleNamespace(vegalite_to_svg=lambda spec: nothing)
    monkeypatch.setattr("phalanx.show.drawing.chart._converter", lambda: fake)
    path = make_decision(tmp_path / "orders", "b_line", 2)
    whole = json.loads((path / "decision.json").read_text())
    side = whole["against"]["b_line"]
    odd = ("<script>", [None], float("inf"), {"x": 1})
    changed = [whole | {name: value} for name, value in product(whole, odd)]
    changed += [
        whole | {"against": {"b_line": side | {name: value}}} for name, value in product(side, odd)
    ]
    first = side["orders"][0]
    changed += [
        whole | {"against": {"b_line": side | {"orders": [first | {name: value}]}}}
        for name, value in product(first, odd)
    ]
    for decision in changed:
        (path / "decision.json").write_text(json.dumps(decision))
        page = report_page([path], episodes=0)
        assert "<main>" in page
        assert "script" not in Words(page).tags
    (path / "obedience.csv").write_text("defiance\nx\n")
    assert "is no table of what obedience costs" in Words(report_page([path], episodes=0))


def test_a_chart_has_room_for_places_below_nothing() -> None:
    from phalanx.show.drawing.chart import _x_range

    def over(*x: float) -> tuple[float, float]:
        at = np.array(x)
        return _x_range([Curve("a", at, at, at, at)])

    assert over(-0.5, 0.7) == (-0.5, 0.7)
    assert over(-12.0, -9.0) == (-12.0, -9.0)
    assert over(1.0, 60.0) == (0.0, 60.0)


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), MODES)
def test_the_page_opens_fits_and_can_be_read(
    page: str, open_page: OpenPage, width: int, dark: bool
) -> None:
    opened = open_page(page, width=width, dark=dark)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    for fold in opened.locator("details").all():
        fold.evaluate("one => { one.open = true; }")
    told = opened.evaluate(FAINT)
    assert told["seen"] > 90
    assert told["faint"] == []
