"""The web app in a real browser: runs, curves that grow, replays, and what it says otherwise."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from phalanx.agents import AGENTS
from phalanx.cage2.workflow import order_name
from phalanx.training.folder import RunFolder
from phalanx.ui.serve import serving
from tests.browser import OpenPage
from tests.show.run_folders import UPDATE, make_run, make_search, make_sweep, mark
from tests.ui.client import Client

pytestmark = pytest.mark.browser
HOSTILE = "<script>window.stolen=1<_script><img src=x onerror=stolen=1>\"'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "good", level=-10.0)
    make_run(folder / "better", level=-5.0)
    make_run(folder / "killed", state=None, level=-20.0)
    make_run(folder / HOSTILE)
    make_search(folder / "search")
    make_sweep(folder / "sweep")
    mark(folder / "begun")
    broken = make_run(folder / "broken")
    for name in ("config.yaml", "summary.json", "updates.csv"):
        (broken / name).write_bytes(b"\xff\x00{[" * 100)
    played = folder / "good" / "checkpoints" / "last.npz"
    played.write_bytes(AGENTS["champion"].read_bytes())
    return folder


def names(page) -> list[str]:  # type: ignore[no-untyped-def]
    """The runs, as they are listed."""
    page.locator("tr[data-run]").first.wait_for()
    return [row.get_attribute("data-run") for row in page.locator("tr[data-run]").all()]


def test_the_list_is_sorted_by_any_column_and_filtered(open_page: OpenPage, client: Client) -> None:
    page = open_page(client.served.address)
    assert "token" not in page.url
    assert len(names(page)) == 11
    page.get_by_role("button", name="return").click()
    ranked = names(page)
    assert ranked[0] == "better"
    assert ranked.index("good") < ranked.index("killed")
    assert page.locator("th[aria-sort='descending']").inner_text().startswith("return")
    page.get_by_role("button", name="return").click()
    assert names(page)[0] == "killed"
    assert names(page)[-1] in ("begun", "broken")  # what is not known comes last either way
    page.get_by_label("Filter").fill("SWEEP")
    assert len(names(page)) == 4
    assert "sweep" in page.locator("tr[data-run='sweep'] .kind").inner_text()
    page.get_by_label("Filter").fill("no such run")
    page.get_by_text("No run is like that.").wait_for()
    page.get_by_role("button", name="Show all").click()
    page.get_by_label("State").select_option("crashed")
    assert set(names(page)) == {"begun", "killed"}


def test_foreign_names_stay_text_on_every_page(open_page: OpenPage, client: Client) -> None:
    page = open_page(client.served.address)
    assert HOSTILE in names(page)
    page.get_by_role("link", name=HOSTILE).click()
    page.locator("h1").get_by_text(HOSTILE).wait_for()
    page.locator("path.line").first.wait_for()
    assert page.evaluate("window.stolen") is None
    assert page.locator("img").count() == 0


def test_a_damaged_run_does_not_break_the_list(open_page: OpenPage, client: Client) -> None:
    page = open_page(client.served.address, width=390, height=844, dark=True)
    assert "broken" in names(page)
    page.get_by_role("link", name="broken").click()
    page.get_by_text("Config.yaml cannot be read").wait_for()
    assert page.locator(".state.error").count() == 0


def test_searches_and_sweeps_are_shown_as_such(open_page: OpenPage, client: Client) -> None:
    page = open_page(client.served.address)
    page.get_by_role("link", name="sweep", exact=True).click()
    page.get_by_role("heading", name="Trials: 3").wait_for()
    page.get_by_role("link", name="0-learning_rate=1e-3/seed=0").click()
    page.locator("h1").get_by_text("sweep/0-learning_rate=1e-3/seed=0").wait_for()
    page.get_by_role("link", name="Runs").first.click()
    page.get_by_role("link", name="search", exact=True).click()
    page.get_by_text(f"The best order of repair: {order_name(119)}").wait_for()


def test_curves_of_a_running_training_grow(
    open_page: OpenPage, client: Client, folder: Path
) -> None:
    at_work = RunFolder(folder / "working")
    page = open_page(client.served.address)
    try:
        page.locator("tr[data-run='working']").get_by_text("running").wait_for()
        page.get_by_role("link", name="working").click()

        def update(first: int, last: int) -> None:
            rows = [
                [k, 20 * k, 2000 * k, *[-1.0 * k] * (len(UPDATE) - 4), "x"]
                for k in range(first, last)
            ]
            at_work.table("updates").add(UPDATE, rows)
            at_work.flush()

        update(1, 4)
        line = page.locator("figure").filter(has_text="Entropy").locator("path.line")
        line.wait_for()
        assert str(line.get_attribute("d")).count("L") == 2
        update(4, 9)
        for _ in range(100):
            if str(line.get_attribute("d")).count("L") == 7:
                break
            page.wait_for_timeout(100)
        assert str(line.get_attribute("d")).count("L") == 7
    finally:
        at_work.close()


def test_a_replay_is_asked_for_and_shown(open_page: OpenPage, client: Client) -> None:
    page = open_page(client.served.address)
    page.get_by_role("link", name="good", exact=True).click()
    page.get_by_role("button", name="Replay …").click()
    assert page.get_by_label("Defender").input_value() == "run/good"
    page.get_by_label("Turns").fill("8")
    page.get_by_label("What if").uncheck()
    page.get_by_label("Beside it").select_option("sleep")
    page.get_by_role("button", name="Replay", exact=True).click()
    page.locator(".replay[data-plays='2'] .host").first.wait_for()
    assert page.locator("[data-name='policy']").all_inner_texts() == ["good", "sleep"]
    page.keyboard.press("End")
    page.locator(".replay[data-turn='8']").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save as a file").click()
    alone = open_page(Path(saved.value.path()).read_text())
    alone.locator(".replay .host").first.wait_for()


def test_a_report_opens_beside_the_app(open_page: OpenPage, client: Client) -> None:
    page = open_page(client.served.address)
    page.get_by_label("Choose good").check()
    page.get_by_label("Choose better").check()
    page.get_by_role("button", name="Report of 2").click()
    opener = page.get_by_role("link", name="Open", exact=True)
    opener.wait_for(timeout=120_000)
    complaints: list[str] = []
    with page.context.expect_page() as opened:
        opener.click()
    report = opened.value
    report.on("console", lambda line: complaints.append(line.text))
    report.get_by_role("heading", name="better").first.wait_for()
    assert report.evaluate("origin") == "null"  # a stranger: it cannot ask the app for anything
    assert complaints == []


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("#/nothing", "There is no such page."),
        ("#/run/nothing", "There is no run 'nothing' any more."),
        ("#/shown/nothing", "This is forgotten; ask for it again."),
        ("#/%E0%A4%A", "Runs"),
    ],
)
def test_what_is_not_there_is_said(
    open_page: OpenPage, client: Client, place: str, words: str
) -> None:
    page = open_page(client.served.address, watched=False)  # browsers log what is not found
    page.locator("tr[data-run]").first.wait_for()
    page.evaluate(f"() => {{ location.hash = {place!r}; }}")
    page.locator("main").get_by_text(words).first.wait_for()


def test_an_empty_folder_and_a_server_that_is_gone_are_said(
    open_page: OpenPage, tmp_path: Path
) -> None:
    with serving(tmp_path) as served:
        page = open_page(served.address, watched=False)  # browsers log what does not answer
        page.get_by_text(re.compile("There are no runs in .* yet")).wait_for()
    page.get_by_text("The server does not answer").wait_for()


@pytest.fixture
def stranger() -> Iterator[str]:
    """Another site on this machine: the address of an empty page."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>stranger</title>")

        def log_message(self, *_words: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_another_site_in_the_same_browser_gets_nothing(
    open_page: OpenPage,
    client: Client,
    stranger: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It knows the port, and the browser sends the cookie: it can neither read nor play."""
    begun: list[object] = []
    monkeypatch.setattr("phalanx.ui.games.Table", begun.append)
    page = open_page(client.served.address, watched=False)
    names(page)
    other = page.context.new_page()
    other.goto(stranger)
    origin = client.served.origin
    asked = """async ([url, options]) => {
        try { return (await fetch(url, { credentials: 'include', ...options })).type; }
        catch { return 'refused'; }
    }"""
    sent = {"method": "POST", "body": "{}"}
    as_json = {**sent, "headers": {"content-type": "application/json"}}
    for path, options in (
        ("/api/runs", {}),
        ("/api/runs", {"mode": "no-cors"}),
        ("/", {"mode": "no-cors"}),
        ("/api/games", sent),
        ("/api/games", {**sent, "mode": "no-cors"}),
        ("/api/games", as_json),
    ):
        assert other.evaluate(asked, [origin + path, options]) == "refused"
    assert begun == []
    sent_by_us = client.post("/api/games")
    assert (len(begun), sent_by_us.status) == (1, 500)  # it would have been noticed


def test_the_wrong_token_opens_nothing(open_page: OpenPage, client: Client) -> None:
    page = open_page(f"{client.served.origin}/?token=wrong", watched=False)
    page.get_by_text("The token is missing or wrong").wait_for()
    assert page.locator("#app").count() == 0
