"""Orders as a map: the nearer two dots, the fewer pairs of unit types they rank differently."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from phalanx.cage2.workflow import NUM_TYPES, POSITIONS, UNIT_TYPES, short_name
from phalanx.search.decided import Order
from phalanx.show.drawing.markup import minus
from phalanx.show.drawing.page import text

SIZE, MARGIN = 560, 72  # pixels
DOT, SMALLEST = 9.0, 3.5  # radius of the best order, and of the one that costs most


def kendall_map(orders: Sequence[Order]) -> str:
    """A figure of the orders of a decision; the larger a dot, the less its order costs."""
    places = map_places()
    most = max((order["cost"] for order in orders if order["cost"] is not None), default=0.0) or 1.0
    dots, labels = [], []
    for order in sorted(orders, key=lambda one: -(one["cost"] or 0.0)):
        x, y = places[order["workflow"]]
        kind, radius, words = "cannot", SMALLEST, "cannot be followed"
        if order["cost"] is not None:
            kind = "may" if order["may_be_best"] else "costs"
            radius = DOT - (DOT - SMALLEST) * min(1.0, order["cost"] / most)
            words = f"costs {order['cost']:.2f} ({order['low']:.2f} to {order['high']:.2f})"
        title = text(minus(f"{order['order']}: {words}"))
        dots.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
            f"<title>{title}</title></circle>"
        )
        if order["cost"] == 0.0:
            anchor = "end" if x > SIZE / 2 else "start"
            away = -DOT - 4 if x > SIZE / 2 else DOT + 4
            labels.append(
                f'<text x="{x + away:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">'
                f"{short_name(order['workflow'])}</text>"
            )
    for name, (x, y) in zip(UNIT_TYPES, SIZE / 2 + corners() * (SIZE / 2 - 24), strict=True):
        anchor = "middle" if abs(x - SIZE / 2) < 99 else "end" if x > SIZE / 2 else "start"
        x = min(max(x, 4.0), SIZE - 4.0) if anchor != "middle" else x
        labels.append(
            f'<text class="corner" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{name}</text>'
        )
    may = sum(bool(order["may_be_best"]) for order in orders)
    about = (
        "Orders that rank few pairs of unit types differently (Kendall distance) are near each "
        "other; each lies towards the corners of its most urgent types. Filled: may be best; "
        "rings: cost more; dotted: cannot be followed. The larger, the less an order costs; the "
        "best is named."
    )
    return (
        '<figure class="chart map"><h3>A map of the orders</h3>'
        f"<figcaption>{text(about)}</figcaption>"
        f'<svg viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{may} of {len(orders)} orders '
        f'may be best">{"".join(dots)}{"".join(labels)}</svg></figure>'
    )


def map_places() -> npt.NDArray[np.float64]:
    """[120, 2] pixels. Each unit type pulls from its corner, the stronger the more urgent it is.

    Kendall distances are squared lengths in ten dimensions, one for each pair of types. Most of
    that lies in the four in which the mean position of each type varies (the largest eigenvalue of
    classical scaling, four times): this is a view of those four.
    """
    pull = (NUM_TYPES - 1) / 2 - POSITIONS.astype(np.float64)  # [120, type]: 2 if first, -2 if last
    flat = pull @ corners()
    reach = np.linalg.norm(flat, axis=1).max()
    return np.asarray(SIZE / 2 + flat / reach * (SIZE / 2 - MARGIN))


def corners() -> npt.NDArray[np.float64]:
    """[type, 2] of a regular pentagon, the first above."""
    turns = 2 * np.pi * np.arange(NUM_TYPES) / NUM_TYPES
    return np.stack([np.sin(turns), -np.cos(turns)], axis=1)
