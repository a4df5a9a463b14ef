"""Lays out what the site is built from: pages of docs/, pages made from the code, the navigation.

In the repository links lead to files, so that the pages can be read there too. Here a link to
CONTRIBUTING.md becomes one to the site's page of it, pictures are put into their pages (so that
they follow the page's colours), and comments such as `<!-- columns: updates -->` become tables.
"""

import posixpath
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from docsite.columns_pages import columns_table
from docsite.settings_pages import command_list, settings_page
from phalanx.cli.commands import COMMANDS

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent
# Pages that lie outside of docs/, and what they are called here.
FROM_ROOT = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
MADE: dict[str, Callable[[str], str]] = {
    "columns": columns_table,
    "settings": lambda _what: command_list(),
}
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
PICTURE = re.compile(r"^!\[[^\]]*\]\(([^)]+\.svg)\)$", re.MULTILINE)
MARK = re.compile(r"^<!-- (\w+): (\w+) -->$", re.MULTILINE)
COMMENT = re.compile(r"^[ ]*<!--.*?-->\n+", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def stage(folder: Path) -> None:
    """Write mkdocs.yml, docs/ and theme/ to an empty folder."""
    for name, text in pages().items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for picture in (*(ROOT / "docs").rglob("*.png"), *(ROOT / "docs").rglob("*.svg")):
        place = folder / "docs" / picture.relative_to(ROOT / "docs")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, place)
    shutil.copytree(HERE / "theme", folder / "theme")
    nav = yaml.safe_dump({"nav": navigation(set(pages()))}, sort_keys=False, allow_unicode=True)
    (folder / "mkdocs.yml").write_text((HERE / "mkdocs.yml").read_text() + nav)


def pages() -> dict[str, str]:
    """Every page of the site as Markdown, by its path there."""
    docs = ROOT / "docs"
    found = {
        str(path.relative_to(docs)): f"docs/{path.relative_to(docs)}" for path in docs.rglob("*.md")
    }
    found |= {name: path for path, name in FROM_ROOT.items() if name != "index.md"}
    made = {f"settings/{name}.md": settings_page(name) for name in COMMANDS}
    return {
        name: for_site((ROOT / path).read_text(), path) for name, path in sorted(found.items())
    } | made


def for_site(text: str, path: str) -> str:
    """A page of the repository as the site has it; what is in fenced code stays as it is."""
    parts = FENCE.split(text)
    for k in range(0, len(parts), 2):
        part = PICTURE.sub(lambda found: _drawn(path, found[1]), parts[k])
        part = LINK.sub(lambda found: site_link(path, found[1]) + (found[2] or ""), part)
        parts[k] = COMMENT.sub("", MARK.sub(lambda mark: _made(*mark.groups()), part))
    return "".join(parts)


def site_link(page: str, target: str) -> str:
    """Where a link of a page leads on the site, both told by their place in the repository."""
    aim = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    if not (ROOT / aim).exists():
        raise FileNotFoundError(f"{page} links to {target}, which is not there")
    if aim not in FROM_ROOT and not aim.startswith("docs/"):
        raise ValueError(f"{page} links to {target}, which is no page of the site; name it instead")
    here = FROM_ROOT.get(page, page.removeprefix("docs/"))
    there = FROM_ROOT.get(aim, aim.removeprefix("docs/"))
    return posixpath.relpath(there, posixpath.dirname(here) or ".")


def _made(kind: str, what: str) -> str:
    return MADE[kind](what) if kind in MADE else f"<!-- {kind}: {what} -->"


def _drawn(page: str, picture: str) -> str:
    """A picture as part of its page."""
    drawing = (ROOT / posixpath.dirname(page) / picture).read_text().strip()
    return f'<figure class="drawing">\n{drawing}\n</figure>'


def navigation(names: set[str]) -> list[Any]:
    """The navigation of nav.yml, for the pages that there are."""
    entries = yaml.safe_load((HERE / "nav.yml").read_text())
    return [entry for entry in (_entry(one, names) for one in entries) if entry]


def _entry(entry: Any, names: set[str]) -> Any:
    if isinstance(entry, str):
        return entry
    ((title, leads),) = entry.items()
    if isinstance(leads, str):
        if leads.endswith("?") and leads[:-1] not in names:
            return None
        return {title: leads.removesuffix("?")}
    inner: list[Any] = []
    for one in leads:
        if one == "settings/*":
            inner += [{f"phalanx {name}": f"settings/{name}.md"} for name in COMMANDS]
        elif (kept := _entry(one, names)) is not None:
            inner.append(kept)
    return {title: inner}


def listed(entries: list[Any]) -> set[str]:
    """The pages that a navigation names."""
    found: set[str] = set()
    for entry in entries:
        ((_title, leads),) = entry.items()
        found |= {leads} if isinstance(leads, str) else listed(leads)
    return found
