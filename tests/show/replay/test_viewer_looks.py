"""A replay is legible: light and dark, wide and narrow, on paper, and to ears."""

import re
from pathlib import Path

import pytest

from phalanx.show.drawing.page import asset
from tests.browser import OpenPage
from tests.show.trajectories import replay_html, trajectory

browser_only = pytest.mark.browser
RECORD = trajectory(turns=40, seed=9)

FAINT = (
    Path(__file__).parent.parent / "faint.js"
).read_text()  # finds texts of too little contrast


# --- colours --------------------------------------------------------------------------------------


def tokens(dark: bool) -> dict[str, str]:
    """Colours by name, of the style that all pages share and of the viewer's own."""
    found: dict[str, str] = {}
    for name in ("base.css", "replay.css"):
        light, _, rest = asset(name).partition("@media (prefers-color-scheme: dark)")
        own = light if not dark else light + rest.partition("\n}\n")[0]
        found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", own))
    return found


def contrast(one: str, two: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_of_text_stand_out_and_access_differs_in_lightness(dark: bool) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    colour = tokens(dark)
    for ground in ("page", "panel"):
        for name in ("text", "quiet", "accent", "blue", "red", "good", "warn"):
            assert contrast(colour[name], colour[ground]) >= 4.5, (name, ground)
    assert contrast(colour["on-root"], colour["root"]) >= 4.5
    assert contrast(colour["on-user"], colour["user"]) >= 4.5
    assert contrast(colour["user"], colour["root"]) >= 2  # in grey print, too
    assert contrast(colour["believed"], colour["believed-root"]) >= 1.5
    assert contrast(colour["root"], colour["page"]) >= 3


@browser_only
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_is_legible(open_page: OpenPage, dark: bool, width: int) -> None:
    page = open_page(replay_html(RECORD), width=width, dark=dark)
    for turn in (0, 20, 40):
        page.evaluate("turn => phalanx.viewer.go(turn)", turn)
        looked_at = page.evaluate(FAINT)
        assert looked_at["seen"] > 60
        assert looked_at["faint"] == []


# --- room -----------------------------------------------------------------------------------------


@browser_only
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
@pytest.mark.parametrize("plays", [1, 2])
def test_no_page_is_wider_than_its_window(open_page: OpenPage, width: int, plays: int) -> None:
    page = open_page(replay_html(trajectory((6, 7, 5, 6, 6), turns=100, plays=plays)), width=width)
    page.evaluate("phalanx.viewer.go(60)")
    assert page.evaluate("document.documentElement.scrollWidth") == width


@browser_only
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_moves_when_the_turn_does(open_page: OpenPage, width: int) -> None:
    page = open_page(replay_html(RECORD), width=width)
    places = page.evaluate(
        """() => Array.from({length: 41}, (_, turn) => {
             phalanx.viewer.go(turn);
             return ['.turn-panel', '.choices', '.network', '.strip', '.controls', '.host']
               .map((each) => document.querySelector(each).getBoundingClientRect())
               .map(({x, y, width, height}) => [x, y, width, height].map(Math.round).join());
           })"""
    )
    assert len({tuple(each) for each in places}) == 1


@browser_only
@pytest.mark.parametrize("subnets", [(2, 1), (5, 4, 4), (6, 7, 5, 6, 6)], ids=str)
@pytest.mark.parametrize("width", [390, 1280])
def test_any_network_is_drawn_without_overlaps(
    open_page: OpenPage, subnets: tuple[int, ...], width: int
) -> None:
    record = trajectory(subnets, turns=5)
    page = open_page(replay_html(record), width=width)
    boxes = page.eval_on_selector_all(
        ".host",
        "all => all.map(e => e.getBoundingClientRect()).map(b => [b.x, b.y, b.right, b.bottom])",
    )
    assert len(boxes) == sum(subnets)
    for k, (x, y, right, bottom) in enumerate(boxes):
        assert 0 <= x < right <= width
        assert all(right <= u or r <= x or bottom <= v or b <= y for u, v, r, b in boxes[:k])
    arrows = page.locator(".arrows .link").count()
    assert arrows == (len({frozenset(link) for link in record["scenario"]["links"]}))
    assert page.locator(".arrows .point").count() == len(record["scenario"]["points"])
    cut = page.eval_on_selector_all(
        ".host-name",
        "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)",
    )
    assert cut == []


@browser_only
def test_paper_shows_the_turn_and_the_whole_game_without_controls(open_page: OpenPage) -> None:
    page = open_page(replay_html(RECORD))
    page.emulate_media(media="print")
    assert page.locator(".host").first.is_visible()
    assert page.locator(".strip-plot").is_visible()
    assert page.locator("button:visible:not(.host)").count() == 0


# --- ears and keys --------------------------------------------------------------------------------


@browser_only
def test_the_turn_is_said_in_words_and_everything_has_a_name(open_page: OpenPage) -> None:
    page = open_page(replay_html(RECORD))
    page.keyboard.press("End")
    turns = RECORD["plays"][0]["turns"]
    said = page.get_by_role("status").inner_text()
    assert f"Blue {turns['blue_words'][39]}. {turns['red_words'][39]}." in said
    slider = page.locator("[role=slider]")
    assert slider.get_attribute("aria-valuetext") == said
    assert slider.get_attribute("aria-valuenow") == slider.get_attribute("aria-valuemax") == "40"
    nameless = page.eval_on_selector_all(
        "button, input, [role=slider], dialog",
        "all => all.filter(e => !(e.getAttribute('aria-label') || e.textContent.trim())).length",
    )
    assert nameless == 0
    assert "Red is root" in (page.locator("[data-host='0']").get_attribute("aria-label") or "")


@browser_only
def test_what_has_the_focus_is_seen(open_page: OpenPage) -> None:
    page = open_page(replay_html(RECORD))
    for _ in range(25):
        page.keyboard.press("Tab")
        drawn = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        on_page = page.evaluate("document.activeElement !== document.body")
        assert drawn == "solid" or not on_page
