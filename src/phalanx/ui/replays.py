"""Replays that pages ask for: who defends, against whom, which episode; played as a job."""

from dataclasses import replace
from pathlib import Path

from phalanx.agents import AGENTS
from phalanx.cage2.defenders import DEFENDERS
from phalanx.cage2.settings import refuse_own
from phalanx.errors import ConfigError, choices
from phalanx.play.players import check_there, open_players, remarks
from phalanx.show.replay.config import ReplayConfig
from phalanx.show.replay.replay import Replay, record_plays
from phalanx.ui.jobs import Jobs, Tell
from phalanx.ui.looked_back import share_of
from phalanx.ui.run_views import RunViews

OF_RUNS = "run/"  # what a run's name comes after, so that none can be taken for another defender
MOST_EPISODES = 10_000


class Replays:
    """What can be asked for; a `Replay` comes of it."""

    def __init__(self, runs: RunViews, jobs: Jobs) -> None:
        self._runs, self._jobs = runs, jobs

    def begin(
        self,
        policy: str,
        compare: str = "",
        red_agent: str = "meander",
        horizon: int = 100,
        rules: str = "",
        seed: int = 0,
        pick: str = "",
        of: int = 1000,
        what_if: bool = True,
    ) -> dict[str, object]:
        """An episode of one defender, or of two on the same dice."""
        if of > MOST_EPISODES:
            raise ConfigError(f"pick one of {MOST_EPISODES:,} episodes at most")
        refuse_own(red_agent, "a page names no code; use phalanx replay --red-agent")
        given = [name for name in (policy, compare) if name]
        targets = [self._target(name) for name in given]
        shown = dict(zip(targets, (name.removeprefix(OF_RUNS) for name in given), strict=True))
        config = ReplayConfig(
            target=targets[0],
            compare=targets[1] if compare else "",
            red_agent=red_agent,
            horizon=horizon,
            rules=rules,
            seed=seed,
            pick=pick,
            of=of if pick else 1000,
            what_if=None if what_if else False,
            out=Path("/dev/null"),
        )
        _checked_before_it_begins = config.played
        what = f"the replay of {' and '.join(shown.values())}"
        return self._jobs.begin(what, lambda tell: _replayed(config, shown, tell)).facts()

    def trajectory(self, id: str) -> dict[str, object]:
        """What the viewer draws, and what is to be said of it."""
        replay = self._found(id)
        return {"trajectory": replay.trajectory, "picked": replay.picked, "said": str(replay)}

    def page(self, id: str) -> str:
        """The same as a file that opens from disk."""
        return self._found(id).page()

    def _found(self, id: str) -> Replay:
        found = self._jobs.result(id)
        if not isinstance(found, Replay):
            raise ConfigError("this is no replay")
        return found

    def _target(self, name: str) -> str:
        """A defender by a name that pages may use: no code of a user is imported by it."""
        if name.startswith(OF_RUNS):
            return str(self._runs.unlinked(name.removeprefix(OF_RUNS)))
        if name not in (*AGENTS, *DEFENDERS):
            raise ConfigError(choices("defender", name, (*AGENTS, *DEFENDERS)))
        return name


def _replayed(config: ReplayConfig, names: dict[str, str], tell: Tell) -> Replay:
    """names: of runs in the list; where they lie on this machine is nobody's business."""
    tell(0.0, "Setting up")
    players = [replace(one, name=names[one.name]) for one in open_players(config.played)]
    check_there(players, config.played.scenario)

    def heard(what: str, done: int, total: int, note: str = "") -> None:
        tell(share_of(what, done, total), f"{what[:1].upper()}{what[1:]} {note}".strip())

    told = record_plays(config, players, heard)
    trained_elsewhere = remarks(players, config.played.rules, config.played.scenario)
    said = "; ".join(filter(None, [told.picked, *trained_elsewhere]))
    return Replay(told.trajectory, said)
