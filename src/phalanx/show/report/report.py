"""`phalanx report`: runs as one HTML file, from what their folders hold; a crashed one too."""

from collections.abc import Sequence
from pathlib import Path

from phalanx.show.drawing.markup import Body
from phalanx.show.replay.viewer import VIEWER_SCRIPTS, VIEWER_STYLES
from phalanx.show.report.replays import ELEMENT, tell_replays
from phalanx.show.report.run import tell_heading, tell_settings, tell_training
from phalanx.show.report.scores import tell_scores
from phalanx.show.report.search import tell_search
from phalanx.show.report.sweep import tell_sweep
from phalanx.show.runs.runs import RunRow, read_run


def report_page(folders: Sequence[Path], *, episodes: int | None = None, replays: int = 0) -> str:
    """The report of one or more runs, searches and sweeps.

    episodes: to play for the table of scores; None: what was played after training is shown, or
        else a thousand are played; 0: none are played.
    replays: episodes of which the best and the worst are shown; 0: none.
    """
    body = Body()
    rows = [read_run(folder) for folder in folders]
    for row in rows:
        body.add('<section class="run">')
        tell(body, row, episodes, replays)
        body.add("</section>")
    title = rows[0].name if len(rows) == 1 else f"{len(rows)} runs"
    title = f"{title} · phalanx report"
    if ELEMENT not in body.data:
        return body.page(title)
    # The viewer of episodes, once for all of them.
    return body.page(title, VIEWER_STYLES, (*VIEWER_SCRIPTS, "replays.js"))


def tell(body: Body, row: RunRow, episodes: int | None, replays: int) -> None:
    """One of them, with what its kind has."""
    if row.kind == "sweep":
        tell_sweep(body, row)
        return
    tell_heading(body, row)
    if row.kind == "search":
        tell_search(body, row.path)
    tell_scores(body, row, episodes)
    if row.kind == "run":
        tell_training(body, row.path)
    tell_replays(body, row, replays)
    tell_settings(body, row.path)
