"""The site: built without warnings, complete, and sufficient in itself."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from docsite.__main__ import build
from docsite.check import faults_of
from docsite.columns_pages import columns_table
from docsite.settings_pages import as_text, kind_of, settings_page
from docsite.stage import FROM_ROOT, for_site, listed, navigation, pages, site_link

from phalanx.cli.commands import COMMANDS
from phalanx.search.surrogate import Visit
from phalanx.settings.fields import Above, OneOf, OrWord, Within
from phalanx.settings.flags import flags_of, helps_of
from phalanx.training.columns import EXPLAINED

API = "api/index.html"
AT_HOME = ("file:", "data:", "about")
PATIENCE = 120_000  # ms, for a browser on a busy machine


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site without its API reference, which takes long and is checked by `make docs`."""
    if find_spec("zensical") is None:
        pytest.skip("zensical is not installed; pip install 'phalanx[docs]'")
    return build(tmp_path_factory.mktemp("build") / "all")


def test_every_link_of_the_site_leads_somewhere_and_nothing_comes_from_elsewhere(
    site: Path,
) -> None:
    assert [fault for fault in faults_of(site) if API not in fault] == []
    assert len(list(site.rglob("*.html"))) > 30


def test_the_checker_finds_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="a.html#here">1</a><a href="a.html#there">2</a><a href="gone.html">3</a>'
        '<a href="https://example.org">4</a><script src="https://example.org/x.js"></script>'
        '<link rel="stylesheet" href="//example.org/x.css"><img src="data:,">'
    )
    (tmp_path / "a.html").write_text('<h2 id="here">')
    (tmp_path / "alone.html").write_text("")
    (tmp_path / "x.css").write_text("@font-face { src: url(https://example.org/x.woff) }")
    assert faults_of(tmp_path) == [
        "index.html leads to a.html#there, and there is no such place in that page",
        "index.html leads to gone.html, which is not there",
        "index.html loads https://example.org/x.js from another host",
        "index.html loads //example.org/x.css from another host",
        "nothing leads to alone.html",
        "x.css loads something from another host",
    ]


def test_every_page_is_in_the_navigation() -> None:
    names = set(pages())
    named = listed(navigation(names))
    assert sorted(names - named) == [], "add it to docsite/nav.yml"
    assert sorted(named - names - {API}) == []


def test_pages_that_are_not_there_yet_are_left_out_of_the_navigation() -> None:
    names = set(pages())
    assert "see-it.md" not in listed(navigation(names - {"see-it.md"}))
    assert "see-it.md" in listed(navigation(names | {"see-it.md"}))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_setting_has_its_place_on_the_page_of_its_command(command: str) -> None:
    config = COMMANDS[command].config
    page, helps = settings_page(command), helps_of(config)
    for item in fields(config):
        flag = (flags_of(item) or (item.metadata.get("metavar", item.name.upper()),))[0]
        place = f"#### `{flag}` {{ #{item.name.replace('_', '-')} }}\n\n"
        assert page.count(place) == 1
        assert page.partition(place)[2].startswith(as_text(helps[item.name].text))


def test_what_may_be_given_is_said_in_words() -> None:
    assert kind_of(int, (Within(1, 1000),)) == "a whole number from 1 to 1,000"
    assert kind_of(float | None, (Above(0, 10),)) == "a number above 0, at most 10"
    assert kind_of(str, (OneOf("", "ppo", "a3c"),)) == "one of `ppo`, `a3c`"
    assert kind_of(int | str, (Within(1, 9), OrWord("auto"))) == (
        "a whole number from 1 to 9, or `auto`"
    )
    assert kind_of(tuple[int, ...], ()) == "a list; each a whole number"
    assert as_text("set --n-envs to a_b * <c>") == "set `--n-envs` to a\\_b \\* &lt;c>"


def test_every_column_is_on_the_page_of_the_run_folder(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "run-folder.html").read_text())
    for table in EXPLAINED.values():
        assert [name for name in table if name not in text] == []
    columns = [item.name for item in fields(Visit)]
    assert re.findall(r"^\| `(\w+)` \| \w.+ \|$", columns_table("search"), re.MULTILINE) == columns


def test_links_of_the_repository_become_links_of_the_site() -> None:
    assert site_link("docs/index.md", "../CONTRIBUTING.md") == "contributing.md"
    assert site_link("CONTRIBUTING.md", "docs/bounds.md") == "bounds.md"
    assert site_link("docs/recipes/cluster.md", "../bounds.md") == "../bounds.md"
    with pytest.raises(FileNotFoundError, match=r"docs/x.md links to gone.md"):
        site_link("docs/x.md", "gone.md")
    with pytest.raises(ValueError, match="no page of the site"):
        site_link("docs/x.md", "../Makefile")
    text = "[a](bounds.md#b)\n\n<!-- not run: why -->\n\n```\n[a](x.md)\n```\n"
    assert for_site(text, "docs/x.md") == "[a](bounds.md#b)\n\n```\n[a](x.md)\n```\n"
    assert "| `wall_time` |" in for_site("<!-- columns: updates -->\n", "docs/x.md")
    assert set(FROM_ROOT.values()) - set(pages()) == set()


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium")
    with sync_api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(site: Path, browser: Any) -> Iterator[Any]:
    """The first page, opened from disk; at the end nothing was complained of or asked elsewhere."""
    wrong: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.extend([said.text] * (said.type == "error")))
    page.on("request", lambda one: wrong.extend([one.url] * (one.url[:5] not in AT_HOME)))
    page.set_default_timeout(PATIENCE)
    page.goto((site / "index.html").as_uri())
    page.wait_for_function("document.documentElement.classList.contains('js')")
    yield page
    page.close()
    assert wrong == []


def test_a_site_on_disk_can_be_searched(page: Any) -> None:
    page.get_by_role("button", name="Search").click()
    field = page.get_by_role("combobox", name="Search")
    field.wait_for()
    field.fill("noise memory")
    result = page.get_by_text("--noise-memory").first
    result.wait_for()
    result.click()
    page.wait_for_url("**/settings/*.html*")


def test_pictures_follow_the_colours_that_the_reader_chooses(page: Any) -> None:
    def ink() -> str:
        asked = "getComputedStyle(document.querySelector('.drawing text')).fill"
        return str(page.evaluate(asked))

    as_the_system = ink()
    for _ in range(2):  # from the system's colours to light, then to dark
        page.locator("label.md-header__button[title^='Colours']:visible").click()
    page.wait_for_function("document.body.getAttribute('data-md-color-scheme') === 'slate'")
    assert ink() != as_the_system


@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_screen(page: Any, site: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    for name in ("index", "how-it-works", "run-folder", "coming-from", "settings/train"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
