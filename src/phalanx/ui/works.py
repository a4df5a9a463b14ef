"""Long work that pages ask for: reports, comparisons, scores. Each is a job."""

from pathlib import Path

from phalanx.cage2.registration import CAGE2_ENVS
from phalanx.cage2.rules.scenario import CELLS, PUBLISHED
from phalanx.errors import ConfigError
from phalanx.play.cells import play_cells
from phalanx.play.evaluate_config import EvaluateConfig
from phalanx.play.scores import Scores
from phalanx.show.compare.compare import compare
from phalanx.show.compare.config import CompareConfig
from phalanx.show.compare.page import compare_page
from phalanx.show.drawing.chart import check_installed
from phalanx.show.report.config import ReportConfig
from phalanx.show.report.report import report_page
from phalanx.ui.jobs import Jobs, Tell
from phalanx.ui.run_views import RunViews

MOST_RUNS = 100
EPISODES = 1000


class Works:
    """What can be asked for; what came of it is `Jobs.result`, or a page of its own."""

    def __init__(self, runs: RunViews, jobs: Jobs) -> None:
        self._runs, self._jobs = runs, jobs

    def report(self, runs: list[str]) -> dict[str, object]:
        """A page about one or more runs."""
        paths = self._paths(runs, least=1)
        check_installed()
        config = ReportConfig(runs=paths, out=Path("/dev/null"))

        def work(tell: Tell) -> str:
            tell(0.1, "Reading tables, playing what was not played yet")
            return report_page(paths, episodes=config.episodes, replays=config.replays)

        return self._jobs.begin(f"the report of {_named(runs)}", work).facts()

    def compare(self, runs: list[str]) -> dict[str, object]:
        """A page that tells which is better, and how sure that is."""
        paths = self._paths(runs, least=2)
        check_installed()
        config = CompareConfig(runs=paths)

        def work(tell: Tell) -> str:
            tell(0.1, "Playing all of them on the same dice")
            return compare_page(compare(config))

        return self._jobs.begin(f"the comparison of {_named(runs)}", work).facts()

    def score(self, run: str) -> dict[str, object]:
        """A policy in the nine cells of the leaderboard."""
        path = self._runs.unlinked(run)
        row = self._runs.one(run)["row"]
        if row["env"] not in CAGE2_ENVS or not row["is_playable"]:
            raise ConfigError(f"{run!r:.80} has no policy that plays CAGE-2")
        config = EvaluateConfig(target=(str(path),), leaderboard=True, episodes=EPISODES)

        def work(tell: Tell) -> dict[str, object]:
            cells = []
            tell(0.0, f"{EPISODES:,} games in each of nine cells")
            for cell in play_cells(config):
                cells.append(cell)
                tell(len(cells) / len(CELLS), "")
            scores = Scores(config, tuple(cells))
            return told_scores(scores)

        return self._jobs.begin(f"the scores of {_named([run])}", work).facts()

    def page(self, id: str) -> str:
        """A page that is ready."""
        result = self._jobs.result(id)
        if not isinstance(result, str):
            raise ConfigError("this is no page")
        return result

    def _paths(self, runs: list[str], least: int) -> tuple[Path, ...]:
        names = list(dict.fromkeys(runs))
        if not least <= len(names) <= MOST_RUNS:
            raise ConfigError(f"choose {least} to {MOST_RUNS} runs")
        return tuple(self._runs.unlinked(name) for name in names)


def told_scores(scores: Scores) -> dict[str, object]:
    """Each cell beside the published scores, and the sums."""
    own = {(cell.red_agent, cell.horizon): cell for cell in scores.cells}
    return {
        "names": list(PUBLISHED),
        "episodes": EPISODES,
        "rules": scores.config.rules,
        "cells": [
            {
                "red_agent": red_agent,
                "horizon": horizon,
                "mean": own[red_agent, horizon].mean,
                "low": own[red_agent, horizon].low,
                "high": own[red_agent, horizon].high,
                "published": [one[red_agent, horizon] for one in PUBLISHED.values()],
            }
            for red_agent, horizon in CELLS
        ],
        "total": scores.total,
        "totals": [sum(one.values()) for one in PUBLISHED.values()],
    }


def _named(runs: list[str]) -> str:
    return runs[0] if len(runs) == 1 else f"{len(runs)} runs"
