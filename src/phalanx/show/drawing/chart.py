"""Charts for our pages: drawn as SVG by Vega-Lite (vl-convert) when a page is written.

drawn = draw(panel, "return", 640, 320)     # markup, and what a pointer over it is told

Nothing of Vega goes into the page: it holds the drawing, its colours as variables of our styles
(light and dark), and the numbers, which `web/hover.js` shows at the pointer.
"""

import math
import re
import xml.etree.ElementTree as xml
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import NamedTuple, TypedDict

import numpy as np

from phalanx.errors import MissingError
from phalanx.show.runs.curves import ALL, Curve, Floats, Panel

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
COLOURS = 8  # --c0 to --c7 of report.css
TOP, BOTTOM, LEFT = 12, 44, 56  # pixels around the plot
LETTER = 6.4  # pixels that a letter of a label takes, about
LABEL_GAP = 14  # pixels between labels
WIDEST_LABEL = 200
EARLY = 0.1  # share of a curve that is its beginning
MARGIN = 0.4  # how far intervals may widen what is drawn, as a share of the means' range
USUAL = (0.03, 0.97)  # quantiles of the rest between which its points usually lie
TOO_FAR = 4.0  # times that range: then what lies outside is cut off
DIGITS = 6  # of numbers that a pointer is told
TAGS = ("svg", "g", "path", "line", "text", "rect", "defs", "clipPath", "title")
Spec = dict[str, object]


class Told(TypedDict):
    """What `web/hover.js` reads."""

    plot: dict[str, int]
    """where it lies within the drawing, in pixels: left, top, width, height"""
    size: list[int]
    x: list[float]
    y: list[float]
    """the ends of either axis"""
    xTitle: str
    isShare: bool
    isStack: bool
    cut: str
    series: list[Spec]


class Drawn(NamedTuple):
    """A chart as markup, and what the page's script needs to tell its numbers."""

    svg: str
    told: Told


def check_installed() -> None:
    """Refuse a page with charts where nothing can draw them, before time is spent on it."""
    _converter()


def _converter() -> ModuleType:
    try:
        import vl_convert
    except ImportError:
        raise MissingError("charts need vl-convert: pip install 'phalanx[report]'") from None
    return vl_convert


def draw(panel: Panel, key: str, width: int, height: int) -> Drawn:
    """The chart of a panel in so many pixels. key: a word of our own, unique in the page."""
    curves = list(panel.curves)
    x_range = _x_range(curves)
    y_range, cut = (0.0, 1.0), ""
    if panel.style == "lines":
        y_range, cut = _y_range(curves, panel.is_share)
    right = _room_for_labels(curves, width)
    plot = {
        "left": LEFT,
        "top": TOP,
        "width": width - LEFT - right,
        "height": height - TOP - BOTTOM,
    }
    spec = _frame(panel, plot, x_range, y_range, (width, height))
    layers = _stack(curves) if panel.style == "stack" else _lines(curves)
    spec["layer"] = [*layers, *_labels(panel, curves, y_range, plot["height"], right)]
    svg = _apart(_converter().vegalite_to_svg(spec), key)
    is_stack = panel.style == "stack"
    told: Told = {
        "plot": plot,
        "size": [width, height],
        "x": list(x_range),
        "y": list(y_range),
        "xTitle": panel.x_title,
        "isShare": panel.is_share or is_stack,
        "isStack": is_stack,
        "cut": cut,
        "series": [_told(curve, at) for at, curve in enumerate(curves)],
    }
    return Drawn(svg, told)


def _told(curve: Curve, at: int) -> Spec:
    numbers = {name: _rounded(getattr(curve, name)) for name in ("x", "mean", "low", "high")}
    words = {"name": curve.name, "colour": _colour(curve, at)}
    return {**words, **numbers, "labels": list(curve.labels)}


# --- what Vega-Lite is told -----------------------------------------------------------------------


AXIS = {
    "gridColor": "var(--line)",
    "gridOpacity": 0.7,
    "domain": False,
    "ticks": False,
    "labelColor": "var(--quiet)",
    "labelFontSize": 12,
    "labelPadding": 6,
    "titleColor": "var(--quiet)",
    "titleFontSize": 12,
    "titleFontWeight": "normal",
}
ZERO = "datum.value == 0 ? '0' : datum.label"


