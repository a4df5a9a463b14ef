"""A replay is moved through by click, drag, finger and key, and played in live games."""

import copy
from typing import TYPE_CHECKING, Any

import pytest

from phalanx.show.drawing.page import page as whole_page
from phalanx.show.replay.viewer import VIEWER_SCRIPTS, VIEWER_STYLES
from tests.browser import OpenPage
from tests.show.trajectories import Trajectory, replay_html, shortened, trajectory

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
RECORD = trajectory(turns=40, seed=10)
TURNS = RECORD["plays"][0]["turns"]
PAIR = trajectory(turns=40, seed=10, plays=2)
LIVE = """<main id="replay"></main>"""
START_LIVE = """record => {
  window.acted = [];
  window.answer = null;
  window.viewer = phalanx.replay(document.getElementById('replay'), record, {
    onAction: (action) => { acted.push(action); return new Promise((done) => { answer = done; }); },
    truth: window.truth ?? true });
}"""


def turn_of(page: "Page") -> int:
    return int(page.locator(".replay").get_attribute("data-turn") or -1)


def point_at(page: "Page", turn: int, below: float = 10) -> tuple[float, float]:
    """The middle of a turn's column in the strip."""
    box = page.locator(".strip-plot").bounding_box()
    assert box is not None
    return box["x"] + (turn + 0.5) * box["width"] / 41, box["y"] + below


def test_keys_step_and_go_to_the_ends(open_page: OpenPage) -> None:
    page = open_page(replay_html(RECORD))
    seen = []
    for key in (
        "ArrowRight",
        "ArrowRight",
        "ArrowLeft",
        "End",
        "ArrowRight",
        "PageUp",
        "Home",
        "ArrowLeft",
    ):
        page.keyboard.press(key)
        seen.append(turn_of(page))
    assert seen == [1, 2, 1, 40, 40, 30, 0, 0]


def test_a_click_on_the_strip_goes_there_and_a_drag_follows(open_page: OpenPage) -> None:
    page = open_page(replay_html(RECORD))
    page.mouse.click(*point_at(page, 17))
    assert turn_of(page) == 17
    page.mouse.move(*point_at(page, 5))
    page.mouse.down()
    visited = []
    for turn in (9, 33, 12):
        page.mouse.move(*point_at(page, turn))
        visited.append(turn_of(page))
    page.mouse.up()
    page.mouse.move(*point_at(page, 30))
    assert visited == [9, 33, 12]
    assert turn_of(page) == 12


def test_a_finger_taps_the_strip_and_drags_the_handle(open_page: OpenPage) -> None:
    page = open_page(replay_html(RECORD), width=390, height=844, touch=True)
    page.locator(".strip").scroll_into_view_if_needed()
    page.locator(".strip-scroll").evaluate("each => each.scrollLeft = 0")
    page.touchscreen.tap(*point_at(page, 8))
    assert turn_of(page) == 8
    height = page.locator(".strip-plot").bounding_box()
    assert height is not None
    client = page.context.new_cdp_session(page)
    for kind, turn in (("touchStart", 8), ("touchMove", 15), ("touchMove", 20), ("touchEnd", 0)):
        x, y = point_at(page, turn, height["height"] - 8)
        points = [] if kind == "touchEnd" else [{"x": x, "y": y}]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert turn_of(page) == 20
    page.locator(".overview").fill("33")
    assert turn_of(page) == 33


