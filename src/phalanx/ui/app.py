"""The app: which address gives what."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from phalanx.show.drawing.page import asset, text
from phalanx.show.replay.viewer import VIEWER_SCRIPTS, VIEWER_STYLES
from phalanx.ui.asked import HANDLERS, NotHere, answers
from phalanx.ui.choices import choices
from phalanx.ui.games import Games
from phalanx.ui.guard import ALONE, App, Guard
from phalanx.ui.jobs import Jobs
from phalanx.ui.replays import Replays
from phalanx.ui.run_views import RunViews
from phalanx.ui.works import Works

STYLES = ("base.css", *VIEWER_STYLES, "app.css")
SCRIPTS = (
    *VIEWER_SCRIPTS,
    "app.js",
    "runs.js",
    "curves.js",
    "run.js",
    "jobs.js",
    "ask_replay.js",
    "advice.js",
    "result.js",
    "play.js",
    "play_setup.js",
    "start.js",
)
KINDS = {".js": "text/javascript", ".css": "text/css"}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>phalanx</title>
<link rel="icon" href="data:,">
{styles}
</head>
<body>
<div id="app" data-folder="{folder}"><p class="quiet">Loading …</p></div>
<noscript><p>This page needs JavaScript; all of it comes from this machine.</p></noscript>
{scripts}
</body>
</html>
"""


def make_app(folder: Path, token: str, port: int) -> App:
    """Everything that is asked for goes through the guard first."""
    shell = PAGE.format(
        folder=text(folder),
        styles="\n".join(f'<link rel="stylesheet" href="/assets/{name}">' for name in STYLES),
        scripts="\n".join(f'<script src="/assets/{name}"></script>' for name in SCRIPTS),
    )

    async def page(_request: object) -> Response:
        return HTMLResponse(shell)

    runs, jobs = RunViews(folder), Jobs()
    games, works, replays = Games(jobs), Works(runs, jobs), Replays(runs, jobs)

    def alone(id: str) -> Response:
        """A page that holds everything inside: it needs no more than to be shown."""
        return HTMLResponse(works.page(id), headers={"content-security-policy": ALONE})

    def saved(id: str) -> Response:
        """A replay as a file to keep."""
        name = 'attachment; filename="replay.html"'
        headers = {"content-security-policy": ALONE, "content-disposition": name}
        return HTMLResponse(replays.page(id), headers=headers)

    routes = [
        Route("/", page),
        Route("/assets/{name}", answers(give_asset)),
        Route("/api/runs", answers(runs.list)),
        Route("/api/run", answers(runs.one)),
        Route("/api/run/rows", answers(runs.rows)),
        Route("/api/choices", answers(choices)),
        Route("/api/games", answers(games.begin), methods=["POST"]),
        Route("/api/games/{id}", answers(games.state)),
        Route("/api/games/{id}/turns", answers(games.play), methods=["POST"]),
        Route("/api/games/{id}/open", answers(games.open_cards), methods=["POST"]),
        Route("/api/games/{id}/hint", answers(games.hint)),
        Route("/api/games/{id}/what-if", answers(games.what_if), methods=["POST"]),
        Route("/api/games/{id}/beside", answers(games.beside), methods=["POST"]),
        Route("/api/games/{id}/look-back", answers(games.look_back), methods=["POST"]),
        Route("/api/replays", answers(replays.begin), methods=["POST"]),
        Route("/api/replays/{id}", answers(replays.trajectory)),
        Route("/api/reports", answers(works.report), methods=["POST"]),
        Route("/api/comparisons", answers(works.compare), methods=["POST"]),
        Route("/api/scores", answers(works.score), methods=["POST"]),
        Route("/pages/{id}", answers(alone)),
        Route("/replays/{id}", answers(saved)),
        Route("/api/jobs/{id}", answers(jobs.facts)),
        Route("/api/jobs/{id}/result", answers(jobs.result)),
        Route("/api/jobs/{id}/give-up", answers(jobs.give_up), methods=["POST"]),
    ]

    @asynccontextmanager
    async def until_the_end(_app: Starlette) -> AsyncIterator[None]:
        yield
        jobs.close()
        games.close()

    app = Starlette(routes=routes, exception_handlers=HANDLERS, lifespan=until_the_end)
    return Guard(app, token, port)


def give_asset(name: str) -> Response:
    """A style or script that comes with phalanx, and no other file."""
    if name not in (*STYLES, *SCRIPTS):
        raise NotHere("there is no such file")
    return Response(asset(name), media_type=KINDS[Path(name).suffix])
