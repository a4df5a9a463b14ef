"""Every number and word that a replay shows is that of its record, turn by turn."""

from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import OpenPage
from tests.show.trajectories import Trajectory, replay_html, shortened, trajectory

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
MINUS, DASH = "\u2212", "\u2013"
BARE = ("belief", "remembered", "value", "likely", "what_if", "regret")

# Steps to a turn, and reads off the page: the panel, the rows of its table, and every card.
READ = """turn => {
  phalanx.viewer.go(turn);
  const texts = (root) => Object.fromEntries([...root.querySelectorAll('[data-name]')].map(
    (each) => [each.dataset.name, each.textContent]));
  return [...document.querySelectorAll('.stage')].map((stage) => ({
    head: texts(stage.querySelector('.episode-head')),
    panel: texts(stage.querySelector('.turn-panel')),
    rows: [...stage.querySelectorAll('tr[data-action]')].map((row) => ({
      action: Number(row.dataset.action), played: row.classList.contains('played'),
      width: row.querySelector('.chance')?.style.getPropertyValue('--part'), ...texts(row)})),
    cards: [...stage.querySelectorAll('.host')].map((card) => ({
      data: {...card.dataset}, name: card.querySelector('.host-name').textContent,
      session: card.querySelector('.session-part')?.style.width,
      root: card.querySelector('.root-part')?.style.width, texts: texts(card)})),
  }));
}"""


