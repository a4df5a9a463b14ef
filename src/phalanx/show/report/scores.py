"""The part of a report that tells how good a policy is, beside the published scores."""

import dataclasses
from pathlib import Path

from phalanx.cage2.registration import CAGE2_ENVS
from phalanx.cage2.rules.scenario import CELLS, DEFAULT_RULES, HORIZONS, PUBLISHED
from phalanx.errors import PhalanxError
from phalanx.files import Facts
from phalanx.show.drawing.markup import Body, Cell, interval_cell, minus, with_interval
from phalanx.show.runs.runs import RunRow, read_summary, real, settings_of, whole
from phalanx.training.checkpoint import last_checkpoint

SEED = 1_000_000  # of the dice, the same for all reports; far from any that one trains with
EPISODES = 1000  # if nobody says how many


def tell_scores(body: Body, row: RunRow, episodes: int | None) -> None:
    """A table of the cells; a sentence if there is none.

    episodes: to play; None: what was played after training is shown, or else a thousand are
        played on CAGE-2; 0: none are played.
    """
    body.heading("How good it is")
    cells, rules, why = _from_summary(row.path) if not episodes else ([], "", "")
    if not cells:
        cells, rules, why = _played(row, episodes)
    if not cells:
        body.say(why)
        return
    is_elsewhere = row.env is not None and row.env not in CAGE2_ENVS
    if is_elsewhere:
        one = cells[0]
        words = with_interval(one["mean"], one["low"], one["high"])
        body.say(f"Mean return {words} over {one['episodes']:,} episodes, with the best actions.")
        return
    body.say(
        f"Mean return and its 95 % interval over {cells[0]['episodes']:,} episodes of each kind, "
        f"with the best actions, under the rules {rules}."
    )
    _table(body, cells, rules)


def _table(body: Body, cells: list[Facts], rules: str) -> None:
    judged = any(cell.get("compliance") is not None for cell in cells)
    published = PUBLISHED if rules == DEFAULT_RULES and not judged else {}
    lows, highs = ([float(cell[name]) for cell in cells] for name in ("low", "high"))
    span = min([*lows, 0.0, *(min(one.values()) for one in published.values())]), max([*highs, 0.0])
    columns = ["attacker", "turns", "this policy", *(["compliance", "fixes"] if judged else [])]
    rows: list[list[str | Cell]] = []
    for cell in cells:
        mean, low, high = (float(cell[name]) for name in ("mean", "low", "high"))
        others = [one.get((cell["red_agent"], cell["horizon"])) for one in published.values()]
        best = all(other is None or mean >= other for other in others)
        own = Cell(with_interval(mean, low, high), "number best" if best and others else "number")
        followed = (
            [_share(cell["compliance"]), f"{cell['fixes_per_episode']:.1f}"] if judged else []
        )
        picture = interval_cell(mean, low, high, span, [one for one in others if one is not None])
        words = str(cell["red_agent"]), str(cell["horizon"])
        rows.append([*words, own, *followed, *map(_score, others), picture])
    kinds = ["", "number", "number", *["number"] * (len(rows[0]) - 4), "picture"]
    sums = []
    if {(cell["red_agent"], cell["horizon"]) for cell in cells} == set(CELLS) and not judged:
        totals = [sum(float(cell["mean"]) for cell in cells)]
        totals += [sum(one.values()) for one in published.values()]
        rows.append(["all nine", "", *map(_score, totals), ""])
        sums = [""] * len(cells) + ["sum"]
    body.table([*columns, *published, ""], rows, kinds, sums)
    if published:
        body.say(
            "Beside it are the scores that the best of the challenge published, over 1,000 "
            "episodes each; bold is not below any of them. In the picture they are the ticks."
        )


def _from_summary(folder: Path) -> tuple[list[Facts], str, str]:
    """The cells that were played after training, if they are as they should."""
    score = read_summary(folder)[0].get("score")
    cells = score.get("cells") if isinstance(score, dict) else None
    if not isinstance(score, dict) or not isinstance(cells, list) or not cells:
        return [], "", ""
    good = all(map(_is_cell, cells))
    return (cells, str(score.get("rules")), "") if good else ([], "", "")


def _is_cell(cell: object) -> bool:
    """Whether a file has all of a cell that is told."""
    if not isinstance(cell, dict) or "red_agent" not in cell or not whole(cell.get("episodes")):
        return False
    numbers = whole(cell.get("horizon")), *(real(cell.get(n)) for n in ("mean", "low", "high"))
    return None not in numbers


def _played(row: RunRow, episodes: int | None) -> tuple[list[Facts], str, str]:
    """Cells played now, the rules, and a sentence if there are none."""
    is_elsewhere = row.env not in CAGE2_ENVS
    if episodes == 0:
        return [], "", "It was not played."
    if not last_checkpoint(row.path).is_file():
        return [], "", "It has no checkpoint yet: there is no policy to play."
    if episodes is None and is_elsewhere:
        return [], "", "It was not played; phalanx report --episodes 100 plays it."
    if row.state == "running":
        return [], "", "It is not played while it is trained."
    from phalanx.play.evaluate import evaluate  # compiles, where nothing has yet

    horizon = whole(settings_of(row.path)[0].get("horizon")) or max(HORIZONS)
    horizons = tuple(h for h in HORIZONS if h <= horizon) or (horizon,)
    asked: Facts = {} if is_elsewhere else {"horizon": horizons}
    try:
        scores = evaluate(str(row.path), episodes=episodes or EPISODES, seed=SEED, **asked)
    except PhalanxError as error:
        return [], "", f"It could not be played: {error}."
    return [dataclasses.asdict(cell) for cell in scores.cells], scores.config.rules, ""


def _score(value: float | None) -> str:
    return "-" if value is None else minus(f"{value:.2f}")


def _share(value: object) -> str:
    return "-" if value is None else f"{value:.1%}"
