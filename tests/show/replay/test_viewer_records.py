"""Records that are foreign, hostile, newer, empty or cut short are shown as far as they go."""

import re
from pathlib import Path
from typing import Any

import pytest

from phalanx.show.drawing.page import asset
from phalanx.show.replay.viewer import REPLAY_PAGE, VIEWER_SCRIPTS, VIEWER_STYLES
from tests.browser import OpenPage
from tests.show.trajectories import replay_html, shortened, trajectory

RECORD = trajectory(turns=40, seed=9)
CUT: dict[str, Any] = {"states": {"access": []}, "turns": {}}
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.mark.browser
@pytest.mark.parametrize("plays", [1, 2])
def test_hostile_names_stay_text(open_page: OpenPage, plays: int) -> None:
    page = open_page(replay_html(trajectory((3, 2), turns=6, plays=plays, name=EVIL)))
    page.on("dialog", lambda dialog: pytest.fail(f"a name ran: {dialog.message}"))
    page.keyboard.press("End")
    page.locator(".host").first.click()
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == len(VIEWER_SCRIPTS) + 2
    assert EVIL in (page.locator(".host-name").first.text_content() or "")
    assert EVIL in (page.locator("[data-name=policy]").first.text_content() or "")


@pytest.mark.browser
@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (None, "There is no episode here"),
        ({"format": "tape", "version": 1}, "This is not an episode of phalanx"),
        ({**RECORD, "version": 2}, "written by a newer phalanx (format 2; this page reads 1)"),
        ({**RECORD, "plays": []}, "No game has been played yet"),
        ({**RECORD, "scenario": {}}, "does not say which hosts"),
        ({**RECORD, "plays": [CUT]}, "broke off before its first"),
    ],
    ids=["nothing", "foreign", "newer", "no play", "no hosts", "cut at once"],
)
def test_what_cannot_be_shown_is_a_sentence(
    open_page: OpenPage, record: Any, sentence: str
) -> None:
    page = open_page(replay_html(record))
    assert sentence in page.locator(".problem").inner_text()
    page.keyboard.press("ArrowRight")


@pytest.mark.browser
def test_a_recording_that_broke_off_is_shown_as_far_as_it_goes(open_page: OpenPage) -> None:
    record = shortened(RECORD, 10)
    record["plays"][0]["turns"]["reward"].pop()
    page = open_page(replay_html(record))
    page.keyboard.press("End")
    assert page.locator(".replay").get_attribute("data-turn") == "9"
    assert page.get_by_text("the recording breaks off after turn 9").is_visible()


@pytest.mark.browser
def test_a_game_without_a_turn_shows_its_beginning(open_page: OpenPage) -> None:
    page = open_page(replay_html(shortened(RECORD, 0)))
    for key in ("ArrowRight", "End", "l", "r", "c", "d", "Space"):
        page.keyboard.press(key)
    assert page.locator("[data-name=blue-words]").inner_text() == "has not moved yet"
    assert page.locator("[data-name=cost]").first.text_content() is not None


@pytest.mark.browser
def test_the_address_can_name_a_turn(open_page: OpenPage, tmp_path: Path) -> None:
    path = tmp_path / "episode.html"
    path.write_text(replay_html(RECORD), encoding="utf-8")
    page = open_page(path.as_uri() + "#turn=23")
    assert page.locator(".replay").get_attribute("data-turn") == "23"


def test_scripts_are_strict_and_write_text_as_text() -> None:
    for name in (*VIEWER_SCRIPTS, REPLAY_PAGE):
        code = asset(name)
        assert "'use strict';" in code
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|\beval\(|document\.write", code
        )
        assert len(code.splitlines()) <= 400
    for name in VIEWER_STYLES:
        assert "url(" not in asset(name)