def test_buttons_step_and_jump_to_what_matters(open_page: OpenPage) -> None:
    page = open_page(replay_html(RECORD))
    accesses = RECORD["plays"][0]["states"]["access"]
    compromise = next(
        t
        for t, now in enumerate(accesses)
        if any(a > "0" and b == "0" for a, b in zip(now, accesses[0], strict=True))
    )
    assert compromise > 1
    losses = [t for t, reward in enumerate(TURNS["reward"], 1) if reward < 0]
    costly = [t for t, regret in enumerate(TURNS["regret"], 1) if regret and regret[1] > 0]

    def press(name: str) -> int:
        page.get_by_role("button", name=name, exact=True).click(force=True)
        return turn_of(page)

    assert press("First compromise") == compromise
    assert press("Next turn") == compromise + 1
    assert press("First turn") == 0
    assert [press("Next loss") for _ in losses] == losses
    assert press("Next loss") == losses[-1]  # none further: it stays
    page.keyboard.press("Home")
    assert [press("Next costly decision") for _ in costly] == costly
    assert press("Last turn") == 40
    assert press("Turn back") == 39
    page.keyboard.press("Home")
    page.keyboard.press("l")
    assert turn_of(page) == losses[0]
    page.keyboard.press("Home")
    page.keyboard.press("R")
    assert turn_of(page) == costly[0]


def test_it_plays_by_itself_at_the_chosen_speed_and_stops_at_the_end(open_page: OpenPage) -> None:
    page = open_page("<p>first</p>")
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # time passes only as the test says
    page.set_content(replay_html(RECORD))
    page.keyboard.press("Space")
    page.clock.run_for(3050)
    assert turn_of(page) == 3
    page.get_by_role("button", name="4 turns a second").click()
    page.clock.run_for(2050)
    assert turn_of(page) == 11
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    assert turn_of(page) == 11
    page.get_by_role("button", name="16 turns a second").click()
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(9000)
    assert turn_of(page) == 40
    assert page.get_by_role("button", name="Play").count() == 1


def test_two_plays_share_one_handle_and_part_where_they_differ(open_page: OpenPage) -> None:
    page = open_page(replay_html(PAIR))
    one, two = (play["turns"] for play in PAIR["plays"])
    parting = next(
        t
        for t in range(1, 41)
        if any(one[key][t - 1] != two[key][t - 1] for key in ("blue", "red_words", "reward"))
    )
    assert parting > 7
    page.keyboard.press("End")
    page.keyboard.press("d")
    assert turn_of(page) == parting
    assert page.locator(".stage [data-name=turn]").all_inner_texts() == [str(parting)] * 4
    page.keyboard.press("End")
    states = [play["states"]["access"][40] for play in PAIR["plays"]]
    differing = {str(h) for h, pair in enumerate(zip(*states, strict=True)) if len(set(pair)) > 1}
    for play in ("0", "1"):
        marked = page.eval_on_selector_all(
            f".stage[data-play='{play}'] [data-differs=yes]", "all => all.map(e => e.dataset.host)"
        )
        assert set(marked) == differing


def test_two_plays_part_where_only_blue_moves_otherwise(open_page: OpenPage) -> None:
    record = copy.deepcopy(PAIR)
    record["plays"][1]["turns"]["blue"][6] += 1
    page = open_page(replay_html(record))
    page.get_by_role("button", name="Where they part").click()
    assert turn_of(page) == 7


def test_of_several_replays_in_a_page_keys_move_the_one_last_touched(open_page: OpenPage) -> None:
    body = '<div class="one"></div><div class="two"></div>'
    page = open_page(whole_page("two", body, styles=VIEWER_STYLES, scripts=VIEWER_SCRIPTS))
    page.evaluate(
        "record => { for (const name of ['one', 'two'])"
        " phalanx.replay(document.querySelector('.' + name), record); }",
        RECORD,
    )
    page.keyboard.press("ArrowRight")
    assert page.locator(".two").get_attribute("data-turn") == "0"
    page.locator(".two .subnet-name").first.click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator(".one").get_attribute("data-turn") == "0"
    assert page.locator(".two").get_attribute("data-turn") == "2"
    page.locator(".one .subnet-name").first.click()
    page.keyboard.press("ArrowRight")
    assert page.locator(".one").get_attribute("data-turn") == "1"
    assert page.locator(".two").get_attribute("data-turn") == "2"


