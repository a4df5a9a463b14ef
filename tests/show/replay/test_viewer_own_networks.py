"""The page of an episode on a network of one's own: what it shows besides, and how it fits."""

from functools import cache
from pathlib import Path

import pytest

import phalanx
from tests.browser import OpenPage
from tests.show.replay.test_viewer_numbers import compare
from tests.show.trajectories import Trajectory, replay_html

pytestmark = pytest.mark.browser
SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"


@cache
def thirty_hosts() -> Trajectory:
    told = phalanx.replay(
        "react-restore", scenario=str(SCENARIOS / "thirty_hosts.yaml"), green=1, horizon=30, seed=2
    ).trajectory
    told["plays"][0]["notes"] = ["The <b>belief</b> is left out.", "What if is left out."]
    return told


def test_every_number_is_that_of_the_record(open_page: OpenPage) -> None:
    compare(open_page(replay_html(thirty_hosts())), thirty_hosts())


def test_green_is_told_marked_and_explained(open_page: OpenPage) -> None:
    page, turns = open_page(replay_html(thirty_hosts())), thirty_hosts()["plays"][0]["turns"]
    for turn, host in enumerate(turns["green_host"], 1):
        page.evaluate("turn => phalanx.viewer.go(turn)", turn)
        words = page.locator("[data-name=green-words]").inner_text()
        assert words == turns["green_words"][turn - 1]
        tags = page.locator("[data-name=tag-green]")
        assert tags.count() == (host >= 0)
        if host >= 0:
            assert page.locator(f".host[data-host='{host}'] [data-name=tag-green]").count() == 1
    assert page.locator(".green-move").count() == sum(host >= 0 for host in turns["green_host"])
    assert page.locator(".sign-green").count() == 2  # in the legend and in the help
    assert page.locator("[role=status]").first.text_content()


def test_what_is_left_out_is_said_as_text(open_page: OpenPage) -> None:
    page = open_page(replay_html(thirty_hosts()))
    assert page.locator(".left-out").all_inner_texts() == thirty_hosts()["plays"][0]["notes"]
    assert page.locator(".left-out b").count() == 0
    assert "thirty_hosts" in page.locator("[data-name=about]").inner_text()


def test_cage2_has_none_of_it(open_page: OpenPage) -> None:
    page = open_page(replay_html(phalanx.replay("sleep", horizon=3).trajectory))
    for name in (".left-out", "[data-name=green-words]", ".sign-green", ".green-move"):
        assert page.locator(name).count() == 0


@pytest.mark.parametrize("width", [1400, 390])
def test_thirty_hosts_fit(open_page: OpenPage, width: int) -> None:
    page = open_page(replay_html(thirty_hosts()), width=width, height=900)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    names = page.locator(".host-name")
    assert names.count() == 30
    cut = names.evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth).length")
    assert cut == 0


def test_no_way_between_subnets_crosses_a_name(open_page: OpenPage) -> None:
    """Guests point to Enterprise, and Laboratory stands between them."""
    page = open_page(replay_html(thirty_hosts()), width=1400, height=900)
    crossed = page.evaluate(
        """() => {
          const place = (e) => e.getBoundingClientRect();
          const names = [...document.querySelectorAll('.subnet-name')].map(place);
          const box = place(document.querySelector('.network'));
          return [...document.querySelectorAll('.arrows .link')].flatMap((way) => {
            const points = Array.from({ length: 101 }, (_, k) =>
              way.getPointAtLength((way.getTotalLength() * k) / 100));
            return points.filter(({ x, y }) => names.some((name) =>
              x + box.left > name.left && x + box.left < name.right &&
              y + box.top > name.top && y + box.top < name.bottom));
          }).length;
        }"""
    )
    assert crossed == 0
