"""Pictures of a search, where matplotlib is installed."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from phalanx.cage2.workflow import NUM_ORDERS, NUM_TYPES, ORDERS, UNIT_TYPES, short_name
from phalanx.search.surrogate import Visit
from phalanx.show.drawing.figure import (
    BLUE,
    GREEN,
    GREY,
    VERMILION,
    YELLOW,
    Axes,
    Figure,
    blank_figure,
    save_picture,
    tidy,
)
from phalanx.show.drawing.search_counts import (
    SURE,
    Found,
    best_so_far,
    count_inside,
    episodes_so_far,
    mean_by_position,
    read_search,
    tried_best_first,
    were_judged_at_once,
    with_prediction,
)
from phalanx.statistics import half_width

RETURN = "mean return per episode (points)"


def draw_search(folder: Path) -> list[Path]:
    """Draw what a search found into its folder `plots`; returns the files.

    What a search is too young for is left out.
    """
    found = read_search(folder)
    files = []
    for name, draw in possible_pictures(found).items():
        figure = blank_figure()
        draw(figure, found)
        path = folder / "plots" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        save_picture(figure, path)
        files.append(path)
    return files


def possible_pictures(found: Found) -> dict[str, Callable[[Figure, Found], None]]:
    """How to draw each picture that the search has come far enough for, by its name."""
    pictures: dict[str, Callable[[Figure, Found], None]] = {}
    if found.visits:
        pictures["return-by-workflow"] = draw_returns
        pictures["compliance-by-workflow"] = draw_compliance
    if any(visit.passed for visit in found.visits):
        if not were_judged_at_once(found.visits):
            pictures["best-so-far"] = draw_best_so_far
        pictures["types-by-position"] = draw_types_by_position
        pictures["beliefs"] = draw_beliefs
    if with_prediction(found.visits):
        pictures["predicted-and-measured"] = draw_predictions
    return pictures


def draw_returns(figure: Figure, found: Found) -> None:
    """The measured return of each order tried, beside the learner without workflows."""
    tried = tried_best_first(found.visits)
    numbers = [visit.workflow for visit in tried]
    figure.set_size_inches(width_for(len(tried)), 6.5)
    axes = figure.add_subplot()
    if row := next((one for one in found.confirmed if one["workflow"] is None), None):
        label = f"same learner without workflows: {row['mean']:.2f}, 95% interval"
        axes.axhspan(row["low"], row["high"], color=GREY, alpha=0.2, linewidth=0)
        axes.axhline(row["mean"], color=GREY, linestyle="--", label=label)
    draw_visits(axes, range(len(tried)), tried)
    if found.winner in numbers:
        at = numbers.index(found.winner)
        mark_winner(axes, at, tried[at].measured_return)
        if row := next((one for one in found.confirmed if one["name"] == "winner"), None):
            axes.errorbar(
                [at],
                [row["mean"]],
                [[row["mean"] - row["low"]], [row["high"] - row["mean"]]],
                fmt="D",
                color=GREEN,
                markersize=8,
                capsize=4,
                markeredgecolor="black",
                zorder=5,
                label=f"winner after its own training: {row['mean']:.2f}, 95% interval",
            )
    title = f"Return by workflow, best first: {len(tried)} of {NUM_ORDERS} tried\n{setting(found)}"
    axes.set(title=title, ylabel=RETURN)
    name_orders(axes, numbers)
    tidy(figure, axes)


def draw_compliance(figure: Figure, found: Found) -> None:
    """How well the policies follow their orders, and how much they repair at all."""
    tried = tried_best_first(found.visits)
    threshold, least = found.config["compliance_threshold"], found.config["min_fixes"]
    figure.set_size_inches(width_for(len(tried)), 8)
    above, below = figure.subplots(2, 1, sharex=True)
    above.axhline(
        threshold, color=GREY, linestyle="--", label=f"gate: compliance of {threshold:.0%} or more"
    )
    judged = [at for at, visit in enumerate(tried) if visit.compliance is not None]
    shares = [visit.compliance for visit in tried if visit.compliance is not None]
    draw_marks(above, judged, shares, [tried[at] for at in judged])
    without = [at for at in range(len(tried)) if at not in judged]
    if without:
        above.plot(
            without,
            [0.0] * len(without),
            "s",
            color="black",
            fillstyle="none",
            clip_on=False,
            label="no fix at all: compliance has no value",
        )
    lowest = 0.0 if without else max(0.0, min([*shares, threshold]) - 0.05)
    above.yaxis.set_major_formatter("{x:.0%}")
    title = f"Do the policies follow their workflow? {len(tried)} tried, best return first"
    above.set(
        title=f"{title}\n{setting(found)}",
        ylabel="compliance (% of fixes that obey)",
        ylim=(lowest, 1.0 + 0.05 * (1.0 - lowest)),
    )
    below.axhline(
        least, color=GREY, linestyle=":", label=f"gate: fixes per episode, {least:g} or more"
    )
    draw_marks(below, range(len(tried)), [visit.fixes_per_episode for visit in tried], tried)
    below.set(ylim=(0.0, None), ylabel="fixes per episode (Remove, Restore)")
    name_orders(below, [visit.workflow for visit in tried])
    tidy(figure, above, below)


def draw_best_so_far(figure: Figure, found: Found) -> None:
    """How fast the search found good orders: by visits, and by episodes."""
    best = best_so_far(found.visits)
    figure.set_size_inches(13, 5.5)
    panels = figure.subplots(1, 2, sharey=True)
    by_visit = range(1, len(best) + 1)
    for axes, at in zip(panels, (by_visit, episodes_so_far(found.visits)), strict=True):
        axes.step(at, best, where="post", color="black", label="best so far that passed the gate")
        draw_visits(axes, at, found.visits)
    panels[0].set(xlabel="iteration of the search (workflows tried)", ylabel=RETURN)
    panels[0].locator_params(axis="x", integer=True)
    panels[1].set_xlabel("episodes played in total, trained or measured (count)")
    panels[1].xaxis.set_major_formatter("{x:,.0f}")
    figure.suptitle(f"Best return so far: {np.nanmax(best):.2f} in the end\n{setting(found)}")
    tidy(figure, *panels)


def draw_types_by_position(figure: Figure, found: Found) -> None:
    """Which unit type should come first? What is believed of orders by where a type stands."""
    means = mean_by_position(found.beliefs.returns.mean)
    middle = (means.max() + means.min()) / 2
    reach = max(means.max() - middle, 0.05)  # no colours for differences that nobody would see
    figure.set_size_inches(8.5, 6.5)
    axes = figure.add_subplot()
    image = axes.imshow(
        means, cmap="cividis", vmin=middle - reach, vmax=middle + reach, aspect="auto"
    )
    for (unit, position), mean in np.ndenumerate(means):
        ink = "black" if mean > middle else "white"
        axes.text(position, unit, f"{mean:.2f}", ha="center", va="center", color=ink, fontsize=11)
    if found.winner is not None:
        axes.plot(
            np.arange(NUM_TYPES) + 0.36,
            ORDERS[found.winner] - 0.34,
            "*",
            color=YELLOW,
            markeredgecolor="black",
            markersize=13,
            label=f"winner: {short_name(found.winner)}",
        )
        figure.legend(loc="outside lower center", frameon=False)
    axes.set_xticks(range(NUM_TYPES), ["1\nmost urgent", "2", "3", "4", "5\nleast urgent"])
    axes.set_yticks(range(NUM_TYPES), UNIT_TYPES)
    axes.set(xlabel="position in the workflow (rank)", ylabel="unit type")
    figure.colorbar(image, ax=axes, label=f"believed {RETURN}")
    axes.set_title(
        "What a unit type's position is worth: believed return,\neach cell the mean of the "
        f"{NUM_ORDERS // NUM_TYPES} orders that have the type there\n{setting(found)}"
    )


def draw_beliefs(figure: Figure, found: Found) -> None:
    """What the Gaussian process believes of every order, and what was measured of some."""
    returns = found.beliefs.returns
    ranking = np.argsort(-returns.mean, kind="stable")
    mean, reach = returns.mean[ranking], SURE * returns.std[ranking]
    place = {int(number): at for at, number in enumerate(ranking)}
    tried = tried_best_first(found.visits)
    figure.set_size_inches(width_for(NUM_ORDERS), 7)
    axes = figure.add_subplot()
    axes.fill_between(
        range(NUM_ORDERS),
        mean - reach,
        mean + reach,
        step="mid",
        color=BLUE,
        alpha=0.18,
        linewidth=0,
        label=f"believed, ± {SURE:g} standard deviations",
    )
    axes.step(range(NUM_ORDERS), mean, where="mid", color=BLUE, label="believed mean")
    draw_visits(axes, [place[visit.workflow] for visit in tried], tried)
    by_number = {visit.workflow: visit.measured_return for visit in tried}
    if found.winner in by_number:
        mark_winner(axes, place[found.winner], by_number[found.winner])
    axes.set_ylabel(RETURN)
    axes.set_title(
        f"Return believed of all {NUM_ORDERS} workflows, best first, and measured of "
        f"{len(tried)}; the model learns from those that passed the gate\n{setting(found)}"
    )
    name_orders(axes, ranking.tolist())
    tidy(figure, axes)


def draw_predictions(figure: Figure, found: Found) -> None:
    """Was the Gaussian process right? Each return as it was predicted before it was measured."""
    visits = with_prediction(found.visits)
    inside, of = count_inside(found.visits)
    means = [visit.posterior_mean for visit in visits]
    figure.set_size_inches(8.5, 8.5)
    axes = figure.add_subplot()
    axes.axline((means[0], means[0]), slope=1, color="black", label="measured as predicted")
    axes.errorbar(
        means,
        [visit.measured_return for visit in visits],
        xerr=[SURE * (visit.posterior_std or 0.0) for visit in visits],
        fmt="none",
        ecolor=GREY,
        elinewidth=0.8,
        alpha=0.6,
        label=f"predicted ± {SURE:g} standard deviations",
    )
    draw_visits(axes, means, visits)
    axes.set_xlabel("return predicted before the visit (points per episode)")
    axes.set_ylabel("return measured (points per episode)")
    share = f"{inside} of {of} ({inside / of:.0%})" if of else "none had a prediction"
    axes.set_title(
        "Return predicted and measured. Of those that passed the gate, within\n"
        f"{SURE:g} standard deviations of prediction and measurement together: {share}\n"
        f"{setting(found)}"
    )
    tidy(figure, axes)


def draw_visits(axes: Axes, at: Sequence[float | None], visits: Sequence[Visit]) -> None:
    """Measured returns with their 95% intervals; at: where each stands on the x axis."""
    returns = [visit.measured_return for visit in visits]
    errors = [half_width(visit.stderr, visit.measured_episodes) for visit in visits]
    draw_marks(axes, at, returns, visits, errors)


def draw_marks(
    axes: Axes,
    at: Sequence[float | None],
    heights: Sequence[float],
    visits: Sequence[Visit],
    errors: Sequence[float] | None = None,
) -> None:
    """A mark per visit; its colour and its shape tell whether the order passed the gate."""
    for passed, colour, shape, size in ((True, BLUE, "o", 6.5), (False, VERMILION, "X", 8)):
        rows = [row for row, visit in enumerate(visits) if visit.passed == passed]
        if not rows:
            continue
        label = f"{'passed' if passed else 'failed'} the gate"
        axes.errorbar(
            [at[row] for row in rows],
            [heights[row] for row in rows],
            None if errors is None else [errors[row] for row in rows],
            fmt=shape,
            color=colour,
            markersize=size,
            markeredgecolor="white",
            markeredgewidth=0.6,
            elinewidth=1,
            capsize=2,
            zorder=3,
            label=label if errors is None else f"{label}: measured, 95% interval",
        )


def mark_winner(axes: Axes, at: int, height: float) -> None:
    """A star behind the mark of its visit."""
    axes.plot(
        [at],
        [height],
        "*",
        color=YELLOW,
        markeredgecolor="black",
        markersize=22,
        zorder=2,
        label="winner, when it was tried",
    )


def name_orders(axes: Axes, numbers: Sequence[int]) -> None:
    """Short names along the x axis, and what they mean."""
    axes.set_xticks(
        range(len(numbers)), [short_name(number) for number in numbers], rotation=90, fontsize=8
    )
    axes.set_xlim(-0.7, len(numbers) - 0.3)
    letters = ", ".join(f"{short_name(0)[2 * unit]} {name}" for unit, name in enumerate(UNIT_TYPES))
    axes.set_xlabel(f"workflow: unit types, most urgent first\n({letters})")


def width_for(orders: int) -> float:
    """Inches that so many names along an axis need."""
    return max(9.0, 2.0 + 0.17 * orders)


def setting(found: Found) -> str:
    """What all pictures of a search say below their title."""
    c = found.config
    return (
        f"attacker {c['red_agent']}, {c['horizon']} turns; gate: compliance ≥ "
        f"{c['compliance_threshold']:.0%}, fixes per episode ≥ {c['min_fixes']:g}"
    )
