"""A comparison in sentences: who is better, by how much, how sure; and what that does not show."""

from collections.abc import Iterator

from phalanx.show.compare.compare import FEW_SEEDS, Comparison, Pair
from phalanx.show.compare.scores import ALL

MOST_SENTENCES = 12


def verdicts(comparison: Comparison) -> list[str]:
    """One sentence for each pair of groups, on all attackers together."""
    pairs = [pair for pair in comparison.pairs if pair.task == comparison.tasks[0]]
    told = [in_a_sentence(pair) for pair in pairs[:MOST_SENTENCES]]
    if len(pairs) > MOST_SENTENCES:
        different = sum(pair.verdict != "no difference" for pair in pairs)
        told.append(f"In all {different} of {len(pairs)} pairs differ; --csv has every one.")
    return told


def in_a_sentence(pair: Pair) -> str:
    d = pair.difference
    against = "" if pair.task in (ALL, "return") else f" against {pair.task}"
    size = f"{abs(d.mean):.2f} points (95 % interval {_ends(d.low, d.high, d.mean < 0)})"
    corrected = f" for {pair.comparisons} comparisons" if pair.comparisons > 1 else ""
    sure = f"p {chance(pair.p_adjusted)}{corrected}"
    units = _units(pair)
    if pair.verdict == "better":
        return f"{pair.first} is better than {pair.second}{against} by {size}, {sure}, {units}."
    if pair.verdict == "worse":
        return f"{pair.first} is worse than {pair.second}{against} by {size}, {sure}, {units}."
    least = d.detectable(pair.comparisons)
    could = "" if least is None else f"; {least:.2f} would have been found in four of five cases"
    return (
        f"No difference between {pair.first} and {pair.second}{against}: {d.mean:+.2f} points (95 %"
        f" interval {d.low:.2f} to {d.high:.2f}), {sure}, {units}{could}."
    )


def remarks(comparison: Comparison) -> Iterator[str]:
    """What a reader should know of how sure this is."""
    yield comparison.scored.about
    counts = {len(group.runs) for group in comparison.groups}
    settings = [tuple(group.settings.values()) for group in comparison.groups]
    if 1 in counts:
        if len(set(settings)) < len(settings):
            yield (
                "Some of these runs have equal settings but for the seed: what differs between "
                "them is luck of training."
            )
        yield (
            "A single run tells which policy is better, not which settings are: training again with"
            " another seed gives another policy. For that train several seeds, and give --by seed."
        )
    elif min(counts) < FEW_SEEDS:
        yield (
            f"With {min(counts)} seeds the verdict is by Welch's test, which keeps its level; the "
            f"bootstrap intervals of the interquartile mean are too narrow below {FEW_SEEDS} seeds."
        )
    if comparison.scored.on_same_dice and 1 not in counts:
        yield "All runs played on the same dice, so that none was luckier in its games."


def chance(p: float) -> str:
    """`= 0.03`, `< 0.001`."""
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"


def _units(pair: Pair) -> str:
    d = pair.difference
    if d.is_paired:
        return f"{d.counts[0]:,} episodes on the same dice"
    if pair.unit == "seeds":
        return f"{d.counts[0]} and {d.counts[1]} seeds"
    return f"{d.counts[0]:,} and {d.counts[1]:,} episodes of training"


def _ends(low: float, high: float, turned: bool) -> str:
    """The interval of a size, whatever the sign of the difference."""
    ends = (-high, -low) if turned else (low, high)
    return f"{ends[0]:.2f} to {ends[1]:.2f}"
