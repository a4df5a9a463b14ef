"""Pieces of a report: tables, tiles, charts and sentences, with everything foreign as text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from phalanx.show.drawing.chart import draw
from phalanx.show.drawing.page import page, text
from phalanx.show.runs.curves import Panel

STYLES, SCRIPTS = ("report.css", "decision.css"), ("hover.js",)
SMALL = (352, 236)  # pixels: fits a phone, and three beside each other on a desk
WIDE, NARROW = (1232, 340), (352, 300)


class Cell(NamedTuple):
    """A cell of a table that is not plain text."""

    shown: str
    """text, or markup of ours"""
    kind: str = "number"
    """its class"""
    is_markup: bool = False


@dataclass
class Body:
    """The body of a page as it grows, and the numbers that its charts tell."""

    parts: list[str] = field(default_factory=list)
    charts: dict[str, object] = field(default_factory=dict)
    data: dict[str, list[object]] = field(default_factory=dict)
    """more for scripts, by the name of the element"""

    def add(self, *markup: str) -> None:
        self.parts += markup

    def heading(self, words: str, level: int = 2) -> None:
        self.add(f"<h{level}>{text(words)}</h{level}>")

    def say(self, *sentences: str, kind: str = "") -> None:
        """A paragraph; kind `amiss`: of something that is missing or wrong."""
        words = " ".join(filter(None, sentences))
        if words:
            self.add(f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>")

    def tiles(self, facts: Mapping[str, str | None]) -> None:
        """A few figures large; those that are unknown are left out."""
        shown = "".join(
            f'<div class="tile"><b>{_large(value)}</b><span>{text(name)}</span></div>'
            for name, value in facts.items()
            if value is not None
        )
        self.add(f'<div class="tiles">{shown}</div>')

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str | Cell]],
        kinds: Sequence[str] = (),
        row_kinds: Sequence[str] = (),
    ) -> None:
        """kinds: the class of each column, such as number; row_kinds: of each row."""
        kinds = [*kinds, *[""] * (len(columns) - len(kinds))]
        head = "".join(
            _cell("th", Cell(name, kind)) for name, kind in zip(columns, kinds, strict=True)
        )
        lines = []
        for at, row in enumerate(rows):
            kind = row_kinds[at] if at < len(row_kinds) else ""
            cells = (
                _cell("td", one if isinstance(one, Cell) else Cell(one, kind))
                for one, kind in zip(row, kinds, strict=True)
            )
            lines.append(f'<tr class="{text(kind)}">{"".join(cells)}</tr>')
        self.add(
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(lines)}</tbody></table></div>"
        )

    def fold(self, words: str) -> "_Fold":
        """`with body.fold("All settings"):` what is shown only if it is asked for."""
        return _Fold(self, words)

    def chart(self, panel: Panel, is_wide: bool = False) -> None:
        """A chart with its title and sentence; a wide one is drawn again for a phone."""
        key = f"{_word(panel.key)}{len(self.charts)}"
        sizes = [("full", *WIDE), ("narrow", *NARROW)] if is_wide else [("", *SMALL)]
        drawings, cut = [], ""
        for name, width, height in sizes:
            own = f"{key}{name}"
            drawn = draw(panel, own, width, height)
            self.charts[own] = drawn.told
            cut = drawn.told["cut"]
            drawings.append(
                f'<div class="drawn {name}" data-chart="{own}" tabindex="0" role="img" '
                f'aria-label="{text(in_words(panel))}">{drawn.svg}</div>'
            )
        wide = " wide" if is_wide else ""
        self.add(
            f'<figure class="chart{wide}"><h3>{text(panel.title)}</h3>'
            f"<figcaption>{text(' '.join(filter(None, (panel.about, cut))))}</figcaption>"
            f"{''.join(drawings)}</figure>"
        )

    def charts_beside(self, panels: Iterable[Panel]) -> None:
        self.add('<div class="charts">')
        for panel in panels:
            self.chart(panel)
        self.add("</div>")

    def page(self, title: str, styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> str:
        """All of it as one file; styles, scripts: more than reports have."""
        return page(
            title,
            "\n".join(["<main>", *self.parts, "</main>"]),
            styles=[*STYLES, *styles],
            scripts=[*SCRIPTS, *scripts],
            data={"charts": self.charts, **self.data},
        )


@dataclass
class _Fold:
    body: Body
    words: str

    def __enter__(self) -> None:
        self.body.add(f"<details><summary>{text(self.words)}</summary>")

    def __exit__(self, *_unused_error: object) -> None:
        self.body.add("</details>")


def in_words(panel: Panel) -> str:
    """A chart for who cannot see it: what it shows, and where each curve ends."""
    ends = []
    for curve in panel.curves:
        known = [value for value in curve.mean.tolist() if value == value]
        if known:
            ends.append(f"{curve.name} from {known[0]:.4g} to {known[-1]:.4g}")
    return f"{panel.title}: {'; '.join(ends) or 'nothing is known'}. {panel.about}"


def interval_cell(
    mean: float, low: float, high: float, span: tuple[float, float], others: Iterable[float] = ()
) -> Cell:
    """A mean and its interval as a small picture, on a scale that all rows share.

    others: numbers to compare with, as ticks.
    """
    least, most = span
    width = (most - least) or 1.0

    def at(value: float) -> float:
        return round(100 * min(1.0, max(0.0, (value - least) / width)), 2)

    zero = f'<u style="left:{at(0)}%"></u>' if least <= 0 <= most else ""
    ticks = "".join(f'<s style="left:{at(other)}%"></s>' for other in others)
    shown = (
        f'<span class="interval" aria-hidden="true">{zero}{ticks}<i style="left:{at(low)}%;'
        f'width:{round(at(high) - at(low), 2)}%"></i><b style="left:{at(mean)}%"></b></span>'
    )
    return Cell(shown, "picture", is_markup=True)


def with_interval(mean: float, low: float | None, high: float | None) -> str:
    """`-10.40 ± 0.20`, with a minus that is as wide as a digit."""
    words = f"{mean:.2f}" if low is None or high is None else f"{mean:.2f} ± {(high - low) / 2:.2f}"
    return minus(words)


def minus(words: str) -> str:
    """The signs of numbers as wide as digits; hyphens of names stay."""
    return re.sub(r"(?<!\w)-(?=\d)", "\N{MINUS SIGN}", words)


def _large(value: str) -> str:
    """A figure, with how sure it is behind it in small."""
    figure, sign, reach = value.partition(" ± ")
    return text(figure) + (f" <small>± {text(reach)}</small>" if sign else "")


def _cell(tag: str, cell: Cell) -> str:
    shown = cell.shown if cell.is_markup else text(cell.shown)
    return (
        f'<{tag} class="{text(cell.kind)}">{shown}</{tag}>'
        if cell.kind
        else f"<{tag}>{shown}</{tag}>"
    )


def _word(name: str) -> str:
    """Letters and digits of a name, for an id."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) or "chart"
