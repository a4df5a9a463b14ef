"""Checks a built site: every link leads somewhere, and nothing comes from another host."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself when it opens a page; links are only followed when clicked.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
FETCHING = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "manifest", "prefetch"}
IN_STYLES = re.compile(r"url\(\s*['\"]?(https?:)?//|@import")


class Page(HTMLParser):
    """What a page links to, what it loads, and the places within it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if given.get("http-equiv") == "refresh":
            self.links.append(given.get("content", "").partition("url=")[2])
        source = given.get(LOADED.get(tag, ""), "")
        if source and (tag != "link" or FETCHING & set(given.get("rel", "").split())):
            self.loads.append(source)


def faults_of(site: Path) -> list[str]:
    """What is wrong with a site, a line each."""
    site = site.resolve()
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    faults, reached = [], {site / "index.html", site / "404.html"}
    for path, page in pages.items():
        name = path.relative_to(site)
        for link in page.links + page.loads:
            where = urlsplit(link)
            if where.scheme or where.netloc:
                if link in page.loads and where.scheme != "data":
                    faults.append(f"{name} loads {link} from another host")
                continue
            base = site if where.path.startswith("/") else path.parent  # from the root: 404.html
            aim = (base / unquote(where.path).lstrip("/")).resolve() if where.path else path
            aim = aim / "index.html" if aim.is_dir() else aim
            place = unquote(where.fragment)
            if not aim.is_file():
                faults.append(f"{name} leads to {link}, which is not there")
            elif place and aim in pages and place not in pages[aim].places:
                faults.append(f"{name} leads to {link}, and there is no such place in that page")
            if aim != path:
                reached.add(aim)
    faults += [
        f"nothing leads to {path.relative_to(site)}" for path in pages if path not in reached
    ]
    for style in sorted(site.rglob("*.css")):
        if IN_STYLES.search(style.read_text()):
            faults.append(f"{style.relative_to(site)} loads something from another host")
    return faults