def _frame(
    panel: Panel,
    plot: dict[str, int],
    x: Sequence[float],
    y: Sequence[float],
    size: tuple[int, int],
) -> Spec:
    shares = panel.is_share or panel.style == "stack"
    y_axis = {"tickCount": 5, "title": None, "format": ".0%" if shares else _format(y)}
    x_axis = {
        "title": panel.x_title,
        "titlePadding": 6,
        "grid": False,
        "format": "~s",
        "labelExpr": ZERO,
        "labelFlush": True,
        "tickCount": max(2, plot["width"] // 90),
    }
    right, bottom = size[0] - LEFT - plot["width"], size[1] - TOP - plot["height"]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": plot["width"],
        "height": plot["height"],
        "autosize": "none",
        "background": None,
        "padding": {"left": LEFT, "top": TOP, "right": right, "bottom": bottom},
        "encoding": {"x": {"field": "x", **_scale(x, x_axis)}, "y": _scale(y, y_axis)},
        "config": {"font": FONT, "axis": AXIS, "view": {"stroke": None}, "aria": False},
    }


def _scale(ends: Sequence[float], axis: Mapping[str, object]) -> Spec:
    domain = {"domain": list(ends), "nice": False, "zero": False}
    return {"type": "quantitative", "axis": axis, "scale": domain}


def _lines(curves: Sequence[Curve]) -> list[Spec]:
    """Intervals below all lines."""
    bands, lines = [], []
    for at, curve in enumerate(curves):
        colour, values = _colour(curve, at), _values(curve)
        one = {"type": "line", "color": colour, "strokeWidth": 2, "clip": True}
        is_points = curve.is_points or len(values) == 1
        if is_points:
            one |= {"type": "point", "filled": True, "size": 50, "opacity": 1, "stroke": "none"}
        if curve.name == ALL and len(curves) > 1:
            one |= {"strokeWidth": 1.5, "strokeDash": [4, 3]}
        lines.append({"data": {"values": values}, "mark": one, "encoding": {"y": {"field": "y"}}})
        within = [value for value in values if "low" in value]
        if within:
            band: Spec = {"type": "area", "color": colour, "opacity": 0.2, "clip": True}
            if is_points:
                band |= {"type": "rule", "opacity": 1, "strokeWidth": 1.5}
            encoding = {"y": {"field": "low"}, "y2": {"field": "high"}}
            bands.append({"data": {"values": within}, "mark": band, "encoding": encoding})
    return bands + lines


def _stack(curves: Sequence[Curve]) -> list[Spec]:
    layers, floor = [], np.zeros(len(curves[0].x))
    for at, curve in enumerate(curves):
        top = floor + np.nan_to_num(curve.mean)
        values = [
            {"x": float(x), "low": float(low), "high": float(high)}
            for x, low, high, known in zip(curve.x, floor, top, curve.mean, strict=True)
            if math.isfinite(x) and math.isfinite(known)
        ]
        mark = {"type": "area", "color": _colour(curve, at), "opacity": 0.75, "clip": True}
        encoding = {"y": {"field": "low"}, "y2": {"field": "high"}}
        layers.append({"data": {"values": values}, "mark": mark, "encoding": encoding})
        floor = top
    return layers


def _labels(
    panel: Panel, curves: Sequence[Curve], y: Sequence[float], height: int, room: int
) -> list[Spec]:
    """Names at the ends of the lines, moved apart where they would overlap."""
    if room <= LETTER * 4:
        return []
    ends, floor = [], 0.0
    for at, curve in enumerate(curves):
        good = np.flatnonzero(np.isfinite(curve.mean) & np.isfinite(curve.x))
        if not len(good):
            continue
        end = float(curve.mean[good[-1]])
        if panel.style == "stack":
            floor, end = floor + end, floor + end / 2
        pixel = height * (1 - (end - y[0]) / (y[1] - y[0]))
        ends.append((min(max(pixel, 0.0), float(height)), at, curve))
    ends.sort(key=lambda one: one[0])
    places = apart([pixel for pixel, _at, _curve in ends], LABEL_GAP, height)
    names = shortened([curve.name for _pixel, _at, curve in ends], int((room - 10) / LETTER))
    layers = []
    for place, name, (_pixel, at, curve) in zip(places, names, ends, strict=True):
        mark = {"type": "text", "align": "left", "baseline": "middle", "dx": 6, "fontSize": 12}
        mark |= {"text": name, "color": _colour(curve, at, is_text=True)}
        encoding = {"x": {"value": "width"}, "y": {"value": place}}
        layers.append({"data": {"values": [{}]}, "mark": mark, "encoding": encoding})
    return layers


def shortened(names: Sequence[str], longest: int) -> list[str]:
    """Names of so many letters at most: their beginnings, or their ends if these tell them apart"""
    begun = [name if len(name) <= longest else f"{name[: longest - 1]}…" for name in names]
    if len(set(begun)) == len(set(names)):
        return begun
    return [name if len(name) <= longest else f"…{name[1 - longest :]}" for name in names]


