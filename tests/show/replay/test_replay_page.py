"""The page of a real episode, in a real browser: each number on it is that of the game."""

from pathlib import Path
from typing import Any

import pytest

import phalanx
from tests.browser import OpenPage
from tests.show.replay.test_viewer_numbers import compare

pytestmark = pytest.mark.browser
GOLDEN = Path(__file__).parent.parent.parent / "golden"


@pytest.mark.parametrize(
    ("defender", "settings"),
    [
        ("champion", {"horizon": 12, "games": 8, "seed": 7}),
        ("react-restore", {"compare": "random", "horizon": 30, "red_agent": "b_line"}),
        (None, {"trace": GOLDEN / "leaderboard", "red_agent": "meander", "episode": 4}),
    ],
    ids=["what if", "compare", "trace"],
)
def test_a_page_shows_its_episode(
    open_page: OpenPage, tmp_path: Path, defender: Any, settings: dict[str, Any]
) -> None:
    told = phalanx.replay(defender, **settings)
    told.save(tmp_path / "it.html")
    page = open_page(tmp_path / "it.html")
    compare(page, told.trajectory)
    assert page.title().endswith(f"return {told.trajectory['plays'][-1]['return']:.1f}")


def test_the_head_says_which_episode_it_is(open_page: OpenPage) -> None:
    for seed, episode, said in (
        (7, 12, "seed 7 · episode 12 · 2.1-leaderboard"),
        (2**60 + 1, 0, f"seed {2**60 + 1} · 2.1-leaderboard"),
    ):
        page = open_page(phalanx.replay("sleep", horizon=2, seed=seed, episode=episode).page())
        assert page.locator("[data-name=about]").text_content() == said


def test_a_name_cannot_become_markup(open_page: OpenPage, tmp_path: Path) -> None:
    """A folder may be called anything that a run is called."""
    from phalanx.agents import agent_path

    nasty = tmp_path / "<img src=x onerror=alert(1)>.npz"
    nasty.write_bytes(agent_path("champion").read_bytes())
    told = phalanx.replay(nasty, horizon=3, games=8)
    page = open_page(told.page())
    assert page.locator("img").count() == 0
    assert str(nasty) in str(page.locator("#replay").text_content())
