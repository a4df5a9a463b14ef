"""A real browser for tests of pages: Chromium, driven by Playwright.

A page that logs an error, throws, or asks for anything beyond its file or this machine fails its
test. Where Playwright or a browser is missing such tests skip and say why; with PHALANX_BROWSER=1,
as `make test-browser` sets it, they fail instead. PHALANX_CHROMIUM names another executable.

    pytestmark = pytest.mark.browser

    def test_a_button_counts(open_page: OpenPage) -> None:
        page = open_page(html, width=390, height=844, dark=True)
        page.get_by_role("button", name="Count").click()

Fixtures live as long as one file of tests: while Playwright runs, its thread has an event loop, and
`asyncio.run` of another file's tests would be refused there.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HOW = "install one by `apt install chromium` or `python -m playwright install chromium`"
AT_HOME = {None, "", "127.0.0.1", "localhost"}  # whom a page may ask; files and data have no host


class OpenPage(Protocol):
    """Opens a page given as text, as a file or by its address, and watches it."""

    def __call__(
        self,
        what: str | Path,
        *,
        width: int = 1280,
        height: int = 800,
        dark: bool = False,
        touch: bool = False,
        calm: bool = True,
        watched: bool = True,
    ) -> "Page": ...


def find_chromium(playwright_own: str = "") -> str | None:
    """Path of a browser to drive: the one named, one that is installed, or Playwright's own."""
    named = os.environ.get("PHALANX_CHROMIUM")
    if named:
        return shutil.which(named)
    installed = next(filter(None, map(shutil.which, NAMES)), None)
    return installed or (playwright_own if os.path.isfile(playwright_own) else None)


def absent(why: str) -> NoReturn:
    """Skip the test that needs a browser, or fail where one was insisted on."""
    if os.environ.get("PHALANX_BROWSER") == "1":
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium without a window. Playwright leaves its sandbox out, as root and containers need."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("no Playwright here; pip install 'phalanx[browser]'")
    with sync_playwright() as driver:
        path = find_chromium(driver.chromium.executable_path)
        if path is None:
            absent(f"no Chromium here; {HOW}")
        started = driver.chromium.launch(executable_path=path)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: "Browser", tmp_path: Path) -> Iterator[OpenPage]:
    """Opens pages for one test, and fails it for what they complained about."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def opened(
        what: str | Path,
        *,
        width: int = 1280,
        height: int = 800,
        dark: bool = False,
        touch: bool = False,
        calm: bool = True,
        watched: bool = True,
    ) -> "Page":
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce" if calm else "no-preference",
            has_touch=touch,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        if watched:
            watch(page, complaints)
        page.goto(address(what, tmp_path))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not complaints, "\n".join(complaints)


def address(what: str | Path, folder: Path) -> str:
    """Where a browser finds a page: its own address, or a file's."""
    if isinstance(what, str):
        if urlsplit(what).scheme in ("http", "https", "file"):
            return what
        path = folder / f"page-{len(list(folder.glob('page-*.html')))}.html"
        path.write_text(what, encoding="utf-8")
        what = path
    return what.resolve().as_uri()


def watch(page: "Page", complaints: list[str]) -> None:
    """Note what a page complains about, and what it asks of the world."""

    def asked(url: str) -> None:
        if urlsplit(url).hostname not in AT_HOME:
            complaints.append(f"asks for {url}")

    def logged(kind: str, words: str) -> None:
        if kind in ("error", "warning"):
            complaints.append(f"logs {kind}: {words}")

    page.on("pageerror", lambda error: complaints.append(f"throws {error}"))
    page.on("request", lambda request: asked(request.url))
    page.on("console", lambda line: logged(line.type, line.text))
