"""Settings of `phalanx replay`."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated

from phalanx.cage2.defenders import GREEDY
from phalanx.cage2.settings import MAX_THREADS, is_own, red_agent_number
from phalanx.errors import ConfigError
from phalanx.files import check_writable
from phalanx.play.evaluate_config import EvaluateConfig, check_of_cage2, plain
from phalanx.play.plan_config import PlanConfig, is_planned
from phalanx.settings.fields import OneOf, Only, OrWord, Within, checked, section

MAX_TURNS = 1000  # of an episode that somebody is to look at
MAX_EPISODES = 1_000_000
MAX_GAMES = 10_000
IN_MEMORY = "(in memory)"  # a defender that a program gives
PICKS = ("best", "median", "typical", "worst")
PICKED = Only("--pick", lambda mine: bool(mine.pick))
PLAYED = Only("episodes that are played, not recorded ones", lambda mine: mine.trace is None)
ASKED = Only("--what-if", lambda mine: mine.what_if is not False and mine.trace is None)


@checked
@dataclass(frozen=True, kw_only=True)
class ReplayConfig(PlanConfig):
    """Write an episode as one HTML file that shows it turn by turn, and where it went wrong.

    What is true beside what blue sees and can know, both moves in words, what each turn cost and
    why, and what other actions would have brought.
    """

    section("episode")
    target: str = field(default="", metadata={"positional": True})
    """run folder, checkpoint, module:factory of your own (docs/defenders.md), or name of a
    defender, such as champion or react-restore; champion+plan is the champion with planning"""
    compare: Annotated[str, PLAYED] = ""
    """another defender, shown beside the first on the same dice"""
    red_agent: str | None = None
    """attacker: meander (if not given), b_line, sleep, b_line_detour, meander_rescan, coin, one of
    your own, my_file.py:my_red (docs/attackers.md), or a mixture such as b_line=0.5,meander=0.5;
    with --trace, count only this one's episodes"""
    green: Annotated[float | None, Within(0, 1), PLAYED] = None
    """the chance that green acts in a turn: 1 is the original's GreenAgent; none if not given"""
    scenario: Annotated[str, PLAYED] = ""
    """network: cage2, a file (docs/scenarios.md), or many, of which the episode draws its own: a
    folder of files, or random:seed=2,users=8-12; a run's own (else cage2) if not given"""
    horizon: Annotated[int, Within(1, MAX_TURNS), PLAYED] = 100
    """turns of the episode, 1 to 1000"""
    seed: Annotated[int, Within(0, 2**64 - 1), PLAYED] = 0
    """the only source of chance; the episodes are those of phalanx evaluate with this seed"""
    episode: Annotated[int, Within(0, MAX_EPISODES - 1)] = 0
    """its number, counted from 0: episode i of an evaluation, or of recorded games"""
    pick: Annotated[str, OneOf("", *PICKS), PLAYED] = ""
    """choose the episode by its return instead: worst, median, best; or typical, whose return so
    far stays nearest to the mean, turn by turn"""
    of: Annotated[int, Within(2, MAX_EPISODES), PICKED] = 1000
    """out of so many episodes"""
    trace: Path | None = None
    """replay a recorded game of the original: a folder with codebook.json and .npz traces, or one
    of its files"""
    rules: Annotated[str, PLAYED] = ""
    """rule set: 2.1-final or 2.1-leaderboard; a run's own (else 2.1-leaderboard) if not given"""
    workflow: Annotated[str | None, PLAYED] = None
    """order of repair that the policy is told, or all: a mixture; a run's own if not given"""
    network: Annotated[str | None, PLAYED] = None
    """the module:factory of a run that trained a torch network of your own"""

    section("what if")
    what_if: Annotated[bool | None, PLAYED] = None
    """find out what other actions would have brought, by games from the true state of each turn;
    default: where a trained policy of phalanx's own networks plays"""
    games: Annotated[int, Within(8, MAX_GAMES), ASKED] = 200
    """games for each action, and twice as many more where the best seems to be better than the one
    that was played"""

    section("output")
    out: Path = Path("replay.html")
    """the page to write"""
    json: Path | None = None
    """also write the trajectory to this file (docs/trajectory.md)"""
    num_threads: Annotated[int | str, Within(1, MAX_THREADS), OrWord("auto")] = "auto"
    """threads that play; results do not depend on it"""

    def __post_init__(self) -> None:
        if self.trace is None:
            self._check_played()
        else:
            self._check_recorded()
        if self.json is not None and self.json.resolve() == self.out.resolve():
            raise ConfigError(f"--out and --json are both {self.out}; give two names")
        for path in (self.out, self.json):
            check_writable(path)

    def _check_played(self) -> None:
        if not self.target:
            raise ConfigError("give a defender, such as champion, or --trace FOLDER")
        if self.compare == self.target:
            raise ConfigError(f"--compare {self.compare} is the first defender; give another")
        if self.workflow == "named":
            raise ConfigError("replay shows one workflow at a time; give --workflow ORDER")
        if GREEDY in map(plain, self.targets) and self.workflow is None:
            raise ConfigError("greedy repairs in an order: give --workflow")
        if self.pick and self.episode:
            raise ConfigError("--pick chooses the episode; leave out --episode")
        for name in self.targets:
            check_of_cage2(name, "replay shows", any_network=True)
        if self.green and any(map(is_planned, self.targets)):
            raise ConfigError("+plan looks ahead without green; leave out --green, or +plan")
        if self.what_if and is_own(self.attacker):
            raise ConfigError(
                "--what-if foresees the built-in attackers only, and "
                f"{self.attacker} is your own; leave it out"
            )
        _checked_too = self.played
        if self.what_if and IN_MEMORY not in self.targets and not self.played.checkpoints:
            raise ConfigError(
                f"--what-if plays on with a trained policy, and {self.target} is none; leave it out"
            )

    def _check_recorded(self) -> None:
        if self.target:
            raise ConfigError(
                f"--trace replays a recorded game, in which {self.target} cannot play; leave it out"
            )
        if self.red_agent is not None:
            red_agent_number(self.red_agent)

    @property
    def attacker(self) -> str:
        """Who attacks, if the episode is played."""
        return self.red_agent or "meander"

    @property
    def targets(self) -> tuple[str, ...]:
        """The defenders that play."""
        return (self.target, self.compare) if self.compare else (self.target,)

    @property
    def policies(self) -> tuple[str, ...]:
        """The same, by the name that settings of planning look for."""
        return self.targets

    @cached_property
    def played(self) -> EvaluateConfig:
        """The same episodes as `phalanx evaluate` plays."""
        same = ["rules", "scenario", "green", "workflow", "network", "seed", "num_threads"]
        same += [item.name for item in fields(PlanConfig)]
        return EvaluateConfig(
            target=tuple(name for name in self.targets if name != IN_MEMORY),
            red_agent=(self.attacker,),
            horizon=(self.horizon,),
            episodes=self.of if self.pick else max(2, self.episode + 1),
            **{name: getattr(self, name) for name in same},
        )
