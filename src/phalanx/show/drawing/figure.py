"""A figure that needs no screen, in the colours of all our pictures."""

import io
from pathlib import Path
from typing import Any

from phalanx.errors import MissingError

Figure = Any  # matplotlib's, which may be missing
Axes = Any  # likewise

# Okabe and Ito's colours, which colour-blind people tell apart too.
BLUE, VERMILION, YELLOW, GREEN, GREY = "#0072B2", "#D55E00", "#F0E442", "#009E73", "#666666"
DPI = 130


def blank_figure() -> Figure:
    """A figure to draw into, without a window or a screen."""
    try:
        import matplotlib.backends.backend_agg as agg
        import matplotlib.figure as figures
    except ImportError:
        raise MissingError("plots need matplotlib: pip install 'phalanx[plots]'") from None

    class Shown(figures.Figure):
        """One that a notebook shows, without pyplot and whatever its backend."""

        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    figure = Shown(dpi=DPI, layout="constrained")
    agg.FigureCanvasAgg(figure)
    return figure


def save_picture(figure: Figure, path: Path) -> None:
    """Write a PNG: whole or not at all."""
    half_written = path.with_name(f".{path.name}.tmp")
    figure.savefig(half_written, format="png")
    half_written.replace(path)


def tidy(figure: Figure, *panels: Axes) -> None:
    """A faint grid, and one legend below for all panels."""
    entries: dict[str, object] = {}
    for axes in panels:
        axes.grid(alpha=0.25)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    columns = max(1, min(len(entries), int(figure.get_figwidth() // 4)))
    figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=columns, frameon=False
    )
