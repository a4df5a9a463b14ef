"""A picture of a run: its returns by kind of episode, and where its time went."""

import numpy as np
import numpy.typing as npt

from phalanx.errors import RunError
from phalanx.show.drawing.figure import (
    BLUE,
    GREEN,
    GREY,
    VERMILION,
    YELLOW,
    Axes,
    Figure,
    blank_figure,
)
from phalanx.training.folder import Columns
from phalanx.training.saved_run import RunTables

COLOURS = (BLUE, VERMILION, GREEN, YELLOW, GREY, "#CC79A7", "#56B4E9")
POINTS = 200  # of a line: so many are seen apart
SHOWN = ("simulator", "policy", "copying", "waiting")
PART_COLOURS = {
    "simulator": VERMILION,
    "policy": BLUE,
    "copying": YELLOW,
    "waiting": "#BBBBBB",
    "learning": GREEN,
    "collecting": BLUE,
}


def draw_run(run: RunTables) -> Figure:
    """Returns over steps, and the seconds of updates by part."""
    updates, figure = run.read_updates(), blank_figure()
    if not len(updates.get("steps", ())):
        raise RunError(f"{run.path} has no updates yet; come back when its first is over")
    figure.set_size_inches(11, 4.2)
    left, right = figure.subplots(1, 2)
    draw_returns(left, updates)
    draw_split(right, updates)
    figure.suptitle(run.path.name, parse_math=False)
    for axes, corner in ((left, "lower right"), (right, "upper right")):
        axes.set_xlabel("steps")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.grid(alpha=0.25)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc=corner, frameon=False, fontsize="small")
    return figure


def draw_returns(axes: Axes, updates: Columns) -> None:
    """A line for each kind of episode; updates in which none ended are left out."""
    names = [name for name in updates if name.startswith("return_")] or ["return"]
    for name, colour in zip(names, COLOURS * (1 + len(names) // len(COLOURS)), strict=False):
        known = np.isfinite(updates[name])
        if known.any():
            steps, means = coarse(updates["steps"][known]), coarse(updates[name][known])
            label = name.removeprefix("return_")
            axes.plot(steps, means, color=colour, label=label, linewidth=1.2)
    axes.set_ylabel("mean return")


def draw_split(axes: Axes, updates: Columns) -> None:
    """Areas on top of each other: what an update spends its seconds on."""
    parts = {part: updates.get(f"{part}_s") for part in SHOWN}
    if any(column is None for column in parts.values()):  # of an older run
        parts = {"collecting": updates["collect_s"]}
    told = {part: np.asarray(column, float) for part, column in parts.items()}
    told["learning"] = np.maximum(0, updates["learn_s"] + updates["collect_s"] - sum(told.values()))
    told = {part: coarse(seconds) for part, seconds in told.items() if seconds.any()}
    colours = [PART_COLOURS[part] for part in told]
    steps = coarse(updates["steps"])
    axes.stackplot(steps, *told.values(), labels=list(told), colors=colours, alpha=0.8)
    axes.set_ylabel("seconds of an update")
    axes.set_ylim(0)


def coarse(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """Means of so many neighbours that few points are left."""
    each = -(-len(values) // POINTS)
    pieces = np.array_split(np.asarray(values, float), -(-len(values) // each))
    return np.array([piece.mean() for piece in pieces])
