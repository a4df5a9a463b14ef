"""A picture of what a defender does and what that costs: a column of panels for each attacker."""

from collections.abc import Sequence

import numpy as np

from phalanx.play.explain import Explanation
from phalanx.show.drawing.figure import BLUE, GREY, VERMILION, Axes, Figure, tidy

SERVICE = "service stopped"


def draw_explanations(figure: Figure, title: str, told: Sequence[Explanation]) -> None:
    """Actions turn by turn, hosts turn by turn, and the loss by host and cause."""
    figure.set_size_inches(max(8.0, 6.5 * len(told)), 11)
    rows = figure.subplots(3, len(told), squeeze=False, height_ratios=[5, 11, 10])
    for column, one in zip(rows.T, told, strict=True):
        column[0].set_title(f"against {one.red_agent}: mean return {one.mean:.2f}")
        draw_shares(column[0], one.kinds_by_turn)
        colours = draw_shares(column[1], one.hosts_by_turn)
        column[1].set_xlabel("turn")
        draw_losses(column[2], one)
    figure.colorbar(
        colours, ax=rows[:2].ravel().tolist(), label="share of episodes", format="{x:.0%}"
    )
    figure.suptitle(title)
    tidy(figure, *rows[2])


def draw_shares(axes: Axes, shares: dict[str, list[float]]) -> Axes:
    """A heat map, a row for each name; returns what its colours mean."""
    table = np.array(list(shares.values()))
    turns = table.shape[1]
    image = axes.imshow(
        table,
        aspect="auto",
        cmap="cividis",
        vmin=0,
        vmax=1,
        interpolation="nearest",
        extent=(0.5, turns + 0.5, len(shares) - 0.5, -0.5),
    )
    axes.set_yticks(range(len(shares)), list(shares))
    return image


def draw_losses(axes: Axes, told: Explanation) -> None:
    """Bars of the mean loss, host by host, stacked by cause."""
    places = np.arange(len(told.losses))
    root = [loss.root for loss in told.losses]
    restore = [loss.restore for loss in told.losses]
    axes.barh(places, root, color=VERMILION, label="red is root")
    axes.barh(places, restore, left=root, color=BLUE, label="Restores")
    axes.barh([len(places)], [told.service_loss], color=GREY, label="operational service stopped")
    axes.set_yticks([*places, len(places)], [*(loss.host for loss in told.losses), SERVICE])
    axes.invert_yaxis()
    axes.set_xlabel("mean loss per episode (points)")
