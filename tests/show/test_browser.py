"""The browser that tests use hears complaints, and its absence is a reason."""

from pathlib import Path

import pytest

from phalanx.show.drawing.page import page
from tests.browser import OpenPage, absent, find_chromium, watch

pytestmark = pytest.mark.browser


def test_a_page_opens_from_disk_in_the_width_and_scheme_asked_for(open_page: OpenPage) -> None:
    shown = open_page(page("a title", "<h1>Hello</h1>"), width=390, dark=True)
    assert shown.url.startswith("file:")
    assert shown.title() == "a title"
    assert shown.evaluate("innerWidth") == 390
    assert shown.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("console.error('broken')", "logs error: broken"),
        ("throw new Error('broken')", "throws broken"),
        ("fetch('https://example.org/')", "asks for https://example.org/"),
    ],
)
def test_complaints_are_heard(open_page: OpenPage, code: str, complaint: str) -> None:
    shown = open_page("<p>quiet</p>", watched=False)
    heard: list[str] = []
    watch(shown, heard)
    shown.route("https://example.org/*", lambda route: route.fulfill(body=""))
    shown.evaluate(f"() => {{ setTimeout(() => {{ {code} }}); }}")
    for _ in range(200):  # complaints come by themselves, soon
        if heard:
            break
        shown.wait_for_timeout(50)
    assert complaint in "\n".join(heard)


def test_without_a_browser_a_test_skips_unless_one_is_insisted_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PHALANX_CHROMIUM", str(tmp_path / "nothing"))
    assert find_chromium() is None
    monkeypatch.delenv("PHALANX_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="none"):
        absent("none")
    monkeypatch.setenv("PHALANX_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="none"):
        absent("none")
