"""A game by clicking, in a real browser: the same game as by Gymnasium, and hints that are told."""

import gymnasium
import pytest

import phalanx  # noqa: F401  registers the environment
from phalanx.cage2 import HOSTS, action_index
from phalanx.cage2.rules.scenario import action_name
from tests.browser import OpenPage
from tests.ui.client import Client

pytestmark = pytest.mark.browser

# What a person might do in the first turns; then over and over.
MOVES = (
    ("DecoyApache", "User2"),
    ("Sleep", None),
    ("Analyse", "User1"),
    ("Restore", "User1"),
    ("Remove", "Enterprise1"),
    ("Monitor", None),
    ("Restore", "Enterprise2"),
)


def begin(page, *, attacker: str, turns: int, seed: int):  # type: ignore[no-untyped-def]
    """Fill in the form, and wait for the board."""
    page.get_by_role("link", name="Play", exact=True).click()
    page.get_by_label("Attacker").select_option(attacker)
    page.get_by_label("Turns").fill(str(turns))
    page.get_by_label("Seed").fill(str(seed))
    page.get_by_role("button", name="Begin").click()
    page.locator(".replay .host").first.wait_for()


def move(page, turn: int, verb: str, host: str | None) -> None:  # type: ignore[no-untyped-def]
    if host is None:
        page.get_by_role("button", name=verb, exact=True).click()
    else:
        page.locator(f".host[data-host='{HOSTS.index(host)}']").click()
        page.locator(f".offer[data-action='{action_index(verb, host)}']").click()
    page.locator(f".replay[data-turn='{turn}']:not([aria-busy])").wait_for()


def test_a_whole_game_by_clicking_returns_what_the_same_actions_do_in_gymnasium(
    open_page: OpenPage, client: Client
) -> None:
    page = open_page(client.served.address)
    begin(page, attacker="b_line", turns=30, seed=11)
    actions = []
    for turn in range(1, 31):
        verb, host = MOVES[(turn - 1) % len(MOVES)]
        if verb == "DecoyApache" and turn > 1:
            verb = "Restore"  # it stands already, and is not offered again
        move(page, turn, verb, host)
        actions.append(action_index(verb, host))
    env = gymnasium.make("phalanx/Cage2-v0", red_agent="b_line", horizon=30)
    env.reset(seed=11)
    rewards = [float(env.step(action)[1]) for action in actions]
    total = round(sum(rewards), 1)
    assert total < -10
    shown = page.locator("[data-name='your-return']").inner_text()
    assert float(shown.replace("\u2212", "-")) == total
    page.locator("tr[data-kind='champion']").first.wait_for()
    assert page.locator("tr[data-kind='published']").count() == 3
    # And its replay is that game, turn by turn.
    page.keyboard.press("Home")
    for turn in range(1, 31):
        page.keyboard.press("ArrowRight")
        page.locator(f".replay[data-turn='{turn}']").wait_for()
        cost = page.locator(".turn-panel [data-name='cost']").inner_text()
        assert float(cost.replace("\u2212", "-")) == pytest.approx(rewards[turn - 1])


def test_the_truth_is_nowhere_in_the_page_before_the_end(
    open_page: OpenPage, client: Client
) -> None:
    page = open_page(client.served.address)
    sent: list[str] = []
    page.on("response", lambda reply: sent.append(reply.text()) if "/api/" in reply.url else None)
    begin(page, attacker="meander", turns=5, seed=3)
    for turn in range(1, 5):
        move(page, turn, "Sleep", None)
    words = page.locator(".replay").inner_text()
    for secret in ("Meander scans", "exploits", "root on", "not found"):
        assert secret not in words
        assert not [one for one in sent if secret in one]
    page.get_by_role("button", name="Open cards").click()
    page.get_by_text("Meander scans").first.wait_for()
    move(page, 5, "Sleep", None)
    page.get_by_text("with open cards from turn 5").wait_for()


def test_hints_tell_what_the_champion_would_do_and_what_a_move_costs(
    open_page: OpenPage, client: Client
) -> None:
    page = open_page(client.served.address, width=390, height=844, dark=True)
    begin(page, attacker="meander", turns=12, seed=5)
    page.get_by_role("button", name="Hints").click()
    first = page.locator(".advice-table tbody tr[data-action]").first
    first.wait_for()
    action = action_name(int(first.get_attribute("data-action") or -1))
    assert first.inner_text().startswith(action.replace("Decoy", "Decoy "))
    first.get_by_role("button").click()
    page.get_by_text("as the champion would").wait_for()
    page.locator(".replay[data-turn='1']:not([aria-busy])").wait_for()
    page.get_by_text("games each").first.wait_for()
    move(page, 2, "Restore", "Op_Server0")
    verdict = page.locator(".verdict")
    verdict.get_by_text("Turn 2, Restore Op_Server0").wait_for()
    assert "worse than" in verdict.inner_text()  # a Restore costs a point, and nobody is there


def test_decoys_that_do_not_fit_are_not_offered(open_page: OpenPage, client: Client) -> None:
    page = open_page(client.served.address)
    begin(page, attacker="sleep", turns=3, seed=1)
    move(page, 1, "DecoyApache", "User2")
    page.locator(f".host[data-host='{HOSTS.index('User2')}']").click()
    offers = {
        verb: page.locator(f".offer[data-action='{action_index(verb, 'User2')}']")
        for verb in ("DecoyApache", "DecoySSHD", "Analyse")
    }
    assert offers["DecoyApache"].is_disabled()
    assert offers["DecoySSHD"].is_enabled()
    assert offers["Analyse"].is_enabled()


def test_a_game_that_is_gone_says_so(open_page: OpenPage, client: Client) -> None:
    page = open_page(client.served.address, watched=False)  # browsers log what is not found
    page.evaluate("() => { location.hash = '#/play/nothing'; }")
    page.get_by_text("This game is not there any more").wait_for()
    page.get_by_role("link", name="Begin another game").click()
    page.get_by_role("button", name="Begin").wait_for()