def apart(places: Sequence[float], gap: float, height: float) -> list[float]:
    """Sorted places moved as little as possible until neighbours are `gap` apart, within height."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + gap) if moved else place)
    limit = float(height)
    for at in range(len(moved) - 1, -1, -1):
        moved[at] = min(moved[at], limit)
        limit = moved[at] - gap
    return moved


# --- numbers --------------------------------------------------------------------------------------


def _values(curve: Curve) -> list[dict[str, float]]:
    """Points of a curve; those without an interval have none, and unknown ones are left out."""
    found = []
    for x, y, low, high in zip(curve.x, curve.mean, curve.low, curve.high, strict=True):
        if math.isfinite(x) and math.isfinite(y):
            within = math.isfinite(low) and math.isfinite(high)
            rest = {"low": float(low), "high": float(high)} if within else {}
            found.append({"x": float(x), "y": float(y), **rest})
    return found


def _format(y: Sequence[float]) -> str:
    """How numbers on the axis are written, in d3's words."""
    largest = max(map(abs, y))
    if largest >= 10_000:
        return "~s"
    return ",~f" if largest >= 0.001 else "~e"


def _x_range(curves: Sequence[Curve]) -> tuple[float, float]:
    known = np.concatenate([curve.x[np.isfinite(curve.x)] for curve in curves] or [np.zeros(0)])
    if not known.size:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    low = 0.0 if 0 <= low < 0.2 * high else low
    return (low, high) if high > low else (low - 1, high + 1)


def _y_range(curves: Sequence[Curve], is_share: bool) -> tuple[tuple[float, float], str]:
    """What is drawn, and a sentence on what lies outside.

    The beginning of learning, and single points, are often far from all others: these decide.
    """
    known = [curve.mean[np.isfinite(curve.mean)] for curve in curves]
    known = [one for one in known if one.size]
    if not known:
        return (0.0, 1.0), ""
    low, high = float(min(map(np.min, known))), float(max(map(np.max, known)))
    usual = [np.quantile(one[int(EARLY * len(one)) :], USUAL) for one in known]
    least, most = float(min(ends[0] for ends in usual)), float(max(ends[1] for ends in usual))
    ends = low, high
    if high - low > TOO_FAR * (most - least) > 0:
        low, high = least, most
    margin = MARGIN * max(high - low, 1e-12)
    edges = np.concatenate([edge for curve in curves for edge in (curve.low, curve.high)])
    edges = edges[(edges >= low - margin) & (edges <= high + margin)]
    least, most = float(edges.min(initial=low)), float(edges.max(initial=high))
    little = 0.05 * (high - low)  # by so much an interval may be cut off
    low, high = least if low - least > little else low, most if most - high > little else high
    if is_share:
        low, high = max(low, 0.0), min(high, 1.0)
    shown = nice(low, high)
    outside = [f"{end:,.4g}" for end in ends if not shown[0] <= end <= shown[1]]
    return shown, f"Outside the picture it reaches {' and '.join(outside)}." if outside else ""


def nice(low: float, high: float, steps: int = 5) -> tuple[float, float]:
    """A range that ends at round numbers."""
    if not high - low > 1e-6 * max(abs(low), abs(high)):
        reach = abs(low) * 0.1 or 1.0
        low, high = low - reach, high + reach
    raw = (high - low) / steps
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * k for k in (1, 2, 2.5, 5, 10) if size * k >= raw * 0.999)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _room_for_labels(curves: Sequence[Curve], width: int) -> int:
    """Pixels right of the plot; a single curve needs no name."""
    if len(curves) < 2:
        return 20
    longest = max(len(curve.name) for curve in curves)
    return int(min(longest * LETTER + 14, WIDEST_LABEL, width * 0.3))


def _colour(curve: Curve, at: int, is_text: bool = False) -> str:
    if curve.name == ALL and at > 0:
        return "var(--quiet)"
    return f"var(--{'t' if is_text else 'c'}{at % COLOURS})"


def _rounded(values: Floats) -> list[float | None]:
    return [float(f"{v:.{DIGITS}g}") if math.isfinite(v) else None for v in values.tolist()]


def _apart(svg: str, key: str) -> str:
    """The drawing with names of its own, and sure to be nothing but a drawing."""
    root = xml.fromstring(svg)
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        if tag not in TAGS or any("href" in name or name[:2] == "on" for name in element.attrib):
            raise AssertionError(f"an unexpected <{tag}> in a chart")
    svg = re.sub(r'(id="|url\(#)(clip\d+)', rf"\g<1>{key}-\2", svg)
    svg = re.sub(r' (width|height)="\d+"(?=[^>]*viewBox)', "", svg)
    return svg.replace("<svg ", '<svg aria-hidden="true" ', 1)