def test_help_opens_by_its_key_and_leaves_by_escape(open_page: OpenPage) -> None:
    page = open_page(replay_html(RECORD))
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Help").is_visible()
    page.keyboard.press("ArrowRight")  # belongs to the dialog now
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog", name="Help").is_visible()
    assert turn_of(page) == 0


# --- live play ------------------------------------------------------------------------------------


def live(open_page: OpenPage, record: Trajectory, truth: bool = True, **size: Any) -> "Page":
    page = open_page(whole_page("play", LIVE, styles=VIEWER_STYLES, scripts=VIEWER_SCRIPTS), **size)
    page.evaluate("truth => { window.truth = truth; }", truth)
    page.evaluate(START_LIVE, record)
    return page


def test_in_live_play_a_host_offers_its_actions_by_click_and_by_keys(open_page: OpenPage) -> None:
    names = RECORD["scenario"]["actions"]
    page = live(open_page, shortened(RECORD, 5))
    assert turn_of(page) == 5
    page.locator("[data-host='6']").click()
    dialog = page.get_by_role("dialog", name="Enterprise1")
    offered = dialog.locator(".offer").evaluate_all("all => all.map(e => Number(e.dataset.action))")
    assert sorted(offered) == [k for k, name in enumerate(names) if name.endswith(" Enterprise1")]
    dialog.get_by_role("button", name="Restore").click()
    assert page.evaluate("acted") == [names.index("Restore Enterprise1")]
    page.locator("[data-host='7']").click()  # the last move is not answered yet
    assert page.locator(".offer").count() == 0
    page.keyboard.press("Escape")
    page.evaluate("answer()")
    page.evaluate("record => viewer.update(record)", shortened(RECORD, 6))
    assert turn_of(page) == 6
    page.locator("[data-host='7']").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.evaluate("answer()")
    page.evaluate("record => viewer.update(record)", shortened(RECORD, 7))
    assert page.evaluate("document.activeElement.dataset.host") == "7"  # keys go on from there
    page.get_by_role("button", name="Monitor", exact=True).click()
    wanted = ["Restore Enterprise1", "Remove Enterprise2", "Monitor"]
    assert [names[action] for action in page.evaluate("acted")] == wanted


def test_in_live_play_the_past_can_be_looked_at_but_not_changed(open_page: OpenPage) -> None:
    page = live(open_page, shortened(RECORD, 5))
    page.keyboard.press("ArrowLeft")
    page.locator("[data-host='6']").click()
    assert page.locator(".offer").count() == 0
    assert page.get_by_text("To move, go to the last turn").is_visible()
    page.keyboard.press("Escape")
    page.evaluate("record => viewer.update(record)", shortened(RECORD, 6))
    assert turn_of(page) == 4  # looking back is not disturbed by what comes in


def test_without_the_truth_a_page_shows_only_what_blue_sees(open_page: OpenPage) -> None:
    hidden = copy.deepcopy(shortened(RECORD, 30))
    page = live(open_page, hidden, truth=False)
    assert page.locator(".access-user, .access-root, .red-move, .tag-red").count() == 0
    for turn in (30, 29, 20):
        page.evaluate("turn => viewer.go(turn)", turn)
        shown = page.locator(".replay").inner_text() + page.locator(".replay").inner_html()
        assert hidden["plays"][0]["turns"]["red_words"][turn - 1] not in shown
        assert page.locator("[data-access]:not([data-access='0'])").count() == 0
        restored = [
            cost for cost in hidden["plays"][0]["turns"]["costs"][turn - 1] if cost[0] == "restore"
        ]
        assert page.locator(".host .cost:not(:empty)").count() == len(restored)
    page.evaluate("record => viewer.update(record, {truth: true, onAction: null})", hidden)
    page.evaluate("viewer.go(30)")
    assert page.locator(".red-move").count() > 0
    assert page.locator("[data-access='2']").count() > 0
