"""Reports and comparisons in a real browser: exact values at the pointer, light, dark, narrow."""

import json
import shutil
from pathlib import Path

import pytest

from phalanx.agents import agent_path
from phalanx.cage2.workflow import UNIT_TYPES
from phalanx.show.compare.compare import compare
from phalanx.show.compare.config import CompareConfig
from phalanx.show.compare.page import compare_page
from phalanx.show.report.report import report_page
from tests.browser import OpenPage
from tests.show.run_folders import make_run, make_search, make_sweep, mark

pytest.importorskip("vl_convert")
pytestmark = pytest.mark.browser
EVIL = "<script>alert(1)<b>"
FAINT = (Path(__file__).parent.parent / "faint.js").read_text()
MODES = [(1280, False), (1280, True), (390, False), (390, True)]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of a run with a hostile name, a crashed one, an empty one, a search and a sweep."""
    folder = tmp_path_factory.mktemp("runs")
    paths = [
        make_run(folder / EVIL, updates=40),
        make_run(folder / "killed", state=None),
        mark(folder / "bare"),
        make_search(folder / "search"),
        make_sweep(folder / "sweep"),
    ]
    return report_page(paths, episodes=0)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("compared")
    for gamma in (0.9, 0.99):
        for seed in range(3):
            make_run(
                folder / f"{EVIL}{gamma}-{seed}",
                gamma=gamma,
                seed=seed,
                level=-20 + 10 * gamma + 0.1 * seed,
            )
    return compare_page(compare(CompareConfig(runs=(folder,), by="seed")))


@pytest.mark.parametrize(("width", "dark"), MODES)
@pytest.mark.parametrize("kind", ["report", "comparison"])
def test_pages_open_fit_and_can_be_read(
    request: pytest.FixtureRequest, open_page: OpenPage, kind: str, width: int, dark: bool
) -> None:
    page = open_page(request.getfixturevalue(kind), width=width, dark=dark)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for drawn in page.locator(".drawn.full").all():
        assert drawn.is_visible() == (width > 720)
    for fold in page.locator("details").all():
        fold.evaluate("one => { one.open = true; }")
    told = page.evaluate(FAINT)
    assert told["seen"] > 90
    assert told["faint"] == []


def test_a_hostile_name_stays_text(report: str, open_page: OpenPage) -> None:
    page = open_page(report)
    asked: list[str] = []
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    assert page.locator("h1").first.inner_text().startswith(EVIL)
    assert page.locator("main script").count() == 0
    assert asked == []


def test_a_pointer_is_told_the_exact_value_and_its_interval(
    report: str, open_page: OpenPage
) -> None:
    page = open_page(report)
    chart = page.locator(".drawn.full").first
    charts = json.loads(page.locator("#charts").text_content() or "")
    told = charts[chart.get_attribute("data-chart") or ""]
    every = told["series"][-1]
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    assert chart.locator(".tip").is_hidden()
    at = 20
    share = (every["x"][at] - told["x"][0]) / (told["x"][1] - told["x"][0])
    across = (told["plot"]["left"] + share * told["plot"]["width"]) * box["width"] / told["size"][0]
    page.mouse.move(box["x"] + across, box["y"] + box["height"] / 2)
    words = chart.locator(".tip").inner_text()
    assert words.startswith(f"{every['x'][at]:.0f} episodes")

    def written(value: float) -> str:
        return f"{value:.2f}".rstrip("0").rstrip(".").replace("-", "\N{MINUS SIGN}")

    ends = f"{written(every['low'][at])} to {written(every['high'][at])}"
    assert words.split("all episodes")[1].split() == [written(every["mean"][at]), *ends.split()]
    # The dot lies on the line, where the pointer is.
    dot = chart.locator("svg circle").last.bounding_box()
    assert dot is not None
    assert dot["x"] + dot["width"] / 2 == pytest.approx(box["x"] + across, abs=1.0)
    page.mouse.move(5, 5)
    assert chart.locator(".tip").is_hidden()


def test_arrow_keys_go_from_point_to_point(report: str, open_page: OpenPage) -> None:
    page = open_page(report)
    chart = page.locator(".drawn.full").first
    chart.focus()
    page.keyboard.press("Home")
    assert chart.locator(".tip").inner_text().startswith("20 episodes")
    page.keyboard.press("ArrowRight")
    assert chart.locator(".tip").inner_text().startswith("40 episodes")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert chart.locator(".tip").inner_text().startswith("780 episodes")
    page.keyboard.press("Escape")
    assert chart.locator(".tip").is_hidden()


def test_a_believed_order_is_told_by_its_name(report: str, open_page: OpenPage) -> None:
    page = open_page(report)
    chart = page.locator(".drawn.full[data-chart^=beliefs]")
    chart.focus()
    page.keyboard.press("Home")
    name = chart.locator(".tip").inner_text().splitlines()[0]
    assert sorted(name.split(",")) == sorted(UNIT_TYPES)


def test_charts_have_words_for_who_cannot_see_them(report: str, open_page: OpenPage) -> None:
    page = open_page(report)
    label = page.locator(".drawn.full").first.get_attribute("aria-label") or ""
    assert label.startswith("Mean return of training episodes: b_line from")
    assert page.locator(".drawn svg:not([aria-hidden=true])").count() == 0


def test_best_and_worst_episodes_are_replayed_inside(tmp_path: Path, open_page: OpenPage) -> None:
    path = make_run(tmp_path / EVIL, red_agent="meander", horizon=30)
    shutil.copy(agent_path("champion"), path / "checkpoints" / "last.npz")
    html = report_page([path], episodes=0, replays=6)
    assert html.count("phalanx.replay = ") == 1  # the viewer's code is there once
    page = open_page(html)
    folds = page.locator("details.episode")
    assert folds.count() == 2
    plays = [one["plays"][0] for one in json.loads(page.locator("#replays").text_content() or "")]
    assert plays[0]["return"] <= plays[1]["return"]
    assert {play["policy"] for play in plays} == {EVIL}
    words = folds.first.locator("summary").first.inner_text()
    worst = f"{plays[0]['return']:.1f}".replace("-", "\N{MINUS SIGN}")
    assert words == f"Worst of 6 against meander: return {worst}"
    folds.first.locator("summary").first.click()
    assert folds.first.locator("[data-name=policy]").inner_text() == EVIL
    assert folds.last.locator("[data-name=policy]").count() == 0  # drawn when it is opened
