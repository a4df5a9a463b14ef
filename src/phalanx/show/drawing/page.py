"""One HTML file that opens from disk: styles, scripts and data inside it, and nothing fetched.

The styles and scripts are files of their own in `web/`; what a run, a file or a person has named
gets into a page as data or through `text`, never as markup.
"""

import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

# Nothing may be loaded from anywhere, whatever a name in a page's data tries.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; font-src data:; base-uri 'none'; form-action 'none'"
)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
{styles}
</head>
<body>
{body}
{data}
{scripts}
</body>
</html>
"""


def page(
    title: str,
    body: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    libraries: Sequence[str] = (),
    data: Mapping[str, object] | None = None,
    policy: str = POLICY,
) -> str:
    """A whole page.

    body: markup, with everything foreign in it put through `text`. styles, scripts: names of files
    in `web/`; base.css comes first by itself. libraries: scripts of packages, as text. data: what
    scripts find, each under its name, by `JSON.parse(document.getElementById(name).textContent)`.
    """
    inside = [_script(library) for library in libraries]
    inside += [_script(asset(name)) for name in scripts]
    return PAGE.format(
        policy=text(policy),
        title=text(title),
        styles="\n".join(f"<style>\n{asset(name)}</style>" for name in ("base.css", *styles)),
        body=body,
        data="\n".join(data_element(name, value) for name, value in (data or {}).items()),
        scripts="\n".join(inside),
    )


def asset(name: str) -> str:
    """A style or script of ours."""
    return files("phalanx.show").joinpath("web", name).read_text(encoding="utf-8")


def text(value: object) -> str:
    """Any text as text of a page, also within the quotes of an attribute."""
    return html.escape(str(value), quote=True)


def data_element(name: str, value: object) -> str:
    """Numbers and words for a script to read: nothing in them can end the element."""
    packed = json.dumps(value, separators=(",", ":"), allow_nan=False)
    safe = packed.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{text(name)}">{safe}</script>'


def _script(code: str) -> str:
    """Code of a file or a package, which must not seem to end where it quotes an end tag."""
    safe = code.replace("</script", "<\\/script")
    return f"<script>\n{safe}\n</script>"