def number(value: float, digits: int) -> str:
    exact = Decimal(abs(value))  # halves go up, as JavaScript's toFixed has it
    written = str(exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
    return f"{MINUS}{written}" if value < 0 and float(written) else written


def percent(thousandths: int) -> str:
    if 0 < thousandths < 10:
        return "<1 %"
    return ">99 %" if 990 < thousandths < 1000 else f"{int(thousandths / 10 + 0.5)} %"


def check_panel(play: dict[str, Any], turn: int, shown: dict[str, Any]) -> None:
    told, panel = play["turns"], shown["panel"]
    at = {key: column and column[turn - 1] for key, column in told.items()}
    assert panel["turn"] == shown["head"]["turn"] == str(turn)
    assert shown["head"]["return"] == number(play["return"], 1)
    assert panel["return-so-far"] == number(sum(told["reward"][:turn]), 1)
    assert (
        panel["service"]
        == f"service {'runs' if play['states']['service'][turn] == '1' else 'stopped'}"
    )
    if turn == 0:
        assert panel["cost"] == DASH
        assert shown["rows"] == []
        return
    assert panel["blue-words"] == at["blue_words"]
    assert panel["red-words"] == at["red_words"]
    assert panel["cost"] == number(at["reward"], 1)
    for cause in {cost[0] for costs in told["costs"] for cost in costs}:
        spent = sum(cost[2] for cost in at["costs"] if cost[0] == cause)
        assert panel[f"cost-{cause}"] == number(spent, 1)
    if told["value"]:
        assert panel["value"] == number(at["value"], 1)
    if told["what_if"] and at["what_if"]:
        games = at["what_if"]["games"]
        alike = all(row[7] == games for row in at["what_if"]["actions"])
        assert panel["games"] == f"{'' if alike else 'up to '}{games:,} games each"
    if told["regret"] and at["regret"]:
        mean, low, high = (number(value, 2) for value in at["regret"])
        assert panel["regret"] == f"regret {mean} ({low} to {high})"


def check_rows(play: dict[str, Any], turn: int, rows: list[dict[str, Any]]) -> None:
    told = play["turns"]
    likely = dict(map(tuple, told["likely"][turn - 1])) if told["likely"] else {}
    what_if = told["what_if"][turn - 1] if told["what_if"] else None
    games = {row[0]: row[1:] for row in what_if["actions"]} if what_if else {}
    assert {row["action"] for row in rows} == likely.keys() | games.keys()
    for row in rows:
        action = row["action"]
        assert row["played"] == (action == told["blue"][turn - 1])
        if told["likely"]:
            assert row["probability"] == (percent(likely[action]) if action in likely else "")
            assert float(row["width"].rstrip("%")) == likely.get(action, 0) / 10
        if action in games:
            mean, low, high, gain = games[action][:4]
            assert row["to-come"] == f"{number(mean, 1)} ±{number((high - low) / 2, 1)}"
            written = number(gain, 2)
            sign = "+" if gain > 0 and written != "0.00" else ""
            assert row["gain"] == ("played" if row["played"] else sign + written)


def check_cards(
    scenario: dict[str, Any], play: dict[str, Any], turn: int, cards: list[Any]
) -> None:
    states = play["states"]
    assert len(cards) == len(scenario["hosts"])
    for card in cards:
        data, texts, host = card["data"], card["texts"], int(card["data"]["host"])
        assert card["name"] == scenario["hosts"][host]["name"]
        for key in ("access", "known", "files", "activity", "compromised"):
            assert data[key] == states[key][turn][host]
        assert data["decoys"] == str(states["decoys"][turn][host])
        access = int(states["access"][turn][host])
        known = ("not found", "found", "scanned")[int(states["known"][turn][host])]
        assert texts["access"] == ("", "user", "root")[access] or known == texts["access"]
        standing = states["decoys"][turn][host].bit_count()
        assert texts["decoys"] == (str(standing) if standing else "")
        rated = ("", "unknown", "user", "root")[int(states["compromised"][turn][host])]
        noticed = {"0": "", "1": "scan", "3": "exploit"}[states["activity"][turn][host]]
        memory = ""
        if states["remembered"]:
            kept = {kind: states["remembered"][kind][turn][host] for kind in ("exploit", "scan")}
            parts = [f"{k} t{at}" for k, at in kept.items() if at and k != noticed]
            memory = " · ".join(parts)
        assert texts["memory"] == memory
        now = " · ".join(filter(None, (rated, noticed)))
        assert texts["now"] == (now or ("" if memory else "nothing"))
        if states["belief"]:
            session, root = (states["belief"][k][turn][host] for k in ("session", "root"))
            assert texts["session"] == percent(session)
            assert texts["root"] == (percent(root) if root else "")
            assert float(card["session"].rstrip("%")) == session / 10
            assert float(card["root"].rstrip("%")) == root / 10
        costs = play["turns"]["costs"][turn - 1] if turn else []
        spent = sum(cost[2] for cost in costs if cost[1] == host)
        assert texts["cost"] == (number(spent, 1) if spent else "")
        moves = {
            side: play["turns"][f"{side}_host"][turn - 1] if turn else -1
            for side in ("blue", "red")
        }
        for side, where in moves.items():
            assert data[side] == ("yes" if where == host else "no")


def compare(page: "Page", record: Trajectory) -> None:
    for turn in range(len(record["plays"][0]["turns"]["blue"]) + 1):
        shown = page.evaluate(READ, turn)
        assert len(shown) == len(record["plays"])
        for play, stage in zip(record["plays"], shown, strict=True):
            check_panel(play, turn, stage)
            check_cards(record["scenario"], play, turn, stage["cards"])
            if turn:
                check_rows(play, turn, stage["rows"])


@pytest.mark.parametrize(
    "record",
    [
        trajectory(turns=40),
        trajectory((6, 7, 5, 6, 6), turns=20, seed=1),
        trajectory((2, 1), turns=20, seed=2),
        trajectory(turns=20, seed=3, plays=2),
        trajectory(turns=12, seed=4, without=BARE),
        trajectory(turns=12, seed=5, without=BARE[-2:]),
    ],
    ids=["13 hosts", "30 hosts", "3 hosts", "two plays", "moves alone", "no what-if"],
)
def test_every_number_shown_is_that_of_the_record(open_page: OpenPage, record: Trajectory) -> None:
    compare(open_page(replay_html(record)), record)


def test_a_game_that_grows_shows_its_new_turns(open_page: OpenPage) -> None:
    record = trajectory(turns=8, seed=6)
    page = open_page(replay_html(shortened(record, 3)))
    page.evaluate("record => phalanx.viewer.update(record)", record)
    compare(page, record)


def test_the_strip_draws_access_moves_and_losses(open_page: OpenPage) -> None:
    record = trajectory(turns=30, seed=7)
    page = open_page(replay_html(record))
    play = record["plays"][0]
    count = len(record["scenario"]["hosts"])
    cell = page.evaluate("document.querySelector('.strip-plot').viewBox.baseVal.width / 31")
    boxes = page.eval_on_selector_all(
        ".access-user, .access-root",
        "all => all.map(e => [e.classList.contains('access-root'), +e.getAttribute('width')])",
    )
    for level, root in (("1", False), ("2", True)):
        turns = sum(state.count(level) for state in play["states"]["access"])
        assert sum(width for is_root, width in boxes if is_root == root) == pytest.approx(
            turns * cell
        )
    assert count == 13
    assert page.locator(".blue-move").count() == sum(action > 0 for action in play["turns"]["blue"])
    assert page.locator(".red-move").count() == 30 - play["turns"]["red_kind"].count("sleep")
    assert page.locator(".red-move.missed").count() == sum(
        works == "0" and kind != "sleep"
        for works, kind in zip(play["turns"]["red_success"], play["turns"]["red_kind"], strict=True)
    )
    drawn = page.locator(".track-loss rect").count()
    assert drawn == sum(map(len, play["turns"]["costs"]))
    sure = sum(r is not None and r[1] > 0 for r in play["turns"]["regret"])
    assert page.locator(".track-regret .sure").count() == sure > 0
